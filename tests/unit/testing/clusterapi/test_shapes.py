"""Objects and status fields of the simulated providers, by contract and API version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.runtime import find_condition
from fivespot.testing.clusterapi import (
    SIMULATED,
    SIMULATED_EARLIER,
    Contract,
    KindFamily,
    NodeScript,
    cluster_bodies,
    is_usable,
    lifecycle,
)
from fivespot.testing.clusterapi.kinds import MachineScript
from fivespot.testing.clusterapi.providers import secret_body
from fivespot.testing.clusterapi.views import cluster_of, machine_owner, read_cluster, read_machine
from fivespot.testing.clusterapi.workload import node_body, node_name, provider_id, running_status

from .build import obj, owned_by

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize("family", [SIMULATED, SIMULATED_EARLIER], ids=lambda family: family.prefix)
def test_definitions_tell_cluster_api_their_contract_and_are_found_by_the_plural_that_it_computes(
    family: KindFamily,
) -> None:
    definitions = family.definitions()
    assert len(definitions) == 4
    for definition in definitions:
        names = definition["spec"]["names"]
        assert definition["metadata"]["labels"] == {f"cluster.x-k8s.io/{family.contract}": "v1beta1"}
        assert definition["metadata"]["name"] == f"{names['kind'].lower()}s.{definition['spec']['group']}"
        assert definition["spec"]["versions"][0]["subresources"] == {"status": {}}


def test_two_families_have_no_kind_in_common() -> None:
    names = [d["metadata"]["name"] for family in (SIMULATED, SIMULATED_EARLIER) for d in family.definitions()]
    assert len(names) == len(set(names)) == 8


def test_a_script_ignores_unknown_fields() -> None:
    script = MachineScript.model_validate(
        {"createAfterSeconds": 3, "node": {"ready": False}, "providerID": "a:///b", "size": "large"}
    )
    assert (script.create_after_seconds, script.node.ready, script.provider_id) == (3, False, "a:///b")
    assert MachineScript.model_validate({}).provider_id is None
    with pytest.raises(ValueError, match="createAfterSeconds"):
        MachineScript.model_validate({"createAfterSeconds": -1})


MADE = [
    (
        "v1beta2",
        {"dataSecretName": "s", "initialization": {"dataSecretCreated": True}},
        {"addresses": [], "initialization": {"provisioned": True}},
        {"initialization": {"provisioned": True}},
        {"externalManagedControlPlane": True, "initialization": {"controlPlaneInitialized": True}},
    ),
    (
        "v1beta1",
        {"dataSecretName": "s", "ready": True},
        {"addresses": [], "ready": True},
        {"ready": True},
        {"externalManagedControlPlane": True, "initialized": True, "ready": True},
    ),
]


@pytest.mark.parametrize(("contract", "bootstrap", "machine", "cluster", "control_plane"), MADE)
def test_each_contract_reports_provisioning_in_its_own_fields(
    contract: Any, bootstrap: Any, machine: Any, cluster: Any, control_plane: Any
) -> None:
    assert lifecycle.bootstrap_status(contract, "s") == bootstrap
    assert lifecycle.infrastructure_machine_status(contract, []) == machine
    assert lifecycle.infrastructure_cluster_status(contract) == cluster
    assert lifecycle.control_plane_status(contract) == control_plane
    assert lifecycle.is_provisioned(contract, "provisioned", "ready", machine)
    assert lifecycle.is_provisioned(contract, "dataSecretCreated", "ready", bootstrap)
    other: Contract = "v1beta1" if contract == "v1beta2" else "v1beta2"
    assert not lifecycle.is_provisioned(other, "provisioned", "ready", machine), (
        "said in words that the other does not hear"
    )
    assert not lifecycle.is_provisioned(contract, "provisioned", "ready", {"initialization": None})


def test_the_ready_condition_follows_and_keeps_its_instant() -> None:
    failed = lifecycle.with_ready({"node": "n"}, generation=2, now=NOW, failure="no more of them")
    assert failed["node"] == "n"
    condition = find_condition(failed["conditions"], "Ready")
    assert condition is not None
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "ScriptedFailure",
        "no more of them",
    )
    later = NOW + timedelta(seconds=90)
    assert lifecycle.with_ready(failed, generation=2, now=later, failure="no more of them") == failed
    [made] = lifecycle.with_ready(failed, generation=3, now=later)["conditions"]
    assert (made["status"], made["lastTransitionTime"]) == ("True", "2026-11-30T09:01:30Z")


def test_a_node_is_found_by_its_provider_id_and_no_two_machines_share_a_name() -> None:
    machine = obj()
    node = node_body(machine, NodeScript(labels={"zone": "a"}), ready=True, now=NOW)
    assert node["spec"]["providerID"] == provider_id(machine) == "simulated:///prod/web/0a1b2c3d-4e5f"
    assert node["metadata"]["name"] == node_name(machine) == "web-0a1b2c3d.prod"
    assert node["metadata"]["labels"] == {"zone": "a", "testing.5spot.finos.org/simulated": ""}
    conditions = {c["type"]: c["status"] for c in node["status"]["conditions"]}
    assert conditions == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    assert all("observedGeneration" not in c and c["lastHeartbeatTime"] for c in node["status"]["conditions"])
    assert node_name(obj(uid="ffffffff-1")) != node_name(machine)
    assert node_name(obj(namespace="test")) != node_name(machine)


def test_only_a_machine_of_cluster_api_adopts() -> None:
    assert machine_owner(obj(ownerReferences=owned_by("Machine")).head) is not None
    assert machine_owner(obj(ownerReferences=owned_by("Machine", group="other.example")).head) is None
    assert machine_owner(obj(ownerReferences=owned_by("Cluster")).head) is None
    assert machine_owner(obj().head) is None


def test_a_machine_tells_its_cluster_and_whether_it_can_start() -> None:
    machine = read_machine(obj(spec={"clusterName": "prod", "bootstrap": {"configRef": {"kind": "A", "name": "b"}}}))
    assert (machine.cluster, machine.bootstrapped) == ("prod", False)
    assert read_machine(obj(spec={"bootstrap": {"dataSecretName": "s"}})).bootstrapped


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, False),
        ({"infrastructureReady": True}, True),
        ({"initialization": {"infrastructureProvisioned": True}}, True),
        ({"initialization": {}}, False),
    ],
)
def test_a_cluster_is_ready_in_the_words_of_either_version(status: Any, ready: bool) -> None:
    assert read_cluster(obj(status=status)).infrastructure_ready is ready
    assert not read_cluster(obj(status=status)).paused
    assert read_cluster(obj(spec={"paused": True}, status=status)).paused


def test_an_object_knows_its_cluster_by_its_label() -> None:
    key = cluster_of(obj(labels={"cluster.x-k8s.io/cluster-name": "east"}).head)
    assert key is not None
    assert (key.namespace, key.name) == ("prod", "east")
    assert cluster_of(obj().head) is None


def test_bootstrap_data_carry_the_label_without_which_cluster_api_does_not_see_them() -> None:
    secret = secret_body(obj(), SIMULATED.bootstrap, "east")
    assert secret["metadata"]["name"] == "web-0a1b2c3d"
    assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "east"}
    assert secret["metadata"]["ownerReferences"][0]["kind"] == "SimulatedBootstrap"


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_cluster_comes_with_its_parts_in_the_order_in_which_they_are_needed(version: Any) -> None:
    bodies = cluster_bodies("prod", "east", kubeconfig="text", host="h", port=1, version=version)
    assert [body["kind"] for body in bodies] == ["Secret", "SimulatedCluster", "SimulatedControlPlane", "Cluster"]
    secret, infrastructure, _, cluster = bodies
    assert secret["metadata"]["name"] == "east-kubeconfig"
    assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "east"}
    assert infrastructure["spec"] == {"controlPlaneEndpoint": {"host": "h", "port": 1}}
    reference = cluster["spec"]["controlPlaneRef"]
    assert cluster["apiVersion"] == f"cluster.x-k8s.io/{version}"
    assert ("apiGroup" in reference, "namespace" in reference) == (version == "v1beta2", version == "v1beta1")


CONDITIONS = [
    {"type": "ControlPlaneInitialized", "status": "True"},
    {"type": "RemoteConnectionProbe", "status": "True"},
]


@pytest.mark.parametrize(
    ("status", "usable"),
    [
        ({"conditions": CONDITIONS}, True),
        ({"conditions": [], "v1beta2": {"conditions": CONDITIONS}}, True),
        ({"conditions": CONDITIONS, "v1beta2": {"conditions": CONDITIONS[:1]}}, False),
        ({"conditions": CONDITIONS[1:]}, False),
        ({"conditions": None}, False),
        ({}, False),
    ],
)
def test_a_cluster_is_usable_when_its_nodes_can_be_seen(status: Any, usable: bool) -> None:
    assert is_usable({"status": status}) is usable
    assert not is_usable({})


def test_a_running_pod_is_ready() -> None:
    status = running_status("2026-11-30T09:00:00Z")
    assert status["phase"] == "Running"
    assert {c["type"] for c in status["conditions"] if c["status"] == "True"} >= {"Ready", "ContainersReady"}
