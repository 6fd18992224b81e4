"""The words of a schedule: what is read, and what a person is told who wrote something else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.schedule import (
    GrammarError,
    ScheduleError,
    parse_date,
    parse_days,
    parse_duration,
    parse_hours,
    parse_instant,
    parse_moment,
    parse_time,
    read_schedule,
)
from fivespot.schedule.grammar import DAYS


@pytest.mark.parametrize(
    ("items", "days"),
    [
        ([], ""),
        (["mon"], "mon"),
        (["mon-fri"], "mon tue wed thu fri"),
        (["fri-mon"], "mon fri sat sun"),
        (["mon,wed", " sat , sun "], "mon wed sat sun"),
        (["sun-sat"], "mon tue wed thu fri sat sun"),
        (["tue-tue"], "tue"),
        (["mon - wed"], "mon tue wed"),
    ],
)
def test_days(items: list[str], days: str) -> None:
    assert parse_days(items) == {DAYS.index(day) for day in days.split()}


@pytest.mark.parametrize(
    ("items", "hours"),
    [
        ([], []),
        (["9-17"], range(9, 18)),
        (["22-6"], [22, 23, 0, 1, 2, 3, 4, 5, 6]),
        (["0,12", " 23 "], [0, 12, 23]),
        (["07-09"], [7, 8, 9]),
        (["007"], [7]),
        (["0-23"], range(24)),
        (["5-4"], range(24)),
        (["5-5"], [5]),
    ],
)
def test_hours(items: list[str], hours: list[int]) -> None:
    assert parse_hours(items) == set(hours)


def refused(parse: Callable[..., object], *given_text: Any, **options: Any) -> GrammarError:
    with pytest.raises(GrammarError) as caught:
        parse(*given_text, **options)
    return caught.value


@pytest.mark.parametrize(
    ("item", "suggestion"),
    [
        ("sunday", '"sun"'),
        ("Mon", '"mon"'),
        ("MON-FRI", '"mon-fri"'),
        ("monday-friday", '"mon-fri"'),
        ("1-7", '"mon-sun"'),
        ("0", '"sun"'),
        ("1-5", '"mon-fri"'),
        ("tuseday", '"tue"'),
        ("weekdays", '"mon-fri"'),
        ("Weekend", '"sat-sun"'),
        ("*", '"mon-sun"'),
        ("holidays", None),
        ("", None),
        ("mon,", None),
        ("mon-", None),
        ("mon-wed-fri", None),
        ("8", None),
        ("mon\u2013fri", '"mon-fri"'),
        ("mon to fri", '"mon-fri"'),
        ("Mon,Tue", '"mon,tue"'),
        ("Mo-Fr", '"mon-fri"'),
        ("Mo", '"mon"'),
        ("mondays", '"mon"'),
        ("saturday and sunday", '"sat,sun"'),
        ("every day", '"mon-sun"'),
        ("mont", None),
        ("montag", None),
        ("second", None),
    ],
)
def test_a_word_that_is_no_day_is_refused_with_a_hint(item: str, suggestion: str | None) -> None:
    error = refused(parse_days, ["sat", item])
    assert error.field == "[1]"
    assert error.suggestion == suggestion
    assert "write mon, tue, wed" in str(error)


@pytest.mark.parametrize(
    ("item", "suggestion"),
    [
        ("24", '"0"'),
        ("9-24", '"9-23"'),
        ("09:00-17:30", 'start: "09:00", end: "17:30"'),
        ("09:00", None),
        ("-1", None),
        ("1-2-3", None),
        ("25", None),
        ("9am", None),
        ("9am-5pm", 'start: "09:00", end: "17:00"'),
        ("9 to 17", '"9-17"'),
        ("9\u201317", '"9-17"'),
        ("*", '"0-23"'),
        ("", None),
        ("\u0663", None),  # an Arabic three is a digit to Python
        ("9" * 5000, None),
    ],
)
def test_a_word_that_is_no_hour_is_refused_with_a_hint(item: str, suggestion: str | None) -> None:
    error = refused(parse_hours, [item])
    assert error.field == "[0]"
    assert error.suggestion == suggestion
    assert "whole hours 0 to 23" in error.problem


def test_time_of_day() -> None:
    assert parse_time("00:00") == 0
    assert parse_time("23:59") == 86_340
    assert parse_time("24:00", end=True) == 86_400


@pytest.mark.parametrize(
    ("text", "end", "suggestion"),
    [
        ("24:00", False, '"00:00"'),
        ("9:00", False, '"09:00"'),
        ("0900", False, '"09:00"'),
        ("09.30", False, '"09:30"'),
        ("9", False, '"09:00"'),
        ("9am", False, '"09:00"'),
        ("12am", True, '"00:00"'),
        ("5:30 PM", True, '"17:30"'),
        ("17:00:00", True, '"17:00"'),
        (" 17:00", True, '"17:00"'),
        ("24:01", True, None),
        ("12:60", True, None),
        ("13pm", True, None),
        ("noon", True, '"12:00"'),
        ("9h30", True, '"09:30"'),
        ("5 p.m.", True, '"17:00"'),
        ("17h", True, '"17:00"'),
        ("9" * 5000, True, None),
        ("", True, None),
        ("1\u0662:00", True, None),
    ],
)
def test_a_word_that_is_no_time_is_refused_with_a_hint(text: str, end: bool, suggestion: str | None) -> None:
    error = refused(parse_time, text, end=end)
    assert error.suggestion == suggestion
    assert str(error).startswith(f'"{text}" is not a time of day: write "HH:MM"')


def test_moment_of_the_week() -> None:
    assert parse_moment("mon 06:00") == (0, 21_600)
    assert parse_moment("  sun   24:00 ", end=True) == (6, 86_400)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("Monday 6:00", '"mon 06:00"'),
        ("mon 6:00", '"06:00"'),
        ("mon 24:00", '"00:00"'),
        ("mon", None),
        ("06:00 mon", '"mon 06:00"'),
        ("", None),
    ],
)
def test_a_word_that_is_no_moment_is_refused_with_a_hint(text: str, suggestion: str | None) -> None:
    assert refused(parse_moment, text).suggestion == suggestion


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0), ("90s", 90), ("5m", 300), ("2h", 7200), ("007m", 420)])
def test_duration(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("1h30m", '"90m"'),
        ("90", '"90s"'),
        ("5 m", '"5m"'),
        ("5min", '"5m"'),
        ("2d", '"48h"'),
        ("1 hour 5 seconds", '"3605s"'),
        ("15 min", '"15m"'),
        ("15M", '"15m"'),
        ("1h30", '"90m"'),
        ("0:30", '"30m"'),
        ("0.5h", '"30m"'),
        ("1,5 hours", '"90m"'),
        ("PT15M", '"15m"'),
        ("P1DT2H", '"26h"'),
        ("P", None),
        ("-5m", None),
        ("5x", None),
        ("", None),
        ("9" * 5000 + "h", None),
        ("9" * 5000, None),
    ],
)
def test_a_word_that_is_no_duration_is_refused_with_a_hint(text: str, suggestion: str | None) -> None:
    assert refused(parse_duration, text).suggestion == suggestion


def test_date() -> None:
    assert parse_date("2028-02-29") == date(2028, 2, 29)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("2027-02-29", '"2027-02-28"'),
        ("2027-2-3", '"2027-02-03"'),
        ("2027/02/03", '"2027-02-03"'),
        ("2027-13-01", None),
        ("0000-01-01", None),
        ("24.12.2027", '"2027-12-24"'),
        ("24/12/2027", '"2027-12-24"'),
        ("12/24/2027", '"2027-12-24"'),
        ("1/2/2027", None),
        ("24 Dec 2027", '"2027-12-24"'),
        ("December 24, 2027", '"2027-12-24"'),
        ("2027-12-24T14:00:00Z", '"2027-12-24"'),
        ("20270203", '"2027-02-03"'),
        ("tomorrow", None),
        ("2" * 5000, None),
    ],
)
def test_a_word_that_is_no_date_is_refused_with_a_hint(text: str, suggestion: str | None) -> None:
    assert refused(parse_date, text).suggestion == suggestion


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2027-01-31T08:00:00Z", datetime(2027, 1, 31, 8, tzinfo=UTC)),
        ("2027-01-31t08:00:00.123456789z", datetime(2027, 1, 31, 8, 0, 0, 123456, tzinfo=UTC)),
        ("2027-01-31T08:00:00.5+05:45", datetime(2027, 1, 31, 2, 15, 0, 500_000, tzinfo=UTC)),
        ("2027-01-31 08:00:00-03:30", datetime(2027, 1, 31, 11, 30, tzinfo=UTC)),
    ],
)
def test_instant(text: str, instant: datetime) -> None:
    assert parse_instant(text) == instant
    assert parse_instant(text).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("2027-01-31T08:00:00", '"2027-01-31T08:00:00Z"'),
        ("2027-01-31", '"2027-01-31T00:00:00Z"'),
        ("2027-01-31T08:00Z", '"2027-01-31T08:00:00Z"'),
        ("2027-01-31 08:00", '"2027-01-31T08:00:00Z"'),
        ("2027-01-31T08:00:00+0100", '"2027-01-31T08:00:00+01:00"'),
        ("2027-01-31T08:00:00+1", '"2027-01-31T08:00:00+01:00"'),
        ("2027-01-31 08:00 UTC", '"2027-01-31T08:00:00Z"'),
        ("2027-01-31T08:00:00 Europe/Berlin", None),
        ("2027-02-30T00:00:00Z", None),
        ("2027-01-31T24:00:00Z", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("now", None),
    ],
)
def test_a_word_that_is_no_instant_is_refused_with_a_hint(text: str, suggestion: str | None) -> None:
    assert refused(parse_instant, text).suggestion == suggestion


@given(st.text(max_size=20))
def test_no_text_raises_anything_else(text: str) -> None:
    for parse in (parse_time, parse_moment, parse_duration, parse_date, parse_instant):
        with suppress(GrammarError):
            parse(text)
    for parse_list in (parse_days, parse_hours):
        with suppress(GrammarError):
            parse_list([text])


@given(st.integers(0, 23), st.integers(0, 23))
def test_a_range_of_hours_starts_ends_and_wraps(first: int, last: int) -> None:
    hours = parse_hours([f"{first}-{last}"])
    assert {first, last} <= hours
    assert len(hours) == (last - first) % 24 + 1
    assert (last + 1) % 24 not in hours or len(hours) == 24


SPEC_ERRORS = [
    ({"timezone": "europe/berlin"}, 'timezone: "europe/berlin" is not a time zone', '"Europe/Berlin"'),
    ({"timezone": 5}, "timezone: 5 is not a text", None),
    ({"daysOfWeek": ["mon", "sunday"], "hoursOfDay": ["9"]}, 'daysOfWeek[1]: "sunday" is not a day', '"sun"'),
    ({"daysOfWeek": ["sunday"]}, 'daysOfWeek[0]: "sunday" is not a day', '"sun"'),
    ({"hoursOfDay": ["24"]}, 'hoursOfDay[0]: "24" is not an hour', '"0"'),
    ({"hoursOfDay": "9-17"}, "hoursOfDay: '9-17' is not a list", None),
    ({"windows": ["x"]}, "windows[0]: 'x' is not an object", None),
    ({"windows": [{"days": ["x"], "start": "1:00", "end": "2:00"}]}, 'windows[0].days[0]: "x" is not a day', None),
    (
        {"windows": [{"days": ["mon"], "start": "1:00", "end": "02:00"}]},
        'windows[0].start: "1:00" is not a time of day',
        '"01:00"',
    ),
    (
        {"windows": [{"days": ["mon"], "start": "01:00", "end": "2:00"}]},
        'windows[0].end: "2:00" is not a time of day',
        '"02:00"',
    ),
    (
        {"windows": [{"days": ["mon"], "start": "03:00", "end": "03:00"}]},
        'windows[0].end: start and end are both "03:00": a window must have a length',
        None,
    ),
    ({"windows": [{"days": ["mon"], "start": "03:00"}]}, "windows[0]: has days, start: a window has either", None),
    ({"windows": [{}]}, "windows[0]: has nothing: a window has either", None),
    (
        {"windows": [{"from": "mon 1:00", "until": "tue 02:00"}]},
        'windows[0].from: "1:00" is not a time of day',
        '"01:00"',
    ),
    (
        {"windows": [{"from": "mon 01:00", "until": "Tue 02:00"}]},
        'windows[0].until: "Tue 02:00" is not a moment of the week',
        '"tue 02:00"',
    ),
    (
        {"windows": [{"from": "mon 01:00", "until": "tue 02:00", "days": ["mon"]}]},
        "windows[0]: has days, from, until: a window has either",
        None,
    ),
    ({"exceptions": [{"date": "2027-02-30"}]}, 'exceptions[0].date: "2027-02-30" is not a date', '"2027-02-28"'),
    ({"exceptions": [{}]}, "exceptions[0].date: is missing", None),
    (
        {"exceptions": [{"date": "2027-01-01", "windows": [{"start": "9", "end": "10:00"}]}]},
        'exceptions[0].windows[0].start: "9" is not a time of day',
        '"09:00"',
    ),
    (
        {"exceptions": [{"date": "2027-01-01", "windows": [{"start": "09:00"}]}]},
        "exceptions[0].windows[0].end: is missing",
        None,
    ),
    ({"validFrom": "2027-01-01"}, 'validFrom: "2027-01-01" is not an instant', '"2027-01-01T00:00:00Z"'),
    ({"leadTime": "1h30m"}, 'leadTime: "1h30m" is not a duration', '"90m"'),
    ({"enabled": "yes"}, "enabled: 'yes' is not true or false", None),
]


@pytest.mark.parametrize(("spec", "message", "suggestion"), SPEC_ERRORS)
def test_a_bad_spec_is_refused_with_its_field(spec: dict[str, Any], message: str, suggestion: str | None) -> None:
    with pytest.raises(ScheduleError) as caught:
        read_schedule(spec)
    assert str(caught.value).startswith(message)
    assert caught.value.suggestion == suggestion


def test_values_that_are_already_dates_are_taken() -> None:
    west = datetime.fromisoformat("2027-01-01T00:00:00-01:00")
    schedule = read_schedule({"validFrom": west, "exceptions": [{"date": date(2027, 1, 2)}]})
    assert schedule.valid_from == west
    assert schedule.exceptions[0].date == date(2027, 1, 2)


def test_nulls_and_foreign_fields_mean_the_defaults() -> None:
    nulls = dict.fromkeys(["timezone", "daysOfWeek", "windows", "exceptions", "validFrom", "leadTime", "enabled"])
    assert read_schedule({**nulls, "overrides": [{"name": "x"}]}) == read_schedule({})
