"""B4.5 and B4.6: the fields of status, and how seldom it is written."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from controlplane import ControlPlane
from support import eventually
from support.machines import MACHINE
from support.scene import BOOTSTRAP, INFRASTRUCTURE, MACHINES, Scene
from support.spending import STATUS, settle_bill, written

OF_A_MACHINE = {"machineRef", "bootstrapRef", "infrastructureRef", "providerID", "nodeRef"}


@pytest.mark.contract("B4.5")
def test_fields_are_written_and_cleared_when_they_are_no_longer_true(scene: Scene) -> None:
    scene.create(gracefulShutdownTimeout="1h")
    scene.active(True)
    scene.wait_made()
    scene.api.patch(*MACHINES, scene.name, scene.namespace, {"spec": {"providerID": "standin://web-1"}})
    scene.node_ready(node="node-7")
    scene.wait_condition("Ready", "True")
    status = scene.status
    assert (status["phase"], status["inSchedule"], status["ready"]) == ("Active", True, True)
    assert status["providerID"] == "standin://web-1"
    assert status["nodeRef"] == {"apiVersion": "v1", "kind": "Node", "name": "node-7"}
    assert status["message"]
    for field, kind in (("machineRef", MACHINES), ("bootstrapRef", BOOTSTRAP), ("infrastructureRef", INFRASTRUCTURE)):
        child = scene.child(kind)
        assert child is not None
        assert status[field] == {
            "apiVersion": kind[0],
            "kind": kind[1],
            "name": scene.name,
            "namespace": scene.namespace,
            "uid": child["metadata"]["uid"],
        }
    made = scene.machine()["metadata"]["creationTimestamp"]
    assert status["lastScheduledTime"] == made
    assert not {"nextCleanup", "shutdownRequestedTime", "replacements"} & set(status)

    scene.active(False)
    status = scene.wait_phase("ShuttingDown", "GracePeriodActive")
    assert set(status) >= OF_A_MACHINE | {"nextCleanup", "shutdownRequestedTime"}
    assert status["inSchedule"] is False
    scene.active(True)
    status = scene.wait_phase("Active", "MachineReady")
    assert not {"nextCleanup", "shutdownRequestedTime"} & set(status)

    scene.node_ready(ready=False, node="node-7")
    scene.wait_condition("MachineReady", "False")
    assert scene.status["nodeRef"]["name"] == "node-7", "the node is still there"
    scene.api.patch_status(*MACHINES, scene.name, scene.namespace, {"nodeRef": None})
    eventually(lambda: "nodeRef" not in scene.status, what="the node is gone from status")

    scene.edit(gracefulShutdownTimeout="0s")
    scene.active(False)
    scene.wait_gone()
    status = scene.wait_phase("Inactive", "ScheduleInactive")
    assert not (OF_A_MACHINE | {"nextCleanup", "shutdownRequestedTime"}) & set(status)
    assert (status["inSchedule"], status["ready"]) == (False, False)
    assert status["lastScheduledTime"] == made, "of the last machine"
    assert status["spotSchedule"]["active"] is False


@pytest.mark.contract("B4.5")
def test_what_somebody_else_wrote_is_put_right(scene: Scene) -> None:
    scene.create()
    before = scene.wait_phase("Inactive", "ScheduleInactive")
    wrong: dict[str, Any] = {
        "phase": "Active",
        "message": "all is well",
        "inSchedule": True,
        "ready": True,
        "providerID": "standin://ghost",
        "nodeRef": {"kind": "Node", "name": "ghost"},
        "nextCleanup": "2030-01-01T00:00:00Z",
        "observedGeneration": 99,
    }
    scene.api.patch_status(*MACHINE, scene.name, scene.namespace, wrong)
    eventually(lambda: scene.status == before, what="status is as it was")


@pytest.mark.contract("B4.6")
def test_what_changes_nothing_is_not_written_and_an_edit_is_one_write(
    scene: Scene, control_plane: ControlPlane
) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.node_ready()
    scene.wait_condition("Ready", "True", "MachineReady")
    other = Scene(scene.api, scene.namespace, scene.provider, "other")
    other.create()
    other.wait_phase("Active", "MachineCreated")
    mark = control_plane.audit_log.mark()
    kind, version = scene.provider.kind, scene.provider.api_version
    # Each of these is seen, and most make the key run.
    for number in range(3):
        label = {"metadata": {"labels": {"seen": f"{number}"}, "annotations": {"example.com/seen": f"{number}"}}}
        for who in (MACHINE, MACHINES, BOOTSTRAP, INFRASTRUCTURE):
            scene.api.patch(*who, scene.name, scene.namespace, label)
        scene.api.patch(version, kind, "hours", scene.namespace, {**label, "spec": {"number": number}})
        scene.api.patch("cluster.x-k8s.io/v1beta2", "Cluster", "prod", scene.namespace, label)
        scene.api.patch_status(
            *MACHINES, scene.name, scene.namespace, {"lastUpdated": f"2026-11-0{number + 1}T00:00:00Z"}
        )
        scene.provider.status(scene.namespace, other=number, active=True)
    # Runs of one key follow each other: once this edit is seen, so is all before it.
    generation = scene.edit(priority=7)["metadata"]["generation"]
    eventually(lambda: scene.status["observedGeneration"] == generation, what="the edit is seen")
    generation = other.edit(priority=7)["metadata"]["generation"]
    eventually(lambda: other.status["observedGeneration"] == generation, what="the edit is seen")
    # One for each edit.
    settle_bill(control_plane, mark, scene.namespace, {STATUS: 2})


@pytest.mark.contract("B4.6")
def test_changes_that_come_together_are_never_more_writes_than_changes(
    scene: Scene, control_plane: ControlPlane
) -> None:
    scene.create(enabled=False)
    scene.wait_phase("Disabled")
    # Written in its own time, and not a part of what is counted.
    eventually(lambda: scene.events("ScheduleDisabled"), what="the event of the phase")
    mark = control_plane.audit_log.mark()
    edits = 20
    for number in range(edits):
        generation = scene.edit(priority=number)["metadata"]["generation"]
    eventually(lambda: scene.status["observedGeneration"] == generation, what="the last edit is seen")
    requests = written(control_plane, mark, scene.namespace)
    assert {event["objectRef"]["subresource"] for event in requests} == {"status"}
    codes = Counter(event["responseStatus"]["code"] for event in requests)
    # A write that lost the race against an edit is refused, and its key runs again.
    assert set(codes) <= {200, 409}
    assert 1 <= codes[200] <= edits
