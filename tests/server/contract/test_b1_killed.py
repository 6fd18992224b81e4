"""B1.14-B1.16: the kill switch, and deletions that the server refuses."""

from __future__ import annotations

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from support import eventually
from support.manager import MANAGER_USER
from support.refusing import machines_refused
from support.scene import BOOTSTRAP, INFRASTRUCTURE, MACHINES, Scene

NO_DRAIN = (
    "machine.cluster.x-k8s.io/exclude-node-draining",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
)


def undrained(scene: Scene) -> bool:
    """The Machine is deleting, and Cluster API was told not to drain it."""
    metadata = scene.machine()["metadata"]
    annotations = metadata.get("annotations", {})
    return "deletionTimestamp" in metadata and all(name in annotations for name in NO_DRAIN)


@pytest.mark.contract("B1.14", "B1.15")
@pytest.mark.parametrize("when", ["while up", "during grace", "while draining"])
def test_killed_it_goes_at_once_without_grace_or_drain(scene: Scene, when: str) -> None:
    scene.create(gracefulShutdownTimeout="0s" if when == "while draining" else "1h")
    scene.active(True)
    scene.wait_made()
    scene.wait_phase("Active")
    scene.hold_machine()
    if when != "while up":
        scene.active(False)
        scene.wait_phase("ShuttingDown", "NodeDraining" if when == "while draining" else "GracePeriodActive")
        assert not undrained(scene)
    scene.edit(killSwitch=True)
    eventually(lambda: undrained(scene), what="deleted without drain")
    status = scene.wait_phase("ShuttingDown", "KillSwitchActivated")
    assert "nextCleanup" not in status
    scene.wait_condition("Scheduled", "False", "KillSwitchActivated")
    assert scene.child(BOOTSTRAP) is not None, "the Machine goes first"
    scene.let_machine_go()
    scene.wait_gone()
    status = scene.wait_phase("Terminated", "KillSwitchActivated")
    assert "shutdownRequestedTime" not in status
    assert scene.condition("Ready")["status"] == "True"
    # Cleared, the schedule decides again.
    scene.active(True)
    scene.edit(killSwitch=False)
    scene.wait_made()
    status = scene.wait_phase("Active", "MachineCreated")
    scene.assert_never_braked()
    assert "replacements" not in status, "we did it ourselves"


@pytest.mark.contract("B1.14")
def test_killed_while_leftovers_remain_says_so_until_they_are_gone(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    scene.api.patch(*INFRASTRUCTURE, scene.name, scene.namespace, held)
    scene.edit(killSwitch=True)
    eventually(lambda: scene.child(MACHINES) is None and scene.child(BOOTSTRAP) is None, what="all but one are gone")
    status = scene.wait_phase("ShuttingDown", "KillSwitchActivated")
    eventually(lambda: "StandInMachine" in scene.status["message"], what="what it waits for is named")
    assert "machineRef" not in scene.status, status
    scene.api.patch(*INFRASTRUCTURE, scene.name, scene.namespace, {"metadata": {"finalizers": None}})
    scene.wait_phase("Terminated", "KillSwitchActivated")


@pytest.mark.contract("B1.15")
def test_killed_with_nothing_there_is_terminated_and_makes_nothing(scene: Scene) -> None:
    scene.create(killSwitch=True)
    scene.wait_phase("Terminated", "KillSwitchActivated")
    scene.active(True)
    eventually(lambda: scene.status["inSchedule"] is True, what="the verdict is followed")
    assert scene.status["phase"] == "Terminated"
    scene.wait_gone()
    scene.edit(killSwitch=False)
    scene.wait_made()
    scene.wait_phase("Active")


@pytest.mark.contract("B1.16")
def test_a_delete_that_is_refused_is_an_error_and_tried_again_on_a_relevant_change(
    scene: Scene, control_plane: ControlPlane
) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    words = "not before the audit"
    with machines_refused(scene.api, scene.namespace, "DELETE", words):
        mark = control_plane.audit_log.mark()

        def attempts() -> int:
            events = select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="delete", resource="machines")
            return len(select(events, namespace=scene.namespace))

        scene.active(False)
        status = scene.wait_phase("Error", "MachineDeletionFailed")
        assert words in status["message"]
        assert f"delete machines.cluster.x-k8s.io {scene.namespace}/web" in status["message"], "the object"
        assert status["message"].endswith("; ask whoever runs that admission rule"), "the remedy"
        assert scene.condition("Stalled")["status"] == "True"
        assert "shutdownRequestedTime" in status
        assert status["machineRef"]["uid"] == scene.machine()["metadata"]["uid"]
        assert attempts() == 1
        # Nothing that matters to it: no try.
        scene.node_ready()
        eventually(lambda: scene.status["ready"] is True, what="the Machine's change is mirrored")
        assert attempts() == 1
        # Killed is another wish, and the same answer.
        scene.edit(killSwitch=True)
        eventually(lambda: attempts() == 2, what="a second try, at once")
        scene.wait_phase("Error", "MachineDeletionFailed")
        scene.wait_condition("Scheduled", "False", "KillSwitchActivated")
    scene.edit(priority=51)
    scene.wait_gone()
    scene.wait_phase("Terminated", "KillSwitchActivated")
    assert scene.condition("Stalled") == {}


@pytest.mark.contract("B1.16")
def test_an_error_of_deletion_ends_when_the_machine_is_wanted_again(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    machine = scene.machine()["metadata"]["uid"]
    with machines_refused(scene.api, scene.namespace, "DELETE", "kept for the auditor"):
        scene.active(False)
        scene.wait_phase("Error", "MachineDeletionFailed")
        scene.active(True)
        status = scene.wait_phase("Active", "MachineCreated")
        assert "shutdownRequestedTime" not in status
        assert scene.condition("Stalled") == {}
    assert scene.machine()["metadata"]["uid"] == machine
