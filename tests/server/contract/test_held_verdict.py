"""B1.22, B1.23: whose verdict is remembered, and what stands in for a memory that was lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from support import eventually
from support.machines import MACHINE
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

SCHEDULE_REF = "5spot.finos.org/schedule-ref"


def start(scenario: Scenario, **spec: Any) -> list[str]:
    """A machine that is up; the uids of its objects."""
    scenario.create(**spec)
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    return uids(scenario)


def uids(scenario: Scenario) -> list[str]:
    found = [scenario.child(kind) for kind in CHILDREN]
    return [
        child["metadata"]["uid"] if child and "deletionTimestamp" not in child["metadata"] else "" for child in found
    ]


def grace(status: dict[str, Any]) -> timedelta:
    begun, due = (datetime.fromisoformat(status[name]) for name in ("shutdownRequestedTime", "nextCleanup"))
    return due - begun


def wait_grace(scenario: Scenario) -> dict[str, Any]:
    def check() -> dict[str, Any]:
        status = scenario.status
        assert status["phase"] == "ShuttingDown", status
        assert "nextCleanup" in status, status
        return status

    return eventually(check, what="a grace period")


def wipe(scenario: Scenario) -> None:
    """Remove the status, as a restore from a backup does."""
    scenario.api.request("PATCH", status_path(scenario), {"status": None}, content_type="application/merge-patch+json")


def status_path(scenario: Scenario) -> str:
    return f"/apis/{MACHINE[0]}/namespaces/{scenario.namespace}/scheduledmachines/{scenario.name}/status"


@pytest.mark.contract("B1.22")
def test_a_changed_reference_that_never_resolved_gives_five_minutes_at_least_and_a_warning(scenario: Scenario) -> None:
    before = start(scenario, gracefulShutdownTimeout="0s")
    scenario.edit(schedule=scenario.provider.reference("misspelt"))
    status = wait_grace(scenario)
    assert grace(status) == timedelta(minutes=5)
    assert (status["inSchedule"], status["spotSchedule"]["resolved"]) == (False, False)
    assert "active" not in status["spotSchedule"], "another reference does not inherit the verdict"
    assert status["spotSchedule"]["reference"]["name"] == "misspelt"
    scenario.wait_condition("Ready", "False", "ProviderNotFound")
    warning = eventually(lambda: scenario.events("ScheduleReferenceUnresolved"), what="a Warning")[0]
    assert warning["type"] == "Warning"
    assert f"{scenario.provider.kind}/misspelt" in warning["note"]
    assert f"it is deleted at {status['nextCleanup']}" in warning["note"], "it tells when"
    # It appears, but says nothing yet: still never resolved, and the clock runs on.
    scenario.provider.create(scenario.namespace, "misspelt")
    scenario.wait_condition("SpotScheduleResolved", "False", "StatusActiveMissing")
    assert wait_grace(scenario)["nextCleanup"] == status["nextCleanup"]
    assert len(scenario.events("ScheduleReferenceUnresolved")) == 1
    scenario.provider.status(scenario.namespace, "misspelt", active=True)
    status = scenario.wait_phase("Active", "MachineCreated")
    assert "nextCleanup" not in status
    assert uids(scenario) == before
    # Once it has resolved, its end is an end like any other.
    scenario.provider.status(scenario.namespace, "misspelt", active=False)
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ScheduleInactive")


@pytest.mark.contract("B1.22")
def test_a_longer_timeout_counts_and_the_old_reference_takes_it_back(scenario: Scenario) -> None:
    before = start(scenario, gracefulShutdownTimeout="10m")
    scenario.edit(schedule=scenario.provider.reference("misspelt"))
    assert grace(wait_grace(scenario)) == timedelta(minutes=10)
    scenario.edit(schedule=scenario.provider.reference())
    status = scenario.wait_phase("Active", "MachineCreated")
    assert "shutdownRequestedTime" not in status
    assert status["spotSchedule"]["reference"]["name"] == "hours"
    assert uids(scenario) == before


@pytest.mark.contract("B1.22")
def test_down_for_another_cause_besides_takes_the_usual_grace(scenario: Scenario) -> None:
    start(scenario, gracefulShutdownTimeout="0s")
    scenario.edit(schedule=scenario.provider.reference("misspelt"))
    assert grace(wait_grace(scenario)) == timedelta(minutes=5)
    scenario.edit(enabled=False)
    scenario.wait_gone()
    scenario.wait_phase("Disabled")


@pytest.mark.contract("B1.22")
def test_a_changed_reference_that_resolves_inactive_takes_the_usual_grace(scenario: Scenario) -> None:
    start(scenario, gracefulShutdownTimeout="0s")
    scenario.provider.create(scenario.namespace, "closed", active=False)
    scenario.edit(schedule=scenario.provider.reference("closed"))
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert scenario.events("ScheduleReferenceUnresolved") == []


@pytest.mark.contract("B1.22")
def test_a_reference_is_its_kind_and_name_and_not_its_version(scenario: Scenario) -> None:
    before = start(scenario)
    scenario.provider.delete(scenario.namespace)
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    generation = scenario.edit(schedule=scenario.provider.reference(version="v9"))["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="the edit is seen")
    status = scenario.wait_phase("Active", "ProviderNotFound")
    assert status["spotSchedule"]["active"] is True, "held on"
    assert uids(scenario) == before


@pytest.mark.contract("B1.23")
@pytest.mark.parametrize("annotation", ["as made", "taken away"])
def test_status_wiped_while_the_provider_is_unresolved_holds_the_machine(scenario: Scenario, annotation: str) -> None:
    before = start(scenario)
    made = scenario.machine()["metadata"]["annotations"][SCHEDULE_REF]
    assert made == f"{scenario.provider.kind}/hours"
    scenario.provider.delete(scenario.namespace)
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    if annotation == "taken away":
        note = {"metadata": {"annotations": {SCHEDULE_REF: None}}}
        scenario.api.patch(*MACHINES, scenario.name, scenario.namespace, note)
    wipe(scenario)
    status = scenario.wait_phase("Active", "ProviderNotFound")
    assert status["inSchedule"] is True
    assert status["spotSchedule"]["active"] is True
    assert [status[f]["uid"] for f in ("machineRef", "bootstrapRef", "infrastructureRef")] == before
    assert uids(scenario) == before
    assert "shutdownRequestedTime" not in status
    # And it was remembered: what stood in for the memory may go now.
    other = {"metadata": {"annotations": {SCHEDULE_REF: "Other/other"}}}
    scenario.api.patch(*MACHINES, scenario.name, scenario.namespace, other)
    scenario.node_ready()
    scenario.wait_condition("MachineReady", "True")
    assert scenario.status["phase"] == "Active"
    assert uids(scenario) == before


@pytest.mark.contract("B1.22", "B1.23")
def test_status_wiped_with_a_machine_made_for_another_reference_is_no_verdict(scenario: Scenario) -> None:
    before = start(scenario, gracefulShutdownTimeout="0s")
    scenario.provider.delete(scenario.namespace)
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    other = {"metadata": {"annotations": {SCHEDULE_REF: f"{scenario.provider.kind}/other"}}}
    scenario.api.patch(*MACHINES, scenario.name, scenario.namespace, other)
    # Two watches are never of one instant: the loss may be seen before what the Machine says by then.
    scenario.wait_seen()
    wipe(scenario)
    status = wait_grace(scenario)
    assert status["inSchedule"] is False
    assert grace(status) == timedelta(minutes=5), "and so nobody is in a hurry"
    assert uids(scenario) == before
    scenario.provider.create(scenario.namespace, active=True)
    scenario.wait_phase("Active", "MachineCreated")
    assert uids(scenario) == before


@pytest.mark.contract("B1.23")
def test_status_wiped_while_down_makes_nothing_and_finds_what_is_left(scenario: Scenario) -> None:
    start(scenario)
    scenario.hold_machine()
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    scenario.provider.delete(scenario.namespace)
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    # The Machine goes while nothing in status names the others.
    wipe(scenario)
    scenario.let_machine_go()
    eventually(lambda: scenario.child(MACHINES) is None, what="the Machine is gone")
    scenario.provider.create(scenario.namespace, active=False)
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert scenario.child(BOOTSTRAP) is None
    assert scenario.child(INFRASTRUCTURE) is None


@pytest.mark.contract("B1.23")
def test_a_verdict_without_a_reference_belongs_to_the_present_one(scenario: Scenario) -> None:
    scenario.provider.delete(scenario.namespace)
    scenario.create()
    scenario.wait_phase("Inactive", "ProviderNotFound")
    # As the existing 5-Spot writes it.
    as_before = {"resolved": True, "active": True, "reason": "Resolved", "message": None, "reference": None}
    scenario.api.patch_status(*MACHINE, scenario.name, scenario.namespace, {"spotSchedule": as_before})
    scenario.wait_made()
    status = scenario.wait_phase("Active", "ProviderNotFound")
    assert status["spotSchedule"]["active"] is True
    assert status["spotSchedule"]["reference"] == {"kind": scenario.provider.kind, "name": "hours"}
    # From now on it has an owner, and another reference does not inherit it.
    scenario.edit(schedule=scenario.provider.reference("other"))
    assert wait_grace(scenario)["inSchedule"] is False
