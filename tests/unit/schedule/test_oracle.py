"""The product against a second implementation, over all zones and rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.schedule import Timeline, Zone, evaluate, load_zone, read_schedule
from fivespot.schedule.evaluate import widening
from fivespot.schedule.pattern import Pattern
from fivespot.schedule.tzif import read_tail_rule
from unit.schedule import comparison
from unit.schedule.comparison import (
    ALL,
    DAY,
    EVERY_DAY,
    FIRST,
    HOUR,
    LAST,
    QUICK,
    changes_in,
    check_skipping_ahead,
    clock_behaviour,
    clock_changes,
    instant,
    one_zone_of_each_kind,
    periods,
    year,
)
from unit.schedule.oracle import Case, Oracle, fires, local_time


def timeline_of(case: Case) -> Timeline:
    return Timeline(read_schedule(case.spec()))


def changes_of(case: Case, start: int, end: int) -> tuple[bool, list[tuple[int, bool]]]:
    return changes_in(timeline_of(case), start, end)


def check(case: Case, start: int, end: int, step: int) -> None:
    comparison.check(timeline_of(case), Oracle(case), start, end, step, case.lag * 60)


@pytest.mark.contract("C8")
@pytest.mark.parametrize("part", range(4))
def test_every_zone_changes_its_offset_when_the_oracle_says(part: int) -> None:
    for name in ALL[part::4]:
        assert tuple(load_zone(name).changes(FIRST, LAST)) == clock_behaviour(name), name


NIGHTS = [(22 * 60, 6 * 60), (22 * 60, 150), (150, 210), (30, 90), (0, 1440), (23 * 60 + 45, 15), (125, 140)]


@pytest.mark.contract("C1", "C8")
@pytest.mark.parametrize("part", range(4))
def test_nights_over_every_change_of_2026_and_2027_in_every_kind_of_zone(part: int) -> None:
    checked = 0
    for zone in one_zone_of_each_kind()[part::4]:
        for at in clock_changes(zone):
            start, end = at - 36 * HOUR, at + 36 * HOUR
            today = local_time(zone, at).date()
            for opens, closes in NIGHTS:
                case = Case(zone, daily=((EVERY_DAY, opens, closes),))
                length = closes + (1440 if closes < opens else 0)
                nights = [
                    (fires(zone, today.add(days=step), opens), fires(zone, today.add(days=step), length))
                    for step in range(-4, 5)
                ]
                edges: dict[int, int] = {}
                for a, b in nights:
                    if a < b:
                        edges[a] = edges.get(a, 0) + 1
                        edges[b] = edges.get(b, 0) - 1
                expected = [(edge, sign > 0) for edge, sign in sorted(edges.items()) if sign and start < edge < end]
                assert changes_of(case, start, end)[1] == expected, f"{case} at {instant(at)}"
            check(Case(zone, hour_days=EVERY_DAY, hours=frozenset({22, 23, 0, 1, 3})), start, end, 900)
            checked += 1
    assert checked > 20, "zones with the same changes count once"


days = st.frozensets(st.integers(0, 6), min_size=1)
minutes = st.one_of(st.integers(0, 1439), st.sampled_from([0, 30, 60, 90, 120, 150, 180, 22 * 60]))
pairs = st.tuples(minutes, st.one_of(minutes, st.just(1440))).filter(lambda pair: pair[0] != pair[1])
spans = st.tuples(st.integers(0, 6), minutes, st.integers(0, 6), st.one_of(minutes, st.just(1440))).filter(
    lambda span: span[:2] != span[2:]  # refused: a window must have a length
)


@st.composite
def cases(draw: st.DrawFn, earliest: int, latest: int, lead: bool) -> tuple[Case, int]:
    zone, at = draw(periods(earliest, latest))
    around = local_time(zone, at).date()
    replacements = st.lists(pairs, max_size=2).map(tuple[tuple[int, int], ...])
    exceptions = draw(st.dictionaries(st.integers(-9, 9), replacements, max_size=3))
    with_hours = draw(st.booleans())
    return Case(
        zone=zone,
        hour_days=draw(days) if with_hours else frozenset(),
        hours=draw(st.frozensets(st.integers(0, 23), min_size=1)) if with_hours else frozenset(),
        daily=tuple(draw(st.lists(st.tuples(days, pairs).map(lambda d: (d[0], *d[1])), max_size=2))),
        spans=tuple(draw(st.lists(spans, max_size=1))),
        exceptions=tuple((str(around.add(days=step)), windows) for step, windows in exceptions.items()),
        lead=draw(st.integers(0, 40)) * 15 if lead else 0,
        lag=draw(st.integers(0, 40)) * 15 if lead else 0,
    ), at


@pytest.mark.contract("C1")
@QUICK
@given(cases(year(1975), year(9990), False))
def test_any_schedule_agrees_at_every_half_hour(drawn: tuple[Case, int]) -> None:
    case, at = drawn
    check(case, at, at + 4 * DAY, 1800)


@pytest.mark.contract("C12")
@settings(QUICK, max_examples=80)
@given(cases(year(1975), year(2400), True))
def test_any_schedule_with_lead_and_lag_time_agrees(drawn: tuple[Case, int]) -> None:
    case, at = drawn
    check(case, at, at + 2 * DAY, 3600)


@settings(QUICK, max_examples=60)
@given(cases(year(1901), year(1975), False))
def test_any_schedule_agrees_in_the_years_of_odd_offsets(drawn: tuple[Case, int]) -> None:
    case, at = drawn
    check(case, at, at + 3 * DAY, 1777)


DATE_LINE = [("Pacific/Apia", "2011-12-27"), ("Pacific/Kwajalein", "1969-09-28"), ("Pacific/Kwajalein", "1993-08-18")]


@pytest.mark.parametrize(
    ("zone", "start"), [*DATE_LINE, ("America/Caracas", "2016-04-29"), ("Asia/Pyongyang", "2018-05-02")]
)
@pytest.mark.parametrize(
    "case",
    [
        Case("UTC", daily=((EVERY_DAY, 22 * 60, 6 * 60),)),
        Case("UTC", daily=((frozenset({4}), 9 * 60, 17 * 60), (EVERY_DAY, 12 * 60, 12 * 60 + 1))),
        Case("UTC", spans=((2, 600, 5, 30),)),
        Case("UTC", hour_days=EVERY_DAY, hours=frozenset({0, 3, 12, 13, 23})),
        Case("UTC", daily=((EVERY_DAY, 0, 1440),)),
    ],
    ids=["nights", "days", "span", "hours", "always"],
)
def test_a_date_left_out_or_lived_twice(zone: str, start: str, case: Case) -> None:
    case = Case(zone, case.hour_days, case.hours, case.daily, case.spans)
    at = int(datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp())
    check(case, at, at + 7 * DAY, 600)


@st.composite
def nearly_constant(draw: st.DrawFn) -> Case:
    """Schedules that are open nearly always, or nearly never, so that the next change may be years ahead."""
    cut = draw(st.integers(0, 24))
    zone = draw(
        st.sampled_from(["Antarctica/Troll", "Australia/Lord_Howe", "Europe/Berlin", "Africa/Casablanca", "UTC"])
    )
    exceptions = tuple(
        (f"{draw(st.integers(2027, 2070))}-{month:02}-28", ())
        for month in draw(st.sets(st.integers(1, 12), max_size=2))
    )
    kind = draw(st.sampled_from(["mixed", "lead", "never"]))
    if kind == "mixed" and 0 < cut < 24:
        return Case(
            zone,
            hour_days=EVERY_DAY,
            hours=frozenset(range(cut)),
            daily=((EVERY_DAY, cut * 60, 1440),),
            exceptions=exceptions,
        )
    if kind == "never":
        return Case(zone, daily=((frozenset({6}), 125, 140),), exceptions=exceptions[:1], lead=cut * 60 * 7)
    return Case(
        zone,
        daily=((EVERY_DAY, 8 * 60, 20 * 60),),
        exceptions=exceptions,
        lead=(12 * 60, 13 * 60, 11 * 60 + 59)[cut % 3] - cut * 15,
        lag=cut * 15,
    )


@settings(QUICK, max_examples=60)
@given(nearly_constant(), st.integers(FIRST, LAST))
def test_skipping_ahead_finds_what_looking_at_each_week_finds(case: Case, at: int) -> None:
    schedule = read_schedule(case.spec())
    check_skipping_ahead(schedule.zone, Pattern(schedule), widening(schedule), at)


def test_changes_of_a_zone_on_a_fixed_date_are_told_apart_by_their_weekday() -> None:
    """The night from Sunday to Monday is filled by the lead time, unless it is an hour longer: in 2037 next."""
    rule = read_tail_rule("AAA0BBB,J60/2,J299/3")  # until 26 October
    changes = [change for year in range(2000, 2410) for change in rule.changes(year)]
    settled = int(datetime(2003, 1, 1, tzinfo=UTC).timestamp())
    zone = Zone("fixed dates", [at for at, _ in changes], [0, *(offset for _, offset in changes)], settled)
    spec = Case("UTC", spans=((0, 6 * 60, 6, 20 * 60),), lead=600).spec()
    schedule = replace(read_schedule(spec), zone=zone)

    assert date(2037, 10, 26).weekday() == 0
    assert evaluate(schedule, instant(LAST)).until == datetime(2037, 10, 25, 19, tzinfo=UTC)


@settings(QUICK, max_examples=60)
@given(cases(FIRST, LAST, True), st.integers(0, 3 * DAY))
def test_the_next_change_does_not_depend_on_when_one_asks(drawn: tuple[Case, int], later: int) -> None:
    case, at = drawn
    schedule = read_schedule(case.spec())
    first = Timeline(schedule).evaluate(instant(at))
    asked = instant(at + later)
    if first.until is None or asked < first.until:
        assert Timeline(schedule).evaluate(asked) == first


def test_the_oracle_itself_knows_the_plain_cases() -> None:
    berlin = Case("Europe/Berlin", daily=((EVERY_DAY, 120, 140),))
    autumn = int(datetime(2027, 10, 31, 0, 10, tzinfo=UTC).timestamp())
    assert Oracle(berlin).active(autumn)
    assert not Oracle(berlin).active(autumn + HOUR)
    assert fires("Europe/Berlin", local_time("Europe/Berlin", autumn).date(), 24 * 60) == autumn + 22 * HOUR + 50 * 60
