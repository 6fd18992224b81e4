"""B6.1 and B6.2: the Cluster that a machine belongs to, and what a pause holds back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane import ControlPlane
from harness import ManagerProcess
from support import cluster_objects, eventually
from support.machines import MACHINE
from support.measurements import STATUS, caught_up, settle_bill, spent
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

CLUSTER = ("cluster.x-k8s.io/v1beta2", "Cluster")
PAUSED = "cluster.x-k8s.io/paused"
FINALIZER = "5spot.finos.org/scheduledmachine"
NO_DRAIN = {
    "machine.cluster.x-k8s.io/exclude-node-draining",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
}


def delete_cluster(scenario: Scenario) -> None:
    """Delete it; Cluster API's finalizer, played by the test, keeps it until :func:`let_cluster_go`."""
    finalizer = {"metadata": {"finalizers": ["cluster.cluster.x-k8s.io"]}}
    scenario.api.patch(*CLUSTER, "prod", scenario.namespace, finalizer)
    scenario.api.delete(*CLUSTER, "prod", scenario.namespace)


def let_cluster_go(scenario: Scenario) -> None:
    scenario.api.patch(*CLUSTER, "prod", scenario.namespace, {"metadata": {"finalizers": None}})
    eventually(lambda: scenario.api.find(*CLUSTER, "prod", scenario.namespace) is None, what="the Cluster is gone")


def make_cluster(scenario: Scenario, name: str) -> None:
    for body in cluster_objects(scenario.namespace, name):
        if body["kind"] == "Cluster":
            scenario.api.create(body)


@pytest.mark.contract("B6.1")
def test_without_its_cluster_nothing_is_created_and_with_it_at_once(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.active(True)
    mark = control_plane.audit_log.mark()
    scenario.create(clusterName="later")
    status = scenario.wait_phase("Pending", "ClusterNotFound")
    assert f"Cluster {scenario.namespace}/later does not exist" in status["message"]
    assert status["inSchedule"] is True
    assert scenario.condition("Scheduled")["status"] == "True"
    assert {verb.split()[0] for verb in spent(control_plane, mark, scenario.namespace)} == {"patch"}, (
        "nothing was tried"
    )
    make_cluster(scenario, "later")
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")


@pytest.mark.contract("B6.1")
def test_a_cluster_that_is_being_deleted_takes_its_machines_along_without_grace(scenario: Scenario) -> None:
    scenario.create(gracefulShutdownTimeout="1h", nodeDrainTimeout="5m")
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    delete_cluster(scenario)
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    assert scenario.machine()["metadata"]["deletionTimestamp"]
    assert not NO_DRAIN & set(scenario.machine()["metadata"].get("annotations", {})), "it is drained as ever"
    assert "nextCleanup" not in scenario.status
    found = scenario.condition("Scheduled")
    assert (found["status"], found["reason"]) == ("False", "ClusterDeleting")
    assert scenario.condition("SpotScheduleResolved")["status"] == "True"
    scenario.let_machine_go()
    scenario.wait_gone()
    status = scenario.wait_phase("Inactive", "ClusterDeleting")
    assert status["inSchedule"] is True, "the provider still says so"
    assert scenario.condition("Ready")["status"] == "True"
    let_cluster_go(scenario)
    scenario.wait_phase("Pending", "ClusterNotFound")
    make_cluster(scenario, "prod")
    scenario.wait_made()
    scenario.wait_phase("Active")


@pytest.mark.contract("B6.1")
def test_a_deletion_that_is_under_way_ends_a_grace_period_and_is_stronger_than_an_unresolved_schedule(
    scenario: Scenario,
) -> None:
    scenario.create(gracefulShutdownTimeout="1h")
    scenario.active(True)
    scenario.wait_made()
    scenario.provider.delete(scenario.namespace)
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    scenario.edit(enabled=False)
    scenario.wait_phase("ShuttingDown", "ProviderNotFound")
    assert "nextCleanup" in scenario.status
    delete_cluster(scenario)
    scenario.wait_gone()
    eventually(lambda: scenario.condition("Scheduled")["reason"] == "ClusterDeleting", what="who decided")
    scenario.wait_phase("Inactive", "ProviderNotFound")
    let_cluster_go(scenario)


@pytest.mark.contract("B6.1")
def test_the_kill_switch_is_stronger_than_the_deletion_of_the_cluster(scenario: Scenario) -> None:
    scenario.create(killSwitch=True)
    scenario.wait_phase("Terminated")
    delete_cluster(scenario)
    # The Cluster is watched: had it counted for more, the edit would be answered with it.
    generation = scenario.edit(priority=3)["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="the edit is seen")
    assert scenario.condition("Scheduled")["reason"] == "KillSwitchActivated"
    let_cluster_go(scenario)


def pause_cluster(scenario: Scenario, *, paused: bool) -> dict[str, Any]:
    return scenario.api.patch(*CLUSTER, "prod", scenario.namespace, {"spec": {"paused": paused}})


def pause_object(scenario: Scenario, *, paused: bool) -> None:
    _annotate(scenario, MACHINE, paused)


def pause_machine(scenario: Scenario, *, paused: bool) -> None:
    _annotate(scenario, MACHINES, paused)


def _annotate(scenario: Scenario, kind: tuple[str, str], paused: bool) -> None:
    # The annotation counts by being there, whatever it holds.
    annotations = {"metadata": {"annotations": {PAUSED: "false" if paused else None}}}
    scenario.api.patch(*kind, scenario.name, scenario.namespace, annotations)


Pause = Callable[..., object]
EVERY_WAY = pytest.mark.parametrize(
    "pause", [pause_cluster, pause_object, pause_machine], ids=["cluster", "scheduledmachine", "machine"]
)
WITHOUT_A_MACHINE = pytest.mark.parametrize("pause", [pause_cluster, pause_object], ids=["cluster", "scheduledmachine"])


@pytest.mark.contract("B6.2")
@WITHOUT_A_MACHINE
def test_while_paused_nothing_is_created(scenario: Scenario, control_plane: ControlPlane, pause: Pause) -> None:
    scenario.create()
    scenario.wait_phase("Inactive")
    pause(scenario, paused=True)
    message = scenario.wait_condition("Paused", "True", "Paused")["message"]
    assert "Cluster prod" in message if pause is pause_cluster else PAUSED in message
    mark = control_plane.audit_log.mark()
    scenario.active(True)
    status = scenario.wait_phase("Pending", "Paused")
    assert status["inSchedule"] is True
    assert scenario.condition("Scheduled")["status"] == "True", "it is resolved and reported"
    assert scenario.condition("Ready")["status"] == "False"
    scenario.active(False)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.active(True)
    scenario.wait_phase("Pending", "Paused")
    assert set(spent(control_plane, mark, scenario.namespace)) == {STATUS}
    pause(scenario, paused=False)
    scenario.wait_made()
    scenario.wait_phase("Active")
    assert scenario.condition("Paused") == {}


@pytest.mark.contract("B6.2")
@EVERY_WAY
def test_while_paused_nothing_is_deleted_or_changed(
    scenario: Scenario, control_plane: ControlPlane, pause: Pause
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")
    pause(scenario, paused=True)
    scenario.wait_condition("Paused", "True")
    mark = control_plane.audit_log.mark()
    scenario.node_ready()
    scenario.wait_condition("Ready", "True", "MachineReady")
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "Paused")
    assert scenario.condition("Scheduled")["status"] == "False"
    # A lost label would be put back, and leftovers deleted.
    scenario.api.patch(
        *MACHINES,
        scenario.name,
        scenario.namespace,
        {"metadata": {"labels": {"5spot.finos.org/scheduled-machine": None}}},
    )
    scenario.delete()
    eventually(lambda: "deletionTimestamp" in scenario.get()["metadata"], what="deletion is asked for")
    generation = scenario.edit(priority=9)["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="the edit is seen")
    assert scenario.get()["metadata"]["finalizers"] == [FINALIZER]
    assert all(scenario.child(kind) is not None for kind in CHILDREN)
    assert set(spent(control_plane, mark, scenario.namespace)) == {STATUS}
    pause(scenario, paused=False)
    eventually(lambda: scenario.find() is None, what="it is gone")
    scenario.wait_gone()


@pytest.mark.contract("B6.2")
@EVERY_WAY
def test_the_kill_switch_alone_acts_while_paused(scenario: Scenario, pause: Pause) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    pause(scenario, paused=True)
    scenario.wait_condition("Paused", "True")
    scenario.edit(killSwitch=True)
    scenario.wait_phase("ShuttingDown", "KillSwitchActivated")
    eventually(lambda: scenario.machine()["metadata"].get("deletionTimestamp"), what="the Machine is being deleted")
    annotations: dict[str, Any] = scenario.machine()["metadata"]["annotations"]
    assert set(annotations) >= NO_DRAIN
    scenario.let_machine_go()
    scenario.wait_gone()
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    if pause is not pause_machine:
        scenario.edit(killSwitch=False)
        scenario.wait_phase("Pending", "Paused")


@pytest.mark.contract("B6.2")
@WITHOUT_A_MACHINE
def test_a_deletion_under_pause_keeps_the_finalizer_also_when_nothing_is_left(
    scenario: Scenario, control_plane: ControlPlane, pause: Pause
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive")
    pause(scenario, paused=True)
    scenario.wait_condition("Paused", "True")
    mark = control_plane.audit_log.mark()
    scenario.delete()
    scenario.wait_condition("Ready", "False", "Paused")
    assert scenario.get()["metadata"]["finalizers"] == [FINALIZER]
    assert set(spent(control_plane, mark, scenario.namespace)) == {STATUS}
    pause(scenario, paused=False)
    eventually(lambda: scenario.find() is None, what="it is gone")


@pytest.mark.contract("B6.2")
def test_leftovers_wait_for_the_end_of_a_pause(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    pause_cluster(scenario, paused=True)
    scenario.wait_condition("Paused", "True")
    scenario.let_machine_go()
    scenario.wait_phase("ShuttingDown", "Paused")
    assert scenario.child(MACHINES) is None
    assert scenario.child(BOOTSTRAP) is not None
    assert scenario.child(INFRASTRUCTURE) is not None
    pause_cluster(scenario, paused=False)
    scenario.wait_gone()
    scenario.wait_phase("Inactive")


@pytest.mark.contract("B6.2")
def test_an_object_first_seen_under_pause_is_reported_and_not_marked(
    scenario: Scenario, control_plane: ControlPlane, manager: ManagerProcess
) -> None:
    paused = pause_cluster(scenario, paused=True)
    scenario.active(True)
    schedule = scenario.api.get(scenario.provider.api_version, scenario.provider.kind, "hours", scenario.namespace)
    # First seen with what was before, it would be marked, or reported twice.
    caught_up(manager, paused, schedule)
    mark = control_plane.audit_log.mark()
    scenario.create()
    scenario.wait_phase("Pending", "Paused")
    assert "finalizers" not in scenario.get()["metadata"], "it can be deleted or moved away as it is"
    settle_bill(control_plane, mark, scenario.namespace, {STATUS: 1})
    pause_cluster(scenario, paused=False)
    scenario.wait_made()
    assert scenario.get()["metadata"]["finalizers"] == [FINALIZER]
