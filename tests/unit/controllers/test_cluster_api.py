"""Reading a Cluster API Machine at both versions, whole and as projected by the cache, and a Cluster."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.controllers.scheduledmachine.children import EXCLUDE_DRAIN, EXCLUDE_VOLUMES
from fivespot.controllers.scheduledmachine.cluster_api import (
    CLUSTER,
    MACHINE,
    ChildRef,
    Known,
    MachineView,
    read_cluster,
    read_machine,
)
from fivespot.runtime import GroupKind, Object
from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import decode_head

SINCE = "2026-11-30T08:00:00Z"


def condition(type_: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


def v1beta2(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": "web-1",
            "namespace": "team-a",
            "uid": "m-1",
            "resourceVersion": "40",
            "annotations": {"noise": "x", "5spot.finos.org/template-hash": "abc"},
        },
        "spec": {
            "clusterName": "prod",
            "bootstrap": {
                "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "Boot", "name": "web-1"},
                "dataSecretName": "credentials",
            },
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Infra", "name": "web-1"},
            "providerID": "x://1",
            "deletion": {"nodeDrainTimeoutSeconds": 300, "nodeDeletionTimeoutSeconds": 10},
            "taints": [{"key": "a", "effect": "NoSchedule", "propagation": "Always"}],
        },
        "status": {
            "phase": "Running",
            "nodeRef": {"name": "node-1"},
            "conditions": [
                condition("Ready", "True", "Ready"),
                condition("Deleting", "False", "NotDeleting", "no"),
                condition("BootstrapConfigReady", "True"),
            ],
            "deprecated": {"v1beta1": {"conditions": [condition("Ready", "False")]}},
        },
    } | changes


def v1beta1(*, older: list[dict[str, Any]] | None = None, newer: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {
        "phase": "Running",
        "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "node-uid"},
        "conditions": older,
    }
    if newer is not None:
        status["v1beta2"] = {"conditions": newer}
    body = v1beta2(apiVersion="cluster.x-k8s.io/v1beta1", status=status)
    body["spec"] = {
        "clusterName": "prod",
        "bootstrap": {
            "configRef": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "Boot", "name": "web-1"}
        },
        "infrastructureRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "Infra",
            "name": "web-1",
            "namespace": "team-a",
        },
        "providerID": "x://1",
        "nodeDrainTimeout": "5m0s",
    }
    return body


def whole(body: dict[str, Any]) -> MachineView:
    return read_machine(Object.parse(json.dumps(body).encode()))


def kept(body: dict[str, Any]) -> MachineView:
    raw = json.dumps(body).encode()
    return read_machine(Object(MACHINE.project(raw), decode_head(raw, MACHINE.annotations)))


@pytest.fixture(params=[whole, kept], ids=["whole", "kept"])
def read(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_machine_of_v1beta2(read: Any) -> None:
    found = read(v1beta2())
    assert found.api_version == "cluster.x-k8s.io/v1beta2"
    assert found.bootstrap == ChildRef(GroupKind("bootstrap.cluster.x-k8s.io", "Boot"), "web-1")
    assert found.infrastructure == ChildRef(GroupKind("infrastructure.cluster.x-k8s.io", "Infra"), "web-1")
    assert (found.provider_id, found.node, found.node_uid, found.phase) == ("x://1", "node-1", "", "Running")
    assert found.ready
    assert found.ready_since == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert (found.deleting_reason, found.deleting_message) == ("", "")
    assert found.has_drain_timeout
    assert found.taints == 1
    assert not found.remediate


@pytest.mark.contract("B4.2")
def test_a_machine_of_v1beta1_is_ready_by_its_newer_conditions(read: Any) -> None:
    older = [condition("Ready", "True"), condition("HealthCheckSucceeded", "False")]
    found = read(v1beta1(older=older, newer=[condition("Ready", "False", "NodeNotHealthy", "no kubelet")]))
    assert not found.ready
    assert (found.ready_reason, found.ready_message) == ("NodeNotHealthy", "no kubelet")
    assert (found.node, found.node_uid) == ("node-1", "node-uid")
    assert found.has_drain_timeout
    assert found.bootstrap == ChildRef(GroupKind("bootstrap.cluster.x-k8s.io", "Boot"), "web-1")
    assert found.infrastructure == ChildRef(GroupKind("infrastructure.cluster.x-k8s.io", "Infra"), "web-1")


@pytest.mark.contract("B4.2")
def test_the_older_ready_does_not_stand_in_for_one_that_is_not_there_yet(read: Any) -> None:
    # At v1beta1 it is true as soon as the infrastructure is, before there is a Node.
    found = read(v1beta1(older=[condition("Ready", "True")], newer=[condition("InfrastructureReady", "True")]))
    assert not found.ready


def test_a_machine_of_v1beta1_without_newer_conditions_is_ready_by_the_older(read: Any) -> None:
    assert read(v1beta1(older=[condition("Ready", "True")])).ready
    assert read(v1beta1(older=[condition("Ready", "True")], newer=[])).ready


@pytest.mark.parametrize("nothing", [{}, {"conditions": None}, {"conditions": []}, {"nodeRef": None}])
def test_a_machine_that_was_just_created_is_not_ready(read: Any, nothing: dict[str, Any]) -> None:
    found = read(v1beta2(status=nothing))
    assert (found.ready, found.ready_since, found.node, found.phase) == (False, None, "", "")


@pytest.mark.contract("B1.8")
@pytest.mark.parametrize(
    ("remediated", "healthy", "marked"),
    [("False", "False", True), ("False", "True", False), ("True", "False", False), ("Unknown", "False", False)],
)
@pytest.mark.parametrize("version", ["v1beta2", "v1beta1-newer", "v1beta1-older"])
def test_a_health_check_marks_by_two_conditions(
    read: Any, version: str, remediated: str, healthy: str, marked: bool
) -> None:
    conditions = [condition("OwnerRemediated", remediated), condition("HealthCheckSucceeded", healthy)]
    body = {
        "v1beta2": v1beta2(status={"conditions": conditions}),
        "v1beta1-newer": v1beta1(older=[], newer=conditions),
        "v1beta1-older": v1beta1(older=conditions, newer=[condition("Ready", "False")]),
    }[version]
    assert read(body).remediate is marked


@pytest.mark.contract("B1.8")
def test_skip_remediation_is_respected(read: Any) -> None:
    conditions = [condition("OwnerRemediated", "False"), condition("HealthCheckSucceeded", "False")]
    body = v1beta2(status={"conditions": conditions})
    body["metadata"]["annotations"]["cluster.x-k8s.io/skip-remediation"] = ""
    assert not read(body).remediate


@pytest.mark.contract("B2.6")
def test_what_a_deletion_waits_for_is_shown(read: Any) -> None:
    waiting = condition("Deleting", "True", "DrainingNode", "web-1/pod: would violate a PodDisruptionBudget\n")
    found = read(v1beta2(status={"conditions": [waiting]}))
    assert found.deleting_reason == "DrainingNode"
    assert found.deleting_message == "web-1/pod: would violate a PodDisruptionBudget"


@pytest.mark.parametrize(
    ("annotations", "excluded"),
    [({EXCLUDE_DRAIN: "", EXCLUDE_VOLUMES: ""}, True), ({EXCLUDE_DRAIN: ""}, False), ({EXCLUDE_VOLUMES: ""}, False)],
)
def test_a_machine_excludes_draining_only_with_both_annotations(
    read: Any, annotations: dict[str, str], excluded: bool
) -> None:
    body = v1beta2()
    body["metadata"]["annotations"] = annotations
    assert read(body).excludes_drain is excluded


@pytest.mark.contract("B6.2")
def test_a_machine_is_paused_by_its_annotation(read: Any) -> None:
    body = v1beta2()
    assert not read(body).paused
    body["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = "true"
    assert read(body).paused


@pytest.mark.contract("B2.5")
@pytest.mark.parametrize("deletion", [None, {}, {"nodeDeletionTimeoutSeconds": 10}])
def test_a_machine_of_the_existing_5_spot_has_no_drain_timeout(read: Any, deletion: Any) -> None:
    body = v1beta2()
    body["spec"]["deletion"] = deletion
    assert not read(body).has_drain_timeout


@pytest.mark.parametrize("since", ["", "soon", "2026-11-30T08:00:00", "2026-11-30", None, "0001-01-01T00:00:00+14:00"])
def test_a_transition_time_that_is_no_instant_is_none(read: Any, since: str | None) -> None:
    body = v1beta2(status={"conditions": [condition("Ready", "True") | {"lastTransitionTime": since}]})
    assert read(body).ready_since is None


def test_a_machine_with_a_provided_bootstrap_secret_has_no_bootstrap_object(read: Any) -> None:
    body = v1beta2()
    body["spec"]["bootstrap"] = {"dataSecretName": "given"}
    assert read(body).bootstrap is None


def test_the_cache_keeps_only_what_is_read_and_only_the_annotations_that_matter() -> None:
    raw = json.dumps(v1beta2()).encode()
    cut = MACHINE.project(raw)
    assert b"credentials" not in cut
    assert b"BootstrapConfigReady" not in cut
    assert MACHINE.annotations is not None
    assert set(decode_head(raw, MACHINE.annotations).annotations) == {"5spot.finos.org/template-hash"}


def test_a_machine_of_another_shape_is_told_apart_from_none() -> None:
    with pytest.raises(ProtocolError, match="team-a/web-1"):
        whole(v1beta2(spec={"clusterName": 5}))


# Clusters -------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B6.2")
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "projected"])
@pytest.mark.parametrize(
    ("spec", "paused"), [({"paused": True}, True), ({"paused": False}, False), ({"paused": None}, False), (None, False)]
)
def test_a_cluster_is_paused_only_if_its_spec_says_so(cut: bool, spec: Any, paused: bool) -> None:
    body = {"metadata": {"namespace": "team-a", "name": "prod", "uid": "c-1", "resourceVersion": "1"}, "spec": spec}
    obj = Object.parse(json.dumps(body).encode())
    found = read_cluster(Object(CLUSTER.project(obj.raw), obj.head) if cut else obj)
    assert (found.exists, found.paused, found.deleting) == (Known.YES, paused, False)


@pytest.mark.contract("B6.1")
def test_a_cluster_that_is_being_deleted_is_seen_as_such() -> None:
    metadata = {"namespace": "team-a", "name": "prod", "uid": "c-1", "resourceVersion": "1"}
    metadata |= {"deletionTimestamp": SINCE}
    assert read_cluster(Object.parse(json.dumps({"metadata": metadata}).encode())).deleting
