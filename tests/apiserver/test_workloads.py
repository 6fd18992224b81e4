"""Deployments, ReplicaSets, Services and CertificateSigningRequests, and the subresources of built-in kinds."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from support.targets import NAMESPACES, TABLE, Json, Target

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
TEMPLATE: Json = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]},
}
SPEC: Json = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
# A request for the subject CN=x.
SIGNING_REQUEST = """\
-----BEGIN CERTIFICATE REQUEST-----
MIHFMG4CAQAwDDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA
BOljCWHtoEAy5Om3hQRViyzIRa66rlDFuwl0bCNnYvudyE6eEV0+GSuKdaT654NZ
Yxcgl4XCp74twKhWmvpwXGqgADAKBggqhkjOPQQDAgNHADBEAiAAuR9mCt90g2VE
AFZ1LA84zBmYBdcR+vRIM4hxgZUIJwIgK59hyYTpk1RXOoC9tNzplu6skpm9/Vt0
UZaUF6X1tPQ=
-----END CERTIFICATE REQUEST-----
"""


def workload(kind: str, name: str, spec: Any) -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def service(name: str, spec: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def deployments(ns: str) -> str:
    return f"/apis/apps/v1/namespaces/{ns}/deployments"


@pytest.fixture
def services(ns: str) -> str:
    return f"{NAMESPACES}/{ns}/services"


def test_a_deployment_gets_its_defaults(target: Target, deployments: str) -> None:
    made = target.create(deployments, workload("Deployment", "d", SPEC)).ok()
    spec = made["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    pods = spec["template"]["spec"]
    assert (pods["restartPolicy"], pods["dnsPolicy"], pods["schedulerName"]) == (
        "Always", "ClusterFirst", "default-scheduler",
    )  # fmt: skip
    assert pods["containers"] == [
        {
            "name": "c",
            "image": "example.com/c:1",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }
    ]
    assert made["status"] == {}
    assert made["metadata"]["generation"] == 1


def test_only_the_spec_of_a_deployment_counts_as_a_generation(target: Target, deployments: str) -> None:
    target.create(deployments, workload("Deployment", "d", SPEC)).ok()
    changed = target.patch(f"{deployments}/d", {"spec": {"replicas": 3}, "status": {"replicas": 7}}).ok()
    assert changed["metadata"]["generation"] == 2
    assert "replicas" not in changed["status"]
    status = target.patch(f"{deployments}/d/status", {"spec": {"replicas": 4}, "status": {"replicas": 7}}).ok()
    assert (status["metadata"]["generation"], status["spec"]["replicas"], status["status"]["replicas"]) == (2, 3, 7)


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        (
            {},
            {
                ("FieldValueRequired", "spec.selector"),
                ("FieldValueInvalid", "spec.template.metadata.labels"),
                ("FieldValueRequired", "spec.template.spec.containers"),
            },
        ),
        ({**SPEC, "selector": {}}, {("FieldValueInvalid", "spec.selector")}),
        (
            {**SPEC, "replicas": -1, "minReadySeconds": -1, "revisionHistoryLimit": -1},
            {
                ("FieldValueInvalid", "spec.replicas"),
                ("FieldValueInvalid", "spec.minReadySeconds"),
                ("FieldValueInvalid", "spec.revisionHistoryLimit"),
            },
        ),
        (
            {**SPEC, "minReadySeconds": 5, "progressDeadlineSeconds": 5},
            {("FieldValueInvalid", "spec.progressDeadlineSeconds")},
        ),
        ({**SPEC, "strategy": {"type": "X"}}, {("FieldValueNotSupported", "spec.strategy")}),
        (
            {**SPEC, "strategy": {"type": "Recreate", "rollingUpdate": {}}},
            {("FieldValueForbidden", "spec.strategy.rollingUpdate")},
        ),
        (
            {**SPEC, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            {("FieldValueInvalid", "spec.strategy.rollingUpdate.maxUnavailable")},
        ),
        (
            {**SPEC, "selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            {
                ("FieldValueRequired", "spec.selector.matchExpressions[0].values"),
                ("FieldValueInvalid", "spec.selector"),
            },
        ),
        (
            {**SPEC, "template": {**TEMPLATE, "spec": {"restartPolicy": "Never", "containers": [{"name": "C"}]}}},
            {
                ("FieldValueInvalid", "spec.template.spec.containers[0].name"),
                ("FieldValueRequired", "spec.template.spec.containers[0].image"),
                ("FieldValueNotSupported", "spec.template.spec.restartPolicy"),
            },
        ),
    ],
)
def test_deployments_that_are_refused(target: Target, deployments: str, spec: Any, causes: set[Any]) -> None:
    answer = target.create(deployments, workload("Deployment", "d", spec))
    assert (answer.status, answer.causes) == (422, causes), answer.message


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_the_selector_of_a_workload_is_immutable(target: Target, ns: str, kind: str) -> None:
    path = f"/apis/apps/v1/namespaces/{ns}/{kind.lower()}s"
    target.create(path, workload(kind, "d", SPEC)).ok()
    other = {"spec": {"selector": {"matchLabels": {"a": "c"}}, "template": {"metadata": {"labels": {"a": "c"}}}}}
    answer = target.patch(f"{path}/d", other)
    assert (answer.status, answer.causes) == (422, {("FieldValueInvalid", "spec.selector")})


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_workloads_are_scaled(target: Target, ns: str, kind: str) -> None:
    path = f"/apis/apps/v1/namespaces/{ns}/{kind.lower()}s"
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}
    target.create(path, workload(kind, "d", {**SPEC, "selector": selector})).ok()
    scale = target.get(f"{path}/d/scale").ok()
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 0, "selector": "a=b,!x"})
    assert target.patch(f"{path}/d/scale", {"spec": {"replicas": 5}}).ok()["spec"] == {"replicas": 5}
    assert target.get(f"{path}/d").ok()["spec"]["replicas"] == 5
    refused = target.patch(f"{path}/d/scale", {"spec": {"replicas": -5}})
    assert refused.message == (
        'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -5: must be greater than or equal to 0'
    )
    unnamed = target.put(f"{path}/d/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}})
    assert unnamed.status == 400


def test_a_scale_is_applied_by_a_manager_of_its_own(target: Target, deployments: str) -> None:
    target.create(deployments, workload("Deployment", "d", SPEC)).ok()
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}}
    refused = target.patch(f"{deployments}/d/scale", body, "apply", fieldManager="m")
    assert (refused.status, refused.causes) == (409, {("FieldManagerConflict", ".spec.replicas")})
    applied = target.patch(f"{deployments}/d/scale", body, "apply", fieldManager="m", force="true").ok()
    assert applied["spec"] == {"replicas": 2}
    records = target.get(f"{deployments}/d").ok()["metadata"]["managedFields"]
    [mine] = [each for each in records if each["manager"] == "m"]
    assert (mine["operation"], mine["subresource"]) == ("Apply", "scale")
    assert mine["fieldsV1"] == {"f:spec": {"f:replicas": {}}}


def test_workloads_as_tables(target: Target, ns: str, deployments: str) -> None:
    target.create(deployments, workload("Deployment", "d", SPEC)).ok()
    table = target.get(deployments, accept=TABLE).ok()
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"]
    cells = table["rows"][0]["cells"]
    assert cells[:4] + cells[5:] == ["d", "0/1", 0, 0, "c", "example.com/c:1", "a=b"]
    sets = f"/apis/apps/v1/namespaces/{ns}/replicasets"
    target.create(sets, workload("ReplicaSet", "r", SPEC)).ok()
    table = target.get(sets, accept=TABLE).ok()
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Desired", "Current", "Ready", "Age", "Containers", "Images", "Selector"]


def test_a_service_gets_an_address(target: Target, services: str) -> None:
    made = target.create(services, service("s", {"ports": [{"port": 80}], "selector": {"a": "b"}})).ok()
    spec = made["spec"]
    assert spec["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": 80}]
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["clusterIP"].startswith("10.0.")
    shown = {
        name: value for name, value in spec.items() if name not in {"ports", "selector", "clusterIP", "clusterIPs"}
    }
    assert shown == {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    assert made["status"] == {"loadBalancer": {}}
    other = target.create(services, service("t", {"ports": [{"port": 80}]})).ok()
    assert other["spec"]["clusterIP"] != spec["clusterIP"]


def test_the_address_of_a_service_stays(target: Target, services: str) -> None:
    made = target.create(services, service("s", {"ports": [{"port": 80}]})).ok()
    refused = target.patch(f"{services}/s", {"spec": {"clusterIP": "10.0.0.77"}})
    assert (refused.status, refused.causes) == (422, {("FieldValueInvalid", "spec.clusterIPs[0]")})
    changed = target.patch(f"{services}/s", {"spec": {"clusterIP": None, "ports": [{"port": 81}], "type": "NodePort"}})
    assert changed.ok()["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    [port] = changed.body["spec"]["ports"]
    assert 30_000 <= port["nodePort"] <= 32_767
    again = target.patch(f"{services}/s", {"spec": {"selector": {"a": "b"}}}).ok()
    assert again["spec"]["ports"] == [port]


@pytest.mark.parametrize(
    ("spec", "absent"),
    [
        ({"clusterIP": "None", "selector": {"a": "b"}}, {"ports"}),
        ({"type": "ExternalName", "externalName": "a.b"}, {"clusterIP", "ipFamilies", "internalTrafficPolicy"}),
    ],
)
def test_services_without_an_address(target: Target, services: str, spec: Any, absent: set[str]) -> None:
    made = target.create(services, service("s", spec)).ok()["spec"]
    assert made.get("clusterIP", "None") == "None"
    assert not absent & set(made)


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({}, {("FieldValueRequired", "spec.ports")}),
        ({"type": "ExternalName"}, {("FieldValueRequired", "spec.externalName")}),
        ({"ports": [{"port": 80}], "clusterIP": "1"}, {("FieldValueInvalid", "spec.clusterIPs[0]")}),
        (
            {"ports": [{"port": 0}, {"port": 70_000, "name": "x", "protocol": "X"}, {"port": 1, "name": "x"}]},
            {
                ("FieldValueRequired", "spec.ports[0].name"),
                ("FieldValueInvalid", "spec.ports[0].port"),
                ("FieldValueInvalid", "spec.ports[0].targetPort"),
                ("FieldValueInvalid", "spec.ports[1].port"),
                ("FieldValueNotSupported", "spec.ports[1].protocol"),
                ("FieldValueInvalid", "spec.ports[1].targetPort"),
                ("FieldValueDuplicate", "spec.ports[2].name"),
            },
        ),
        ({"ports": [{"port": 80}], "type": "Foo"}, {("FieldValueNotSupported", "spec.type")}),
    ],
)
def test_services_that_are_refused(target: Target, services: str, spec: Any, causes: set[Any]) -> None:
    answer = target.create(services, service("s", spec))
    assert (answer.status, answer.causes) == (422, causes), answer.message


def test_every_server_has_a_service_of_its_own(target: Target) -> None:
    found = target.get(f"{NAMESPACES}/default/services/kubernetes").ok()
    assert (found["spec"]["clusterIP"], found["spec"]["ports"][0]["port"]) == ("10.0.0.1", 443)


# -- subresources --------------------------------------------------------------------------------------------------


@pytest.fixture
def pods(target: Target, ns: str) -> Iterator[str]:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    target.create(f"{NAMESPACES}/{ns}/serviceaccounts", account)
    path = f"{NAMESPACES}/{ns}/pods"
    for name in ("a", "b"):
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": TEMPLATE["spec"]}
        target.create(path, body).ok()
    yield path
    target.request("DELETE", path, query={"gracePeriodSeconds": "0"})


def eviction(name: str, **options: Any) -> Json:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **options}


def test_pods_are_evicted(target: Target, pods: str) -> None:
    assert target.create(f"{pods}/a/eviction", eviction("b")).status == 400
    assert target.create(f"{pods}/z/eviction", eviction("z")).status == 404
    assert target.get(f"{pods}/a/eviction").status == 405
    other = eviction("a", deleteOptions={"preconditions": {"uid": "x"}})
    assert target.create(f"{pods}/a/eviction", other).status == 409
    tried = target.create(f"{pods}/a/eviction", eviction("a", deleteOptions={"dryRun": ["All"]}))
    assert tried.status == 201
    assert target.get(f"{pods}/a").status == 200
    assert target.create(f"{pods}/a/eviction", eviction("a")).ok()["status"] == "Success"
    assert target.get(f"{pods}/a").status == 404


def test_a_budget_forbids_an_eviction(target: Target, ns: str, pods: str) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "p"},
        "spec": {"minAvailable": 1, "selector": {}},
    }
    budgets = f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
    target.create(budgets, budget).ok()
    assert target.create(f"{pods}/a/eviction", eviction("a")).status == 201, "a pending pod"
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    target.patch(f"{pods}/b/status", running).ok()
    counted = {"observedGeneration": 1, "disruptionsAllowed": 0, "desiredHealthy": 1, "currentHealthy": 1}
    target.patch(f"{budgets}/p/status", {"status": {**counted, "expectedPods": 1}}).ok()
    refused = target.create(f"{pods}/b/eviction", eviction("b"))
    assert (refused.status, refused.reason) == (429, "TooManyRequests")
    assert [each["message"] for each in refused.body["details"]["causes"]] == [
        "The disruption budget p needs 1 healthy pods and has 1 currently"
    ]


def test_pods_are_bound_once(target: Target, pods: str) -> None:
    def bind(pod: str, node: Json) -> Any:
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": node}
        return target.create(f"{pods}/a/binding", body)

    assert bind("b", {"name": "n"}).status == 400
    assert bind("a", {}).message == "target.name: Required value"
    assert bind("a", {"kind": "X", "name": "n"}).status == 500
    assert bind("a", {"kind": "Node", "name": "n"}).status == 201
    bound = target.get(f"{pods}/a").ok()
    assert bound["spec"]["nodeName"] == "n"
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    assert bind("a", {"name": "m"}).message == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"'
    )


def test_service_accounts_get_tokens(target: Target, ns: str, pods: str) -> None:
    path = f"{NAMESPACES}/{ns}/serviceaccounts/default/token"
    body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    made = target.create(path, {**body, "spec": {}}).ok()
    assert made["status"]["token"].count(".") == 2
    assert made["spec"]["audiences"] == ["https://kubernetes.default.svc"]
    short = target.create(path, {**body, "spec": {"expirationSeconds": 1}})
    assert (short.status, short.causes) == (422, {("FieldValueInvalid", "spec.expirationSeconds")})
    assert target.create(path.replace("default/token", "none/token"), {**body, "spec": {}}).status == 404


def test_discovery_lists_subresources(target: Target) -> None:
    listed = {
        each["name"]: (each["kind"], each.get("group", ""), each["verbs"])
        for path in ("/api/v1", "/apis/apps/v1", "/apis/certificates.k8s.io/v1")
        for each in target.get(path).ok()["resources"]
    }
    assert listed["pods/binding"] == ("Binding", "", ["create"])
    assert listed["pods/eviction"] == ("Eviction", "policy", ["create"])
    assert listed["serviceaccounts/token"] == ("TokenRequest", "authentication.k8s.io", ["create"])
    assert listed["deployments/scale"] == ("Scale", "autoscaling", ["get", "patch", "update"])
    approval = listed["certificatesigningrequests/approval"]
    assert approval == ("CertificateSigningRequest", "", ["get", "patch", "update"])


# -- bodies in protobuf --------------------------------------------------------------------------------------------


def encoded(fields: list[tuple[int, Any]]) -> bytes:
    """A message of the protobuf encoding; values are integers, texts, bytes, or fields of a nested message."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += varint(number << 3) + varint(value % 2**64)
            continue
        raw = encoded(value) if isinstance(value, list) else value.encode() if isinstance(value, str) else value
        found += varint(number << 3 | 2) + varint(len(raw)) + raw
    return found


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def protobuf(version: str, kind: str, fields: list[tuple[int, Any]]) -> bytes:
    return b"k8s\x00" + encoded([(1, [(1, version), (2, kind)]), (2, fields)])


def test_workloads_come_as_protobuf(target: Target, deployments: str) -> None:
    container = [(1, "c"), (2, "example.com/c:1"), (8, [(1, [(1, "cpu"), (2, [(1, "100m")])])])]
    container += [(6, [(2, 0), (3, 8080), (4, "TCP")])]
    template = [(1, [(11, [(1, "a"), (2, "b")])]), (2, [(2, container), (4, 0)])]
    rolling = [(1, [(1, 0), (2, 1)]), (2, [(1, 1), (3, "10%")])]
    spec = [(1, 0), (2, [(1, [(1, "a"), (2, "b")])]), (3, template), (4, [(1, "RollingUpdate"), (2, rolling)])]
    body = protobuf("apps/v1", "Deployment", [(1, [(1, "d")]), (2, spec)])
    made = target.request("POST", deployments, body, content="application/vnd.kubernetes.protobuf").ok()
    assert made["spec"]["replicas"] == 0, "a pointer to zero"
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": "10%"}
    pods = made["spec"]["template"]["spec"]
    assert pods["terminationGracePeriodSeconds"] == 0
    [stored] = pods["containers"]
    assert stored["resources"] == {"limits": {"cpu": "100m"}}
    assert stored["ports"] == [{"containerPort": 8080, "protocol": "TCP"}]


def test_nodes_come_as_protobuf(target: Target, ns: str) -> None:
    taint = [(1, "example.com/t"), (2, ""), (3, "NoSchedule")]
    condition = [(1, "Ready"), (2, "True"), (4, [(1, 1_700_000_000)])]
    status = [(1, [(1, "cpu"), (2, [(1, "4")])]), (4, condition), (5, [(1, "InternalIP"), (2, "10.1.2.3")])]
    node = [(1, [(1, ns), (11, [(1, "l"), (2, "")])]), (2, [(3, "example://1"), (4, 1), (5, taint)]), (3, status)]
    body = protobuf("v1", "Node", node)
    made = target.request("POST", "/api/v1/nodes", body, content="application/vnd.kubernetes.protobuf").ok()
    assert made["metadata"]["labels"] == {"l": ""}
    assert (made["spec"]["providerID"], made["spec"]["unschedulable"]) == ("example://1", True)
    assert {"key": "example.com/t", "effect": "NoSchedule"} in made["spec"]["taints"]
    assert made["status"]["capacity"] == {"cpu": "4"}
    assert made["status"]["addresses"] == [{"type": "InternalIP", "address": "10.1.2.3"}]
    [ready] = made["status"]["conditions"]
    assert (ready["type"], ready["lastTransitionTime"]) == ("Ready", "2023-11-14T22:13:20Z")
    target.delete(f"/api/v1/nodes/{ns}")


# -- certificates --------------------------------------------------------------------------------------------------


def signing_request(name: str, **spec: Any) -> Json:
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def request_path(target: Target, ns: str) -> Iterator[str]:
    encoded = base64.b64encode(SIGNING_REQUEST.encode()).decode()
    body = signing_request(ns, request=encoded, signerName="example.com/x", usages=["client auth"])
    target.create(REQUESTS, body).ok()
    yield f"{REQUESTS}/{ns}"
    target.delete(f"{REQUESTS}/{ns}")


def condition(type_: str, status: str = "True") -> Json:
    return {"status": {"conditions": [{"type": type_, "status": status, "reason": "r", "message": "m"}]}}


def test_signing_requests_are_approved_by_their_subresource_alone(target: Target, request_path: str) -> None:
    unchanged = target.patch(request_path, {"spec": {"signerName": "q.com/a"}, **condition("Approved")}).ok()
    assert unchanged["spec"]["signerName"] == "example.com/x"
    assert unchanged["status"] == {}
    approved = target.patch(f"{request_path}/approval", condition("Approved")).ok()
    assert [each["type"] for each in approved["status"]["conditions"]] == ["Approved"]
    for denied in (condition("Denied"), condition("Approved", "False")):
        assert target.patch(f"{request_path}/approval", denied).status == 422
    text = base64.b64encode(b"text").decode()
    assert target.patch(f"{request_path}/status", {"status": {"certificate": text}}).status == 422


def test_signing_requests_that_are_refused(target: Target, ns: str) -> None:
    answer = target.create(REQUESTS, signing_request(ns))
    expected = {
        ("FieldValueInvalid", "spec.request"),
        ("FieldValueRequired", "spec.usages"),
        ("FieldValueRequired", "spec.signerName"),
    }
    assert (answer.status, answer.causes) == (422, expected)
    encoded = base64.b64encode(SIGNING_REQUEST.encode()).decode()
    wrong = {"request": encoded, "signerName": "x", "usages": ["x", "signing", "signing"], "expirationSeconds": 1}
    answer = target.create(REQUESTS, signing_request(ns, **wrong))
    expected = {
        ("FieldValueNotSupported", "spec.usages[0]"),
        ("FieldValueDuplicate", "spec.usages[2]"),
        ("FieldValueInvalid", "spec.signerName"),
        ("FieldValueInvalid", "spec.expirationSeconds"),
    }
    assert (answer.status, answer.causes) == (422, expected)
