"""Plans that several decisions share: errors, waiting, questions, and proofs that nothing was left behind."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fivespot.api import Phase, Reason
from fivespot.contract import EffectiveVerdict
from fivespot.controllers.scheduledmachine.cluster_api import Known
from fivespot.controllers.scheduledmachine.common_plans import (
    ask,
    child_in,
    error,
    invalid,
    is_our_status,
    known_refusal,
    search_needed,
    undecided,
    unprepared,
    unreadable,
    waiting,
)
from fivespot.controllers.scheduledmachine.plan import Question, Want
from fivespot.controllers.scheduledmachine.snapshot import Answers, Slot, Snapshot
from unit.controllers.build import (
    BLIND,
    BOOTSTRAP,
    INFRASTRUCTURE,
    NOW,
    OLD_INFRASTRUCTURE,
    UP,
    at,
    child,
    entries,
    machine,
    ready_machine,
    ref,
    refusal,
    snapshot,
    spec,
    status,
    stored_status,
)

ON = EffectiveVerdict(True, known=True, fresh=True, may_begin=True)
SHUTDOWN = stored_status(shutdownRequestedTime=at(minutes=2), replacements={"count": 2, "lastTime": at(), "uid": "m-0"})


@pytest.mark.contract("A15")
def test_waiting_and_asking_report_nothing_and_lose_nothing() -> None:
    s = snapshot(UP, machine=ready_machine(), stored=SHUTDOWN)
    waits = waiting(s, ON, Want.ACTIVE, "Machines are not read yet")
    assert (waits.quiet, waits.steps, waits.recheck) == (True, (), True)
    assert (waits.shutdown_requested, waits.replaced) == (NOW - timedelta(minutes=2), s.stored.replaced)
    assert waits.why_waiting == "Machines are not read yet"
    asks = ask(s, ON, Want.ACTIVE, Question.LEFTOVERS)
    assert (asks.quiet, asks.steps, asks.ask) == (True, (), Question.LEFTOVERS)
    assert asks.replaced == s.stored.replaced


# Errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.7")
def test_an_error_is_tried_again_after_the_longest_wait_unless_another_is_named() -> None:
    s = snapshot(UP)
    assert error(s, ON, Want.ACTIVE, "X", "x", stalled=True).wake == NOW + timedelta(seconds=300)
    assert error(s, ON, Want.ACTIVE, "X", "x", stalled=True, wake=7.0).wake == NOW + timedelta(seconds=7)
    assert error(s, ON, Want.ACTIVE, "X", "x", stalled=True, wake=0.0).wake == NOW


@pytest.mark.contract("B1.21")
@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"machine": machine()}, True),
        ({"children": (child(Slot.BOOTSTRAP),)}, True),
        ({"machine_known": Known.UNKNOWN}, True),
        ({}, False),
        ({"children": (child(Slot.BOOTSTRAP, ours=False),)}, False),
    ],
)
def test_an_error_forgets_a_shutdown_only_when_nothing_of_the_machine_is_left(
    changes: dict[str, Any], kept: bool
) -> None:
    plan = error(snapshot(UP, stored=SHUTDOWN, **changes), ON, Want.ACTIVE, "X", "x", stalled=True)
    assert plan.shutdown_requested == (NOW - timedelta(minutes=2) if kept else None)
    assert plan.phase is Phase.ERROR


@pytest.mark.contract("B1.17")
def test_a_spec_is_invalid_if_it_has_problems_or_names_no_kind() -> None:
    assert invalid(snapshot(UP), ON, Want.ACTIVE) is None
    for broken in (spec(bootstrap=None), spec(infrastructure=None), spec(problems=("spec.a: bad",))):
        plan = invalid(snapshot(UP, spec=broken), ON, Want.ACTIVE)
        assert plan is not None
        assert (plan.reason, plan.stalled, plan.phase) == (Reason.REFERENCES_INVALID, True, Phase.ERROR)
        assert plan.message


def test_of_many_problems_of_a_spec_three_are_named() -> None:
    broken = spec(problems=tuple(f"spec.f{number}: bad" for number in range(5)))
    plan = invalid(snapshot(UP, spec=broken), ON, Want.ACTIVE)
    assert plan is not None
    assert plan.message == "spec.f0: bad; spec.f1: bad; spec.f2: bad"


@pytest.mark.contract("B1.7")
def test_a_refused_step_is_an_error_until_its_next_try_is_due() -> None:
    stalled = refusal(due=1060.0, stalled=True)
    plan = known_refusal(snapshot(UP, refusal=stalled), ON, Want.ACTIVE)
    assert plan is not None
    assert (plan.reason, plan.message, plan.stalled) == ("MachineCreationFailed", "quota exceeded", True)
    assert plan.wake == NOW + timedelta(seconds=60)
    assert known_refusal(snapshot(UP, refusal=refusal(due=1000.0)), ON, Want.ACTIVE) is None
    assert known_refusal(snapshot(UP), ON, Want.ACTIVE) is None


@pytest.mark.contract("B1.7")
def test_a_refused_optional_step_holds_back_itself_and_nothing_else() -> None:
    optional = refusal(due=1060.0, optional=True)
    s = snapshot(UP, refusal=optional)
    assert known_refusal(s, ON, Want.ACTIVE) is None
    assert unprepared(s) is optional
    assert unprepared(replace(s, monotonic=1060.0)) is None, "it is due"
    assert unprepared(snapshot(UP, refusal=refusal(due=1060.0))) is None, "it is not optional"


# Unreadable and undecided ---------------------------------------------------------------------------------------


@pytest.mark.contract("A15")
@pytest.mark.parametrize(("lasted", "quiet"), [(0.0, True), (29.9, True), (30.0, False), (90.0, False)])
def test_an_unreadable_schedule_acts_on_nothing_and_is_reported_after_half_a_minute(lasted: float, quiet: bool) -> None:
    s = snapshot(BLIND, machine=ready_machine(), unreadable_for=lasted)
    acting = replace(error(s, ON, Want.INACTIVE, "X", "x", stalled=False), steps=(object(),))  # type: ignore[arg-type]
    plan = unreadable(s, acting)
    assert (plan.steps, plan.quiet) == ((), quiet)
    assert plan.reason == Reason.AWAITING_SCHEDULE


@pytest.mark.parametrize(
    ("changes", "want", "stalled", "phase"),
    [
        ({"machine_known": Known.UNKNOWN}, Want.ACTIVE, False, Phase.ACTIVE),
        ({"machine_known": Known.UNKNOWN}, Want.ACTIVE, True, Phase.ERROR),
        ({"machine_known": Known.UNKNOWN}, Want.INACTIVE, False, Phase.SHUTTING_DOWN),
        ({}, Want.ACTIVE, False, Phase.PENDING),
    ],
)
def test_a_run_without_a_conclusion_keeps_the_phase_of_a_machine_that_may_be_there(
    changes: dict[str, Any], want: Want, stalled: bool, phase: Phase
) -> None:
    s = snapshot(UP, stored=stored_status(status(phase="Active")), **changes)
    plan = undecided(s, ON, want, "will be retried: 503", stalled=stalled)
    assert (plan.phase, plan.undecided, plan.recheck, plan.settled) == (phase, True, True, False)


def test_a_run_without_a_conclusion_survives_a_phase_of_another_version() -> None:
    s = snapshot(UP, machine_known=Known.UNKNOWN, stored=stored_status(status(phase="Hibernating")))
    assert undecided(s, ON, Want.ACTIVE, "503").phase is Phase.PENDING


@pytest.mark.contract("B1.21")
def test_a_run_without_a_conclusion_keeps_the_shutdown_and_the_count() -> None:
    s = snapshot(UP, stored=SHUTDOWN)
    plan = undecided(s, ON, Want.INACTIVE, "503")
    assert (plan.shutdown_requested, plan.replaced) == (NOW - timedelta(minutes=2), s.stored.replaced)


# Leftovers ------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B2.3")
def test_of_several_children_of_a_role_the_one_of_an_older_template_is_reported() -> None:
    current = child(Slot.INFRASTRUCTURE)
    older = child(Slot.INFRASTRUCTURE, resource=OLD_INFRASTRUCTURE, uid="old")
    foreign = child(Slot.BOOTSTRAP, ours=False)
    for children in ((current, older), (older, current)):
        assert child_in(snapshot(UP, children=(foreign, *children)), Slot.INFRASTRUCTURE) is older
    s = snapshot(UP, children=(foreign, current))
    assert child_in(s, Slot.INFRASTRUCTURE) is current
    assert child_in(s, Slot.BOOTSTRAP) is None, "it is not ours"


OURS = status(phase="Inactive")


@pytest.mark.contract("B2.3")
@pytest.mark.parametrize(
    ("stored", "ours"),
    [
        (OURS, True),
        ({}, False),
        ({**OURS, "phase": "Error"}, False),
        ({**OURS, "phase": ""}, False),
        ({**OURS, "conditions": entries(("Ready", "Unknown", "ReconcileFailed"))}, False),
        ({**OURS, "conditions": entries(("Ready", "True", "ScheduleInactive"))}, True),
        (status(None, phase="Inactive"), False),
        ({"phase": "Inactive"}, False),
    ],
    ids=["ours", "lost", "error", "no-phase", "no-conclusion", "concluded", "5-spot", "no-schedule"],
)
def test_only_a_conclusion_of_this_controller_proves_that_there_are_no_leftovers(stored: Any, ours: bool) -> None:
    assert is_our_status(stored_status(stored)) is ours
    assert search_needed(snapshot(UP, stored=stored_status(stored))) is not ours


@pytest.mark.contract("B2.3")
@pytest.mark.parametrize(
    "changes",
    [
        {"fresh": True},
        {"answers": Answers(searched=True)},
        {"stored": stored_status({"bootstrapRef": ref(BOOTSTRAP)})},
        {"stored": stored_status({"infrastructureRef": ref(INFRASTRUCTURE)})},
    ],
    ids=["new", "searched", "names-bootstrap", "names-infrastructure"],
)
def test_leftovers_are_not_searched_where_it_is_known_what_there_can_be(changes: Any) -> None:
    lost: Snapshot = snapshot(UP, stored=stored_status({}))
    assert search_needed(lost)
    assert not search_needed(replace(lost, **changes))
