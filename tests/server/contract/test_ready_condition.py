"""B4.1 and B4.2: what the conditions that people and tools wait for say."""

from __future__ import annotations

import pytest

from harness import ManagerProcess
from support import eventually
from support.machines import infrastructure
from support.measurements import caught_up
from support.refusals import foreign, machine_quota, machines_refused
from support.scenario import INFRASTRUCTURE, MACHINES, Scenario


def way(scenario: Scenario) -> tuple[str, str]:
    """Ready's status, and which of the two companions is there, with its reason."""
    conditions = {c["type"]: c for c in scenario.status["conditions"]}
    there = [type_ for type_ in ("Reconciling", "Stalled") if type_ in conditions]
    for type_ in there:
        assert conditions[type_]["status"] == "True"
        assert conditions[type_]["reason"] == conditions["Ready"]["reason"]
        assert conditions[type_]["message"] == conditions["Ready"]["message"] == scenario.status["message"]
    return conditions["Ready"]["status"], " ".join(there)


@pytest.mark.contract("B4.1")
def test_ready_means_settled_as_wanted_and_reconciling_that_it_is_on_the_way(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert way(scenario) == ("True", ""), "down on purpose is as wanted"
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    assert way(scenario) == ("False", "Reconciling")
    scenario.node_ready()
    scenario.wait_phase("Active", "MachineReady")
    assert way(scenario) == ("True", "")
    scenario.hold_machine()
    generation = scenario.edit(gracefulShutdownTimeout="1h")["metadata"]["generation"]
    # Should the manager hear of the schedule first, there would be no grace.
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="the edit is seen")
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    assert way(scenario) == ("False", "Reconciling")
    assert scenario.condition("MachineReady")["status"] == "True", "nothing was touched yet"
    scenario.edit(gracefulShutdownTimeout="0s")
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    assert way(scenario) == ("False", "Reconciling")
    scenario.active(True)
    scenario.wait_phase("ShuttingDown", "MachineDeleting")
    assert way(scenario) == ("False", "Reconciling")
    scenario.active(False)
    scenario.let_machine_go()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert way(scenario) == ("True", "")
    scenario.edit(enabled=False)
    scenario.wait_phase("Disabled", "ScheduleDisabled")
    assert way(scenario) == ("True", "")
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    assert way(scenario) == ("True", "")


@pytest.mark.contract("B4.1")
def test_an_unresolved_schedule_is_loud_though_the_machine_is_held(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.node_ready()
    scenario.wait_condition("Ready", "True", "MachineReady")
    scenario.provider.ready(scenario.namespace, ready="False", reason="Broken", message="no calendar")
    condition = scenario.wait_condition("Ready", "False", "ProviderNotReady")
    assert "no calendar" in condition["message"]
    assert scenario.status["phase"] == "Active"
    assert scenario.condition("MachineReady")["status"] == "True"
    assert scenario.condition("Stalled") == {}
    scenario.provider.ready(scenario.namespace, ready="True")
    scenario.wait_condition("Ready", "True", "MachineReady")


@pytest.mark.contract("B4.1")
def test_an_unknown_kind_is_stalled_until_it_is_corrected(scenario: Scenario) -> None:
    scenario.active(True)
    scenario.create(infrastructureSpec=infrastructure(kind="NeverInstalled"))
    status = scenario.wait_phase("Error", "MachineCreationFailed")
    assert way(scenario) == ("False", "Stalled")
    assert "kind NeverInstalled of group infrastructure.cluster.x-k8s.io is not installed" in status["message"]
    scenario.edit(infrastructureSpec=infrastructure())
    scenario.wait_phase("Active", "MachineCreated")
    assert way(scenario) == ("False", "Reconciling")


@pytest.mark.contract("B4.1")
def test_a_foreign_name_is_stalled_until_it_is_free(scenario: Scenario, manager: ManagerProcess) -> None:
    caught_up(manager, scenario.api.create(foreign(INFRASTRUCTURE, scenario.namespace)))
    scenario.active(True)
    scenario.create()
    status = scenario.wait_phase("Error", "MachineCreationFailed")
    assert way(scenario) == ("False", "Stalled")
    assert "StandInMachine" in status["message"]
    assert "not controlled by" in status["message"]
    scenario.api.delete(*INFRASTRUCTURE, scenario.name, scenario.namespace)
    scenario.wait_phase("Active", "MachineCreated")
    assert way(scenario) == ("False", "Reconciling")


@pytest.mark.contract("B4.1")
def test_a_creation_that_admission_refuses_is_stalled(scenario: Scenario) -> None:
    scenario.active(True)
    with machines_refused(scenario.api, scenario.namespace, "CREATE", "no machines on Mondays"):
        scenario.create()
        status = scenario.wait_phase("Error", "MachineCreationFailed")
        # While it lasts: some 24 s after the refusal the manager tries again.
        assert way(scenario) == ("False", "Stalled")
    assert "no machines on Mondays" in status["message"]


@pytest.mark.contract("B4.1")
def test_a_quota_and_a_missing_cluster_may_pass_and_are_reconciling(scenario: Scenario) -> None:
    scenario.active(True)
    machine_quota(scenario.api, scenario.namespace, 0)
    scenario.create()
    status = scenario.wait_phase("Error", "MachineCreationFailed")
    assert way(scenario) == ("False", "Reconciling")
    assert "exceeded quota" in status["message"]
    lonely = Scenario(scenario.api, scenario.namespace, scenario.provider, "lonely")
    lonely.create(clusterName="not-there")
    lonely.wait_phase("Pending", "ClusterNotFound")
    assert way(lonely) == ("False", "Reconciling")


@pytest.mark.contract("B4.2")
def test_machine_ready_follows_the_machines_own_ready_condition(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_condition("MachineReady", "False", "NoMachine")
    scenario.active(True)
    scenario.wait_made()
    assert scenario.wait_condition("MachineReady", "False", "MachineNotReady")["message"]
    scenario.node_ready(ready=False)
    condition = scenario.wait_condition("MachineReady", "False", "NodeNotReady")
    assert scenario.machine()["status"]["phase"] == "Running", "which only means that a node registered"
    assert not mirrored(scenario)
    scenario.node_ready(ready=True)
    ready = scenario.wait_condition("MachineReady", "True", "MachineReady")
    assert mirrored(scenario)
    assert ready["lastTransitionTime"] >= condition["lastTransitionTime"]
    for status in ("Unknown", "False"):
        lost = {"type": "Ready", "status": status, "reason": "ProbeFailed", "message": "no answer from the node"}
        lost["lastTransitionTime"] = "2026-11-01T00:00:00Z"
        scenario.api.patch_status(*MACHINES, scenario.name, scenario.namespace, {"conditions": [lost]})
        found = scenario.wait_condition("MachineReady", "False", "ProbeFailed")
        assert found["message"] == "no answer from the node"
        assert not mirrored(scenario)
        scenario.node_ready()
        scenario.wait_condition("MachineReady", "True", "MachineReady")
    scenario.api.patch_status(*MACHINES, scenario.name, scenario.namespace, {"conditions": None})
    scenario.wait_condition("MachineReady", "False", "MachineNotReady")
    eventually(lambda: not mirrored(scenario), what="the mirror follows")


def mirrored(scenario: Scenario) -> bool:
    ready = scenario.status["ready"]
    assert isinstance(ready, bool)
    return ready
