"""B4.1 and B4.2: what the conditions that people and tools wait for say."""

from __future__ import annotations

import pytest

from support import eventually
from support.machines import infrastructure
from support.manager import ManagerProcess
from support.observing import caught_up
from support.refusing import foreign, machine_quota, machines_refused
from support.scene import INFRASTRUCTURE, MACHINES, Scene


def way(scene: Scene) -> tuple[str, str]:
    """Ready's status, and which of the two companions is there, with its reason."""
    conditions = {c["type"]: c for c in scene.status["conditions"]}
    there = [type_ for type_ in ("Reconciling", "Stalled") if type_ in conditions]
    for type_ in there:
        assert conditions[type_]["status"] == "True"
        assert conditions[type_]["reason"] == conditions["Ready"]["reason"]
        assert conditions[type_]["message"] == conditions["Ready"]["message"] == scene.status["message"]
    return conditions["Ready"]["status"], " ".join(there)


@pytest.mark.contract("B4.1")
def test_ready_means_settled_as_wanted_and_reconciling_that_it_is_on_the_way(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    assert way(scene) == ("True", ""), "down on purpose is as wanted"
    scene.active(True)
    scene.wait_phase("Active", "MachineCreated")
    assert way(scene) == ("False", "Reconciling")
    scene.node_ready()
    scene.wait_phase("Active", "MachineReady")
    assert way(scene) == ("True", "")
    scene.hold_machine()
    generation = scene.edit(gracefulShutdownTimeout="1h")["metadata"]["generation"]
    # Should the manager hear of the schedule first, there would be no grace.
    eventually(lambda: scene.status["observedGeneration"] == generation, what="the edit is seen")
    scene.active(False)
    scene.wait_phase("ShuttingDown", "GracePeriodActive")
    assert way(scene) == ("False", "Reconciling")
    assert scene.condition("MachineReady")["status"] == "True", "nothing was touched yet"
    scene.edit(gracefulShutdownTimeout="0s")
    scene.wait_phase("ShuttingDown", "NodeDraining")
    assert way(scene) == ("False", "Reconciling")
    scene.active(True)
    scene.wait_phase("ShuttingDown", "MachineDeleting")
    assert way(scene) == ("False", "Reconciling")
    scene.active(False)
    scene.let_machine_go()
    scene.wait_phase("Inactive", "ScheduleInactive")
    assert way(scene) == ("True", "")
    scene.edit(enabled=False)
    scene.wait_phase("Disabled", "ScheduleDisabled")
    assert way(scene) == ("True", "")
    scene.edit(killSwitch=True)
    scene.wait_phase("Terminated", "KillSwitchActivated")
    assert way(scene) == ("True", "")


@pytest.mark.contract("B4.1")
def test_an_unresolved_schedule_is_loud_though_the_machine_is_held(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.node_ready()
    scene.wait_condition("Ready", "True", "MachineReady")
    scene.provider.ready(scene.namespace, ready="False", reason="Broken", message="no calendar")
    condition = scene.wait_condition("Ready", "False", "ProviderNotReady")
    assert "no calendar" in condition["message"]
    assert scene.status["phase"] == "Active"
    assert scene.condition("MachineReady")["status"] == "True"
    assert scene.condition("Stalled") == {}
    scene.provider.ready(scene.namespace, ready="True")
    scene.wait_condition("Ready", "True", "MachineReady")


@pytest.mark.contract("B4.1")
def test_an_unknown_kind_is_stalled_until_it_is_corrected(scene: Scene) -> None:
    scene.active(True)
    scene.create(infrastructureSpec=infrastructure(kind="NeverInstalled"))
    status = scene.wait_phase("Error", "MachineCreationFailed")
    assert way(scene) == ("False", "Stalled")
    assert "kind NeverInstalled of group infrastructure.cluster.x-k8s.io is not installed" in status["message"]
    scene.edit(infrastructureSpec=infrastructure())
    scene.wait_phase("Active", "MachineCreated")
    assert way(scene) == ("False", "Reconciling")


@pytest.mark.contract("B4.1")
def test_a_foreign_name_is_stalled_until_it_is_free(scene: Scene, manager: ManagerProcess) -> None:
    caught_up(manager, scene.api.create(foreign(INFRASTRUCTURE, scene.namespace)))
    scene.active(True)
    scene.create()
    status = scene.wait_phase("Error", "MachineCreationFailed")
    assert way(scene) == ("False", "Stalled")
    assert "StandInMachine" in status["message"]
    assert "not ours" in status["message"]
    scene.api.delete(*INFRASTRUCTURE, scene.name, scene.namespace)
    scene.wait_phase("Active", "MachineCreated")
    assert way(scene) == ("False", "Reconciling")


@pytest.mark.contract("B4.1")
def test_a_creation_that_admission_refuses_is_stalled(scene: Scene) -> None:
    scene.active(True)
    with machines_refused(scene.api, scene.namespace, "CREATE", "no machines on Mondays"):
        scene.create()
        status = scene.wait_phase("Error", "MachineCreationFailed")
        # While it lasts: some 24 s after the refusal the manager tries again.
        assert way(scene) == ("False", "Stalled")
    assert "no machines on Mondays" in status["message"]


@pytest.mark.contract("B4.1")
def test_a_quota_and_a_missing_cluster_may_pass_and_are_reconciling(scene: Scene) -> None:
    scene.active(True)
    machine_quota(scene.api, scene.namespace, 0)
    scene.create()
    status = scene.wait_phase("Error", "MachineCreationFailed")
    assert way(scene) == ("False", "Reconciling")
    assert "exceeded quota" in status["message"]
    lonely = Scene(scene.api, scene.namespace, scene.provider, "lonely")
    lonely.create(clusterName="not-there")
    lonely.wait_phase("Pending", "ClusterNotFound")
    assert way(lonely) == ("False", "Reconciling")


@pytest.mark.contract("B4.2")
def test_machine_ready_follows_the_machines_own_ready_condition(scene: Scene) -> None:
    scene.create()
    scene.wait_condition("MachineReady", "False", "NoMachine")
    scene.active(True)
    scene.wait_made()
    assert scene.wait_condition("MachineReady", "False", "MachineNotReady")["message"]
    scene.node_ready(ready=False)
    condition = scene.wait_condition("MachineReady", "False", "NodeNotReady")
    assert scene.machine()["status"]["phase"] == "Running", "which only means that a node registered"
    assert not mirrored(scene)
    scene.node_ready(ready=True)
    ready = scene.wait_condition("MachineReady", "True", "MachineReady")
    assert mirrored(scene)
    assert ready["lastTransitionTime"] >= condition["lastTransitionTime"]
    for status in ("Unknown", "False"):
        lost = {"type": "Ready", "status": status, "reason": "ProbeFailed", "message": "no answer from the node"}
        lost["lastTransitionTime"] = "2026-11-01T00:00:00Z"
        scene.api.patch_status(*MACHINES, scene.name, scene.namespace, {"conditions": [lost]})
        found = scene.wait_condition("MachineReady", "False", "ProbeFailed")
        assert found["message"] == "no answer from the node"
        assert not mirrored(scene)
        scene.node_ready()
        scene.wait_condition("MachineReady", "True", "MachineReady")
    scene.api.patch_status(*MACHINES, scene.name, scene.namespace, {"conditions": None})
    scene.wait_condition("MachineReady", "False", "MachineNotReady")
    eventually(lambda: not mirrored(scene), what="the mirror follows")


def mirrored(scene: Scene) -> bool:
    ready = scene.status["ready"]
    assert isinstance(ready, bool)
    return ready
