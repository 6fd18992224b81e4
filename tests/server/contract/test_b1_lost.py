"""B1.6, B1.8: Machines that vanish or are found unhealthy, under the waiting times as shipped."""

from __future__ import annotations

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from support import eventually
from support.manager import MANAGER_USER, ManagerProcess
from support.observing import total
from support.scene import MACHINES, Scene

REPLACEMENTS = "fivespot_machine_replacements_total"
SKIP = "cluster.x-k8s.io/skip-remediation"


@pytest.mark.contract("B1.6", "B7.1")
def test_a_machine_that_is_gone_is_told_once_and_replaced_after_a_wait(
    scene: Scene, manager: ManagerProcess, control_plane: ControlPlane
) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    mark = control_plane.audit_log.mark()
    lost = scene.wait_phase("Active")["machineRef"]["uid"]
    scene.api.delete(*MACHINES, scene.name, scene.namespace)
    status = scene.wait_phase("Pending", "ReplacementDelayed")
    assert (status["replacements"]["count"], status["replacements"]["uid"]) == (1, lost)
    assert (status["inSchedule"], status["ready"]) == (True, False)
    assert "machineRef" not in status
    asked = select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="get", namespace=scene.namespace)
    assert [event["responseStatus"]["code"] for event in select(asked, resource="machines")] == [404], "a live GET"
    event = eventually(lambda: scene.events("MachineLost"), what="a Warning")[0]
    assert event["type"] == "Warning"
    assert lost in event["note"]
    labels = {"namespace": scene.namespace, "reason": "Lost"}
    # The manager counts what it has written once it is answered, and others may see it a moment earlier.
    eventually(lambda: total(manager.metrics(), REPLACEMENTS, **labels) == 1, what="the loss is counted")
    # Runs in between neither shorten the wait nor count again.
    generation = scene.edit(priority=51)["metadata"]["generation"]
    eventually(lambda: scene.status["observedGeneration"] == generation, what="a run in between")
    assert scene.status["replacements"] == status["replacements"]
    scene.wait_made(40)
    after = scene.wait_phase("Active", "MachineCreated")
    assert after["machineRef"]["uid"] != lost
    assert after["replacements"] == status["replacements"]
    assert len(scene.events("MachineLost")) == 1
    assert total(manager.metrics(), REPLACEMENTS, namespace=scene.namespace) == 1


@pytest.mark.contract("B1.6")
def test_a_machine_that_is_gone_during_our_own_shutdown_is_not_lost(scene: Scene, manager: ManagerProcess) -> None:
    scene.create(gracefulShutdownTimeout="1h")
    scene.active(True)
    scene.wait_made()
    scene.active(False)
    scene.wait_phase("ShuttingDown", "GracePeriodActive")
    scene.api.delete(*MACHINES, scene.name, scene.namespace)
    scene.wait_gone()
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.active(True)
    scene.wait_made()
    status = scene.wait_phase("Active", "MachineCreated")
    scene.assert_never_braked()
    assert "replacements" not in status
    assert scene.events("MachineLost") == []
    assert total(manager.metrics(), REPLACEMENTS, namespace=scene.namespace) == 0


@pytest.mark.contract("B1.8", "B7.1")
def test_a_machine_that_a_health_check_marked_is_deleted_and_replaced_after_a_wait(
    scene: Scene, manager: ManagerProcess
) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    first = scene.wait_phase("Active")["machineRef"]["uid"]
    scene.hold_machine()
    # Neither half of the mark is enough, nor both on a Machine that may not be remediated.
    mark(scene, HealthCheckSucceeded="False")
    assert_untouched(scene, first, "node-1")
    mark(scene, OwnerRemediated="False", HealthCheckSucceeded="True")
    assert_untouched(scene, first, "node-2")
    scene.api.patch(*MACHINES, scene.name, scene.namespace, {"metadata": {"annotations": {SKIP: ""}}})
    mark(scene, OwnerRemediated="False", HealthCheckSucceeded="False")
    assert_untouched(scene, first, "node-3")
    scene.api.patch(*MACHINES, scene.name, scene.namespace, {"metadata": {"annotations": {SKIP: None}}})
    eventually(lambda: "deletionTimestamp" in scene.machine()["metadata"], what="the DELETE")
    status = scene.wait_phase("ShuttingDown")
    assert (status["replacements"]["count"], status["replacements"]["uid"]) == (1, first)
    assert "shutdownRequestedTime" not in status
    assert eventually(lambda: scene.events("Remediating"), what="an event")[0]["regarding"]["name"] == scene.name
    scene.let_machine_go()
    scene.wait_phase("Pending", "ReplacementDelayed")
    scene.wait_made(40)
    status = scene.wait_phase("Active", "MachineCreated")
    assert status["machineRef"]["uid"] != first
    assert status["replacements"]["count"] == 1, "counted once, although it was marked, deleting and gone"
    assert scene.events("MachineLost") == []
    assert total(manager.metrics(), REPLACEMENTS, namespace=scene.namespace, reason="Remediated") == 1
    assert total(manager.metrics(), REPLACEMENTS, namespace=scene.namespace) == 1


def mark(scene: Scene, **conditions: str) -> None:
    """What a MachineHealthCheck writes into the Machine's conditions."""
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
    scene.api.patch_status(*MACHINES, scene.name, scene.namespace, {"conditions": written})


def assert_untouched(scene: Scene, uid: str, node: str) -> None:
    """The Machine as it stands has been looked at, and left alone."""
    scene.api.patch_status(*MACHINES, scene.name, scene.namespace, {"nodeRef": {"name": node}})
    eventually(lambda: scene.status["nodeRef"]["name"] == node, what="a later change is mirrored")
    found = scene.machine()["metadata"]
    assert found["uid"] == uid
    assert "deletionTimestamp" not in found
    assert scene.status["phase"] == "Active"
