"""B1.6, B1.8: Machines that vanish or are found unhealthy, under the waiting times as shipped."""

from __future__ import annotations

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from harness import MANAGER_USER, ManagerProcess
from support import eventually
from support.measurements import total
from support.scenario import MACHINES, Scenario

REPLACEMENTS = "fivespot_machine_replacements_total"
SKIP = "cluster.x-k8s.io/skip-remediation"


@pytest.mark.long
@pytest.mark.contract("B1.6", "B7.1")
def test_a_machine_that_is_gone_is_told_once_and_replaced_after_a_wait(
    scenario: Scenario, manager: ManagerProcess, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    mark = control_plane.audit_log.mark()
    lost = scenario.wait_phase("Active")["machineRef"]["uid"]
    scenario.api.delete(*MACHINES, scenario.name, scenario.namespace)
    status = scenario.wait_phase("Pending", "ReplacementDelayed")
    assert (status["replacements"]["count"], status["replacements"]["uid"]) == (1, lost)
    assert (status["inSchedule"], status["ready"]) == (True, False)
    assert "machineRef" not in status
    asked = select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="get", namespace=scenario.namespace)
    assert [event["responseStatus"]["code"] for event in select(asked, resource="machines")] == [404], "a live GET"
    event = eventually(lambda: scenario.events("MachineLost"), what="a Warning")[0]
    assert event["type"] == "Warning"
    assert lost in event["note"]
    labels = {"namespace": scenario.namespace, "reason": "Lost"}
    # The manager counts what it has written once it is answered, and others may see it a moment earlier.
    eventually(lambda: total(manager.metrics(), REPLACEMENTS, **labels) == 1, what="the loss is counted")
    # Runs in between neither shorten the wait nor count again.
    generation = scenario.edit(priority=51)["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="a run in between")
    assert scenario.status["replacements"] == status["replacements"]
    scenario.wait_made(40)
    after = scenario.wait_phase("Active", "MachineCreated")
    assert after["machineRef"]["uid"] != lost
    assert after["replacements"] == status["replacements"]
    assert len(scenario.events("MachineLost")) == 1
    assert total(manager.metrics(), REPLACEMENTS, namespace=scenario.namespace) == 1


@pytest.mark.contract("B1.6")
def test_a_machine_that_is_gone_during_our_own_shutdown_is_not_lost(
    scenario: Scenario, manager: ManagerProcess
) -> None:
    scenario.create(gracefulShutdownTimeout="1h")
    scenario.active(True)
    scenario.wait_made()
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    scenario.api.delete(*MACHINES, scenario.name, scenario.namespace)
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.active(True)
    scenario.wait_made()
    status = scenario.wait_phase("Active", "MachineCreated")
    scenario.assert_never_braked()
    assert "replacements" not in status
    assert scenario.events("MachineLost") == []
    assert total(manager.metrics(), REPLACEMENTS, namespace=scenario.namespace) == 0


@pytest.mark.long
@pytest.mark.contract("B1.8", "B7.1")
def test_a_machine_that_a_health_check_marked_is_deleted_and_replaced_after_a_wait(
    scenario: Scenario, manager: ManagerProcess
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    first = scenario.wait_phase("Active")["machineRef"]["uid"]
    scenario.hold_machine()
    # Neither half of the mark is enough, nor both on a Machine that may not be remediated.
    mark(scenario, HealthCheckSucceeded="False")
    assert_untouched(scenario, first, "node-1")
    mark(scenario, OwnerRemediated="False", HealthCheckSucceeded="True")
    assert_untouched(scenario, first, "node-2")
    scenario.api.patch(*MACHINES, scenario.name, scenario.namespace, {"metadata": {"annotations": {SKIP: ""}}})
    mark(scenario, OwnerRemediated="False", HealthCheckSucceeded="False")
    assert_untouched(scenario, first, "node-3")
    scenario.api.patch(*MACHINES, scenario.name, scenario.namespace, {"metadata": {"annotations": {SKIP: None}}})
    eventually(lambda: "deletionTimestamp" in scenario.machine()["metadata"], what="the DELETE")
    status = scenario.wait_phase("ShuttingDown")
    assert (status["replacements"]["count"], status["replacements"]["uid"]) == (1, first)
    assert "shutdownRequestedTime" not in status
    assert eventually(lambda: scenario.events("Remediating"), what="an event")[0]["regarding"]["name"] == scenario.name
    scenario.let_machine_go()
    scenario.wait_phase("Pending", "ReplacementDelayed")
    scenario.wait_made(40)
    status = scenario.wait_phase("Active", "MachineCreated")
    assert status["machineRef"]["uid"] != first
    assert status["replacements"]["count"] == 1, "counted once, although it was marked, deleting and gone"
    assert scenario.events("MachineLost") == []
    assert total(manager.metrics(), REPLACEMENTS, namespace=scenario.namespace, reason="Remediated") == 1
    assert total(manager.metrics(), REPLACEMENTS, namespace=scenario.namespace) == 1


def mark(scenario: Scenario, **conditions: str) -> None:
    """Mark the Machine as a MachineHealthCheck does."""
    written = [
        {
            "type": type_,
            "status": status,
            "reason": "Checked",
            "message": "",
            "lastTransitionTime": "2026-11-01T00:00:00Z",
        }
        for type_, status in conditions.items()
    ]
    scenario.api.patch_status(*MACHINES, scenario.name, scenario.namespace, {"conditions": written})


def assert_untouched(scenario: Scenario, uid: str, node: str) -> None:
    """The Machine as it stands has been looked at, and left alone."""
    scenario.api.patch_status(*MACHINES, scenario.name, scenario.namespace, {"nodeRef": {"name": node}})
    eventually(lambda: scenario.status["nodeRef"]["name"] == node, what="a later change is mirrored")
    found = scenario.machine()["metadata"]
    assert found["uid"] == uid
    assert "deletionTimestamp" not in found
    assert scenario.status["phase"] == "Active"
