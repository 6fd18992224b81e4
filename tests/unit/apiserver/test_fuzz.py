"""Arbitrary requests get valid responses: no internal errors, no hangs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from fivespot.apiserver import ApiRequest, ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
WORDS = st.sampled_from([
    "apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "finalizers", "ownerReferences",
    "managedFields", "fieldsV1", "uid", "resourceVersion", "generateName", "spec", "status", "data", "stringData",
    "type",
    "ports", "tags", "map", "size", "names", "versions", "schema", "openAPIV3Schema", "properties", "items", "required",
    "pattern", "x-kubernetes-validations", "rule", "x-kubernetes-list-map-keys", "additionalPrinterColumns", "jsonPath",
    "subresources", "scale", "group", "scope", "plural", "preconditions", "dryRun", "propagationPolicy", "conditions",
    "containers", "involvedObject", "series", "renewTime", "f:x", "k:{}", ".",
])  # fmt: skip
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=5),
    max_leaves=20,
)
PARAMETERS = st.sampled_from([
    "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch", "watch",
    "sendInitialEvents", "allowWatchBookmarks", "timeoutSeconds", "dryRun", "fieldManager", "fieldValidation", "force",
    "propagationPolicy", "orphanDependents", "gracePeriodSeconds", "includeObject", "pretty",
])  # fmt: skip
VALUES = st.sampled_from(
    ["", "0", "1", "true", "All", "Exact", "NotOlderThan", "a=b", "!a", "a in (b", "Strict", "m"]
) | st.text(max_size=8)
PATHS = st.sampled_from([
    MAPS, f"{MAPS}/a", f"{WIDGETS}", f"{WIDGETS}/a", f"{WIDGETS}/a/status", f"{WIDGETS}/a/scale", DEFINITIONS,
    f"{DEFINITIONS}/widgets.example.com", f"{DEFINITIONS}/things.example.com", "/api/v1/namespaces",
    "/api/v1/namespaces/x",
    "/api/v1/namespaces/x/finalize", "/api/v1/namespaces/default/events", "/api/v1/namespaces/default/pods",
    "/api/v1/nodes",
    "/apis/events.k8s.io/v1/namespaces/default/events", "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/api/v1/namespaces/default/secrets", "/api", "/apis", "/openapi/v3", "/openapi/v3/apis/example.com/v1",
    "/version",
])  # fmt: skip
CONTENT = st.sampled_from([
    "application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf", "x",
])  # fmt: skip
ACCEPT = st.sampled_from([
    "", "application/json", "*/*", "application/json;as=Table;g=meta.k8s.io;v=v1", "text/html", ";;,",
    "application/json;q=x",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
])  # fmt: skip
WHOLE: dict[str, dict[str, Any]] = {
    WIDGETS: {"apiVersion": "example.com/v1", "kind": "Widget"},
    DEFINITIONS: {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 0"}]},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
DEFINITION = {
    **WHOLE[DEFINITIONS],
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.n"},
                },
            }
        ],
    },
}


@st.composite
def requests(draw: st.DrawFn) -> ApiRequest:
    method = draw(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "GET", "PATCH", "HEAD"]))
    path = draw(PATHS | st.text(max_size=20).map(lambda text: f"/{text}"))
    body = draw(JSON)
    if draw(st.booleans()) and isinstance(body, dict):
        # Close enough to a valid object to pass decoding.
        base = next((whole for prefix, whole in WHOLE.items() if path.startswith(prefix)), {})
        given = body.get("metadata")
        metadata = given if isinstance(given, dict) else {}
        body = {
            **body,
            **base,
            "metadata": {**metadata, "name": path.rpartition("/")[2] if path.count("/") > 5 else "a"},
        }
    raw = draw(st.binary(max_size=30)) if draw(st.integers(0, 9)) == 0 else json.dumps(body).encode()
    query = draw(st.lists(st.tuples(PARAMETERS, VALUES), max_size=4))
    headers = {"content-type": draw(CONTENT), "accept": draw(ACCEPT), "user-agent": draw(st.text(max_size=4))}
    return ApiRequest(method, path, query, headers, raw)


async def play(sent: list[ApiRequest]) -> None:
    async with ApiServer(seed=1) as server:
        assert (await server.handle(ApiRequest.of("POST", DEFINITIONS, DEFINITION))).status == 201
        await asyncio.sleep(0)
        await server.handle(ApiRequest.of("POST", MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}))
        widget = {**WHOLE[WIDGETS], "metadata": {"name": "a"}, "spec": {"ports": [{"name": "p"}], "tags": ["t"]}}
        await server.handle(ApiRequest.of("POST", WIDGETS, widget))
        for request in sent:
            answer = await server.handle(request)
            if isinstance(answer.body, bytes):
                assert b'"InternalError"' not in answer.body, (request, answer.body)
                assert 200 <= answer.status < 600
            else:
                answer.body.close()
            await asyncio.sleep(0)
        # The server still works, and stored objects can be read in every representation.
        for accept in ("application/json", "application/json;as=Table;g=meta.k8s.io;v=v1"):
            for path in ("/api/v1/configmaps", "/api/v1/namespaces", DEFINITIONS, "/openapi/v3"):
                answer = await server.handle(ApiRequest.of("GET", path, headers={"accept": accept}))
                assert answer.status == 200, (path, answer.body)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.lists(requests(), min_size=1, max_size=12))
def test_any_requests_are_answered_properly(sent: list[ApiRequest]) -> None:
    asyncio.run(play(sent))
