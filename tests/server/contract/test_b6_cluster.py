"""B6.1 and B6.2: the Cluster that a machine belongs to, and what a pause holds back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane import ControlPlane
from support import cluster_objects, eventually
from support.machines import MACHINE
from support.manager import ManagerProcess
from support.observing import caught_up
from support.scene import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scene
from support.spending import STATUS, settle_bill, spent

CLUSTER = ("cluster.x-k8s.io/v1beta2", "Cluster")
PAUSED = "cluster.x-k8s.io/paused"
FINALIZER = "5spot.finos.org/scheduledmachine"
NO_DRAIN = {
    "machine.cluster.x-k8s.io/exclude-node-draining",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
}


def delete_cluster(scene: Scene) -> None:
    """Delete it; Cluster API's finalizer, played by the test, keeps it until :func:`let_cluster_go`."""
    finalizer = {"metadata": {"finalizers": ["cluster.cluster.x-k8s.io"]}}
    scene.api.patch(*CLUSTER, "prod", scene.namespace, finalizer)
    scene.api.delete(*CLUSTER, "prod", scene.namespace)


def let_cluster_go(scene: Scene) -> None:
    scene.api.patch(*CLUSTER, "prod", scene.namespace, {"metadata": {"finalizers": None}})
    eventually(lambda: scene.api.find(*CLUSTER, "prod", scene.namespace) is None, what="the Cluster is gone")


def make_cluster(scene: Scene, name: str) -> None:
    for body in cluster_objects(scene.namespace, name):
        if body["kind"] == "Cluster":
            scene.api.create(body)


@pytest.mark.contract("B6.1")
def test_without_its_cluster_nothing_is_created_and_with_it_at_once(scene: Scene, control_plane: ControlPlane) -> None:
    scene.active(True)
    mark = control_plane.audit_log.mark()
    scene.create(clusterName="later")
    status = scene.wait_phase("Pending", "ClusterNotFound")
    assert f"Cluster {scene.namespace}/later does not exist" in status["message"]
    assert status["inSchedule"] is True
    assert scene.condition("Scheduled")["status"] == "True"
    assert {verb.split()[0] for verb in spent(control_plane, mark, scene.namespace)} == {"patch"}, "nothing was tried"
    make_cluster(scene, "later")
    scene.wait_made()
    scene.wait_phase("Active", "MachineCreated")


@pytest.mark.contract("B6.1")
def test_a_cluster_that_is_being_deleted_takes_its_machines_along_without_grace(scene: Scene) -> None:
    scene.create(gracefulShutdownTimeout="1h", nodeDrainTimeout="5m")
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    delete_cluster(scene)
    scene.wait_phase("ShuttingDown", "NodeDraining")
    assert scene.machine()["metadata"]["deletionTimestamp"]
    assert not NO_DRAIN & set(scene.machine()["metadata"].get("annotations", {})), "it is drained as ever"
    assert "nextCleanup" not in scene.status
    found = scene.condition("Scheduled")
    assert (found["status"], found["reason"]) == ("False", "ClusterDeleting")
    assert scene.condition("SpotScheduleResolved")["status"] == "True"
    scene.let_machine_go()
    scene.wait_gone()
    status = scene.wait_phase("Inactive", "ClusterDeleting")
    assert status["inSchedule"] is True, "the provider still says so"
    assert scene.condition("Ready")["status"] == "True"
    let_cluster_go(scene)
    scene.wait_phase("Pending", "ClusterNotFound")
    make_cluster(scene, "prod")
    scene.wait_made()
    scene.wait_phase("Active")


@pytest.mark.contract("B6.1")
def test_a_deletion_that_is_under_way_ends_a_grace_period_and_is_stronger_than_an_unresolved_schedule(
    scene: Scene,
) -> None:
    scene.create(gracefulShutdownTimeout="1h")
    scene.active(True)
    scene.wait_made()
    scene.provider.delete(scene.namespace)
    scene.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    scene.edit(enabled=False)
    scene.wait_phase("ShuttingDown", "ProviderNotFound")
    assert "nextCleanup" in scene.status
    delete_cluster(scene)
    scene.wait_gone()
    eventually(lambda: scene.condition("Scheduled")["reason"] == "ClusterDeleting", what="who decided")
    scene.wait_phase("Inactive", "ProviderNotFound")
    let_cluster_go(scene)


@pytest.mark.contract("B6.1")
def test_the_kill_switch_is_stronger_than_the_deletion_of_the_cluster(scene: Scene) -> None:
    scene.create(killSwitch=True)
    scene.wait_phase("Terminated")
    delete_cluster(scene)
    # The Cluster is watched: had it counted for more, the edit would be answered with it.
    generation = scene.edit(priority=3)["metadata"]["generation"]
    eventually(lambda: scene.status["observedGeneration"] == generation, what="the edit is seen")
    assert scene.condition("Scheduled")["reason"] == "KillSwitchActivated"
    let_cluster_go(scene)


def pause_cluster(scene: Scene, *, paused: bool) -> dict[str, Any]:
    return scene.api.patch(*CLUSTER, "prod", scene.namespace, {"spec": {"paused": paused}})


def pause_object(scene: Scene, *, paused: bool) -> None:
    _annotate(scene, MACHINE, paused)


def pause_machine(scene: Scene, *, paused: bool) -> None:
    _annotate(scene, MACHINES, paused)


def _annotate(scene: Scene, kind: tuple[str, str], paused: bool) -> None:
    # The annotation counts by being there, whatever it holds.
    annotations = {"metadata": {"annotations": {PAUSED: "false" if paused else None}}}
    scene.api.patch(*kind, scene.name, scene.namespace, annotations)


Pause = Callable[..., object]
EVERY_WAY = pytest.mark.parametrize(
    "pause", [pause_cluster, pause_object, pause_machine], ids=["cluster", "scheduledmachine", "machine"]
)
WITHOUT_A_MACHINE = pytest.mark.parametrize("pause", [pause_cluster, pause_object], ids=["cluster", "scheduledmachine"])


@pytest.mark.contract("B6.2")
@WITHOUT_A_MACHINE
def test_while_paused_nothing_is_created(scene: Scene, control_plane: ControlPlane, pause: Pause) -> None:
    scene.create()
    scene.wait_phase("Inactive")
    pause(scene, paused=True)
    message = scene.wait_condition("Paused", "True", "Paused")["message"]
    assert "Cluster prod" in message if pause is pause_cluster else PAUSED in message
    mark = control_plane.audit_log.mark()
    scene.active(True)
    status = scene.wait_phase("Pending", "Paused")
    assert status["inSchedule"] is True
    assert scene.condition("Scheduled")["status"] == "True", "it is resolved and reported"
    assert scene.condition("Ready")["status"] == "False"
    scene.active(False)
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.active(True)
    scene.wait_phase("Pending", "Paused")
    assert set(spent(control_plane, mark, scene.namespace)) == {STATUS}
    pause(scene, paused=False)
    scene.wait_made()
    scene.wait_phase("Active")
    assert scene.condition("Paused") == {}


@pytest.mark.contract("B6.2")
@EVERY_WAY
def test_while_paused_nothing_is_deleted_or_changed(scene: Scene, control_plane: ControlPlane, pause: Pause) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.wait_phase("Active", "MachineCreated")
    pause(scene, paused=True)
    scene.wait_condition("Paused", "True")
    mark = control_plane.audit_log.mark()
    scene.node_ready()
    scene.wait_condition("Ready", "True", "MachineReady")
    scene.active(False)
    scene.wait_phase("ShuttingDown", "Paused")
    assert scene.condition("Scheduled")["status"] == "False"
    # A lost label would be put back, and leftovers deleted.
    scene.api.patch(
        *MACHINES, scene.name, scene.namespace, {"metadata": {"labels": {"5spot.finos.org/scheduled-machine": None}}}
    )
    scene.delete()
    eventually(lambda: "deletionTimestamp" in scene.get()["metadata"], what="deletion is asked for")
    generation = scene.edit(priority=9)["metadata"]["generation"]
    eventually(lambda: scene.status["observedGeneration"] == generation, what="the edit is seen")
    assert scene.get()["metadata"]["finalizers"] == [FINALIZER]
    assert all(scene.child(kind) is not None for kind in CHILDREN)
    assert set(spent(control_plane, mark, scene.namespace)) == {STATUS}
    pause(scene, paused=False)
    eventually(lambda: scene.find() is None, what="it is gone")
    scene.wait_gone()


@pytest.mark.contract("B6.2")
@EVERY_WAY
def test_the_kill_switch_alone_acts_while_paused(scene: Scene, pause: Pause) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    pause(scene, paused=True)
    scene.wait_condition("Paused", "True")
    scene.edit(killSwitch=True)
    scene.wait_phase("ShuttingDown", "KillSwitchActivated")
    eventually(lambda: scene.machine()["metadata"].get("deletionTimestamp"), what="the Machine is being deleted")
    annotations: dict[str, Any] = scene.machine()["metadata"]["annotations"]
    assert set(annotations) >= NO_DRAIN
    scene.let_machine_go()
    scene.wait_gone()
    scene.wait_phase("Terminated", "KillSwitchActivated")
    if pause is not pause_machine:
        scene.edit(killSwitch=False)
        scene.wait_phase("Pending", "Paused")


@pytest.mark.contract("B6.2")
@WITHOUT_A_MACHINE
def test_a_deletion_under_pause_keeps_the_finalizer_also_when_nothing_is_left(
    scene: Scene, control_plane: ControlPlane, pause: Pause
) -> None:
    scene.create()
    scene.wait_phase("Inactive")
    pause(scene, paused=True)
    scene.wait_condition("Paused", "True")
    mark = control_plane.audit_log.mark()
    scene.delete()
    scene.wait_condition("Ready", "False", "Paused")
    assert scene.get()["metadata"]["finalizers"] == [FINALIZER]
    assert set(spent(control_plane, mark, scene.namespace)) == {STATUS}
    pause(scene, paused=False)
    eventually(lambda: scene.find() is None, what="it is gone")


@pytest.mark.contract("B6.2")
def test_leftovers_wait_for_the_end_of_a_pause(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    scene.active(False)
    scene.wait_phase("ShuttingDown", "NodeDraining")
    pause_cluster(scene, paused=True)
    scene.wait_condition("Paused", "True")
    scene.let_machine_go()
    scene.wait_phase("ShuttingDown", "Paused")
    assert scene.child(MACHINES) is None
    assert scene.child(BOOTSTRAP) is not None
    assert scene.child(INFRASTRUCTURE) is not None
    pause_cluster(scene, paused=False)
    scene.wait_gone()
    scene.wait_phase("Inactive")


@pytest.mark.contract("B6.2")
def test_an_object_first_seen_under_pause_is_reported_and_not_marked(
    scene: Scene, control_plane: ControlPlane, manager: ManagerProcess
) -> None:
    paused = pause_cluster(scene, paused=True)
    scene.active(True)
    schedule = scene.api.get(scene.provider.api_version, scene.provider.kind, "hours", scene.namespace)
    # First seen with what was before, it would be marked, or reported twice.
    caught_up(manager, paused, schedule)
    mark = control_plane.audit_log.mark()
    scene.create()
    scene.wait_phase("Pending", "Paused")
    assert "finalizers" not in scene.get()["metadata"], "it can be deleted or moved away as it is"
    settle_bill(control_plane, mark, scene.namespace, {STATUS: 1})
    pause_cluster(scene, paused=False)
    scene.wait_made()
    assert scene.get()["metadata"]["finalizers"] == [FINALIZER]
