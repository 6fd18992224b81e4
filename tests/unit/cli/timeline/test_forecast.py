"""A forecast follows its provider from change to change, and stops where that leads nowhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.cli.timeline.forecast import DecisionFailed, Forecast, Interval, Period, TooManyChanges, Transition
from fivespot.providers.sdk import EventNote, Verdict
from unit.cli.timeline.samples import forecast, timebased
from unit.schedule.comparison import QUICK, periods, year
from unit.schedule.oracle import Case, Oracle

START = datetime(2027, 1, 4, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hours(count: float) -> datetime:
    return START + count * HOUR


def blinking(period: timedelta) -> Callable[[datetime], Verdict]:
    """Active in every other period."""

    def decide(at: datetime) -> Verdict:
        number = (at - START) // period
        return Verdict(number % 2 == 1, START + (number + 1) * period)

    return decide


def listed(*flips: float, first: bool = False) -> Callable[[datetime], Verdict]:
    """Changes at these hours after the start."""

    def decide(at: datetime) -> Verdict:
        passed = sum(hours(flip) <= at for flip in flips)
        following = [hours(flip) for flip in flips if hours(flip) > at]
        return Verdict(first ^ (passed % 2 == 1), following[0] if following else None)

    return decide


def test_changes_lie_after_the_start_and_before_the_end() -> None:
    found = Forecast("x", listed(0, 1, 2, 3), START)
    assert found.initial is True, "what changes at the start has changed"
    assert found.changes(hours(3)) == [Transition(hours(1), False), Transition(hours(2), True)]
    assert found.changes(hours(3.5)) == [
        Transition(hours(1), False),
        Transition(hours(2), True),
        Transition(hours(3), False),
    ]
    assert found.changes(START) == []


def test_the_state_at_an_instant_says_when_it_ends() -> None:
    found = Forecast("x", listed(1, 2), START)

    def at(instant: datetime) -> tuple[bool, datetime | None]:
        return found.active_at(instant), found.next_decision(instant)

    assert at(START) == (False, hours(1))
    assert at(hours(1)) == (True, hours(2))
    assert at(hours(1.5)) == (True, hours(2))
    assert at(hours(2)) == (False, None)
    assert at(hours(1)) == (True, hours(2)), "also after it was looked at from further on"
    assert found.next_change(hours(2)) == Transition(hours(2), False)
    assert found.next_change(hours(2.1)) is None
    assert found.settled


def test_a_change_that_is_far_beyond_is_not_looked_for_without_end() -> None:
    def decide(at: datetime) -> Verdict:
        return Verdict(True, at + HOUR)

    found = Forecast("x", decide, START)
    assert found.next_change(hours(5)) is None
    assert not found.settled
    assert found.intervals(Period(START, hours(5))) == [Interval(START, hours(5), None)]


def test_intervals_are_cut_at_the_period_and_know_where_they_really_end() -> None:
    found = Forecast("x", listed(1, 2, 5, 9), START)
    assert found.intervals(Period(START, hours(24))) == [
        Interval(hours(1), hours(2), hours(2)),
        Interval(hours(5), hours(9), hours(9)),
    ]
    assert found.intervals(Period(hours(1.5), hours(6))) == [
        Interval(hours(1.5), hours(2), hours(2)),
        Interval(hours(5), hours(6), hours(9)),
    ]
    assert found.intervals(Period(hours(2), hours(5))) == []
    assert Forecast("x", listed(first=True), START).intervals(Period(START, hours(1))) == [
        Interval(START, hours(1), None)
    ]


def test_a_provider_that_looks_again_without_a_change_makes_none() -> None:
    def decide(at: datetime) -> Verdict:
        return Verdict(at >= hours(5), at + HOUR)

    assert Forecast("x", decide, START).changes(hours(10)) == [Transition(hours(5), True)]


def test_an_instant_to_look_again_at_is_kept_to_and_its_notes_are_told_once() -> None:
    def decide(at: datetime) -> Verdict:
        notes = (EventNote(reason="Odd", message="something", warning=True, once="token"),) if at >= hours(2) else ()
        return Verdict(
            False, hours(8) if at < hours(8) else None, notes=notes, again=at + HOUR if at < hours(8) else None
        )

    found = Forecast("x", decide, START)
    assert found.changes(hours(1.5)) == []
    assert list(found.notes) == []
    found.changes(hours(7))
    assert [note.message for note in found.notes] == ["something"]


def test_a_schedule_that_changes_too_often_is_an_error_that_says_what_to_do() -> None:
    minutes = Forecast("Blink/x", blinking(timedelta(minutes=1)), START, limit=1000)
    assert len(minutes.changes(hours(10))) == 599
    with pytest.raises(
        TooManyChanges, match=r"Blink/x changes more than 1000 times between 2027-01-04T00:00:00Z and .*--to"
    ):
        minutes.changes(hours(24 * 365))


@pytest.mark.parametrize("until", [START, START - HOUR])
def test_a_next_change_that_is_not_later_is_the_providers_mistake(until: datetime) -> None:
    with pytest.raises(DecisionFailed, match=r"Odd/x: .* not later"):
        Forecast("Odd/x", lambda at: Verdict(True, until), START)


def test_a_decision_that_raises_is_told_with_its_instant() -> None:
    def decide(at: datetime) -> Verdict:
        if at > START:
            raise ZeroDivisionError("by nought")
        return Verdict(True, hours(1))

    found = Forecast("Odd/x", decide, START)
    with pytest.raises(
        DecisionFailed, match="Odd/x: the decision at 2027-01-04T01:00:00Z failed: ZeroDivisionError: by nought"
    ):
        found.changes(hours(2))


@given(
    flips=st.lists(st.integers(0, 200), unique=True).map(sorted),
    first=st.booleans(),
    start=st.integers(0, 100),
    length=st.integers(1, 120),
    asked=st.lists(st.integers(0, 250), max_size=5),
)
def test_any_order_of_questions_gives_the_same_answers(
    flips: list[int], first: bool, start: int, length: int, asked: list[int]
) -> None:
    decide = listed(*flips, first=first)
    period = Period(hours(start), hours(start + length))
    plain, asked_before = Forecast("x", decide, START), Forecast("x", decide, START)
    for hour in asked:
        verdict = decide(hours(hour))
        assert asked_before.active_at(hours(hour)) is verdict.active
        assert asked_before.next_decision(hours(hour)) == verdict.until
    changes = plain.changes(period.end)
    assert changes == asked_before.changes(period.end)
    assert [change.active for change in changes] == [not plain.initial, plain.initial] * (len(changes) // 2) + (
        [not plain.initial] if len(changes) % 2 else []
    )
    intervals = plain.intervals(period)
    assert intervals == asked_before.intervals(period)
    for hour in range(start, start + length):
        inside = any(interval.start <= hours(hour) < interval.end for interval in intervals)
        assert inside is decide(hours(hour)).active
    assert all(a.end < b.start for a, b in pairwise(intervals)), "they never touch"


@given(data=st.data(), place=periods(year(2026), year(2028)))
@settings(parent=QUICK, max_examples=15)
def test_a_forecast_agrees_with_a_second_implementation(data: st.DataObject, place: tuple[str, int]) -> None:
    zone, at = place
    opens, closes = data.draw(st.integers(0, 1439)), data.draw(st.integers(0, 1440))
    days = frozenset(data.draw(st.sets(st.integers(0, 6), min_size=1)))
    if opens == closes:
        closes = (opens + 60) % 1440
    case = Case(zone, daily=((days, opens, closes),))
    start, end = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(at + 9 * 86_400, UTC)
    spec: dict[str, Any] = dict(case.spec())
    found = forecast([timebased(spec=spec)], start)
    changes = found.changes(end)
    oracle = Oracle(case)
    assert found.initial is oracle.active(at)
    for change in changes:
        moment = int(change.at.timestamp())
        assert (oracle.active(moment - 1), oracle.active(moment)) == (not change.active, change.active)
    sampled = data.draw(st.lists(st.integers(at, at + 9 * 86_400 - 1), max_size=20))
    for moment in sampled:
        assert found.active_at(datetime.fromtimestamp(moment, UTC)) is oracle.active(moment)
