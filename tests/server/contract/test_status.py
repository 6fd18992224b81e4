"""B4.5 and B4.6: the fields of status, and how seldom it is written."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from controlplane import ControlPlane
from support import eventually
from support.machines import MACHINE
from support.measurements import STATUS, settle_bill, written
from support.scenario import BOOTSTRAP, INFRASTRUCTURE, MACHINES, Scenario

OF_A_MACHINE = {"machineRef", "bootstrapRef", "infrastructureRef", "providerID", "nodeRef"}


@pytest.mark.contract("B4.5")
def test_fields_are_written_and_cleared_when_they_are_no_longer_true(scenario: Scenario) -> None:
    scenario.create(gracefulShutdownTimeout="1h")
    scenario.active(True)
    scenario.wait_made()
    scenario.api.patch(*MACHINES, scenario.name, scenario.namespace, {"spec": {"providerID": "standin://web-1"}})
    scenario.node_ready(node="node-7")
    scenario.wait_condition("Ready", "True")
    status = scenario.status
    assert (status["phase"], status["inSchedule"], status["ready"]) == ("Active", True, True)
    assert status["providerID"] == "standin://web-1"
    assert status["nodeRef"] == {"apiVersion": "v1", "kind": "Node", "name": "node-7"}
    assert status["message"]
    for field, kind in (("machineRef", MACHINES), ("bootstrapRef", BOOTSTRAP), ("infrastructureRef", INFRASTRUCTURE)):
        child = scenario.child(kind)
        assert child is not None
        assert status[field] == {
            "apiVersion": kind[0],
            "kind": kind[1],
            "name": scenario.name,
            "namespace": scenario.namespace,
            "uid": child["metadata"]["uid"],
        }
    made = scenario.machine()["metadata"]["creationTimestamp"]
    assert status["lastScheduledTime"] == made
    assert not {"nextCleanup", "shutdownRequestedTime", "replacements"} & set(status)

    scenario.active(False)
    status = scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    assert set(status) >= OF_A_MACHINE | {"nextCleanup", "shutdownRequestedTime"}
    assert status["inSchedule"] is False
    scenario.active(True)
    status = scenario.wait_phase("Active", "MachineReady")
    assert not {"nextCleanup", "shutdownRequestedTime"} & set(status)

    scenario.node_ready(ready=False, node="node-7")
    scenario.wait_condition("MachineReady", "False")
    assert scenario.status["nodeRef"]["name"] == "node-7", "the node is still there"
    scenario.api.patch_status(*MACHINES, scenario.name, scenario.namespace, {"nodeRef": None})
    eventually(lambda: "nodeRef" not in scenario.status, what="the node is gone from status")

    scenario.edit(gracefulShutdownTimeout="0s")
    scenario.active(False)
    scenario.wait_gone()
    status = scenario.wait_phase("Inactive", "ScheduleInactive")
    assert not (OF_A_MACHINE | {"nextCleanup", "shutdownRequestedTime"}) & set(status)
    assert (status["inSchedule"], status["ready"]) == (False, False)
    assert status["lastScheduledTime"] == made, "of the last machine"
    assert status["spotSchedule"]["active"] is False


@pytest.mark.contract("B4.5")
def test_what_somebody_else_wrote_is_put_right(scenario: Scenario) -> None:
    scenario.create()
    before = scenario.wait_phase("Inactive", "ScheduleInactive")
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
    scenario.api.patch_status(*MACHINE, scenario.name, scenario.namespace, wrong)
    eventually(lambda: scenario.status == before, what="status is as it was")


@pytest.mark.contract("B4.6")
def test_what_changes_nothing_is_not_written_and_an_edit_is_one_write(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.node_ready()
    scenario.wait_condition("Ready", "True", "MachineReady")
    other = Scenario(scenario.api, scenario.namespace, scenario.provider, "other")
    other.create()
    other.wait_phase("Active", "MachineCreated")
    mark = control_plane.audit_log.mark()
    kind, version = scenario.provider.kind, scenario.provider.api_version
    # Each of these is seen, and most make the key run.
    for number in range(3):
        label = {"metadata": {"labels": {"seen": f"{number}"}, "annotations": {"example.com/seen": f"{number}"}}}
        for who in (MACHINE, MACHINES, BOOTSTRAP, INFRASTRUCTURE):
            scenario.api.patch(*who, scenario.name, scenario.namespace, label)
        scenario.api.patch(version, kind, "hours", scenario.namespace, {**label, "spec": {"number": number}})
        scenario.api.patch("cluster.x-k8s.io/v1beta2", "Cluster", "prod", scenario.namespace, label)
        scenario.api.patch_status(
            *MACHINES, scenario.name, scenario.namespace, {"lastUpdated": f"2026-11-0{number + 1}T00:00:00Z"}
        )
        scenario.provider.status(scenario.namespace, other=number, active=True)
    # Runs of one key follow each other: once this edit is seen, so is all before it.
    generation = scenario.edit(priority=7)["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="the edit is seen")
    generation = other.edit(priority=7)["metadata"]["generation"]
    eventually(lambda: other.status["observedGeneration"] == generation, what="the edit is seen")
    # One for each edit.
    settle_bill(control_plane, mark, scenario.namespace, {STATUS: 2})


@pytest.mark.contract("B4.6")
def test_changes_that_come_together_are_never_more_writes_than_changes(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create(enabled=False)
    scenario.wait_phase("Disabled")
    # Written in its own time, and not a part of what is counted.
    eventually(lambda: scenario.events("ScheduleDisabled"), what="the event of the phase")
    mark = control_plane.audit_log.mark()
    edits = 20
    for number in range(edits):
        generation = scenario.edit(priority=number)["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="the last edit is seen")
    requests = written(control_plane, mark, scenario.namespace)
    assert {event["objectRef"]["subresource"] for event in requests} == {"status"}
    codes = Counter(event["responseStatus"]["code"] for event in requests)
    # A write that lost the race against an edit is refused, and its key runs again.
    assert set(codes) <= {200, 409}
    assert 1 <= codes[200] <= edits
