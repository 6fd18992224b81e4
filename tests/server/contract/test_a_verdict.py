"""A2-A6, A8, A9, A11: what a provider says, who overrules it, and what is held when it says nothing."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane import Api, ControlPlane
from controlplane.audit import WRITES, select
from support import eventually, make_namespace
from support.manager import MANAGER_USER, ManagerProcess
from support.observing import total, writes
from support.providers import PROVIDER_GROUP, ProviderKind
from support.scene import Scene

RESOLUTIONS = "fivespot_spot_schedule_resolutions_total"
RESOLUTION_ERRORS = "fivespot_spot_schedule_resolution_errors_total"


@pytest.mark.contract("A4", "A9")
def test_active_means_that_the_machine_exists_and_inactive_that_it_does_not(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    assert scene.condition("SpotScheduleResolved")["reason"] == "Resolved"
    scene.active(True)
    scene.wait_made()
    assert scene.wait_phase("Active", "MachineCreated")["inSchedule"] is True
    scene.wait_condition("SpotScheduleResolved", "True", "Resolved")
    scene.wait_condition("Scheduled", "True", "ScheduleActive")
    scene.active(False)
    scene.wait_gone()
    assert scene.wait_phase("Inactive", "ScheduleInactive")["inSchedule"] is False
    scene.wait_condition("SpotScheduleResolved", "True", "Resolved")


@pytest.mark.contract("A2", "A13")
def test_a_provider_of_another_namespace_decides_nothing(scene: Scene, api: Api) -> None:
    elsewhere = make_namespace(api, "elsewhere")
    scene.provider.create(elsewhere, active=True)
    twin = Scene(api, elsewhere, scene.provider)
    scene.create()
    twin.create()
    twin.wait_made()
    scene.wait_phase("Inactive", "ScheduleInactive")
    # The object of the other namespace goes away and comes back, and only its own machine takes notice.
    before = scene.get()["metadata"]["resourceVersion"]
    scene.provider.delete(elsewhere)
    twin.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    scene.provider.create(elsewhere, active=False)
    twin.wait_gone()
    twin.wait_phase("Inactive")
    assert scene.get()["metadata"]["resourceVersion"] == before
    api.delete("v1", "Namespace", elsewhere)


@pytest.mark.contract("A3")
def test_what_is_shown_of_a_provider_is_its_ready_condition_generation_and_instant(
    scene: Scene, control_plane: ControlPlane
) -> None:
    since = control_plane.audit_log.mark()
    said: dict[str, Any] = {
        "active": True,
        "conditions": [
            {"type": "Other", "status": "False", "reason": "Noise", "message": "not for us"},
            {"type": "Ready", "status": "True", "reason": "WindowOpen", "message": "until six"},
        ],
        "observedGeneration": 1,
        "lastTransitionTime": "2026-11-01T06:00:00Z",
        "nextTransitionTime": "2026-11-01T18:00:00Z",
        "anything": {"else": ["is", "ignored", 1, None]},
    }
    scene.provider.status(scene.namespace, **said)
    scene.create()
    scene.wait_made()
    shown = scene.wait_phase("Active")["spotSchedule"]
    assert shown == {
        "resolved": True,
        "active": True,
        "reason": "Resolved",
        "message": "WindowOpen: until six",
        "providerGeneration": 1,
        "lastTransitionTime": "2026-11-01T06:00:00Z",
        "reference": {"kind": scene.provider.kind, "name": "hours"},
    }
    events = control_plane.audit(since=since)
    mine = select(events, user=MANAGER_USER, verbs=WRITES, group=PROVIDER_GROUP, namespace=scene.namespace)
    assert not mine, "a provider object is never written"
    assert writes(control_plane, since, scene.namespace), "the log would show a write"


@pytest.mark.contract("A3")
def test_a_change_of_shown_values_alone_waits_for_the_next_real_change(
    scene: Scene, manager: ManagerProcess, control_plane: ControlPlane
) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    before = scene.get()["metadata"]["resourceVersion"]
    labels = {"namespace": scene.namespace, "kind": scene.provider.kind, "result": "inactive"}
    for number in range(4):
        seen = total(manager.metrics(), RESOLUTIONS, **labels)
        message = f"number {number}"
        condition = {"type": "Ready", "status": "True", "reason": "Words", "message": message}
        scene.provider.status(scene.namespace, conditions=[condition], observedGeneration=number)
        eventually(lambda seen=seen: total(manager.metrics(), RESOLUTIONS, **labels) > seen, what="an evaluation")  # type: ignore[misc]
    assert scene.get()["metadata"]["resourceVersion"] == before, "words alone are written once in five minutes"
    # An edit of its spec changes nothing that is read.
    scene.api.patch(scene.provider.api_version, scene.provider.kind, "hours", scene.namespace, {"spec": {"x": 1}})
    scene.active(True)
    scene.wait_made()
    shown = scene.wait_phase("Active")["spotSchedule"]
    assert (shown["message"], shown["providerGeneration"]) == ("Words: number 3", 3), "the newest value wins"
    flips = {"namespace": scene.namespace, "kind": scene.provider.kind}
    # Counted when the write is answered, which the status that is seen here may precede.
    eventually(
        lambda: total(manager.metrics(), "fivespot_spot_schedule_transitions_total", **flips) == 1, what="the counter"
    )


NOT_READY: dict[str, dict[str, Any]] = {
    "False": {"status": "False", "reason": "BadSpec", "message": "hour 25"},
    "Unknown": {"status": "Unknown", "reason": "NotSureYet"},
    "a word of its own": {"status": "Perhaps"},
    "in small letters": {"status": "true"},
    "no status": {"reason": "Nothing"},
    "null": {"status": None},
    "no text": {"status": True},
}


@pytest.mark.contract("A5")
def test_ready_absent_or_true_counts_and_anything_else_holds_the_verdict(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    machine = scene.machine()["metadata"]["uid"]
    for what, ready in NOT_READY.items():
        scene.provider.status(scene.namespace, active=False, conditions=[{"type": "Ready", **ready}])
        condition = scene.wait_condition("SpotScheduleResolved", "False", "ProviderNotReady")
        assert f"{scene.provider.kind}/hours is not Ready" in condition["message"], what
        status = scene.status
        assert (status["phase"], status["inSchedule"]) == ("Active", True), what
        assert scene.condition("Ready")["reason"] == "ProviderNotReady", what
        assert scene.condition("Scheduled")["status"] == "True", what
        scene.provider.status(scene.namespace, active=True, conditions=[{"type": "Ready", "status": "True"}])
        scene.wait_condition("SpotScheduleResolved", "True", "Resolved")
    found = scene.machine()["metadata"]
    assert found["uid"] == machine, "not ready is not inactive"
    assert "deletionTimestamp" not in found
    scene.active(False)
    scene.wait_gone()


@pytest.mark.contract("A5", "A8")
def test_a_provider_that_was_never_ready_means_inactive(scene: Scene) -> None:
    # One that never gave a verdict: of the other a watch that lags may show the one that it gave before.
    unready = [{"type": "Ready", "status": "Unknown"}]
    scene.provider.create(scene.namespace, "never", active=True, conditions=unready)
    scene.create(schedule=scene.provider.reference("never"))
    scene.wait_condition("SpotScheduleResolved", "False", "ProviderNotReady")
    status = scene.wait_phase("Inactive", "ProviderNotReady")
    assert status["inSchedule"] is False
    assert "active" not in status["spotSchedule"]
    scene.wait_gone()
    scene.provider.status(scene.namespace, "never", conditions=None)
    scene.wait_made()
    scene.wait_condition("SpotScheduleResolved", "True", "Resolved")


@pytest.mark.contract("A6")
def test_the_kill_switch_overrules_disabled_and_disabled_overrules_the_schedule(scene: Scene) -> None:
    scene.create(gracefulShutdownTimeout="0s")
    scene.active(True)
    scene.wait_made()
    scene.edit(enabled=False)
    scene.wait_gone()
    scene.wait_phase("Disabled", "ScheduleDisabled")
    scene.wait_condition("Scheduled", "False", "ScheduleDisabled")
    scene.edit(killSwitch=True)
    scene.wait_phase("Terminated", "KillSwitchActivated")
    scene.wait_condition("Scheduled", "False", "KillSwitchActivated")
    assert scene.status["inSchedule"] is True, "the verdict is shown as it was before precedence"
    # Enabling does not help against the switch: the phase stays what it is while the spec is seen.
    generation = scene.edit(enabled=True)["metadata"]["generation"]
    eventually(lambda: scene.status["observedGeneration"] == generation, what="the edit is seen")
    assert scene.status["phase"] == "Terminated"
    assert scene.child(("cluster.x-k8s.io/v1beta2", "Machine")) is None
    scene.edit(killSwitch=False)
    scene.wait_made()
    scene.wait_phase("Active")


@pytest.mark.contract("A6")
def test_nothing_overrules_an_inactive_schedule(scene: Scene) -> None:
    scene.create(enabled=True, killSwitch=False)
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.edit(enabled=False)
    scene.wait_phase("Disabled", "ScheduleDisabled")
    scene.edit(enabled=True)
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.wait_gone()


@pytest.mark.contract("A6")
@pytest.mark.parametrize(
    ("edit", "phase"), [({"killSwitch": True}, "Terminated"), ({"enabled": False}, "Disabled")], ids=["kill", "disable"]
)
def test_precedence_holds_while_the_provider_is_unresolved(scene: Scene, edit: dict[str, Any], phase: str) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.provider.delete(scene.namespace)
    scene.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    scene.edit(**edit)
    scene.wait_gone()
    scene.wait_phase(phase)
    scene.edit(enabled=True, killSwitch=False)
    scene.wait_made()
    assert scene.wait_phase("Active")["inSchedule"] is True, "the held verdict decides again"


@pytest.mark.contract("A8")
def test_a_provider_deleted_while_active_leaves_the_machine_and_says_so(scene: Scene, manager: ManagerProcess) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.node_ready()
    scene.wait_condition("Ready", "True", "MachineReady")
    machine = scene.machine()["metadata"]["uid"]
    scene.provider.delete(scene.namespace)
    condition = scene.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    assert f"{scene.provider.kind}/hours does not exist in namespace {scene.namespace}" in condition["message"]
    status = scene.wait_phase("Active", "ProviderNotFound")
    assert (status["inSchedule"], status["ready"]) == (True, True)
    assert scene.condition("Ready")["status"] == "False"
    assert scene.condition("MachineReady")["status"] == "True"
    held = {**status["spotSchedule"], "message": ""}
    reference = {"kind": scene.provider.kind, "name": "hours"}
    assert held == {
        "resolved": False,
        "active": True,
        "reason": "ProviderNotFound",
        "message": "",
        "reference": reference,
    }
    labels = {"namespace": scene.namespace, "kind": scene.provider.kind}
    metrics = manager.metrics()
    assert total(metrics, RESOLUTION_ERRORS, **labels, reason="ProviderNotFound") >= 1
    assert total(metrics, RESOLUTIONS, **labels, result="unresolved") >= 1
    assert total(metrics, "fivespot_scheduled_machines_unresolved", **labels, reason="ProviderNotFound") == 1
    eventually(lambda: [e["type"] for e in scene.events("ProviderNotFound")] == ["Warning"], what="a Warning")
    # Put back without a verdict it is still held, for the next reason; with one it decides.
    scene.provider.create(scene.namespace)
    scene.wait_condition("SpotScheduleResolved", "False", "StatusActiveMissing")
    assert scene.machine()["metadata"]["uid"] == machine
    before = total(manager.metrics(), RESOLUTION_ERRORS, **labels)
    scene.active(True)
    scene.wait_condition("SpotScheduleResolved", "True", "Resolved")
    scene.wait_condition("Ready", "True", "MachineReady")
    assert scene.machine()["metadata"]["uid"] == machine
    metrics = manager.metrics()
    assert total(metrics, "fivespot_scheduled_machines_unresolved", **labels) == 0
    assert total(metrics, RESOLUTION_ERRORS, **labels) == before
    assert total(metrics, RESOLUTIONS, **labels, result="active") >= 2
    eventually(lambda: [e["type"] for e in scene.events("Resolved")] == ["Normal"], what="the good news")


@pytest.mark.contract("A8")
def test_an_inactive_verdict_is_held_too(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.provider.status(scene.namespace, active=True, conditions=[{"type": "Ready", "status": "False"}])
    status = scene.wait_phase("Inactive", "ProviderNotReady")
    assert status["spotSchedule"]["active"] is False
    scene.wait_gone()


@pytest.mark.contract("A11")
def test_an_observed_generation_that_is_behind_is_shown_and_rejects_nothing(scene: Scene) -> None:
    provider: ProviderKind = scene.provider
    for number in range(3):
        scene.api.patch(provider.api_version, provider.kind, "hours", scene.namespace, {"spec": {"edit": number}})
    assert scene.api.get(provider.api_version, provider.kind, "hours", scene.namespace)["metadata"]["generation"] == 4
    provider.status(scene.namespace, active=True, observedGeneration=1)
    scene.create()
    scene.wait_made()
    status = scene.wait_phase("Active")
    assert status["spotSchedule"]["providerGeneration"] == 1
    scene.wait_condition("SpotScheduleResolved", "True", "Resolved")
    scene.active(False)
    scene.wait_gone()
