"""A2-A6, A8, A9, A11: what a provider says, who overrules it, and what is held when it says nothing."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane import Api, ControlPlane
from controlplane.audit import WRITES, select
from harness import MANAGER_USER, ManagerProcess
from harness.providers import PROVIDER_GROUP, ProviderKind
from support import eventually, make_namespace
from support.measurements import total, writes
from support.scenario import Scenario

RESOLUTIONS = "fivespot_spot_schedule_resolutions_total"
RESOLUTION_ERRORS = "fivespot_spot_schedule_resolution_errors_total"


@pytest.mark.contract("A4", "A9")
def test_active_means_that_the_machine_exists_and_inactive_that_it_does_not(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert scenario.condition("SpotScheduleResolved")["reason"] == "Resolved"
    scenario.active(True)
    scenario.wait_made()
    assert scenario.wait_phase("Active", "MachineCreated")["inSchedule"] is True
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")
    scenario.wait_condition("Scheduled", "True", "ScheduleActive")
    scenario.active(False)
    scenario.wait_gone()
    assert scenario.wait_phase("Inactive", "ScheduleInactive")["inSchedule"] is False
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")


@pytest.mark.contract("A2", "A13")
def test_a_provider_of_another_namespace_decides_nothing(scenario: Scenario, api: Api) -> None:
    elsewhere = make_namespace(api, "elsewhere")
    scenario.provider.create(elsewhere, active=True)
    twin = Scenario(api, elsewhere, scenario.provider)
    scenario.create()
    twin.create()
    twin.wait_made()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    # The object of the other namespace goes away and comes back, and only its own machine takes notice.
    before = scenario.get()["metadata"]["resourceVersion"]
    scenario.provider.delete(elsewhere)
    twin.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    scenario.provider.create(elsewhere, active=False)
    twin.wait_gone()
    twin.wait_phase("Inactive")
    assert scenario.get()["metadata"]["resourceVersion"] == before
    api.delete("v1", "Namespace", elsewhere)


@pytest.mark.contract("A3")
def test_what_is_shown_of_a_provider_is_its_ready_condition_generation_and_instant(
    scenario: Scenario, control_plane: ControlPlane
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
    scenario.provider.status(scenario.namespace, **said)
    scenario.create()
    scenario.wait_made()
    shown = scenario.wait_phase("Active")["spotSchedule"]
    assert shown == {
        "resolved": True,
        "active": True,
        "reason": "Resolved",
        "message": "WindowOpen: until six",
        "providerGeneration": 1,
        "lastTransitionTime": "2026-11-01T06:00:00Z",
        "reference": {"kind": scenario.provider.kind, "name": "hours"},
    }
    events = control_plane.audit(since=since)
    mine = select(events, user=MANAGER_USER, verbs=WRITES, group=PROVIDER_GROUP, namespace=scenario.namespace)
    assert not mine, "a provider object is never written"
    assert writes(control_plane, since, scenario.namespace), "the log would show a write"


@pytest.mark.contract("A3")
def test_a_change_of_shown_values_alone_waits_for_the_next_real_change(
    scenario: Scenario, manager: ManagerProcess, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    before = scenario.get()["metadata"]["resourceVersion"]
    labels = {"namespace": scenario.namespace, "kind": scenario.provider.kind, "result": "inactive"}
    for number in range(4):
        seen = total(manager.metrics(), RESOLUTIONS, **labels)
        message = f"number {number}"
        condition = {"type": "Ready", "status": "True", "reason": "Words", "message": message}
        scenario.provider.status(scenario.namespace, conditions=[condition], observedGeneration=number)
        eventually(lambda seen=seen: total(manager.metrics(), RESOLUTIONS, **labels) > seen, what="an evaluation")  # type: ignore[misc]
    assert scenario.get()["metadata"]["resourceVersion"] == before, "words alone are written once in five minutes"
    # An edit of its spec changes nothing that is read.
    scenario.api.patch(
        scenario.provider.api_version, scenario.provider.kind, "hours", scenario.namespace, {"spec": {"x": 1}}
    )
    scenario.active(True)
    scenario.wait_made()
    shown = scenario.wait_phase("Active")["spotSchedule"]
    assert (shown["message"], shown["providerGeneration"]) == ("Words: number 3", 3), "the newest value wins"
    flips = {"namespace": scenario.namespace, "kind": scenario.provider.kind}
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
def test_ready_absent_or_true_counts_and_anything_else_holds_the_verdict(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    machine = scenario.machine()["metadata"]["uid"]
    for what, ready in NOT_READY.items():
        scenario.provider.status(scenario.namespace, active=False, conditions=[{"type": "Ready", **ready}])
        condition = scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotReady")
        assert f"{scenario.provider.kind}/hours is not Ready" in condition["message"], what
        status = scenario.status
        assert (status["phase"], status["inSchedule"]) == ("Active", True), what
        assert scenario.condition("Ready")["reason"] == "ProviderNotReady", what
        assert scenario.condition("Scheduled")["status"] == "True", what
        scenario.provider.status(scenario.namespace, active=True, conditions=[{"type": "Ready", "status": "True"}])
        scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")
    found = scenario.machine()["metadata"]
    assert found["uid"] == machine, "not ready is not inactive"
    assert "deletionTimestamp" not in found
    scenario.active(False)
    scenario.wait_gone()


@pytest.mark.contract("A5", "A8")
def test_a_provider_that_was_never_ready_means_inactive(scenario: Scenario) -> None:
    # One that never gave a verdict: of the other a watch that lags may show the one that it gave before.
    unready = [{"type": "Ready", "status": "Unknown"}]
    scenario.provider.create(scenario.namespace, "never", active=True, conditions=unready)
    scenario.create(schedule=scenario.provider.reference("never"))
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotReady")
    status = scenario.wait_phase("Inactive", "ProviderNotReady")
    assert status["inSchedule"] is False
    assert "active" not in status["spotSchedule"]
    scenario.wait_gone()
    scenario.provider.status(scenario.namespace, "never", conditions=None)
    scenario.wait_made()
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")


@pytest.mark.contract("A6")
def test_the_kill_switch_overrules_disabled_and_disabled_overrules_the_schedule(scenario: Scenario) -> None:
    scenario.create(gracefulShutdownTimeout="0s")
    scenario.active(True)
    scenario.wait_made()
    scenario.edit(enabled=False)
    scenario.wait_gone()
    scenario.wait_phase("Disabled", "ScheduleDisabled")
    scenario.wait_condition("Scheduled", "False", "ScheduleDisabled")
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    scenario.wait_condition("Scheduled", "False", "KillSwitchActivated")
    assert scenario.status["inSchedule"] is True, "the verdict is shown as it was before precedence"
    # Enabling does not help against the switch: the phase stays what it is while the spec is seen.
    generation = scenario.edit(enabled=True)["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="the edit is seen")
    assert scenario.status["phase"] == "Terminated"
    assert scenario.child(("cluster.x-k8s.io/v1beta2", "Machine")) is None
    scenario.edit(killSwitch=False)
    scenario.wait_made()
    scenario.wait_phase("Active")


@pytest.mark.contract("A6")
def test_nothing_overrules_an_inactive_schedule(scenario: Scenario) -> None:
    scenario.create(enabled=True, killSwitch=False)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.edit(enabled=False)
    scenario.wait_phase("Disabled", "ScheduleDisabled")
    scenario.edit(enabled=True)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.wait_gone()


@pytest.mark.contract("A6")
@pytest.mark.parametrize(
    ("edit", "phase"), [({"killSwitch": True}, "Terminated"), ({"enabled": False}, "Disabled")], ids=["kill", "disable"]
)
def test_precedence_holds_while_the_provider_is_unresolved(
    scenario: Scenario, edit: dict[str, Any], phase: str
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.provider.delete(scenario.namespace)
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    scenario.edit(**edit)
    scenario.wait_gone()
    scenario.wait_phase(phase)
    scenario.edit(enabled=True, killSwitch=False)
    scenario.wait_made()
    assert scenario.wait_phase("Active")["inSchedule"] is True, "the held verdict decides again"


@pytest.mark.contract("A8")
def test_a_provider_deleted_while_active_leaves_the_machine_and_says_so(
    scenario: Scenario, manager: ManagerProcess
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.node_ready()
    scenario.wait_condition("Ready", "True", "MachineReady")
    machine = scenario.machine()["metadata"]["uid"]
    scenario.provider.delete(scenario.namespace)
    condition = scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    assert f"{scenario.provider.kind}/hours does not exist in namespace {scenario.namespace}" in condition["message"]
    status = scenario.wait_phase("Active", "ProviderNotFound")
    assert (status["inSchedule"], status["ready"]) == (True, True)
    assert scenario.condition("Ready")["status"] == "False"
    assert scenario.condition("MachineReady")["status"] == "True"
    held = {**status["spotSchedule"], "message": ""}
    reference = {"kind": scenario.provider.kind, "name": "hours"}
    assert held == {
        "resolved": False,
        "active": True,
        "reason": "ProviderNotFound",
        "message": "",
        "reference": reference,
    }
    labels = {"namespace": scenario.namespace, "kind": scenario.provider.kind}
    metrics = manager.metrics()
    assert total(metrics, RESOLUTION_ERRORS, **labels, reason="ProviderNotFound") >= 1
    assert total(metrics, RESOLUTIONS, **labels, result="unresolved") >= 1
    assert total(metrics, "fivespot_scheduled_machines_unresolved", **labels, reason="ProviderNotFound") == 1
    eventually(lambda: [e["type"] for e in scenario.events("ProviderNotFound")] == ["Warning"], what="a Warning")
    # Put back without a verdict it is still held, for the next reason; with one it decides.
    scenario.provider.create(scenario.namespace)
    scenario.wait_condition("SpotScheduleResolved", "False", "StatusActiveMissing")
    assert scenario.machine()["metadata"]["uid"] == machine
    before = total(manager.metrics(), RESOLUTION_ERRORS, **labels)
    scenario.active(True)
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")
    scenario.wait_condition("Ready", "True", "MachineReady")
    assert scenario.machine()["metadata"]["uid"] == machine
    metrics = manager.metrics()
    assert total(metrics, "fivespot_scheduled_machines_unresolved", **labels) == 0
    assert total(metrics, RESOLUTION_ERRORS, **labels) == before
    assert total(metrics, RESOLUTIONS, **labels, result="active") >= 2
    eventually(lambda: [e["type"] for e in scenario.events("Resolved")] == ["Normal"], what="the good news")


@pytest.mark.contract("A8")
def test_an_inactive_verdict_is_held_too(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.provider.status(scenario.namespace, active=True, conditions=[{"type": "Ready", "status": "False"}])
    status = scenario.wait_phase("Inactive", "ProviderNotReady")
    assert status["spotSchedule"]["active"] is False
    scenario.wait_gone()


@pytest.mark.contract("A11")
def test_an_observed_generation_that_is_behind_is_shown_and_rejects_nothing(scenario: Scenario) -> None:
    provider: ProviderKind = scenario.provider
    for number in range(3):
        scenario.api.patch(provider.api_version, provider.kind, "hours", scenario.namespace, {"spec": {"edit": number}})
    assert (
        scenario.api.get(provider.api_version, provider.kind, "hours", scenario.namespace)["metadata"]["generation"]
        == 4
    )
    provider.status(scenario.namespace, active=True, observedGeneration=1)
    scenario.create()
    scenario.wait_made()
    status = scenario.wait_phase("Active")
    assert status["spotSchedule"]["providerGeneration"] == 1
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")
    scenario.active(False)
    scenario.wait_gone()
