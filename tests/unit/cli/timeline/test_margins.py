"""Lead and lag time in each output of the timeline."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import icalendar
import pytest
from PIL import Image

from fivespot.cli.timeline.forecast import Interval
from fivespot.cli.timeline.margins import margins
from unit.cli.timeline.samples import Json, manual, schedule, shown, timebased, write

WARM: Json = {
    "timezone": "Europe/Berlin",
    "windows": [{"days": ["mon-fri"], "start": "08:30", "end": "17:00"}],
    "leadTime": "2h",
    "lagTime": "1h",
}
MONDAY = ("--from", "2027-03-22", "--to", "+1d")


def at(hour: float) -> datetime:
    return datetime(2027, 3, 22, tzinfo=UTC) + timedelta(hours=hour)


def interval(start: float, end: float) -> Interval:
    return Interval(at(start), at(end), at(end))


@pytest.mark.parametrize(
    ("core", "expected"),
    [
        ([], [(8, 18)]),
        ([interval(9, 17)], [(8, 9), (17, 18)]),
        ([interval(8, 18)], []),
        ([interval(8, 12), interval(13, 17)], [(12, 13), (17, 18)]),
        ([interval(2, 3), interval(20, 21)], [(8, 18)]),
        ([interval(7, 9), interval(17, 19)], [(9, 17)]),
    ],
)
def test_margins_are_the_active_times_outside_of_the_core(
    core: list[Interval], expected: list[tuple[float, float]]
) -> None:
    assert margins([interval(8, 18)], core) == [(at(start), at(end)) for start, end in expected]


@pytest.mark.contract("C12")
def test_the_table_marks_hours_of_lead_and_lag_time_alone(tmp_path: Path) -> None:
    text = shown("-f", str(write(tmp_path / "s.yaml", timebased(spec=WARM))), *MONDAY)
    assert "Mon 2027-03-22  ......~~#########~......  06:30-18:00 (08:30-17:00)  11 h 30 min" in _ascii(text)
    assert "Lead and lag time are 3 h of it" in text


def test_a_schedule_without_them_has_no_such_line(tmp_path: Path) -> None:
    plain = {name: value for name, value in WARM.items() if not name.endswith("Time")}
    assert "ead and lag" not in shown("-f", str(write(tmp_path / "s.yaml", timebased(spec=plain))), *MONDAY)


def test_whole_days_are_not_folded_when_lag_time_is_part_of_them(tmp_path: Path) -> None:
    spec = {"timezone": "UTC", "windows": [{"from": "mon 00:00", "until": "wed 00:00"}], "lagTime": "120h"}
    text = shown("-f", str(write(tmp_path / "s.yaml", timebased(spec=spec))), "--from", "2027-03-22", "--to", "+7d")
    assert text.count("00:00-24:00 (none)") == 5
    assert "Lead and lag time are 120 h of it" in text


def test_the_json_lists_them(tmp_path: Path) -> None:
    found = json.loads(shown("-f", str(write(tmp_path / "s.yaml", timebased(spec=WARM))), *MONDAY, "-o", "json"))
    assert found["leadAndLag"] == [
        {"start": "2027-03-22T05:30:00Z", "end": "2027-03-22T07:30:00Z"},
        {"start": "2027-03-22T16:00:00Z", "end": "2027-03-22T17:00:00Z"},
    ]


def test_a_calendars_event_says_how_much_of_it_they_are(tmp_path: Path) -> None:
    target = tmp_path / "s.ics"
    shown("-f", str(write(tmp_path / "s.yaml", timebased(spec=WARM))), *MONDAY, "--ics", str(target))
    [event] = icalendar.Calendar.from_ical(target.read_bytes()).walk("VEVENT")
    assert event["DESCRIPTION"] == "Active for 11 h 30 min. Lead and lag time are 3 h of it."


def test_the_picture_has_them_in_a_colour_of_their_own(tmp_path: Path) -> None:
    def colours(spec: Json) -> set[object]:
        target = tmp_path / "s.png"
        shown("-f", str(write(tmp_path / "s.yaml", timebased(spec=spec))), *MONDAY, "--png", str(target))
        with Image.open(BytesIO(target.read_bytes())) as image:
            return {colour for _, colour in image.convert("RGB").getcolors(1 << 24) or ()}

    lighter = (0x8F, 0xCB, 0xB5)
    assert lighter in colours(WARM)
    assert lighter not in colours({name: value for name, value in WARM.items() if not name.endswith("Time")})


@pytest.mark.contract("C12")
def test_an_override_is_neither_moved_nor_marked(tmp_path: Path) -> None:
    override = {"name": "late", "active": True, "from": "2027-03-22T16:30:00Z", "until": "2027-03-22T19:00:00Z"}
    file = write(tmp_path / "s.yaml", timebased(spec={**WARM, "overrides": [override]}))
    # The lag time ends at 18:00 in Berlin, and the override takes over at 17:30.
    assert "06:30-20:00 (08:30-17:00, 17:30-20:00)" in shown("-f", str(file), *MONDAY)


@pytest.mark.contract("C12")
def test_an_override_until_the_next_transition_ends_with_the_moved_boundary(tmp_path: Path) -> None:
    override = {"name": "off", "active": False, "from": "2027-03-22T10:00:00Z", "until": "nextTransition"}
    file = write(tmp_path / "s.yaml", timebased(spec={**WARM, "overrides": [override]}))
    assert "OverrideExpired: override off (inactive) ended at 2027-03-22T17:00:00Z" in shown("-f", str(file), *MONDAY)


def test_the_times_of_a_base_are_told_apart_too(tmp_path: Path) -> None:
    over = manual("over", {"base": {"kind": "TimeBasedSpotSchedule", "name": "hours"}})
    file = write(tmp_path / "s.yaml", over, timebased(spec=WARM))
    assert "06:30-18:00 (08:30-17:00)" in shown("-f", str(file), "--name", "over", *MONDAY)


@pytest.mark.contract("C12")
def test_breaks_that_are_given_back_have_lead_and_lag_time_of_their_own(tmp_path: Path) -> None:
    session = {"days": ["mon-fri"], "start": "09:30", "end": "16:00", "breaks": [{"start": "12:00", "end": "13:00"}]}
    spec = {"timezone": "Asia/Hong_Kong", "sessions": [session], "breaks": "GiveBack", "leadTime": "15m"}
    file = write(tmp_path / "s.yaml", schedule("CapitalMarketsSchedule", "hk", {**spec, "lagTime": "10m"}))
    expected = "09:15-12:10, 12:45-16:10 (09:30-12:00, 13:00-16:00)"
    assert expected in shown("-f", str(file), *MONDAY)


def _ascii(text: str) -> str:
    return text.translate(str.maketrans("█▒░·–", "#+~.-"))
