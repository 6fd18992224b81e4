"""Instants as people write them, in the zone that they mean."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from fivespot.cli.timeline.period import local, read_period, read_zone, start_of
from fivespot.runtime import ConfigError
from fivespot.schedule import load_zone

BERLIN = load_zone("Europe/Berlin")
NOW = datetime(2027, 3, 26, 13, 37, 42, 123456, tzinfo=UTC)


def begins(text: str, zone: str = "Europe/Berlin") -> datetime:
    return read_period(text, "+1h", load_zone(zone), NOW).start


def ends(start: str, text: str) -> datetime:
    return read_period(start, text, BERLIN, NOW).end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", datetime(2027, 3, 26, 13, 37, tzinfo=UTC)),
        (" NOW ", datetime(2027, 3, 26, 13, 37, tzinfo=UTC)),
        ("2027-03-28T01:00:00Z", datetime(2027, 3, 28, 1, tzinfo=UTC)),
        ("2027-03-28T03:00:00+02:00", datetime(2027, 3, 28, 1, tzinfo=UTC)),
        ("2027-03-27", datetime(2027, 3, 26, 23, tzinfo=UTC)),
        ("2027-03-29", datetime(2027, 3, 28, 22, tzinfo=UTC)),
        ("2027-03-27T06:30", datetime(2027, 3, 27, 5, 30, tzinfo=UTC)),
        ("2027-03-27 06:30:15", datetime(2027, 3, 27, 5, 30, 15, tzinfo=UTC)),
        # In the gap it is the jump, and of a reading that comes twice the first.
        ("2027-03-28T02:30", datetime(2027, 3, 28, 1, tzinfo=UTC)),
        ("2027-10-31T02:30", datetime(2027, 10, 31, 0, 30, tzinfo=UTC)),
        ("+2h", datetime(2027, 3, 26, 15, 37, tzinfo=UTC)),
        ("-90m", datetime(2027, 3, 26, 12, 7, tzinfo=UTC)),
        # Days keep the time of day over the change of the clock, hours do not.
        ("+2d", datetime(2027, 3, 28, 12, 37, tzinfo=UTC)),
        ("+48h", datetime(2027, 3, 28, 13, 37, tzinfo=UTC)),
        ("06:30", datetime(2027, 3, 26, 5, 30, tzinfo=UTC)),
        ("-1w", datetime(2027, 3, 19, 13, 37, tzinfo=UTC)),
    ],
)
def test_an_instant_is_read_in_its_zone(text: str, expected: datetime) -> None:
    assert begins(text) == expected


def test_the_end_counts_from_the_start() -> None:
    assert ends("2027-03-22", "+7d") == datetime(2027, 3, 28, 22, tzinfo=UTC), (
        "whole local days, the short one included"
    )
    assert ends("2027-03-22", "2027-03-23") == datetime(2027, 3, 22, 23, tzinfo=UTC)
    assert ends("2027-03-22T08:00", "17:00") == datetime(2027, 3, 22, 16, tzinfo=UTC)
    assert ends("2027-03-22T18:00", "17:00") == datetime(2027, 3, 23, 16, tzinfo=UTC), "the first time after the start"
    assert ends("2027-03-27T17:00", "17:00") == datetime(2027, 3, 28, 15, tzinfo=UTC), "and a day of 23 hours later"
    assert ends("now", "+30s") == datetime(2027, 3, 26, 13, 37, 30, tzinfo=UTC)


def test_a_day_begins_when_the_clock_first_shows_it() -> None:
    santiago = load_zone("America/Santiago")
    # 00:00 does not exist on the 5th of September; on the 4th of April 23:00 of the day before comes again first.
    assert local(santiago, start_of(santiago, date(2027, 9, 5))).hour == 1
    assert start_of(santiago, date(2027, 4, 4)) == datetime(2027, 4, 4, 4, tzinfo=UTC)
    samoa = load_zone("Pacific/Apia")
    assert start_of(samoa, date(2011, 12, 30)) == start_of(samoa, date(2011, 12, 31))


def test_the_local_time_has_the_offset_of_the_moment() -> None:
    assert local(BERLIN, datetime(2027, 3, 28, 0, 59, tzinfo=UTC)).isoformat() == "2027-03-28T01:59:00+01:00"
    assert local(BERLIN, datetime(2027, 3, 28, 1, 0, tzinfo=UTC)).isoformat() == "2027-03-28T03:00:00+02:00"


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("tomorrow", "+1d", "--from: 'tomorrow' is not an instant: write an instant such as"),
        ("now", "7d", "--to: '7d' is not an instant"),
        ("now", "+7y", "--to: '\\+7y' is not an instant"),
        ("2027-02-30", "+1d", "--from: '2027-02-30' is not an instant"),
        ("now", "now", "--to now is not after --from now"),
        ("2027-03-22", "2027-03-21", "--to 2027-03-21 is not after --from 2027-03-22"),
        ("now", "+3661d", "longer than 3660 days"),
        ("0001-01-01", "+1d", "between 1900 and 9000"),
        ("9999-12-31", "+1d", "between 1900 and 9000"),
        ("now", "+999999w", "between 1900 and 9000"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_option_and_the_forms(start: str, end: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_period(start, end, BERLIN, NOW)


def test_the_longest_period_is_allowed() -> None:
    assert ends("now", "+3660d") - begins("now") <= timedelta(days=3660, hours=1)


def test_an_unknown_zone_is_told_with_the_nearest_right_one() -> None:
    with pytest.raises(ConfigError, match=r'--zone: "W. Europe Standard Time" .*did you mean "Europe/Berlin"'):
        read_zone("W. Europe Standard Time")
