"""Market calendars against a second implementation, over all zones and rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.schedule.market import MarketTimeline, read_calendar
from fivespot.schedule.market.timeline import MarketPattern
from unit.schedule import comparison
from unit.schedule.comparison import (
    DAY,
    EVERY_DAY,
    FIRST,
    HOUR,
    LAST,
    QUICK,
    check_skipping_ahead,
    clock_changes,
    instant,
    one_zone_of_each_kind,
    periods,
    year,
)
from unit.schedule.market_oracle import MarketCase, MarketOracle, Pairs
from unit.schedule.oracle import local_time


def timeline_of(case: MarketCase) -> MarketTimeline:
    return MarketTimeline(read_calendar(case.spec()))


def check(case: MarketCase, start: int, end: int, step: int) -> None:
    comparison.check(timeline_of(case), MarketOracle(case), start, end, step, case.lag * 60)


@pytest.mark.contract("C2")
@pytest.mark.parametrize("part", range(4))
def test_sessions_over_every_change_of_2026_and_2027_in_every_kind_of_zone(part: int) -> None:
    checked = 0
    for zone in one_zone_of_each_kind()[part::4]:
        for at in clock_changes(zone):
            start, end = at - 30 * HOUR, at + 30 * HOUR
            before, after = str(local_time(zone, at - 1).date()), str(local_time(zone, at).date())
            night = (EVERY_DAY, 22 * 60 + 15, 6 * 60, ((130, 150), (23 * 60 + 30, 30)))
            for case in (
                MarketCase(zone, by_minutes=(night,), give_back=True),
                MarketCase(zone, by_minutes=(night,), early=((after, 145),), late=((before, 23 * 60 + 20),)),
                MarketCase(zone, by_minutes=(night,), holidays=(after,), special=((before, 20 * 60, 140, ()),)),
                MarketCase(zone, by_hours=((EVERY_DAY, frozenset({0, 1, 2, 3, 23})),), close_hours=((after, 2),)),
            ):
                check(case, start, end, 1800)
            checked += 1
    assert checked > 20, "zones with the same changes count once"


days = st.frozensets(st.integers(0, 6), min_size=1)
minutes = st.one_of(st.integers(0, 1439), st.sampled_from([0, 30, 60, 90, 120, 150, 180, 22 * 60]))


@st.composite
def trading_hours(draw: st.DrawFn) -> tuple[int, int, Pairs]:
    opens = draw(minutes)
    length = draw(st.one_of(st.integers(1, 1439), st.just(1440 - opens)))
    closes = opens + length
    marks = sorted(draw(st.sets(st.integers(0, length), max_size=4)))
    breaks = [(opens + start, opens + end) for start, end in zip(marks[::2], marks[1::2], strict=False)]
    return opens, clock(closes), tuple((start % 1440, clock(end)) for start, end in breaks)


def clock(minute: int) -> int:
    """An end: 24:00 stays 24:00."""
    return minute if minute <= 1440 else minute - 1440


@st.composite
def cases(draw: st.DrawFn, earliest: int, latest: int) -> tuple[MarketCase, int]:
    zone, at = draw(periods(earliest, latest))
    around = local_time(zone, at).date()
    dates = st.integers(-1, 5).map(lambda step: str(around.add(days=step)))
    hours = st.frozensets(st.integers(0, 23), min_size=1)
    by_hours = draw(st.lists(st.tuples(days, hours), max_size=2))
    by_minutes = draw(st.lists(st.tuples(days, trading_hours()).map(lambda d: (d[0], *d[1])), max_size=2))
    return MarketCase(
        zone=zone,
        by_hours=tuple(by_hours),
        by_minutes=tuple(by_minutes),
        holidays=tuple(draw(st.lists(dates, max_size=2))),
        close_hours=tuple(draw(st.lists(st.tuples(dates, st.integers(0, 23)), max_size=2))),
        early=tuple(draw(st.lists(st.tuples(dates, minutes), max_size=2))),
        late=tuple(draw(st.lists(st.tuples(dates, minutes), max_size=2))),
        special=tuple(draw(st.lists(st.tuples(dates, trading_hours()).map(lambda d: (d[0], *d[1])), max_size=2))),
        give_back=draw(st.booleans()),
    ), at


@pytest.mark.contract("C2")
@QUICK
@given(cases(year(1975), year(9990)))
def test_any_calendar_agrees_at_every_half_hour(drawn: tuple[MarketCase, int]) -> None:
    case, at = drawn
    check(case, at, at + 4 * DAY, 1800)


@pytest.mark.contract("C12")
@settings(QUICK, max_examples=40)
@given(cases(year(1975), year(9990)), st.integers(0, 150), st.integers(0, 150))
def test_any_calendar_with_lead_and_lag_time_agrees(drawn: tuple[MarketCase, int], lead: int, lag: int) -> None:
    case, at = drawn
    check(replace(case, lead=lead, lag=lag), at, at + 3 * DAY, 5400)


@settings(QUICK, max_examples=50)
@given(cases(year(1901), year(1975)))
def test_any_calendar_agrees_in_the_years_of_odd_offsets(drawn: tuple[MarketCase, int]) -> None:
    case, at = drawn
    check(case, at, at + 3 * DAY, 1777)


@pytest.mark.parametrize(
    ("zone", "start"),
    [("Pacific/Apia", "2011-12-27"), ("Pacific/Kwajalein", "1969-09-28"), ("Asia/Pyongyang", "2018-05-02")],
)
def test_a_date_left_out_or_lived_twice(zone: str, start: str) -> None:
    at = int(datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp())
    dates = [str(date.fromordinal(date.fromisoformat(start).toordinal() + step)) for step in range(5)]
    case = MarketCase(
        zone,
        by_hours=((EVERY_DAY, frozenset({0, 12, 23})),),
        by_minutes=((EVERY_DAY, 20 * 60, 4 * 60, ((0, 60),)),),
        holidays=(dates[2],),
        early=((dates[3], 21 * 60),),
        late=((dates[1], 30),),
        special=((dates[4], 0, 1440, ()),),
        give_back=True,
    )
    check(case, at, at + 7 * DAY, 900)


@st.composite
def nearly_constant(draw: st.DrawFn) -> MarketCase:
    """Calendars that are open nearly always, or nearly never, so that the next change may be years ahead."""
    zone = draw(st.sampled_from(["Antarctica/Troll", "Australia/Lord_Howe", "Europe/Berlin", "UTC"]))
    dates = sorted(f"{draw(st.integers(2027, 2070))}-{m:02}-28" for m in draw(st.sets(st.integers(1, 12), max_size=2)))
    entries = tuple((day, draw(st.sampled_from([0, 60, 125, 23 * 60]))) for day in dates)
    kind = draw(st.sampled_from(["hours", "minutes", "mixed", "never"]))
    if kind == "never":
        return MarketCase(zone, special=tuple((day, 120, closes or 1440, ()) for day, closes in entries))
    cut = draw(st.integers(1, 23)) if kind == "mixed" else 24 if kind == "hours" else 0
    return MarketCase(
        zone,
        by_hours=((EVERY_DAY, frozenset(range(cut))),) if cut else (),
        by_minutes=((EVERY_DAY, cut * 60, 1440, ()),) if cut < 24 else (),
        **{draw(st.sampled_from(["early", "late"])): entries},  # type: ignore[arg-type]
    )


@settings(QUICK, max_examples=40)
@given(nearly_constant(), st.integers(FIRST, LAST))
def test_skipping_ahead_finds_what_looking_at_each_week_finds(case: MarketCase, at: int) -> None:
    calendar = read_calendar(case.spec())
    check_skipping_ahead(calendar.zone, MarketPattern(calendar), 0, at)


@settings(QUICK, max_examples=60)
@given(cases(FIRST, LAST), st.integers(0, 3 * DAY))
def test_the_next_change_does_not_depend_on_when_one_asks(drawn: tuple[MarketCase, int], later: int) -> None:
    case, at = drawn
    first = timeline_of(case).evaluate(instant(at))
    asked = instant(at + later)
    if first.until is None or asked < first.until:
        assert timeline_of(case).evaluate(asked) == first


def test_the_oracle_itself_knows_the_plain_cases() -> None:
    case = MarketCase(
        "America/New_York",
        by_minutes=((frozenset(range(5)), 570, 960, ((720, 780),)),),
        holidays=("2026-11-26",),
        early=(("2026-11-27", 780),),
    )
    wednesday, friday = datetime(2026, 11, 25, tzinfo=UTC), datetime(2026, 11, 27, tzinfo=UTC)
    for day, hours, expected in ((wednesday, (14, 15, 21), [False, True, False]), (friday, (17, 18), [True, False])):
        found = [MarketOracle(case).active(int(day.timestamp()) + hour * HOUR) for hour in hours]
        assert found == expected
