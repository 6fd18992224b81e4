"""B4, A3, A13: status, conditions and events as they follow from a plan."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from fivespot.api import Phase, ScheduledMachineStatus
from fivespot.contract import Display, Resolution, Resolved, Unreadable, Unresolved
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.snapshot import Slot
from fivespot.controllers.scheduledmachine.status import (
    RefusedStep,
    after_refusal,
    build_status,
    provider_text_only,
    status_events,
)
from fivespot.runtime import find_condition, merge_diff
from unit.controllers.build import (
    BLIND,
    BOOTSTRAP,
    DOWN,
    LOST,
    NOW,
    UP,
    after,
    at,
    child,
    condition,
    entries,
    judged,
    machine,
    machine_ref,
    ready_machine,
    ref,
    snapshot,
    spec,
    status,
    stored_status,
)

# Conditions -----------------------------------------------------------------------------------------------------


@pytest.mark.contract("B4.4")
def test_timestamps_move_with_the_status_of_a_condition_and_not_with_its_words() -> None:
    before = stored_status(conditions=entries(("Ready", "True", "MachineReady"), ("MachineReady", "False", "NotReady")))
    _, stored = judged(snapshot(UP, machine=ready_machine(), stored=before))
    ready, machine_ready = (find_condition(stored["conditions"], type_) for type_ in ("Ready", "MachineReady"))
    assert ready is not None
    assert machine_ready is not None
    assert (ready["lastTransitionTime"], ready["message"] != "as before") == (at(hours=1), True)
    assert machine_ready["lastTransitionTime"] == at()
    assert ready["observedGeneration"] == stored["observedGeneration"] == 3


@pytest.mark.contract("B4.4")
def test_conditions_of_other_writers_survive_untouched() -> None:
    theirs = entries(("example.com/Audited", "Unknown", "Later"))
    _, stored = judged(snapshot(UP, machine=ready_machine(), stored=stored_status(conditions=theirs)))
    assert stored["conditions"][0] == theirs[0]


@pytest.mark.contract("B4.1")
def test_reconciling_and_stalled_are_absent_when_settled() -> None:
    before = stored_status(conditions=entries(("Reconciling", "True", "NodeDraining"), ("Stalled", "True", "X")))
    _, stored = judged(snapshot(DOWN, stored=before))
    assert condition(stored, "Reconciling") is None
    assert condition(stored, "Stalled") is None


@pytest.mark.parametrize("resolution", [UP, DOWN, LOST, BLIND])
@pytest.mark.parametrize("existing", [None, "garbage", 5, [], [5, None, {"type": "Ready"}], [{}]])
def test_conditions_that_make_no_sense_are_replaced(resolution: Resolution, existing: Any) -> None:
    _, stored = judged(snapshot(resolution, stored=stored_status(conditions=existing), machine=ready_machine()))
    assert condition(stored, "MachineReady") == ("True", "MachineReady")


@pytest.mark.contract("B4.3")
@pytest.mark.parametrize(
    ("made_from", "shown"),
    [
        ({"5spot.finos.org/template-hash": "0123456789abcdef"}, ("True", "UpToDate")),
        ({"5spot.finos.org/template-hash": "f"}, ("False", "TemplateChanged")),
        ({}, ("Unknown", "NoTemplateHash")),
    ],
)
def test_up_to_date_compares_what_the_machine_was_made_from(made_from: dict[str, str], shown: tuple[str, str]) -> None:
    _, stored = judged(snapshot(UP, machine=ready_machine(annotations=made_from)))
    assert condition(stored, "UpToDate") == shown


@pytest.mark.contract("B4.3")
def test_up_to_date_is_absent_without_a_machine() -> None:
    _, stored = judged(snapshot(DOWN, stored=stored_status(conditions=entries(("UpToDate", "True", "UpToDate")))))
    assert condition(stored, "UpToDate") is None


@pytest.mark.contract("B4.3")
def test_scheduled_is_the_verdict_after_precedence_and_who_decided() -> None:
    shown = {}
    for name, s in {
        "up": snapshot(UP),
        "down": snapshot(DOWN),
        "off": snapshot(UP, spec=spec(enabled=False)),
        "killed": snapshot(UP, spec=spec(kill_switch=True)),
    }.items():
        _, stored = judged(s)
        shown[name] = (condition(stored, "Scheduled"), stored["inSchedule"])
    assert shown == {
        "up": (("True", "ScheduleActive"), True),
        "down": (("False", "ScheduleInactive"), False),
        "off": (("False", "ScheduleDisabled"), True),
        "killed": (("False", "KillSwitchActivated"), True),
    }


# Fields ---------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B4.5")
def test_fields_are_cleared_when_they_are_no_longer_true() -> None:
    full = stored_status(
        status(
            providerID="x://1",
            nodeRef={"name": "node-1"},
            machineRef=machine_ref(),
            bootstrapRef=ref(BOOTSTRAP),
            infrastructureRef=ref(BOOTSTRAP),
            nextCleanup=at(),
            shutdownRequestedTime=at(minutes=5),
            lastScheduledTime=at(hours=1),
            invented="x",
        )
    )
    s = snapshot(DOWN, stored=full)
    stored = build_status(s, decide(s))
    assert set(stored) == {
        "phase",
        "message",
        "observedGeneration",
        "inSchedule",
        "ready",
        "lastScheduledTime",
        "spotSchedule",
        "conditions",
    }
    assert merge_diff(full.raw, stored)["nodeRef"] is None


@pytest.mark.contract("B4.5")
def test_last_scheduled_time_is_when_the_present_or_last_machine_was_created() -> None:
    _, present = judged(snapshot(UP, machine=ready_machine(), stored=stored_status(lastScheduledTime=at(days=3))))
    assert present["lastScheduledTime"] == at(hours=1)
    _, past = judged(snapshot(DOWN, stored=stored_status(present)))
    assert past["lastScheduledTime"] == at(hours=1)


def test_everything_that_is_written_fits_the_published_schema() -> None:
    display = Display("WindowOpen", "until 17:00", 4, 3, "2026-11-30T06:00:00Z")
    over = stored_status(shutdownRequestedTime=at(minutes=1), replacements={"count": 2, "lastTime": at(), "uid": "m-0"})
    for s in (
        snapshot(Resolved(True, display), machine=ready_machine(node_uid="n-1"), stored=over),
        snapshot(Resolved(False, display), machine=machine(), stored=over),
        snapshot(LOST, children=(child(Slot.BOOTSTRAP),)),
    ):
        _, stored = judged(s)
        parsed = ScheduledMachineStatus.model_validate(stored)
        assert parsed.model_dump(by_alias=True, exclude_none=True) == stored


# What is shown of the provider ----------------------------------------------------------------------------------


@pytest.mark.contract("A3", "A11")
def test_what_a_provider_shows_is_shown() -> None:
    display = Display("WindowOpen", "until 17:00", 9, 3, "2026-11-30T06:00:00Z")
    plan, stored = judged(snapshot(Resolved(True, display), machine=ready_machine()))
    assert plan.settled
    spot = stored["spotSchedule"]
    assert (spot["message"], spot["providerGeneration"]) == ("WindowOpen: until 17:00", 3)
    assert spot["lastTransitionTime"] == "2026-11-30T06:00:00Z"


@pytest.mark.contract("A13")
def test_of_a_providers_texts_no_more_than_a_kibibyte_is_copied() -> None:
    worst = Display("R" * 64, "M" * 256, 1, 1, "2026-11-30T06:00:00.123456789+00:00")
    message = f"TimeBasedSpotSchedule/hours is not Ready (False): {worst.reason}: {worst.message}"
    _, stored = judged(snapshot(Unresolved("ProviderNotReady", message, worst), machine=ready_machine()))
    shown = repr(stored)
    assert shown.count("R" * 64) == shown.count("M" * 256) > 0
    assert shown.count("M" * 256) * (64 + 256) + len(worst.last_transition_time) <= 1024


def readings(first: Resolution, second: Resolution) -> bool:
    """Whether going from one reading to the other is a change of display values alone."""
    old = judged(snapshot(first, machine=ready_machine(), unreadable_for=60.0))[1]
    s = snapshot(second, machine=ready_machine(), stored=stored_status(old), unreadable_for=60.0)
    new = judged(s)[1]
    assert merge_diff(old, new)
    return provider_text_only(old, new)


@pytest.mark.contract("A3")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Resolved(True, Display("A", "one")), Resolved(True, Display("B", "two", 2, 2, "2026-11-30T06:00:00Z"))),
        (Unresolved("ProviderNotReady", "one"), Unresolved("ProviderNotReady", "two")),
        (Unreadable("503"), Unreadable("timed out")),
    ],
    ids=["resolved", "not-ready", "unreadable"],
)
def test_other_words_of_a_provider_are_a_change_of_display_values_alone(first: Resolution, second: Resolution) -> None:
    assert readings(first, second)


@pytest.mark.contract("A3")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Resolved(True), LOST),
        (LOST, Resolved(True)),
        (Unresolved("ProviderNotFound", "x"), Unresolved("ProviderNotReady", "x")),
        (LOST, BLIND),
        (Resolved(True), Resolved(False)),
    ],
)
def test_another_verdict_or_reason_is_more_than_display(first: Resolution, second: Resolution) -> None:
    assert not readings(first, second)


@pytest.mark.contract("A3")
@pytest.mark.parametrize(
    "edit",
    [
        lambda stored: stored.update(observedGeneration=4),
        lambda stored: stored.update(phase="Error"),
        lambda stored: stored.update(message="other"),
        lambda stored: stored["spotSchedule"].update(active=False),
        lambda stored: stored["spotSchedule"]["reference"].update(name="other"),
        lambda stored: stored["conditions"][1].update(message="other"),
    ],
    ids=["spec", "phase", "message", "verdict", "reference", "machine"],
)
def test_everything_else_is_more_than_display(edit: Any) -> None:
    old = judged(snapshot(UP, machine=ready_machine()))[1]
    new = copy.deepcopy(old)
    assert new["conditions"][1]["type"] == "MachineReady"
    edit(new)
    assert not provider_text_only(old, new)
    assert provider_text_only(old, copy.deepcopy(old))


# Events ---------------------------------------------------------------------------------------------------------


def told(before: Any, s: Any) -> list[tuple[str, bool]]:
    s = replace(s, stored=stored_status(before))
    plan = decide(s)
    return [(n.reason, n.warning) for n in status_events(s, plan, build_status(s, plan))]


@pytest.mark.contract("B4.7")
def test_a_change_of_phase_is_told_with_its_reason() -> None:
    inactive = judged(snapshot(DOWN))[1]
    assert told(inactive, snapshot(UP)) == [("MachineCreated", False)]
    active = judged(snapshot(UP, machine=ready_machine()))[1]
    assert told(active, snapshot(DOWN, machine=ready_machine())) == [("GracePeriodActive", False)]
    assert told(active, snapshot(UP, machine=machine())) == []


@pytest.mark.contract("B4.7")
def test_an_error_is_a_warning() -> None:
    inactive = judged(snapshot(DOWN))[1]
    assert told(inactive, snapshot(UP, spec=spec(problems=("spec.x: bad",)))) == [("ReferencesInvalid", True)]


@pytest.mark.contract("B4.7")
def test_a_resolution_lost_and_regained_is_told_once_each() -> None:
    up = judged(snapshot(UP, machine=ready_machine()))[1]
    lost = snapshot(LOST, machine=ready_machine())
    assert told(up, lost) == [("ProviderNotFound", True)]
    stored = build_status(replace(lost, stored=stored_status(up)), decide(lost))
    assert told(stored, lost) == []
    assert told(stored, snapshot(UP, machine=ready_machine())) == [("Resolved", False)]


@pytest.mark.contract("B4.7")
def test_a_restart_tells_nothing() -> None:
    up = judged(snapshot(UP, machine=ready_machine()))[1]
    assert told(up, snapshot(BLIND, machine=ready_machine(), unreadable_for=3.0)) == []


def test_fields_that_are_not_acted_on_are_shown_and_told_once() -> None:
    s = snapshot(UP, machine=ready_machine(), spec=spec(unsupported=("kata", "killIfCommands")))
    plan, stored = judged(s)
    assert condition(stored, "UnsupportedFields") == ("True", "NotActedOn")
    assert ("UnsupportedFields", True) in [(n.reason, n.warning) for n in status_events(s, plan, stored)]
    assert told(stored, s) == []
    _, later = judged(replace(after(s, plan), spec=spec()))
    assert condition(later, "UnsupportedFields") is None


# Refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.7", "B4.1")
@pytest.mark.parametrize("stalled", [True, False])
def test_a_refused_step_is_an_error_and_says_whether_only_a_person_can_help(stalled: bool) -> None:
    s = snapshot(UP)
    plan = after_refusal(s, decide(s), RefusedStep("MachineCreationFailed", "no", stalled), 30.0)
    assert (plan.phase, plan.reason, plan.message, plan.settled) == (Phase.ERROR, "MachineCreationFailed", "no", False)
    assert plan.wake is not None
    assert (plan.wake - NOW).total_seconds() == 30
    stored = build_status(s, plan)
    assert (condition(stored, "Stalled") is not None) is stalled
    assert (condition(stored, "Reconciling") is not None) is not stalled
    assert condition(stored, "Ready") == ("False", "MachineCreationFailed")


def test_a_message_of_any_length_is_cut() -> None:
    s = snapshot(UP)
    plan = after_refusal(s, decide(s), RefusedStep("MachineCreationFailed", "x" * 10_000, stalled=True), 30.0)
    stored = build_status(s, plan)
    assert len(stored["message"]) == 1024
    assert all(len(entry["message"]) <= 1024 for entry in stored["conditions"])
    assert all(len(n.message) <= 1024 for n in status_events(s, plan, stored))
