"""Representations: Tables, metadata only, discovery, OpenAPI."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.targets import METADATA, METADATA_LIST, NAMESPACES, TABLE, Defined, Target, config_map

pytestmark = pytest.mark.usefixtures("cleared")

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Note", "type": "string", "jsonPath": ".spec.note", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "description": "How large."},
        "note": {"type": "string"},
        "port": {"x-kubernetes-int-or-string": True},
    },
}


@pytest.fixture(scope="module")
def widgets(target: Target) -> Any:
    names = {"kind": "Widget", "plural": "widgets", "shortNames": ["wg"], "categories": ["all"]}
    defined = target.define(SPEC, names=names, subresources={"status": {}}, additionalPrinterColumns=COLUMNS)
    yield defined
    defined.remove()


def cells(body: dict[str, Any]) -> list[list[Any]]:
    return [row["cells"] for row in body["rows"]]


def test_tables_of_built_in_kinds(target: Target, maps: str) -> None:
    target.create(maps, config_map("a", {"x": "1", "y": "2"})).ok()
    table = target.get(maps, accept=TABLE).ok()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    ((name, data, age),) = cells(table)
    assert (name, data) == ("a", 2)
    assert re.fullmatch(r"\d+s", age)
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = target.get(maps, accept=TABLE, query={"includeObject": "Object"}).ok()
    assert whole["rows"][0]["object"]["data"] == {"x": "1", "y": "2"}
    one = target.get(f"{maps}/a", accept=TABLE).ok()
    assert len(cells(one)) == 1


def test_tables_of_custom_resources(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    target.create(path, widgets.body("a", {"size": 3, "note": "n"})).ok()
    target.patch(f"{path}/a/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}).ok()
    target.create(path, widgets.body("b", {"size": 4})).ok()
    table = target.get(path, accept=TABLE).ok()
    columns = [(each["name"], each["type"], each["priority"]) for each in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("Size", "integer", 0),
        ("Ready", "string", 0),
        ("Note", "string", 1),
        ("Age", "date", 0),
    ]
    assert [row[:4] for row in cells(table)] == [["a", 3, "True", "n"], ["b", 4, None, None]]


def test_a_watch_of_tables_names_its_columns_once(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    with target.watch(maps, accept=TABLE) as events:
        first = events.next()
        target.create(maps, config_map("b")).ok()
        second = events.next()
    assert first is not None
    assert second is not None
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert not second["object"]["columnDefinitions"]
    assert cells(second["object"])[0][0] == "b"


def test_metadata_alone(target: Target, widgets: Defined, maps: str, ns: str) -> None:
    made = target.create(maps, config_map("a", {"x": "1"})).ok()
    seen = target.get(f"{maps}/a", accept=METADATA).ok()
    assert seen == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }
    listed = target.get(maps, accept=METADATA_LIST).ok()
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"] for item in listed["items"]] == [made["metadata"]]
    custom = target.create(widgets.path(ns), widgets.body("a", {"size": 3})).ok()
    items = target.get(widgets.path(ns), accept=METADATA_LIST).ok()["items"]
    assert [item["metadata"] for item in items] == [custom["metadata"]]


def test_the_first_form_that_is_known_is_sent(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    accept = f"application/vnd.unknown,{METADATA_LIST},application/json;q=0.9"
    assert target.get(maps, accept=accept).ok()["kind"] == "PartialObjectMetadataList"
    assert target.get(maps, accept="*/*").ok()["kind"] == "ConfigMapList"
    refused = target.get(maps, accept="text/html")
    assert refused.status == 406


def test_plain_discovery(target: Target, widgets: Defined) -> None:
    assert target.get("/api").ok()["versions"] == ["v1"]
    core = {each["name"]: each for each in target.get("/api/v1").ok()["resources"]}
    assert core["configmaps"]["shortNames"] == ["cm"]
    assert (core["namespaces"]["namespaced"], core["pods"]["kind"]) == (False, "Pod")
    assert {"namespaces/status", "namespaces/finalize", "pods/status", "nodes/status"} <= set(core)
    groups = target.groups()
    assert groups[widgets.group]["preferredVersion"]["version"] == "v1"
    assert {"apiextensions.k8s.io", "coordination.k8s.io", "events.k8s.io"} <= set(groups)
    group = target.get(f"/apis/{widgets.group}").ok()
    assert (group["kind"], group["name"]) == ("APIGroup", widgets.group)
    listed = target.get(f"/apis/{widgets.group}/v1").ok()
    assert listed["groupVersion"] == f"{widgets.group}/v1"
    resources = {each["name"]: each for each in listed["resources"]}
    assert set(resources) == {"widgets", "widgets/status"}
    widget = {name: value for name, value in resources["widgets"].items() if name != "storageVersionHash"}
    assert widget == {
        "name": "widgets",
        "singularName": "widget",
        "namespaced": True,
        "kind": "Widget",
        "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        "shortNames": ["wg"],
        "categories": ["all"],
    }
    assert resources["widgets/status"]["verbs"] == ["get", "patch", "update"]


def test_aggregated_discovery(target: Target, widgets: Defined) -> None:
    def look() -> Any:
        answer = target.get("/apis", accept=f"{AGGREGATED},application/json;q=0.9")
        assert dict(answer.headers)["Content-Type"] == AGGREGATED
        items = {item["metadata"]["name"]: item for item in answer.ok()["items"]}
        return items.get(widgets.group)

    (version,) = target.eventually(look)["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    (resource,) = version["resources"]
    assert (resource["resource"], resource["scope"], resource["shortNames"]) == ("widgets", "Namespaced", ["wg"])
    assert resource["responseKind"] == {"group": widgets.group, "version": "v1", "kind": "Widget"}
    assert [each["subresource"] for each in resource["subresources"]] == ["status"]
    core = target.get("/api", accept=AGGREGATED).ok()
    names = {
        each["resource"] for item in core["items"] for version in item["versions"] for each in version["resources"]
    }
    assert {"configmaps", "secrets", "namespaces", "pods"} <= names


def test_openapi_describes_custom_resources(target: Target, widgets: Defined) -> None:
    name = f"apis/{widgets.group}/v1"

    def look() -> Any:
        return target.get("/openapi/v3").ok()["paths"].get(name)

    url = target.eventually(look)["serverRelativeURL"]
    document = target.get(url.partition("?")[0]).ok()
    gvk = {"group": widgets.group, "kind": "Widget", "version": "v1"}
    (schema,) = [
        each
        for each in document["components"]["schemas"].values()
        if gvk in each.get("x-kubernetes-group-version-kind", [])
    ]
    assert schema["properties"]["spec"]["properties"]["size"] == {"type": "integer", "description": "How large."}
    assert schema["properties"]["spec"]["required"] == ["size"]
    port = schema["properties"]["spec"]["properties"]["port"]
    assert (port["x-kubernetes-int-or-string"], len(port["anyOf"])) == (True, 2)
    one = document["paths"][f"/apis/{widgets.group}/v1/namespaces/{{namespace}}/widgets/{{name}}"]
    assert one["patch"]["x-kubernetes-group-version-kind"] == gvk
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= {
        each["name"] for each in one["patch"]["parameters"]
    }


def test_versions_and_health(target: Target) -> None:
    version = target.get("/version").ok()
    assert (version["major"], version["minor"]) == ("1", "37")
    assert re.fullmatch(r"v1\.37\.\d+", version["gitVersion"])
    for path in ("/healthz", "/livez", "/readyz"):
        answer = target.get(path)
        assert (answer.status, answer.raw) == (200, b"ok")
    assert "/apis/apiextensions.k8s.io/v1" in target.get("/").ok()["paths"]


def test_paths_with_odd_spellings(target: Target, maps: str) -> None:
    target.create(maps, config_map("a.b")).ok()
    assert target.get(f"{maps}/a%2Eb").ok()["metadata"]["name"] == "a.b"
    assert target.get(f"{NAMESPACES}/").status == 200
    assert target.get(f"{maps}/a%2Fb").status == 404
    assert target.get(f"{maps}/..").status == 400
    assert target.get("/api/v1//namespaces").status == 404
    assert target.get(f"{maps}/a.b/nothing").status == 404
    assert target.get(f"{maps}/a.b/status").status == 404
