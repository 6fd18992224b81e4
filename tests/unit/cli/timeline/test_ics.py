"""The calendar: what comes back from it is what went in, and uids hold."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import icalendar
import pytest

from fivespot.cli.timeline.forecast import Forecast, Period
from fivespot.cli.timeline.ics import export
from fivespot.runtime import ConfigError
from unit.cli.timeline.samples import NIGHT, OFFICE, Json, forecast, manual, timebased

NOW = datetime(2026, 11, 30, 3, 0, 7, 123456, tzinfo=UTC)
MONDAY = datetime(2027, 3, 22, tzinfo=UTC)
DAY = timedelta(days=1)


def calendar(found: Forecast, period: Period, now: datetime = NOW) -> bytes:
    return export("TimeBasedSpotSchedule team-ü/hours", "TimeBasedSpotSchedule team hours", found, period, now)


def events(data: bytes) -> list[Any]:
    parsed = icalendar.Calendar.from_ical(data)
    assert parsed.errors == []
    return list(parsed.walk("VEVENT"))


def intervals(data: bytes) -> list[tuple[datetime, datetime]]:
    return [(event["DTSTART"].dt, event["DTEND"].dt) for event in events(data)]


def uids(data: bytes) -> list[str]:
    return [str(event["UID"]) for event in events(data)]


@pytest.mark.parametrize("spec", [OFFICE, NIGHT])
@pytest.mark.parametrize("start", [MONDAY, MONDAY + timedelta(hours=2)])
def test_the_events_are_the_active_times(spec: Json, start: datetime) -> None:
    period = Period(start, start + 14 * DAY)
    found = forecast([timebased(spec=spec)], start)
    data = calendar(found, period)
    assert intervals(data) == [(interval.start, interval.end) for interval in found.intervals(period)]
    assert len(set(uids(data))) == len(uids(data)) > 5


def test_it_is_written_as_rfc_5545_wants_it() -> None:
    data = calendar(forecast([timebased()], MONDAY), Period(MONDAY, MONDAY + 2 * DAY))
    lines = data.split(b"\r\n")
    assert lines[-1] == b""
    assert not any(b"\n" in line or b"\r" in line for line in lines)
    assert all(len(line) <= 75 for line in lines), "octets a line (3.1)"
    parsed = icalendar.Calendar.from_ical(data)
    assert parsed["VERSION"] == "2.0"
    assert str(parsed["PRODID"]).startswith("-//fivespot//")
    assert "METHOD" not in parsed, "with a method it would have to name an organizer (RFC 5546)"
    for event in events(data):
        assert {"UID", "DTSTAMP", "DTSTART", "DTEND"} <= set(event)
        assert event["DTSTAMP"].dt == NOW.replace(microsecond=0)
        assert event["TRANSP"] == "TRANSPARENT"
        assert event["SUMMARY"] == "TimeBasedSpotSchedule team-ü/hours active"


def test_a_uid_stays_whatever_the_period_and_the_day_of_the_export() -> None:
    found = forecast([timebased(spec=NIGHT)], MONDAY)
    whole = calendar(found, Period(MONDAY, MONDAY + 7 * DAY))
    # It begins in the middle of the second night, and ends in the middle of the fifth.
    middle = MONDAY + DAY + timedelta(hours=23)
    later = forecast([timebased(spec=NIGHT)], middle)
    part = calendar(later, Period(middle, MONDAY + 4 * DAY + timedelta(hours=23)), now=NOW + DAY)
    assert uids(part) == uids(whole)[2:6]
    assert intervals(part)[1:3] == intervals(whole)[3:5]
    assert uids(whole) != uids(calendar(forecast([timebased(spec=OFFICE)], MONDAY), Period(MONDAY, MONDAY + 7 * DAY)))


def test_a_time_without_an_end_is_cut_and_says_so() -> None:
    found = forecast([manual("m", {"enabled": True})], MONDAY)
    first = calendar(found, Period(MONDAY, MONDAY + DAY))
    [event] = events(first)
    assert intervals(first) == [(MONDAY, MONDAY + DAY)]
    assert "No end is known" in event["DESCRIPTION"]
    assert uids(first) == uids(calendar(found, Period(MONDAY, MONDAY + 2 * DAY)))


def test_a_calendar_without_an_active_time_is_valid_too() -> None:
    data = calendar(forecast([manual("m", {"enabled": False})], MONDAY), Period(MONDAY, MONDAY + DAY))
    parsed = icalendar.Calendar.from_ical(data)
    assert events(data) == []
    assert len(parsed.subcomponents) == 1, "a calendar must hold something (3.6)"


def test_without_icalendar_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icalendar", None)
    with pytest.raises(ConfigError, match=r"--ics: icalendar is not installed; pip install 'fivespot\[cli\]'"):
        calendar(forecast([timebased()], MONDAY), Period(MONDAY, MONDAY + DAY))
