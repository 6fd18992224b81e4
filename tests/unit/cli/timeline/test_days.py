"""Days of the wall clock, also where it jumps."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.cli.timeline.days import Day, days_of, total
from fivespot.cli.timeline.forecast import Interval, Period
from fivespot.cli.timeline.formats import change_text, clock, length, offset, share, span_text
from fivespot.schedule import load_zone
from unit.schedule.comparison import QUICK, periods, year

HOUR = timedelta(hours=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days(zone: str, start: str, end: str, *active: tuple[str, str]) -> dict[date, Day]:
    intervals = [Interval(utc(a), utc(b), utc(b)) for a, b in active]
    return {day.date: day for day in days_of(load_zone(zone), Period(utc(start), utc(end)), intervals)}


def test_a_night_belongs_to_two_days() -> None:
    found = days("UTC", "2027-01-04", "2027-01-06", ("2027-01-04T22:00", "2027-01-05T03:30"))
    first, second = found.values()
    assert [span_text(span) for span in first.spans] == ["22:00-24:00"]
    assert [span_text(span) for span in second.spans] == ["00:00-03:30"]
    assert (first.active_time, second.active_time) == (2 * HOUR, 3.5 * HOUR)
    assert [second.share(hour * 3600.0, (hour + 1) * 3600.0) for hour in (0, 3, 4)] == [1.0, 0.5, 0.0]


def test_an_hour_that_the_clock_leaves_out_is_in_no_day() -> None:
    found = days("Europe/Berlin", "2027-03-27T23:00", "2027-03-28T22:00", ("2027-03-28T00:30", "2027-03-28T02:00"))
    [day] = found.values()
    assert day.length == 23 * HOUR
    assert day.share(2 * 3600.0, 3 * 3600.0) is None
    assert [span_text(span) for span in day.spans] == ["01:30-04:00"]
    assert day.active_time == 1.5 * HOUR
    [change] = day.clock_changes
    assert change.forward
    assert change_text(change) == "clock forward 02:00 -> 03:00 (UTC+1 -> UTC+2)"
    assert not day.plain


def test_an_hour_that_the_clock_shows_twice_counts_twice() -> None:
    around = ("2027-10-30T22:00", "2027-10-31T23:00")
    [day] = days("Europe/Berlin", *around, ("2027-10-31T00:30", "2027-10-31T01:30")).values()
    assert day.length == 25 * HOUR
    # Half of the first pass and half of the second.
    assert day.share(2 * 3600.0, 3 * 3600.0) == 0.5
    assert [span_text(span) for span in day.spans] == ["02:30-02:30 (2nd)"]
    assert day.active_time == HOUR
    assert change_text(day.clock_changes[0]) == "clock back 03:00 -> 02:00 (UTC+2 -> UTC+1)"
    [day] = days("Europe/Berlin", *around, ("2027-10-31T01:30", "2027-10-31T04:00")).values()
    assert [span_text(span) for span in day.spans] == ["02:30 (2nd)-05:00"]
    [day] = days("Europe/Berlin", *around, ("2027-10-30T22:00", "2027-10-31T23:00")).values()
    assert [span_text(span) for span in day.spans] == ["00:00-24:00"]
    assert day.active_time == 25 * HOUR


def test_a_change_at_midnight_is_told_on_the_day_that_it_shows() -> None:
    found = days("America/Santiago", "2027-09-04T04:00", "2027-09-06T03:00")
    assert [len(day.clock_changes) for day in found.values()] == [0, 1]
    assert change_text(found[date(2027, 9, 5)].clock_changes[0]) == "clock forward 00:00 -> 01:00 (UTC-4 -> UTC-3)"
    found = days("America/Santiago", "2027-04-03T03:00", "2027-04-05T04:00")
    assert [day.length for day in found.values()] == [25 * HOUR, 24 * HOUR]
    assert change_text(found[date(2027, 4, 3)].clock_changes[0]) == "clock back 00:00 -> 23:00 (UTC-3 -> UTC-4)"


def test_a_clock_that_goes_back_behind_midnight_leaves_two_parts_of_a_day() -> None:
    """Newfoundland, until 2011, at one minute past midnight: a minute of Sunday, an hour of Saturday again, Sunday."""
    found = days("America/St_Johns", "2010-11-06T02:30", "2010-11-08T03:30", ("2010-11-07T01:30", "2010-11-07T04:30"))
    saturday, sunday = found.values()
    assert (saturday.date, saturday.length, sunday.length) == (
        date(2010, 11, 6),
        25 * HOUR - timedelta(minutes=1),
        24 * HOUR + timedelta(minutes=1),
    )
    assert [span_text(span) for span in saturday.spans] == ["23:00-24:00", "23:01 (2nd)-24:00"]
    assert [span_text(span) for span in sunday.spans] == ["00:00-00:01", "00:00 (2nd)-01:00"]
    assert saturday.active_time + sunday.active_time == 3 * HOUR


def test_a_date_that_the_clock_leaves_out_is_no_day() -> None:
    found = days("Pacific/Apia", "2011-12-29T10:00", "2012-01-01T10:00")
    assert date(2011, 12, 30) not in found
    assert [day.length for day in found.values()] == [24 * HOUR] * 3


def test_a_day_that_the_period_cuts_is_shorter() -> None:
    found = days("UTC", "2027-01-04T13:37", "2027-01-05T06:00", ("2027-01-04T13:37", "2027-01-05T06:00"))
    first, second = found.values()
    assert (first.length, second.length) == (timedelta(hours=10, minutes=23), 6 * HOUR)
    assert first.share(12 * 3600.0, 13 * 3600.0) is None
    assert [span_text(span) for span in first.spans] == ["13:37-24:00"]
    assert not first.plain


@given(place=periods(year(2026), year(2028)), cuts=st.lists(st.integers(0, 5 * 96), min_size=2, unique=True))
@settings(parent=QUICK, max_examples=40)
def test_no_time_is_lost_or_counted_twice(place: tuple[str, int], cuts: list[int]) -> None:
    zone, at = place
    moments = [datetime.fromtimestamp(at + 900 * cut, UTC) for cut in sorted(cuts)]
    intervals = [Interval(a, b, b) for a, b in zip(moments[::2], moments[1::2], strict=False)]
    period = Period(datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(at + 5 * 86_400, UTC))
    found = days_of(load_zone(zone), period, intervals)
    assert total((piece.start, piece.end) for day in found for piece in day.pieces) == timedelta(days=5)
    spent = total((interval.start, interval.end) for interval in intervals)
    assert sum((day.active_time for day in found), timedelta(0)) == spent
    assert sum((span.length for day in found for span in day.spans), timedelta(0)) == spent
    assert [day.date for day in found] == sorted({day.date for day in found})
    for day in found:
        assert all(piece.reads >= 0 and piece.reading(piece.end) <= 86_400 for piece in day.pieces)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(hours=24), "24 h"),
        (timedelta(hours=10, minutes=30), "10 h 30 min"),
        (timedelta(minutes=45), "45 min"),
        (timedelta(seconds=10), "10 s"),
        (timedelta(hours=1, seconds=10), "1 h 0 min 10 s"),
        (timedelta(0), "0 h"),
        (timedelta(days=14), "336 h"),
    ],
)
def test_lengths_are_written_for_people(span: timedelta, text: str) -> None:
    assert length(span) == text


def test_readings_offsets_and_shares_are_written_for_people() -> None:
    assert [clock(s) for s in (0, 8 * 3600, 66_600, 86_400, 45)] == ["00:00", "08:00", "18:30", "24:00", "00:00:45"]
    assert [offset(s) for s in (0, 3600, -12_600, 20_700, -17_762)] == [
        "UTC",
        "UTC+1",
        "UTC-3:30",
        "UTC+5:45",
        "UTC-4:56:02",
    ]
    week = timedelta(days=7)
    assert [share(part, week) for part in (0 * HOUR, HOUR / 2, 52.5 * HOUR, week - HOUR / 2, week)] == [
        "0 %",
        "< 1 %",
        "31 %",
        "> 99 %",
        "100 %",
    ]
