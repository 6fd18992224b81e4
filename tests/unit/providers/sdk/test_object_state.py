"""The state kept of one object between runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fivespot.providers.sdk import (
    Verdict,
)
from fivespot.providers.sdk.decider import PreparedSpec
from fivespot.providers.sdk.object_state import Decision, ObjectState

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def test_a_decision_is_good_until_something_may_be_different() -> None:
    spec = PreparedSpec("uid", 1)
    decision = Decision(spec, NOON, Verdict(True, NOON + 40 * SECOND))
    assert decision.holds(spec, NOON)
    assert decision.holds(spec, NOON + 39 * SECOND)
    assert not decision.holds(spec, NOON + 40 * SECOND), "it changes then"
    assert not decision.holds(PreparedSpec("uid", 1), NOON), "read anew"
    assert not decision.holds(spec, NOON - SECOND), "the clock was set"
    endless = Decision(spec, NOON, Verdict(True, again=NOON + 30 * SECOND))
    assert endless.holds(spec, NOON + 29 * SECOND)
    assert not endless.holds(spec, NOON + 30 * SECOND), "it wants to look again"
    assert not Decision(spec, NOON, Verdict(True)).holds(spec, NOON + HOUR)


@pytest.mark.parametrize("quiet", [0.0, 86_400.0])
def test_after_a_quiet_day_no_more_messages_are_written_at_once_than_at_the_start(quiet: float) -> None:
    state = ObjectState(PreparedSpec("uid", 1))
    assert [state.take_message_write(quiet) for _ in range(12)] == [True] * 10 + [False] * 2
    assert not state.take_message_write(quiet + 299)
    assert state.take_message_write(quiet + 301)
    assert not state.take_message_write(quiet + 302)


def test_a_failure_is_new_once_until_it_has_another_reason_or_a_verdict_came_between() -> None:
    state = ObjectState(PreparedSpec("uid", 1))
    down, slow = ("SourceDown", "False"), ("DecisionTimedOut", "False")
    assert [state.failed(down, 1.0), state.failed(down, 2.0), state.failed(slow, 3.0)] == [True, False, True]
    assert (state.failures, state.failing) == (3, (slow, 3.0))
    state.decided(True, NOON)
    assert (state.failures, state.failing) == (0, None)
    assert state.failed(slow, 9.0)


def test_the_last_change_of_a_verdict_is_kept_to_the_second() -> None:
    state = ObjectState(PreparedSpec("uid", 1))
    state.decided(True, NOON + timedelta(microseconds=5))
    state.decided(True, NOON + HOUR)
    assert state.last_verdict == (True, NOON)
    state.decided(False, NOON + HOUR)
    assert state.last_verdict == (False, NOON + HOUR)
