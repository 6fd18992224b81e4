"""B1.9-B1.13, B1.20, B1.21: a machine that is not wanted any more, its grace, its drain, and what is left of it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from controlplane import ControlPlane
from support import eventually
from support.cluster import CLUSTER_NAME
from support.machines import MACHINE
from support.observing import writes
from support.scene import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scene

CLUSTER = ("cluster.x-k8s.io/v1beta2", "Cluster")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def start(scene: Scene, **spec: Any) -> dict[str, Any]:
    """A machine that is up; its status."""
    scene.create(**spec)
    scene.active(True)
    scene.wait_made()
    return scene.wait_phase("Active")


def versions(scene: Scene) -> list[str]:
    found = [scene.child(kind) for kind in CHILDREN]
    return [child["metadata"]["resourceVersion"] if child else "" for child in found]


@pytest.mark.contract("B1.9", "B1.21")
def test_wanted_again_during_grace_nothing_was_touched(scene: Scene) -> None:
    start(scene, gracefulShutdownTimeout="1h")
    before = versions(scene)
    scene.active(False)
    status = scene.wait_phase("ShuttingDown", "GracePeriodActive")
    begun, due = instant(status["shutdownRequestedTime"]), instant(status["nextCleanup"])
    assert due - begun == timedelta(hours=1)
    scene.active(True)
    status = scene.wait_phase("Active", "MachineCreated")
    assert "shutdownRequestedTime" not in status
    assert "nextCleanup" not in status
    assert versions(scene) == before


@pytest.mark.contract("B1.9", "B1.10")
def test_when_grace_is_over_the_machine_goes_and_in_between_nothing_is_written(
    scene: Scene, control_plane: ControlPlane
) -> None:
    start(scene, gracefulShutdownTimeout="3s")
    scene.hold_machine()
    mark = control_plane.audit_log.mark()
    scene.active(False)
    status = scene.wait_phase("ShuttingDown", "NodeDraining")
    assert "nextCleanup" not in status
    # The grace may be over on a busy machine before anybody looks; what was told of it stays.
    [told] = eventually(lambda: scene.events("GracePeriodActive"), what="what was told of the grace")
    found = re.search(r"is kept until (\S+) ", told["note"])
    assert found is not None, told
    due = instant(found[1])
    assert due - instant(status["shutdownRequestedTime"]) == timedelta(seconds=3)

    def written() -> list[dict[str, Any]]:
        found = writes(control_plane, mark, scene.namespace)
        assert [event["verb"] for event in found] == ["patch", "delete", "patch"], "told, deleted, told"
        return found

    # What is written is seen a moment before the log has it.
    deletion = eventually(written, what="three writes")[1]
    assert instant(deletion["requestReceivedTimestamp"]) >= due


@pytest.mark.contract("B1.10", "B1.12")
def test_a_machine_out_of_schedule_is_deleted_and_then_what_is_left(scene: Scene) -> None:
    start(scene)
    scene.hold_machine()
    scene.active(False)
    scene.wait_phase("ShuttingDown", "NodeDraining")
    machine = scene.machine()["metadata"]
    assert machine["deletionTimestamp"]
    assert machine["finalizers"] == ["machine.cluster.x-k8s.io"], "in the background: no other finalizer was added"
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        child = scene.child(kind)
        assert child is not None
        assert "deletionTimestamp" not in child["metadata"], "deleting it now would switch Cluster API's drain off"
    scene.let_machine_go()
    scene.wait_gone()
    status = scene.wait_phase("Inactive", "ScheduleInactive")
    gone = ("machineRef", "bootstrapRef", "infrastructureRef", "shutdownRequestedTime", "nextCleanup", "nodeRef")
    assert [field for field in gone if field in status] == []
    assert scene.condition("Ready")["status"] == "True", "down on purpose is as wanted"


@pytest.mark.contract("B1.11")
def test_what_is_left_without_a_machine_is_deleted_at_once(scene: Scene) -> None:
    start(scene, gracefulShutdownTimeout="1h")
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    scene.api.patch(*INFRASTRUCTURE, scene.name, scene.namespace, held)
    scene.active(False)
    scene.wait_phase("ShuttingDown", "GracePeriodActive")
    scene.api.delete(*MACHINES, scene.name, scene.namespace)
    status = scene.wait_phase("ShuttingDown", "DeletingLeftovers")
    assert "StandInMachine" in status["message"]
    left = scene.child(INFRASTRUCTURE)
    assert left is not None
    assert "deletionTimestamp" in left["metadata"]
    assert scene.child(BOOTSTRAP) is None
    scene.api.patch(*INFRASTRUCTURE, scene.name, scene.namespace, {"metadata": {"finalizers": None}})
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.wait_gone()


@pytest.mark.contract("B1.13", "B1.20")
def test_disabling_takes_grace_and_drain_and_ends_in_disabled(scene: Scene) -> None:
    start(scene, gracefulShutdownTimeout="1h")
    scene.hold_machine()
    scene.edit(enabled=False)
    status = scene.wait_phase("ShuttingDown", "GracePeriodActive")
    assert status["inSchedule"] is True, "the schedule wants it all the same"
    scene.wait_condition("Scheduled", "False", "ScheduleDisabled")
    assert "deletionTimestamp" not in scene.machine()["metadata"]
    # Cut only now: a busy machine looks at nothing within two seconds.
    scene.edit(gracefulShutdownTimeout="5s")
    scene.wait_phase("ShuttingDown", "NodeDraining")
    assert scene.child(BOOTSTRAP) is not None
    scene.let_machine_go()
    scene.wait_gone()
    scene.wait_phase("Disabled", "ScheduleDisabled")
    # Flips of the schedule change nothing here.
    scene.active(False)
    eventually(lambda: scene.status["inSchedule"] is False, what="the verdict is followed")
    assert scene.status["phase"] == "Disabled"


@pytest.mark.contract("B1.9", "B1.20")
def test_disabled_and_enabled_again_during_grace_nothing_was_touched(scene: Scene) -> None:
    start(scene, gracefulShutdownTimeout="1h")
    before = versions(scene)
    for _ in range(2):
        scene.edit(enabled=False)
        scene.wait_phase("ShuttingDown", "GracePeriodActive")
        scene.edit(enabled=True)
        status = scene.wait_phase("Active", "MachineCreated")
        assert "shutdownRequestedTime" not in status
    assert versions(scene) == before


@pytest.mark.contract("B1.21")
def test_grace_counts_from_when_down_was_first_wanted(scene: Scene) -> None:
    start(scene, gracefulShutdownTimeout="1h")
    scene.active(False)
    begun = scene.wait_phase("ShuttingDown", "GracePeriodActive")["shutdownRequestedTime"]
    # Another cause is no new start.
    scene.edit(enabled=False)
    scene.wait_condition("Scheduled", "False", "ScheduleDisabled")
    assert scene.status["shutdownRequestedTime"] == begun
    scene.active(True)
    eventually(lambda: scene.status["inSchedule"] is True, what="the verdict is followed")
    assert scene.status["shutdownRequestedTime"] == begun
    # An edited timeout moves the end and not the start.
    scene.edit(gracefulShutdownTimeout="2h")
    end = instant(begun) + timedelta(hours=2)
    eventually(lambda: instant(scene.status["nextCleanup"]) == end, what="the end is computed again")
    assert scene.status["shutdownRequestedTime"] == begun
    # A start in the future, left by a clock that was set back, begins anew; so does a missing one.
    scene.api.patch_status(*MACHINE, scene.name, scene.namespace, {"shutdownRequestedTime": "2099-01-01T00:00:00Z"})
    restarted = eventually(lambda: earlier(scene, "2099-01-01T00:00:00Z"), what="a start that has passed")
    assert instant(restarted) >= instant(begun)
    assert instant(scene.status["nextCleanup"]) - instant(restarted) == timedelta(hours=2)
    wiped = {"shutdownRequestedTime": None, "nextCleanup": None}
    scene.api.patch_status(*MACHINE, scene.name, scene.namespace, wiped)
    anew = eventually(lambda: scene.status["shutdownRequestedTime"], what="it starts now")
    assert instant(anew) >= instant(restarted)
    assert scene.status["phase"] == "ShuttingDown"
    assert "deletionTimestamp" not in scene.machine()["metadata"], "grace is never skipped"


def earlier(scene: Scene, limit: str) -> str:
    begun: str = scene.status.get("shutdownRequestedTime", limit)
    return begun if instant(begun) < instant(limit) else ""


@pytest.mark.contract("B1.21")
def test_deleting_the_scheduled_machine_skips_grace_and_keeps_the_drain(scene: Scene) -> None:
    start(scene, gracefulShutdownTimeout="1h")
    scene.hold_machine()
    scene.active(False)
    scene.wait_phase("ShuttingDown", "GracePeriodActive")
    scene.delete()
    eventually(lambda: "deletionTimestamp" in scene.machine()["metadata"], what="the DELETE")
    assert "machine.cluster.x-k8s.io/exclude-node-draining" not in scene.machine()["metadata"].get("annotations", {})
    assert scene.child(BOOTSTRAP) is not None
    scene.let_machine_go()
    eventually(lambda: scene.find() is None, what="it is gone")
    scene.wait_gone()


@pytest.mark.contract("B1.21")
def test_deleting_the_cluster_skips_grace(scene: Scene) -> None:
    start(scene, gracefulShutdownTimeout="1h")
    scene.active(False)
    scene.wait_phase("ShuttingDown", "GracePeriodActive")
    held = {"metadata": {"finalizers": ["cluster.cluster.x-k8s.io"]}}
    scene.api.patch(*CLUSTER, CLUSTER_NAME, scene.namespace, held)
    scene.api.delete(*CLUSTER, CLUSTER_NAME, scene.namespace)
    scene.wait_gone()
    scene.wait_phase("Inactive", "ClusterDeleting")
    scene.api.patch(*CLUSTER, CLUSTER_NAME, scene.namespace, {"metadata": {"finalizers": None}})
