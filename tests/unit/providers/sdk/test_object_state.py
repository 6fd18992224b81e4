"""The state kept of one object between runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fivespot.providers.sdk import (
    Verdict,
)
from fivespot.providers.sdk.decider import PreparedSpec
from fivespot.providers.sdk.object_state import Decision

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
