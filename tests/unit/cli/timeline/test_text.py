"""The table, to the character."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from fivespot.cli.timeline.forecast import Period
from fivespot.cli.timeline.period import read_period
from fivespot.cli.timeline.text import ASCII, UNICODE, Marks, render
from fivespot.schedule import load_zone
from unit.cli.timeline.samples import NIGHT, OFFICE, Json, forecast, manual, simulate, timebased

NOW = datetime(2027, 1, 4, tzinfo=UTC)


def styled(spec: Json, start: str, end: str, *, zone: str = "Europe/Berlin", marks: Marks = UNICODE) -> str:
    where = load_zone(zone)
    period = read_period(start, end, where, NOW)
    simulation, first = simulate([timebased(spec=spec)], period.start)
    forecast = simulation.forecast(first)
    notes = simulation.notes(first, period)
    return render("TimeBasedSpotSchedule hours", forecast, period, where, notes=notes, marks=marks)


def table(spec: Json, start: str, end: str, *, zone: str = "Europe/Berlin", marks: Marks = UNICODE) -> str:
    return click.unstyle(styled(spec, start, end, zone=zone, marks=marks))


SPRING = """\
TimeBasedSpotSchedule hours
Sat 2027-03-27 00:00 to Tue 2027-03-30 00:00, Europe/Berlin

                0     6     12    18
Sat 2027-03-27  ███▒··················██  00:00-03:30, 22:00-24:00  5 h 30 min
Sun 2027-03-28  ██ ▒··················██  00:00-03:30, 22:00-24:00  4 h 30 min
                clock forward 02:00 -> 03:00 (UTC+1 -> UTC+2); 23 h on this date
Mon 2027-03-29  ███▒··················██  00:00-03:30, 22:00-24:00  5 h 30 min

Active 15 h 30 min of 71 h (22 %), 4 times.
At the start: active (closes Sat 2027-03-27 03:30 Europe/Berlin = 2027-03-27T02:30:00Z).
After the period: not active from Tue 2027-03-30 03:30.
"""

AUTUMN = """\
TimeBasedSpotSchedule hours
Sun 2027-10-31 00:00 to Mon 2027-11-01 00:00, Europe/Berlin

                0     6     12    18
Sun 2027-10-31  ###+..................##  00:00-03:30, 22:00-24:00  6 h 30 min
                clock back 03:00 -> 02:00 (UTC+2 -> UTC+1); 25 h on this date

Active 6 h 30 min of 25 h (26 %), 2 times.
At the start: active (closes Sun 2027-10-31 03:30 Europe/Berlin = 2027-10-31T02:30:00Z).
After the period: not active from Mon 2027-11-01 03:30.
"""

WEEK = """\
TimeBasedSpotSchedule hours
Fri 2026-12-25 00:00 to Tue 2027-01-05 12:00, Europe/Berlin

                0     6     12    18
Fri 2026-12-25  ········██████████▒·····  08:00-18:30  10 h 30 min
Sat 2026-12-26 – Sun 2027-01-03           not active   9 days
Mon 2027-01-04  ········██████████▒·····  08:00-18:30  10 h 30 min
Tue 2027-01-05  ········████              08:00-12:00  4 h

Active 25 h of 276 h (9 %), 3 times.
At the start: not active (opens Fri 2026-12-25 08:00 Europe/Berlin = 2026-12-25T07:00:00Z).
After the period: not active from Tue 2027-01-05 18:30.
"""


def test_the_day_on_which_the_clock_goes_forward() -> None:
    assert table(NIGHT, "2027-03-27", "+3d") == SPRING


def test_the_day_on_which_the_clock_goes_back_without_special_characters() -> None:
    assert table(NIGHT, "2027-10-31", "+1d", marks=ASCII) == AUTUMN


def test_days_that_are_alike_become_one_line_and_part_of_a_day_is_shown_as_such() -> None:
    closed = [{"date": f"2026-12-{day}"} for day in range(28, 32)] + [{"date": "2027-01-01"}]
    assert table({**OFFICE, "exceptions": closed}, "2026-12-25", "2027-01-05T12:00") == WEEK


def test_whole_days_are_one_line_too_and_a_schedule_without_change_says_so() -> None:
    where, period = load_zone("UTC"), Period(NOW, datetime(2027, 1, 14, tzinfo=UTC))
    text = click.unstyle(render("ManualSchedule m", forecast([manual("m", {"enabled": True})], NOW), period, where))
    assert "Mon 2027-01-04 – Wed 2027-01-13           00:00-24:00  240 h\n" in text
    assert "Active 240 h of 240 h (100 %), once.\n" in text
    assert text.endswith("It never changes: always active.\n")


def test_times_are_those_of_the_zone_asked_for() -> None:
    text = table(OFFICE, "2027-01-04T12:30+05:30", "+1d", zone="Asia/Kolkata")
    assert "Mon 2027-01-04 12:30 to Tue 2027-01-05 12:30, Asia/Kolkata" in text
    assert "12:30-23:00" in text


def test_a_window_that_does_not_take_place_is_a_note() -> None:
    spec = {"timezone": "Europe/Berlin", "windows": [{"days": ["sun"], "start": "02:10", "end": "02:50"}]}
    text = table(spec, "2027-03-27", "+3d")
    assert "Never active in 71 h.\n" in text
    assert "\nNotes\n- WindowSkipped: the window 02:10-02:50 of 2027-03-28 does not take place" in text


@pytest.mark.parametrize("spec", [OFFICE, NIGHT])
def test_lines_have_no_spaces_at_their_ends_and_styles_are_for_terminals(spec: Json) -> None:
    assert "\x1b[" in styled(spec, "2027-03-27", "+3d")
    text = table(spec, "2027-03-27", "+3d")
    assert not [line for line in text.splitlines() if line != line.rstrip()]
