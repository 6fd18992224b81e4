"""B1.22, B1.23: whose verdict is remembered, and what stands in for a memory that was lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from support import eventually
from support.machines import MACHINE
from support.scene import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scene

SCHEDULE_REF = "5spot.finos.org/schedule-ref"


def start(scene: Scene, **spec: Any) -> list[str]:
    """A machine that is up; the uids of its objects."""
    scene.create(**spec)
    scene.active(True)
    scene.wait_made()
    scene.wait_phase("Active")
    return uids(scene)


def uids(scene: Scene) -> list[str]:
    found = [scene.child(kind) for kind in CHILDREN]
    return [
        child["metadata"]["uid"] if child and "deletionTimestamp" not in child["metadata"] else "" for child in found
    ]


def grace(status: dict[str, Any]) -> timedelta:
    begun, due = (datetime.fromisoformat(status[name]) for name in ("shutdownRequestedTime", "nextCleanup"))
    return due - begun


def wait_grace(scene: Scene) -> dict[str, Any]:
    def check() -> dict[str, Any]:
        status = scene.status
        assert status["phase"] == "ShuttingDown", status
        assert "nextCleanup" in status, status
        return status

    return eventually(check, what="a grace period")


def wipe(scene: Scene) -> None:
    """What a restore from a backup does to status."""
    scene.api.request("PATCH", status_path(scene), {"status": None}, content_type="application/merge-patch+json")


def status_path(scene: Scene) -> str:
    return f"/apis/{MACHINE[0]}/namespaces/{scene.namespace}/scheduledmachines/{scene.name}/status"


@pytest.mark.contract("B1.22")
def test_a_changed_reference_that_never_resolved_gives_five_minutes_at_least_and_a_warning(scene: Scene) -> None:
    before = start(scene, gracefulShutdownTimeout="0s")
    scene.edit(schedule=scene.provider.reference("misspelt"))
    status = wait_grace(scene)
    assert grace(status) == timedelta(minutes=5)
    assert (status["inSchedule"], status["spotSchedule"]["resolved"]) == (False, False)
    assert "active" not in status["spotSchedule"], "another reference does not inherit the verdict"
    assert status["spotSchedule"]["reference"]["name"] == "misspelt"
    scene.wait_condition("Ready", "False", "ProviderNotFound")
    warning = eventually(lambda: scene.events("ScheduleReferenceUnresolved"), what="a Warning")[0]
    assert warning["type"] == "Warning"
    assert f"{scene.provider.kind}/misspelt" in warning["note"]
    assert f"it goes at {status['nextCleanup']}" in warning["note"], "it tells when"
    # It appears, but says nothing yet: still never resolved, and the clock runs on.
    scene.provider.create(scene.namespace, "misspelt")
    scene.wait_condition("SpotScheduleResolved", "False", "StatusActiveMissing")
    assert wait_grace(scene)["nextCleanup"] == status["nextCleanup"]
    assert len(scene.events("ScheduleReferenceUnresolved")) == 1
    scene.provider.status(scene.namespace, "misspelt", active=True)
    status = scene.wait_phase("Active", "MachineCreated")
    assert "nextCleanup" not in status
    assert uids(scene) == before
    # Once it has resolved, its end is an end like any other.
    scene.provider.status(scene.namespace, "misspelt", active=False)
    scene.wait_gone()
    scene.wait_phase("Inactive", "ScheduleInactive")


@pytest.mark.contract("B1.22")
def test_a_longer_timeout_counts_and_the_old_reference_takes_it_back(scene: Scene) -> None:
    before = start(scene, gracefulShutdownTimeout="10m")
    scene.edit(schedule=scene.provider.reference("misspelt"))
    assert grace(wait_grace(scene)) == timedelta(minutes=10)
    scene.edit(schedule=scene.provider.reference())
    status = scene.wait_phase("Active", "MachineCreated")
    assert "shutdownRequestedTime" not in status
    assert status["spotSchedule"]["reference"]["name"] == "hours"
    assert uids(scene) == before


@pytest.mark.contract("B1.22")
def test_down_for_another_cause_besides_takes_the_usual_grace(scene: Scene) -> None:
    start(scene, gracefulShutdownTimeout="0s")
    scene.edit(schedule=scene.provider.reference("misspelt"))
    assert grace(wait_grace(scene)) == timedelta(minutes=5)
    scene.edit(enabled=False)
    scene.wait_gone()
    scene.wait_phase("Disabled")


@pytest.mark.contract("B1.22")
def test_a_changed_reference_that_resolves_inactive_takes_the_usual_grace(scene: Scene) -> None:
    start(scene, gracefulShutdownTimeout="0s")
    scene.provider.create(scene.namespace, "closed", active=False)
    scene.edit(schedule=scene.provider.reference("closed"))
    scene.wait_gone()
    scene.wait_phase("Inactive", "ScheduleInactive")
    assert scene.events("ScheduleReferenceUnresolved") == []


@pytest.mark.contract("B1.22")
def test_a_reference_is_its_kind_and_name_and_not_its_version(scene: Scene) -> None:
    before = start(scene)
    scene.provider.delete(scene.namespace)
    scene.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    generation = scene.edit(schedule=scene.provider.reference(version="v9"))["metadata"]["generation"]
    eventually(lambda: scene.status["observedGeneration"] == generation, what="the edit is seen")
    status = scene.wait_phase("Active", "ProviderNotFound")
    assert status["spotSchedule"]["active"] is True, "held on"
    assert uids(scene) == before


@pytest.mark.contract("B1.23")
@pytest.mark.parametrize("annotation", ["as made", "taken away"])
def test_status_wiped_while_the_provider_is_unresolved_holds_the_machine(scene: Scene, annotation: str) -> None:
    before = start(scene)
    made = scene.machine()["metadata"]["annotations"][SCHEDULE_REF]
    assert made == f"{scene.provider.kind}/hours"
    scene.provider.delete(scene.namespace)
    scene.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    if annotation == "taken away":
        note = {"metadata": {"annotations": {SCHEDULE_REF: None}}}
        scene.api.patch(*MACHINES, scene.name, scene.namespace, note)
    wipe(scene)
    status = scene.wait_phase("Active", "ProviderNotFound")
    assert status["inSchedule"] is True
    assert status["spotSchedule"]["active"] is True
    assert [status[f]["uid"] for f in ("machineRef", "bootstrapRef", "infrastructureRef")] == before
    assert uids(scene) == before
    assert "shutdownRequestedTime" not in status
    # And it was remembered: what stood in for the memory may go now.
    other = {"metadata": {"annotations": {SCHEDULE_REF: "Other/other"}}}
    scene.api.patch(*MACHINES, scene.name, scene.namespace, other)
    scene.node_ready()
    scene.wait_condition("MachineReady", "True")
    assert scene.status["phase"] == "Active"
    assert uids(scene) == before


@pytest.mark.contract("B1.22", "B1.23")
def test_status_wiped_with_a_machine_made_for_another_reference_is_no_verdict(scene: Scene) -> None:
    before = start(scene, gracefulShutdownTimeout="0s")
    scene.provider.delete(scene.namespace)
    scene.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    other = {"metadata": {"annotations": {SCHEDULE_REF: f"{scene.provider.kind}/other"}}}
    scene.api.patch(*MACHINES, scene.name, scene.namespace, other)
    # Two watches are never of one instant: the loss may be seen before what the Machine says by then.
    scene.wait_seen()
    wipe(scene)
    status = wait_grace(scene)
    assert status["inSchedule"] is False
    assert grace(status) == timedelta(minutes=5), "and so nobody is in a hurry"
    assert uids(scene) == before
    scene.provider.create(scene.namespace, active=True)
    scene.wait_phase("Active", "MachineCreated")
    assert uids(scene) == before


@pytest.mark.contract("B1.23")
def test_status_wiped_while_down_makes_nothing_and_finds_what_is_left(scene: Scene) -> None:
    start(scene)
    scene.hold_machine()
    scene.active(False)
    scene.wait_phase("ShuttingDown", "NodeDraining")
    scene.provider.delete(scene.namespace)
    scene.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    # The Machine goes while nothing in status names the others.
    wipe(scene)
    scene.let_machine_go()
    eventually(lambda: scene.child(MACHINES) is None, what="the Machine is gone")
    scene.provider.create(scene.namespace, active=False)
    scene.wait_gone()
    scene.wait_phase("Inactive", "ScheduleInactive")
    assert scene.child(BOOTSTRAP) is None
    assert scene.child(INFRASTRUCTURE) is None


@pytest.mark.contract("B1.23")
def test_a_verdict_without_a_reference_belongs_to_the_present_one(scene: Scene) -> None:
    scene.provider.delete(scene.namespace)
    scene.create()
    scene.wait_phase("Inactive", "ProviderNotFound")
    # As the existing 5-Spot writes it.
    as_before = {"resolved": True, "active": True, "reason": "Resolved", "message": None, "reference": None}
    scene.api.patch_status(*MACHINE, scene.name, scene.namespace, {"spotSchedule": as_before})
    scene.wait_made()
    status = scene.wait_phase("Active", "ProviderNotFound")
    assert status["spotSchedule"]["active"] is True
    assert status["spotSchedule"]["reference"] == {"kind": scene.provider.kind, "name": "hours"}
    # From now on it has an owner, and another reference does not inherit it.
    scene.edit(schedule=scene.provider.reference("other"))
    assert wait_grace(scene)["inSchedule"] is False
