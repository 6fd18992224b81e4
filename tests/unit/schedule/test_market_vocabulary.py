"""Market calendars in the words of every kind: days, start, end, from, until, leadTime, validity and enabled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.schedule import Cause, GrammarError
from fivespot.schedule.market import MarketTimeline, read_calendar

Json = dict[str, Any]

MONDAY = datetime(2027, 3, 8, tzinfo=UTC)
ZONE = "America/New_York"  # Its clock goes forward on 14 March 2027.
WEEKDAYS: Json = {"days": ["mon-fri"], "start": "09:30", "end": "16:00"}


def opened(spec: Json, days: int = 3, start: datetime = MONDAY) -> list[str]:
    """The changes of a calendar, in UTC, with + for an opening."""
    found = MarketTimeline(read_calendar(spec)).transitions(start, start + timedelta(days=days))
    return [f"{'+' if active else '-'}{at:%d %H:%M}" for at, active in found]


def test_both_names_of_a_field_mean_the_same() -> None:
    old = {"daysOfWeek": ["mon-fri"], "open": "09:30", "close": "16:00"}
    assert opened({"sessions": [old]}) == opened({"sessions": [WEEKDAYS]}) != []
    hours = {"hoursOfDay": ["9-15"]}
    by_hour = [{"sessions": [{name: ["mon-fri"], **hours}]} for name in ("days", "daysOfWeek")]
    assert opened(by_hour[0]) == opened(by_hour[1]) != []
    special = [
        {"specialSessions": [{"date": "2027-03-09", **names}]}
        for names in ({"start": "10:00", "end": "11:00"}, {"open": "10:00", "close": "11:00"})
    ]
    assert opened(special[0]) == opened(special[1]) == ["+09 10:00", "-09 11:00"]


@pytest.mark.parametrize(
    ("session", "field"),
    [
        ({**WEEKDAYS, "daysOfWeek": ["mon"]}, "sessions[0].daysOfWeek"),
        ({**WEEKDAYS, "open": "09:30"}, "sessions[0].open"),
        ({**WEEKDAYS, "close": "16:00"}, "sessions[0].close"),
    ],
)
def test_both_names_at_once_are_refused_with_the_field(session: Json, field: str) -> None:
    with pytest.raises(GrammarError, match="two are names of one field") as caught:
        read_calendar({"sessions": [session]})
    assert caught.value.field == field


def test_twenty_four_hours_from_any_time_are_one_line() -> None:
    assert opened({"sessions": [{"from": "mon 17:00", "until": "tue 17:00"}]}) == ["+08 17:00", "-09 17:00"]


def test_a_span_is_cut_by_a_holiday_at_its_midnights_and_changed_world_after_it() -> None:
    spec = {"sessions": [{"from": "mon 17:00", "until": "fri 17:00"}], "holidays": ["2027-03-10"]}
    assert opened(spec, days=6) == ["+08 17:00", "-10 00:00", "+11 00:00", "-12 17:00"]


@pytest.mark.parametrize("name", ["days", "start", "hoursOfDay", "breaks"])
def test_a_span_has_nothing_of_a_day(name: str) -> None:
    value = "09:00" if name == "start" else [{"start": "1:00"}] if name == "breaks" else ["mon"]
    with pytest.raises(GrammarError, match=f"has {name} as well"):
        read_calendar({"sessions": [{"from": "mon 17:00", "until": "fri 17:00", name: value}]})


MOMENTS = st.tuples(st.integers(0, 6), st.integers(0, 1439))
DATES = st.integers(0, 20).map(lambda day: f"{MONDAY + timedelta(days=day - 5):%Y-%m-%d}")
NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def hhmm(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def by_day(begin: tuple[int, int], end: tuple[int, int]) -> list[Json]:
    """The same span as sessions that touch at midnights."""
    (first, start), (last, stop) = begin, end
    length = ((last - first) * 1440 + stop - start - 1) % (7 * 1440) + 1
    found = []
    while length > 0:
        part = min(length, 1440 - start)
        found.append({"days": [NAMES[first % 7]], "start": hhmm(start), "end": hhmm(start + part)})
        length, start, first = length - part, 0, first + 1
    return found


@settings(max_examples=150, deadline=None)
@given(MOMENTS, MOMENTS, st.lists(DATES, max_size=3), st.lists(DATES, max_size=2, unique=True), st.integers(0, 1439))
def test_a_span_is_the_union_of_its_days(
    begin: tuple[int, int], end: tuple[int, int], holidays: list[str], early: list[str], minute: int
) -> None:
    if begin == end:
        return
    rest: Json = {
        "timezone": ZONE,
        "holidays": holidays,
        "earlyCloses": [{"date": day, "close": hhmm(minute)} for day in early],
    }
    span = {"from": f"{NAMES[begin[0]]} {hhmm(begin[1])}", "until": f"{NAMES[end[0]]} {hhmm(end[1])}"}
    expected = opened({"sessions": by_day(begin, end), **rest}, days=14)
    assert opened({"sessions": [span], **rest}, days=14) == expected


def test_a_lead_time_comes_before_each_opening() -> None:
    spec: Json = {
        "sessions": [{**WEEKDAYS, "breaks": [{"start": "12:00", "end": "13:00"}]}],
        "breaks": "GiveBack",
        "lateOpens": [{"date": "2027-03-09", "open": "11:00"}],
        "holidays": ["2027-03-10"],
        "specialSessions": [{"date": "2027-03-10", "start": "18:00", "end": "19:00"}],
        "leadTime": "15m",
    }
    assert opened(spec) == [
        *("+08 09:15", "-08 12:00", "+08 12:45", "-08 16:00"),
        *("+09 10:45", "-09 12:00", "+09 12:45", "-09 16:00"),
        *("+10 17:45", "-10 19:00"),
    ]


@pytest.mark.contract("C12")
def test_a_lag_time_comes_after_each_closing() -> None:
    spec: Json = {
        "sessions": [{**WEEKDAYS, "breaks": [{"start": "12:00", "end": "13:00"}]}],
        "breaks": "GiveBack",
        "earlyCloses": [{"date": "2027-03-09", "close": "11:00"}],
        "holidays": ["2027-03-10"],
        "specialSessions": [{"date": "2027-03-10", "start": "18:00", "end": "19:00"}],
        "leadTime": "15m",
        "lagTime": "20m",
    }
    assert opened(spec) == [
        *("+08 09:15", "-08 12:20", "+08 12:45", "-08 16:20"),
        *("+09 09:15", "-09 11:20"),
        *("+10 17:45", "-10 19:20"),
    ]


def test_a_lead_time_as_long_as_a_break_leaves_no_gap() -> None:
    spec: Json = {
        "sessions": [{**WEEKDAYS, "breaks": [{"start": "12:00", "end": "13:00"}]}],
        "breaks": "GiveBack",
        "leadTime": "1h",
    }
    assert opened(spec, days=1) == ["+08 08:30", "-08 16:00"]


def test_validity_clips_and_disabling_closes() -> None:
    bounds = {"validFrom": "2027-03-08T12:00:00Z", "validUntil": "2027-03-09T10:00:00Z"}
    assert opened({"sessions": [WEEKDAYS], **bounds}) == ["+08 12:00", "-08 16:00", "+09 09:30", "-09 10:00"]
    assert opened({"sessions": [WEEKDAYS], "enabled": False}) == []
    disabled = MarketTimeline(read_calendar({"sessions": [WEEKDAYS], "enabled": False}))
    assert disabled.evaluate(MONDAY).cause is Cause.DISABLED
