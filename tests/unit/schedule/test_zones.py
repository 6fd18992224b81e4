"""Zone data: from the package only, read right, and right for ever."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.schedule import TZDATA_RELEASE, UnknownZone, Zone, load_zone, zone_hint, zone_names
from fivespot.schedule._places import ABBREVIATIONS, PLACES, SEVERAL_ZONES
from fivespot.schedule._windows_zones import WINDOWS_ZONES
from fivespot.schedule.civil import CYCLE, FAR
from fivespot.schedule.tzif import TailRule, read_tail_rule, read_tzif

ALL = sorted(zone_names())
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
YEAR = 31_556_952


@cache
def reference(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def offset_by_zoneinfo(name: str, at: int) -> int:
    offset = (EPOCH + timedelta(seconds=at)).astimezone(reference(name)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def test_the_release_is_the_packages() -> None:
    assert f'IANA_VERSION = "{TZDATA_RELEASE}"' in files("tzdata").joinpath("__init__.py").read_text("utf-8")


@pytest.mark.parametrize("part", range(4))
def test_every_change_agrees_with_zoneinfo(part: int) -> None:
    for name in ALL[part::4]:
        zone = load_zone(name)
        changes = list(zone.changes(-FAR + 1, 100 * YEAR))
        assert [at for at, _, _ in changes] == sorted({at for at, _, _ in changes}), name
        for at, before, after in changes:
            assert (zone.era(at - 1).offset, zone.era(at).offset) == (before, after), name
            if at > -67 * YEAR:  # zoneinfo reads the time before the first change differently
                assert (offset_by_zoneinfo(name, at - 1), offset_by_zoneinfo(name, at)) == (before, after), name


@given(st.sampled_from(ALL), st.integers(-60 * YEAR, 7900 * YEAR))
def test_any_instant_agrees_with_zoneinfo(name: str, at: int) -> None:
    era = load_zone(name).era(at)
    assert era.start <= at < era.end
    assert era.offset == offset_by_zoneinfo(name, at)


@given(st.sampled_from(ALL), st.integers(-200 * YEAR, 7900 * YEAR))
def test_an_instant_is_the_first_at_which_the_clock_reads_as_much(name: str, reading: int) -> None:
    zone = load_zone(name)
    at = zone.instant_of(reading)
    assert at + zone.era(at).offset >= reading
    era = zone.era(at - 1)
    last = at - 1
    while last > at - 30 * 3600:
        assert last + era.offset < reading
        last, era = era.start - 1, zone.era(era.start - 1)


@pytest.mark.parametrize("name", ["Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Antarctica/Troll"])
def test_readings_near_changes_never_go_back(name: str) -> None:
    zone = load_zone(name)
    for change, before, _after in zone.changes(50 * YEAR, 60 * YEAR):
        instants = [zone.instant_of(reading) for reading in range(change + before - 9000, change + before + 9000, 300)]
        assert instants == sorted(instants)


def test_no_clock_was_ever_put_back_by_more_than_a_day() -> None:
    assert max(b - a for name in ALL for _, b, a in load_zone(name).changes(-FAR + 1, 500 * YEAR)) <= 86_400


@given(st.sampled_from(ALL), st.integers(600 * YEAR, 3000 * YEAR))
def test_far_ahead_everything_repeats_after_400_years(name: str, at: int) -> None:
    zone = load_zone(name)
    era, later = zone.era(at), zone.era(at + CYCLE)
    assert later.offset == era.offset
    if era.end < FAR:
        assert later.end == era.end + CYCLE
    assert zone.instant_of(at + CYCLE) == zone.instant_of(at) + CYCLE


def test_a_zone_is_the_same_object_each_time() -> None:
    assert load_zone("Europe/Berlin") is load_zone("Europe/Berlin")
    assert repr(load_zone("Europe/Berlin")) == "Zone('Europe/Berlin')"


@pytest.mark.parametrize(
    ("given_name", "nearest"),
    [
        ("W. Europe Standard Time", "Europe/Berlin"),
        ("eastern  standard time", "America/New_York"),
        ("europe/berlin", "Europe/Berlin"),
        ("EUROPE/BERLIN", "Europe/Berlin"),
        ("Europe.Berlin", "Europe/Berlin"),
        ("America/NewYork", "America/New_York"),
        ("Europe/Berln", "Europe/Berlin"),
        ("Europe/Belrin", "Europe/Berlin"),
        ("Australia/Melborne", "Australia/Melbourne"),
        ("Berlin", "Europe/Berlin"),
        ("Germany/Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("America/New York", "America/New_York"),
        ("Asia/Mumbai", "Asia/Kolkata"),
        ("Europe/Geneva", "Europe/Zurich"),
        ("America/Boston", "America/New_York"),
        ("Asia/Beijing", "Asia/Shanghai"),
        ("Zürich", "Europe/Zurich"),
        ("Texas", "America/Chicago"),
        ("China", "Asia/Shanghai"),
        ("India", "Asia/Kolkata"),
        ("US/New_York", "America/New_York"),
        ("utc", "UTC"),
        ("Z", "UTC"),
        ("UTC+0", "UTC"),
        ("+00:00", "UTC"),
        ("Asia/Calcuta", "Asia/Calcutta"),
        ("Asia/Basra", None),
        ("kathmandoo", None),
        ("Gotham", None),
        ("Berlin" * 20, None),
        ("", None),
    ],
)
def test_an_unknown_zone_names_the_zone_that_was_meant(given_name: str, nearest: str | None) -> None:
    with pytest.raises(UnknownZone) as caught:
        load_zone(given_name)
    assert caught.value.suggestion == (f'"{nearest}"' if nearest else None)
    assert str(caught.value).startswith(f'"{given_name}" is not a time zone')
    assert str(caught.value).endswith(f'; did you mean "{nearest}"?' if nearest else "or UTC")


@pytest.mark.parametrize(
    ("written", "explanation"),
    [
        ("CEST", "CEST is Central European Summer Time; write an IANA name such as Europe/Berlin"),
        ("pdt", "PDT is Pacific Daylight Time; write an IANA name such as America/Los_Angeles"),
        (
            "IST",
            "IST is India Standard Time, Irish Standard Time or Israel Standard Time; write an IANA name such as",
        ),
        ("GMT+1", "GMT+1 is an offset, which does not follow summer time; write the IANA name of the place"),
        ("UTC-5", "UTC-5 is an offset, which does not follow summer time; write the IANA name of the place"),
        ("+05:30", "+05:30 is an offset, which does not follow summer time; write the IANA name of the place"),
        ("Etc/UTC+1", "Etc/UTC+1 is an offset, which does not follow summer time; write the IANA name of the place"),
        ("Local", "the zone of a machine is not known here; write the IANA name of the place"),
        ("USA", "USA stands for several time zones; write the one that is meant, such as America/New_York, America/Ch"),
        ("Georgia", "Georgia stands for several time zones; write the one that is meant, such as Asia/Tbilisi or Am"),
    ],
)
def test_a_name_with_several_meanings_or_a_fixed_offset_is_explained(written: str, explanation: str) -> None:
    with pytest.raises(UnknownZone) as caught:
        load_zone(written)
    assert caught.value.suggestion is None
    assert str(caught.value).startswith(f'"{written}" is not a time zone: {explanation}')


@given(st.from_regex(r"(?i)(etc/)?(utc|gmt)?[+-](1[0-4]|[1-9])(:[0-5][0-9])?", fullmatch=True))
def test_an_offset_never_gets_a_zone(written: str) -> None:
    assert zone_hint(written).nearest is None


def test_a_hint_never_names_a_zone_of_another_place() -> None:
    """A city that is no zone, with two letters of an existing one exchanged by others, is not taken for that one."""
    for written in ("Asia/Dumbei", "Europe/Guernava", "America/Moston", "Asia/Chila", "Africa/Tuna"):
        assert zone_hint(written).nearest is None, written


@pytest.mark.parametrize(
    "name", ["../zones", "Europe/../UTC", "/etc/localtime", "Europe", "zone.tab", "UTC\0", "__init__.py"]
)
def test_a_name_is_never_a_path(name: str) -> None:
    with pytest.raises(UnknownZone):
        load_zone(name)


def test_every_hint_is_a_zone() -> None:
    assert set(WINDOWS_ZONES.values()) <= zone_names()
    assert all(zone_hint(name.title()).nearest == zone for name, zone in WINDOWS_ZONES.items())
    assert all(zone_hint(place.title()).nearest == zone for place, zone in PLACES.items())
    assert set(PLACES.values()) <= zone_names()
    assert {zone for zones in SEVERAL_ZONES.values() for zone in zones} <= zone_names()
    assert {zone for _, zones in ABBREVIATIONS.values() for zone in zones} <= zone_names()
    assert not zone_names() & set(ABBREVIATIONS)


PROBE = """
import sys
from datetime import datetime, UTC
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from fivespot.schedule import read_schedule, evaluate
schedule = read_schedule({"timezone": "Europe/Berlin", "daysOfWeek": ["mon-sun"], "hoursOfDay": ["9"]})
print(evaluate(schedule, datetime(2027, 7, 1, tzinfo=UTC)).until.isoformat())
print(*[path for path in opened if "zoneinfo" in path and "tzdata" not in path and not path.endswith((".py", ".pyc"))])
"""


@pytest.mark.parametrize("poisoned", [True, False])
def test_the_machines_zone_files_are_never_read(poisoned: bool, tmp_path: Path) -> None:
    (tmp_path / "Europe").mkdir()
    tokyo = files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    (tmp_path / "Europe" / "Berlin").write_bytes(tokyo)
    path = str(tmp_path) if poisoned else ""
    run = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={"PYTHONTZPATH": path, "TZDIR": path, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == ["2027-07-01T07:00:00+00:00", ""]


class TestTailRule:
    def test_one_offset(self) -> None:
        assert read_tail_rule("<+0545>-5:45") == TailRule(20_700)
        assert read_tail_rule("JST-9").changes(2027) == []

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("CET-1CEST,M3.5.0,M10.5.0/3", [("2027-03-28T01:00", 2), ("2027-10-31T01:00", 1)]),
            ("EST5EDT,M3.2.0,M11.1.0", [("2027-03-14T07:00", -4), ("2027-11-07T06:00", -5)]),
            ("IST-1GMT0,M10.5.0,M3.5.0/1", [("2027-03-28T01:00", 1), ("2027-10-31T01:00", 0)]),
            ("IST-2IDT,M3.4.4/26,M10.5.0", [("2027-03-26T00:00", 3), ("2027-10-30T23:00", 2)]),
            ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", [("2027-03-28T01:00", -1), ("2027-10-31T01:00", -2)]),
            ("AAA0BBB,J60/0,J300/0", [("2027-03-01T00:00", 1), ("2027-10-26T23:00", 0)]),
            ("AAA0BBB,59/0,299/0", [("2027-03-01T00:00", 1), ("2027-10-26T23:00", 0)]),
        ],
    )
    def test_two_offsets(self, text: str, expected: list[tuple[str, int]]) -> None:
        found = read_tail_rule(text).changes(2027)
        assert [(f"{EPOCH + timedelta(seconds=at):%Y-%m-%dT%H:%M}", offset // 3600) for at, offset in found] == expected

    def test_a_day_counted_without_leap_days_is_the_same_date_each_year(self) -> None:
        day = 86_400
        leap = datetime(2028, 1, 1, tzinfo=UTC).timestamp()
        by_date, by_number = read_tail_rule("AAA0BBB,J60/0,J300/0"), read_tail_rule("AAA0BBB,59/0,299/0")
        assert by_date.changes(2028)[0][0] == leap + 60 * day  # 1 March
        assert by_number.changes(2028)[0][0] == leap + 59 * day  # 29 February

    @pytest.mark.parametrize("text", ["", "CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5,M10.5.0", "5EST"])
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="time zone"):
            read_tail_rule(text)


@pytest.mark.parametrize("data", [b"TZif" + bytes(100), b"x" * 100])
def test_a_file_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="TZif"):
        read_tzif(data)


def test_a_zone_that_only_ever_had_one_offset_has_no_changes() -> None:
    zone = Zone("X", [], [3600])
    assert list(zone.changes(-CYCLE, CYCLE)) == []
    assert zone.instant_of(3600) == 0
