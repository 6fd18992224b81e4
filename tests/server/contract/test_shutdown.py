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
from support.measurements import writes
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

CLUSTER = ("cluster.x-k8s.io/v1beta2", "Cluster")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def start(scenario: Scenario, **spec: Any) -> dict[str, Any]:
    """A machine that is up; its status."""
    scenario.create(**spec)
    scenario.active(True)
    scenario.wait_made()
    return scenario.wait_phase("Active")


def versions(scenario: Scenario) -> list[str]:
    found = [scenario.child(kind) for kind in CHILDREN]
    return [child["metadata"]["resourceVersion"] if child else "" for child in found]


@pytest.mark.contract("B1.9", "B1.21")
def test_wanted_again_during_grace_nothing_was_touched(scenario: Scenario) -> None:
    start(scenario, gracefulShutdownTimeout="1h")
    before = versions(scenario)
    scenario.active(False)
    status = scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    begun, due = instant(status["shutdownRequestedTime"]), instant(status["nextCleanup"])
    assert due - begun == timedelta(hours=1)
    scenario.active(True)
    status = scenario.wait_phase("Active", "MachineCreated")
    assert "shutdownRequestedTime" not in status
    assert "nextCleanup" not in status
    assert versions(scenario) == before


@pytest.mark.contract("B1.9", "B1.10")
def test_when_grace_is_over_the_machine_goes_and_in_between_nothing_is_written(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    start(scenario, gracefulShutdownTimeout="3s")
    scenario.hold_machine()
    mark = control_plane.audit_log.mark()
    scenario.active(False)
    status = scenario.wait_phase("ShuttingDown", "NodeDraining")
    assert "nextCleanup" not in status
    # The grace may be over on a busy machine before anybody looks; what was told of it stays.
    [told] = eventually(lambda: scenario.events("GracePeriodActive"), what="what was told of the grace")
    found = re.search(r"is kept until (\S+) ", told["note"])
    assert found is not None, told
    due = instant(found[1])
    assert due - instant(status["shutdownRequestedTime"]) == timedelta(seconds=3)

    def written() -> list[dict[str, Any]]:
        found = writes(control_plane, mark, scenario.namespace)
        assert [event["verb"] for event in found] == ["patch", "patch", "delete"], "grace, its end, and the deletion"
        return found

    # What is written is seen a moment before the log has it.
    deletion = eventually(written, what="three writes")[2]
    assert instant(deletion["requestReceivedTimestamp"]) >= due


@pytest.mark.contract("B1.10", "B1.12")
def test_a_machine_out_of_schedule_is_deleted_and_then_what_is_left(scenario: Scenario) -> None:
    start(scenario)
    scenario.hold_machine()
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    machine = scenario.machine()["metadata"]
    assert machine["deletionTimestamp"]
    assert machine["finalizers"] == ["machine.cluster.x-k8s.io"], "in the background: no other finalizer was added"
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        child = scenario.child(kind)
        assert child is not None
        assert "deletionTimestamp" not in child["metadata"], "deleting it now would switch Cluster API's drain off"
    scenario.let_machine_go()
    scenario.wait_gone()
    status = scenario.wait_phase("Inactive", "ScheduleInactive")
    gone = ("machineRef", "bootstrapRef", "infrastructureRef", "shutdownRequestedTime", "nextCleanup", "nodeRef")
    assert [field for field in gone if field in status] == []
    assert scenario.condition("Ready")["status"] == "True", "down on purpose is as wanted"


@pytest.mark.contract("B1.11")
def test_what_is_left_without_a_machine_is_deleted_at_once(scenario: Scenario) -> None:
    start(scenario, gracefulShutdownTimeout="1h")
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    scenario.api.patch(*INFRASTRUCTURE, scenario.name, scenario.namespace, held)
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    scenario.api.delete(*MACHINES, scenario.name, scenario.namespace)
    status = scenario.wait_phase("ShuttingDown", "DeletingLeftovers")
    assert "StandInMachine" in status["message"]
    left = scenario.child(INFRASTRUCTURE)
    assert left is not None
    assert "deletionTimestamp" in left["metadata"]
    assert scenario.child(BOOTSTRAP) is None
    scenario.api.patch(*INFRASTRUCTURE, scenario.name, scenario.namespace, {"metadata": {"finalizers": None}})
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.wait_gone()


@pytest.mark.contract("B1.13", "B1.20")
def test_disabling_takes_grace_and_drain_and_ends_in_disabled(scenario: Scenario) -> None:
    start(scenario, gracefulShutdownTimeout="1h")
    scenario.hold_machine()
    scenario.edit(enabled=False)
    status = scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    assert status["inSchedule"] is True, "the schedule wants it all the same"
    scenario.wait_condition("Scheduled", "False", "ScheduleDisabled")
    assert "deletionTimestamp" not in scenario.machine()["metadata"]
    # Cut only now: a busy machine looks at nothing within two seconds.
    scenario.edit(gracefulShutdownTimeout="5s")
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    assert scenario.child(BOOTSTRAP) is not None
    scenario.let_machine_go()
    scenario.wait_gone()
    scenario.wait_phase("Disabled", "ScheduleDisabled")
    # Flips of the schedule change nothing here.
    scenario.active(False)
    eventually(lambda: scenario.status["inSchedule"] is False, what="the verdict is followed")
    assert scenario.status["phase"] == "Disabled"


@pytest.mark.contract("B1.9", "B1.20")
def test_disabled_and_enabled_again_during_grace_nothing_was_touched(scenario: Scenario) -> None:
    start(scenario, gracefulShutdownTimeout="1h")
    before = versions(scenario)
    for _ in range(2):
        scenario.edit(enabled=False)
        scenario.wait_phase("ShuttingDown", "GracePeriodActive")
        scenario.edit(enabled=True)
        status = scenario.wait_phase("Active", "MachineCreated")
        assert "shutdownRequestedTime" not in status
    assert versions(scenario) == before


@pytest.mark.contract("B1.21")
def test_grace_counts_from_when_down_was_first_wanted(scenario: Scenario) -> None:
    start(scenario, gracefulShutdownTimeout="1h")
    scenario.active(False)
    begun = scenario.wait_phase("ShuttingDown", "GracePeriodActive")["shutdownRequestedTime"]
    # Another cause is no new start.
    scenario.edit(enabled=False)
    scenario.wait_condition("Scheduled", "False", "ScheduleDisabled")
    assert scenario.status["shutdownRequestedTime"] == begun
    scenario.active(True)
    eventually(lambda: scenario.status["inSchedule"] is True, what="the verdict is followed")
    assert scenario.status["shutdownRequestedTime"] == begun
    # An edited timeout moves the end and not the start.
    scenario.edit(gracefulShutdownTimeout="2h")
    end = instant(begun) + timedelta(hours=2)
    eventually(lambda: instant(scenario.status["nextCleanup"]) == end, what="the end is computed again")
    assert scenario.status["shutdownRequestedTime"] == begun
    # A start in the future, left by a clock that was set back, begins anew; so does a missing one.
    scenario.api.patch_status(
        *MACHINE, scenario.name, scenario.namespace, {"shutdownRequestedTime": "2099-01-01T00:00:00Z"}
    )
    restarted = eventually(lambda: earlier(scenario, "2099-01-01T00:00:00Z"), what="a start that has passed")
    assert instant(restarted) >= instant(begun)
    assert instant(scenario.status["nextCleanup"]) - instant(restarted) == timedelta(hours=2)
    wiped = {"shutdownRequestedTime": None, "nextCleanup": None}
    scenario.api.patch_status(*MACHINE, scenario.name, scenario.namespace, wiped)
    anew = eventually(lambda: scenario.status["shutdownRequestedTime"], what="it starts now")
    assert instant(anew) >= instant(restarted)
    assert scenario.status["phase"] == "ShuttingDown"
    assert "deletionTimestamp" not in scenario.machine()["metadata"], "grace is never skipped"


def earlier(scenario: Scenario, limit: str) -> str:
    begun: str = scenario.status.get("shutdownRequestedTime", limit)
    return begun if instant(begun) < instant(limit) else ""


@pytest.mark.contract("B1.21")
def test_deleting_the_scheduled_machine_skips_grace_and_keeps_the_drain(scenario: Scenario) -> None:
    start(scenario, gracefulShutdownTimeout="1h")
    scenario.hold_machine()
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    scenario.delete()
    eventually(lambda: "deletionTimestamp" in scenario.machine()["metadata"], what="the DELETE")
    assert "machine.cluster.x-k8s.io/exclude-node-draining" not in scenario.machine()["metadata"].get("annotations", {})
    assert scenario.child(BOOTSTRAP) is not None
    scenario.let_machine_go()
    eventually(lambda: scenario.find() is None, what="it is gone")
    scenario.wait_gone()


@pytest.mark.contract("B1.21")
def test_deleting_the_cluster_skips_grace(scenario: Scenario) -> None:
    start(scenario, gracefulShutdownTimeout="1h")
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    held = {"metadata": {"finalizers": ["cluster.cluster.x-k8s.io"]}}
    scenario.api.patch(*CLUSTER, CLUSTER_NAME, scenario.namespace, held)
    scenario.api.delete(*CLUSTER, CLUSTER_NAME, scenario.namespace)
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ClusterDeleting")
    scenario.api.patch(*CLUSTER, CLUSTER_NAME, scenario.namespace, {"metadata": {"finalizers": None}})
