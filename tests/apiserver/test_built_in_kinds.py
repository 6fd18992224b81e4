"""Validation of built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest

from support.targets import NAMESPACES, Target, config_map

REQUIRED, INVALID, DUPLICATE = "FieldValueRequired", "FieldValueInvalid", "FieldValueDuplicate"
CORE_EVENT: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "R", "message": "m", "type": "Normal",
    "source": {"component": "c"},
}  # fmt: skip
NEW_EVENT: dict[str, Any] = {
    "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "R", "note": "m",
    "type": "Normal", "action": "A", "eventTime": "2026-01-02T03:04:05.123456Z", "reportingController": "c",
    "reportingInstance": "i",
}  # fmt: skip
SEEN = "2026-01-02T03:04:06.123456Z"


def secret(kind: str = "", **data: Any) -> Any:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data}
    return {**body, "type": kind} if kind else body


@pytest.mark.parametrize(
    ("body", "causes"),
    [
        (secret("kubernetes.io/tls"), {(REQUIRED, "data[tls.crt]"), (REQUIRED, "data[tls.key]")}),
        (secret("kubernetes.io/basic-auth"), {(REQUIRED, "data[username]"), (REQUIRED, "data[password]")}),
        (secret("kubernetes.io/ssh-auth"), {(REQUIRED, "data[ssh-privatekey]")}),
        (secret("kubernetes.io/dockercfg"), {(REQUIRED, "data[.dockercfg]")}),
        (
            secret("kubernetes.io/dockerconfigjson", **{".dockerconfigjson": "YQ=="}),
            {(INVALID, "data[.dockerconfigjson]")},
        ),
        (
            secret("kubernetes.io/service-account-token"),
            {(REQUIRED, "metadata.annotations[kubernetes.io/service-account.name]")},
        ),
        (secret(**{"..a": "YQ=="}), {(INVALID, "data[..a]")}),
        (secret(a="YWJj" * 400_000), {("FieldValueTooLong", "data")}),
    ],
)
def test_secrets_that_are_refused(target: Target, ns: str, body: Any, causes: Any) -> None:
    answer = target.create(f"{NAMESPACES}/{ns}/secrets", body)
    assert (answer.status, answer.causes) == (422, causes)


@pytest.mark.parametrize(
    ("parts", "status", "causes"),
    [
        ({"data": {"a": "1"}, "binaryData": {"a": "YQ=="}}, 422, {(INVALID, "data[a]")}),
        ({"data": {"..a": "1"}}, 422, {(INVALID, "data[..a]")}),
        ({"data": {"a": "x" * (1024 * 1024 + 1)}}, 422, {("FieldValueTooLong", "[]")}),
        ({"data": {"a": "x" * (1024 * 1024)}, "binaryData": {"b": "YQ=="}}, 422, {("FieldValueTooLong", "[]")}),
        ({"data": {"a": "x" * (1024 * 1024)}}, 201, set()),
        ({"data": []}, 400, set()),
        ({"binaryData": {"a": "YQ"}}, 400, set()),
    ],
)
def test_config_maps(target: Target, maps: str, parts: Any, status: int, causes: Any) -> None:
    answer = target.create(maps, {**config_map("a"), **parts})
    assert answer.status == status
    assert status == 201 or answer.causes == causes


def test_an_empty_type_of_a_secret_is_opaque(target: Target, ns: str) -> None:
    body = {**secret(a=""), "type": ""}
    made = target.create(f"{NAMESPACES}/{ns}/secrets", body).ok()
    assert (made["type"], made["data"]) == ("Opaque", {"a": ""})


@pytest.mark.parametrize(
    ("taints", "causes"),
    [
        ([{"key": "a"}], {(REQUIRED, "metadata.taints[0].effect")}),
        ([{"key": "a", "effect": "Other"}], {("FieldValueNotSupported", "metadata.taints[0].effect")}),
        ([{"key": "a b", "effect": "NoSchedule"}], {(INVALID, "metadata.taints[0].key")}),
        ([{"key": "a", "value": "x y", "effect": "NoSchedule"}], {(INVALID, "metadata.taints[0].value")}),
        ([{"key": "a", "effect": "NoSchedule"}] * 2, {(DUPLICATE, "metadata.taints[1]")}),
    ],
)
def test_taints_that_are_refused(target: Target, taints: Any, causes: Any) -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tainted"}, "spec": {"taints": taints}}
    answer = target.create("/api/v1/nodes", body, dryRun="All")
    assert (answer.status, answer.causes) == (422, causes)


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"maxUnavailable": 1, "minAvailable": 1}, {(INVALID, "spec")}),
        ({"maxUnavailable": -1}, {(INVALID, "spec.maxUnavailable")}),
        ({"maxUnavailable": "x"}, {(INVALID, "spec.maxUnavailable")}),
        ({"maxUnavailable": "110%"}, {(INVALID, "spec.maxUnavailable")}),
        ({"unhealthyPodEvictionPolicy": "x"}, {("FieldValueNotSupported", "spec.unhealthyPodEvictionPolicy")}),
        ({"selector": {"matchLabels": {"a b": "c"}}}, {(INVALID, "spec.selector.matchLabels")}),
    ],
)
def test_disruption_budgets_that_are_refused(target: Target, ns: str, spec: Any, causes: Any) -> None:
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": spec}
    answer = target.create(f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", body)
    assert (answer.status, answer.causes) == (422, causes)


@pytest.mark.parametrize(
    ("spec", "status", "stored"),
    [
        ({"leaseDurationSeconds": 2**31}, 400, None),
        ({"leaseDurationSeconds": 0}, 422, None),
        ({"renewTime": "2026-01-02T03:04:05Z"}, 400, None),
        ({"renewTime": "2026-01-02T03:04:05.123456+02:00"}, 201, {"renewTime": "2026-01-02T01:04:05.123456Z"}),
        ({"holderIdentity": "a", "strategy": "x", "preferredHolder": "b"}, 201, {"holderIdentity": "a"}),
    ],
)
def test_leases(target: Target, ns: str, spec: Any, status: int, stored: Any) -> None:
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec}
    answer = target.create(f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", body)
    assert answer.status == status
    assert status != 201 or answer.body["spec"] == stored


# -- events ----------------------------------------------------------------------------------------------------------


def core_event(ns: str, name: str = "e", **parts: Any) -> Any:
    return {**CORE_EVENT, "metadata": {"name": name}, "involvedObject": {"kind": "Pod", "namespace": ns}, **parts}


def new_event(ns: str, name: str = "e", **parts: Any) -> Any:
    return {**NEW_EVENT, "metadata": {"name": name}, "regarding": {"kind": "Pod", "namespace": ns}, **parts}


def core_path(ns: str) -> str:
    return f"{NAMESPACES}/{ns}/events"


def new_path(ns: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{ns}/events"


@pytest.mark.parametrize(
    ("parts", "causes"),
    [
        ({"involvedObject": {"namespace": "other"}}, {(INVALID, "involvedObject.namespace")}),
        ({"involvedObject": {}}, {(INVALID, "involvedObject.namespace")}),
        (
            {"eventTime": SEEN, "reportingComponent": "c/x y", "reportingInstance": "i", "action": "A"},
            {(INVALID, "reportingComponent")},
        ),
        (
            {"eventTime": SEEN, "reportingComponent": "c"},
            {(REQUIRED, "reportingInstance"), (REQUIRED, "action")},
        ),
    ],
)
def test_core_events_that_are_refused(target: Target, ns: str, parts: Any, causes: Any) -> None:
    answer = target.create(core_path(ns), core_event(ns, **parts))
    assert (answer.status, answer.causes) == (422, causes)


@pytest.mark.parametrize(
    ("parts", "causes"),
    [
        ({"regarding": {"kind": "Node"}}, {(INVALID, "involvedObject.namespace")}),
        ({"reportingController": "x/y/z"}, {(INVALID, "reportingController")}),
        ({"series": {"count": 1, "lastObservedTime": SEEN}}, {(INVALID, "series.count")}),
        ({"series": {"count": 2}}, {(REQUIRED, "series.lastObservedTime")}),
        ({"note": "x" * 1025}, {(INVALID, "message")}),
        ({"deprecatedCount": 2}, {(INVALID, "count")}),
        ({"deprecatedSource": {"component": "x"}}, {(INVALID, "source")}),
        ({"deprecatedLastTimestamp": "2026-01-02T03:04:05Z"}, {(INVALID, "lastTimestamp")}),
    ],
)
def test_new_events_that_are_refused(target: Target, ns: str, parts: Any, causes: Any) -> None:
    answer = target.create(new_path(ns), new_event(ns, **parts))
    assert (answer.status, answer.causes) == (422, causes)


def test_a_new_event_may_be_about_an_object_of_another_namespace(target: Target, ns: str) -> None:
    assert target.create(new_path(ns), new_event(ns, regarding={"namespace": "other"})).status == 201


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"note": "changed"}, "message"),
        ({"reason": "changed"}, "reason"),
        ({"action": "changed"}, "action"),
        ({"type": "Warning"}, "type"),
        ({"regarding": {"name": "changed"}}, "involvedObject"),
        ({"reportingController": "changed"}, "reportingController"),
        ({"eventTime": SEEN}, "eventTime"),
        ({"deprecatedCount": 5}, "count"),
    ],
)
def test_only_the_series_of_a_new_event_changes(target: Target, ns: str, patch: Any, field: str) -> None:
    target.create(new_path(ns), new_event(ns)).ok()
    answer = target.patch(f"{new_path(ns)}/e", patch)
    assert (answer.status, answer.causes) == (422, {(INVALID, field)})
    target.patch(f"{new_path(ns)}/e", {"series": {"count": 2, "lastObservedTime": SEEN}}).ok()
    # Through the core group everything can be changed.
    target.patch(f"{core_path(ns)}/e", {"message": "changed"}).ok()
    assert target.get(f"{new_path(ns)}/e").ok()["note"] == "changed"


def test_field_selectors_of_events(target: Target, ns: str) -> None:
    target.create(new_path(ns), new_event(ns, "new")).ok()
    target.create(core_path(ns), core_event(ns, "core")).ok()

    def names(path: str, selector: str) -> list[str]:
        items = target.get(path, query={"fieldSelector": selector}).ok()["items"]
        return [item["metadata"]["name"] for item in items]

    assert names(new_path(ns), "regarding.kind=Pod") == ["core", "new"]
    assert names(new_path(ns), "reportingController=c") == ["new"]
    assert names(core_path(ns), "involvedObject.kind=Pod,source=c") == ["core", "new"]
    for path, selector in [
        (new_path(ns), "involvedObject.kind=Pod"),
        (new_path(ns), "reportingComponent=c"),
        (new_path(ns), "source=c"),
        (core_path(ns), "regarding.kind=Pod"),
        (core_path(ns), "reportingController=c"),
    ]:
        assert target.get(path, query={"fieldSelector": selector}).status == 400, selector
