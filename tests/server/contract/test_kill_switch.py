"""B1.14-B1.16: the kill switch, and deletions that the server refuses."""

from __future__ import annotations

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from harness import MANAGER_USER
from support import eventually
from support.refusals import machines_refused
from support.scenario import BOOTSTRAP, INFRASTRUCTURE, MACHINES, Scenario

NO_DRAIN = (
    "machine.cluster.x-k8s.io/exclude-node-draining",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
)


def undrained(scenario: Scenario) -> bool:
    """The Machine is deleting, and Cluster API was told not to drain it."""
    metadata = scenario.machine()["metadata"]
    annotations = metadata.get("annotations", {})
    return "deletionTimestamp" in metadata and all(name in annotations for name in NO_DRAIN)


@pytest.mark.contract("B1.14", "B1.15")
@pytest.mark.parametrize("when", ["while up", "during grace", "while draining"])
def test_killed_it_goes_at_once_without_grace_or_drain(scenario: Scenario, when: str) -> None:
    scenario.create(gracefulShutdownTimeout="0s" if when == "while draining" else "1h")
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    scenario.hold_machine()
    if when != "while up":
        scenario.active(False)
        scenario.wait_phase("ShuttingDown", "NodeDraining" if when == "while draining" else "GracePeriodActive")
        assert not undrained(scenario)
    scenario.edit(killSwitch=True)
    eventually(lambda: undrained(scenario), what="deleted without drain")
    status = scenario.wait_phase("ShuttingDown", "KillSwitchActivated")
    assert "nextCleanup" not in status
    scenario.wait_condition("Scheduled", "False", "KillSwitchActivated")
    assert scenario.child(BOOTSTRAP) is not None, "the Machine goes first"
    scenario.let_machine_go()
    scenario.wait_gone()
    status = scenario.wait_phase("Terminated", "KillSwitchActivated")
    assert "shutdownRequestedTime" not in status
    assert scenario.condition("Ready")["status"] == "True"
    # Cleared, the schedule decides again.
    scenario.active(True)
    scenario.edit(killSwitch=False)
    scenario.wait_made()
    status = scenario.wait_phase("Active", "MachineCreated")
    scenario.assert_never_braked()
    assert "replacements" not in status, "we did it ourselves"


@pytest.mark.contract("B1.14")
def test_killed_while_leftovers_remain_says_so_until_they_are_gone(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    scenario.api.patch(*INFRASTRUCTURE, scenario.name, scenario.namespace, held)
    scenario.edit(killSwitch=True)
    eventually(
        lambda: scenario.child(MACHINES) is None and scenario.child(BOOTSTRAP) is None, what="all but one are gone"
    )
    status = scenario.wait_phase("ShuttingDown", "KillSwitchActivated")
    eventually(lambda: "StandInMachine" in scenario.status["message"], what="what it waits for is named")
    assert "machineRef" not in scenario.status, status
    scenario.api.patch(*INFRASTRUCTURE, scenario.name, scenario.namespace, {"metadata": {"finalizers": None}})
    scenario.wait_phase("Terminated", "KillSwitchActivated")


@pytest.mark.contract("B1.15")
def test_killed_with_nothing_there_is_terminated_and_makes_nothing(scenario: Scenario) -> None:
    scenario.create(killSwitch=True)
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    scenario.active(True)
    eventually(lambda: scenario.status["inSchedule"] is True, what="the verdict is followed")
    assert scenario.status["phase"] == "Terminated"
    scenario.wait_gone()
    scenario.edit(killSwitch=False)
    scenario.wait_made()
    scenario.wait_phase("Active")


@pytest.mark.contract("B1.16")
def test_a_delete_that_is_refused_is_an_error_and_tried_again_on_a_relevant_change(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    words = "not before the audit"
    with machines_refused(scenario.api, scenario.namespace, "DELETE", words):
        mark = control_plane.audit_log.mark()

        def attempts() -> int:
            events = select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="delete", resource="machines")
            return len(select(events, namespace=scenario.namespace))

        scenario.active(False)
        status = scenario.wait_phase("Error", "MachineDeletionFailed")
        assert words in status["message"]
        assert f"delete machines.cluster.x-k8s.io {scenario.namespace}/web" in status["message"], "the object"
        assert status["message"].endswith("; ask whoever runs that admission rule"), "the remedy"
        assert scenario.condition("Stalled")["status"] == "True"
        assert "shutdownRequestedTime" in status
        assert status["machineRef"]["uid"] == scenario.machine()["metadata"]["uid"]
        assert attempts() == 1
        # Nothing that matters to it: no try.
        scenario.node_ready()
        eventually(lambda: scenario.status["ready"] is True, what="the Machine's change is mirrored")
        assert attempts() == 1
        # Killed is another wish, and the same answer.
        scenario.edit(killSwitch=True)
        eventually(lambda: attempts() == 2, what="a second try, at once")
        scenario.wait_phase("Error", "MachineDeletionFailed")
        scenario.wait_condition("Scheduled", "False", "KillSwitchActivated")
    scenario.edit(priority=51)
    scenario.wait_gone()
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    assert scenario.condition("Stalled") == {}


@pytest.mark.contract("B1.16")
def test_an_error_of_deletion_ends_when_the_machine_is_wanted_again(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    machine = scenario.machine()["metadata"]["uid"]
    with machines_refused(scenario.api, scenario.namespace, "DELETE", "kept for the auditor"):
        scenario.active(False)
        scenario.wait_phase("Error", "MachineDeletionFailed")
        scenario.active(True)
        status = scenario.wait_phase("Active", "MachineCreated")
        assert "shutdownRequestedTime" not in status
        assert scenario.condition("Stalled") == {}
    assert scenario.machine()["metadata"]["uid"] == machine
