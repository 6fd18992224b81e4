"""Combinations of sessions, holidays, early closes, late opens and special sessions, by hand."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

import fivespot.schedule.market
from fivespot.schedule import Cause, GrammarError, ScheduleError, SkippedWindow, UnknownZone, load_zone
from fivespot.schedule.market import (
    Breaks,
    EarlyClose,
    LateOpen,
    MarketCalendar,
    MarketTimeline,
    Session,
    SpecialSession,
    TradingHours,
    read_calendar,
)
from fivespot.schedule.market.rules import close_after
from fivespot.schedule.search import Search

MONDAY = "2027-01-04"  # a Monday; the week runs to Sunday the 10th
END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def z(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def open_times(spec: dict[str, Any], start: str = MONDAY, days: int = 7) -> list[str]:
    """The active intervals of a period as ``DDtHH:MM-DDtHH:MM``; those already or still open have no edge there."""
    timeline = MarketTimeline(read_calendar(spec))
    begin, end = z(start), z(start) + timedelta(days=days)
    found = ["-"] if timeline.evaluate(begin).active else []
    for at, active in timeline.transitions(begin, end):
        text = f"{at:%dt%H:%M}"
        if active:
            found.append(f"{text}-")
        else:
            found[-1] += text
    return found


def session(days: str, opens: str, closes: str, *breaks: tuple[str, str]) -> dict[str, Any]:
    pauses = [{"start": start, "end": end} for start, end in breaks]
    return {"daysOfWeek": [days], "open": opens, "close": closes, "breaks": pauses}


HOURS = {"sessions": [{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-15"]}]}
DAYS = {"sessions": [session("mon-fri", "09:30", "16:00", ("12:00", "13:00"))]}
NIGHTS = {"sessions": [session("sun-thu", "17:00", "16:00", ("23:30", "00:30"))]}
ROUND_THE_CLOCK = {"sessions": [session("mon-sun", "00:00", "24:00")]}


class TestSessions:
    def test_hours_are_the_grammar_of_the_existing_5_spot(self) -> None:
        assert open_times(HOURS) == [f"0{day}t09:00-0{day}t16:00" for day in (4, 5, 6, 7, 8)]

    def test_hours_are_not_carried_past_midnight(self) -> None:
        spec = {"sessions": [{"daysOfWeek": ["mon-tue"], "hoursOfDay": ["22-6"]}]}
        assert open_times(spec) == ["-04t07:00", "04t22:00-05t07:00", "05t22:00-06t00:00"]

    @pytest.mark.parametrize(
        "spec", [{}, {"sessions": []}, {"sessions": [{}]}, {"sessions": [{"daysOfWeek": ["mon"]}]}, {"holidays": []}]
    )
    def test_without_days_or_hours_nothing_ever_opens(self, spec: dict[str, Any]) -> None:
        found = MarketTimeline(read_calendar(spec)).evaluate(z(MONDAY))
        assert (found.active, found.until, found.cause) == (False, None, Cause.CLOSED)

    def test_times_are_to_the_minute_and_the_close_is_exclusive(self) -> None:
        timeline = MarketTimeline(read_calendar(DAYS))
        assert not timeline.evaluate(z("2027-01-04T09:29:59")).active
        assert timeline.evaluate(z("2027-01-04T09:30")).active
        assert timeline.evaluate(z("2027-01-04T15:59:59.999")).active
        assert timeline.evaluate(z("2027-01-04T16:00")).cause is Cause.CLOSED

    def test_a_close_before_the_open_is_on_the_next_day(self) -> None:
        assert open_times(NIGHTS, "2027-01-03") == [f"0{day}t17:00-0{day + 1}t16:00" for day in (3, 4, 5, 6, 7)]

    def test_several_sessions_are_their_union_without_a_seam(self) -> None:
        spec = {"sessions": [*HOURS["sessions"], session("mon", "16:00", "17:30"), session("mon", "07:00", "08:00")]}
        assert open_times(spec)[:2] == ["04t07:00-04t08:00", "04t09:00-04t17:30"]

    def test_round_the_clock_never_closes(self) -> None:
        found = MarketTimeline(read_calendar(ROUND_THE_CLOCK)).evaluate(z(MONDAY))
        assert (found.active, found.until) == (True, None)


class TestBreaks:
    def test_they_are_kept_by_default(self) -> None:
        assert open_times(DAYS, days=1) == open_times({**DAYS, "breaks": "Keep"}, days=1) == ["04t09:30-04t16:00"]

    def test_given_back_they_close(self) -> None:
        assert open_times({**DAYS, "breaks": "GiveBack"}, days=1) == ["04t09:30-04t12:00", "04t13:00-04t16:00"]

    def test_one_over_midnight_belongs_to_the_session(self) -> None:
        assert open_times({**NIGHTS, "breaks": "GiveBack"}, "2027-01-04", 2)[:2] == [
            "04t00:30-04t16:00",
            "04t17:00-04t23:30",
        ]

    def test_at_an_edge_or_overlapping_they_are_one(self) -> None:
        breaks = ("09:30", "10:00"), ("11:00", "12:30"), ("12:00", "13:00"), ("15:30", "16:00")
        spec = {"sessions": [session("mon", "09:30", "16:00", *breaks)], "breaks": "GiveBack"}
        assert open_times(spec) == ["04t10:00-04t11:00", "04t13:00-04t15:30"]

    def test_a_break_of_one_session_does_not_close_another(self) -> None:
        spec = {"sessions": [*DAYS["sessions"], session("mon", "11:30", "12:45")], "breaks": "GiveBack"}
        assert open_times(spec, days=1) == ["04t09:30-04t12:45", "04t13:00-04t16:00"]

    @pytest.mark.parametrize(
        "pause", [("08:00", "08:30"), ("15:30", "16:30"), ("13:00", "12:00"), ("12:00", "12:00"), ("16:00", "16:00")]
    )
    def test_one_outside_of_its_session_is_refused(self, pause: tuple[str, str]) -> None:
        with pytest.raises(GrammarError, match=r"sessions\[0\]\.breaks\[0\]: .* is not a time within the session"):
            read_calendar({"sessions": [session("mon", "09:30", "16:00", pause)]})


class TestHolidays:
    def test_the_whole_local_date_is_closed(self) -> None:
        for spec in (HOURS, DAYS):
            assert len(open_times({**spec, "holidays": ["2027-01-06"]})) == 4
            assert not [text for text in open_times({**spec, "holidays": ["2027-01-06"]}) if text.startswith("06")]

    def test_the_date_is_the_zones(self) -> None:
        spec = {**DAYS, "timezone": "Pacific/Auckland", "holidays": ["2027-01-06"]}
        assert open_times(spec, days=3) == ["-04t03:00", "04t20:30-05t03:00", "06t20:30-"]

    def test_a_night_is_cut_at_both_midnights(self) -> None:
        assert open_times({**NIGHTS, "holidays": ["2027-01-05"]}, "2027-01-04", 3) == [
            "-04t16:00",
            "04t17:00-05t00:00",
            "06t00:00-06t16:00",
            "06t17:00-",
        ]

    def test_one_twice_or_on_a_closed_day_changes_nothing(self) -> None:
        assert open_times({**DAYS, "holidays": ["2027-01-10", "2027-01-10"]}) == open_times(DAYS)

    @pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
    def test_one_far_ahead_ends_what_is_always_open(self, zone: str) -> None:
        timeline = MarketTimeline(read_calendar({**ROUND_THE_CLOCK, "timezone": zone, "holidays": ["7777-07-07"]}))
        until = timeline.evaluate(z(MONDAY)).until
        assert until == z("7777-07-07") - timedelta(hours=0 if zone == "UTC" else 2)
        assert timeline.evaluate(until).until == until + timedelta(days=1)
        assert timeline.evaluate(until + timedelta(days=1)).until is None


class TestEarlyCloses:
    @pytest.mark.parametrize("hour", [{"closeHour": 12}, {"close": "13:00"}])
    def test_the_date_closes_early(self, hour: dict[str, Any]) -> None:
        for spec, opens in ((HOURS, "09:00"), (DAYS, "09:30")):
            early = {**spec, "earlyCloses": [{"date": "2027-01-06", **hour}]}
            assert open_times(early)[2] == f"06t{opens}-06t13:00"

    def test_the_close_hour_is_the_last_that_is_open(self) -> None:
        timeline = MarketTimeline(read_calendar({**HOURS, "earlyCloses": [{"date": "2027-01-06", "closeHour": 11}]}))
        assert timeline.evaluate(z("2027-01-06T11:59:59")).active
        assert not timeline.evaluate(z("2027-01-06T12:00")).active

    def test_hours_may_close_to_the_minute(self) -> None:
        assert open_times({**HOURS, "earlyCloses": [{"date": "2027-01-06", "close": "12:45"}]})[2] == (
            "06t09:00-06t12:45"
        )

    def test_the_first_entry_for_a_date_wins(self) -> None:
        entries = [{"date": "2027-01-06", "closeHour": 12}, {"date": "2027-01-06", "close": "10:00"}]
        assert open_times({**DAYS, "earlyCloses": entries})[2] == "06t09:30-06t13:00"
        assert open_times({**DAYS, "earlyCloses": entries[::-1]})[2] == "06t09:30-06t10:00"

    def test_one_after_the_close_or_on_a_holiday_changes_nothing(self) -> None:
        late = [{"date": "2027-01-06", "closeHour": 23}, {"date": "2027-01-07", "close": "16:00"}]
        assert open_times({**DAYS, "earlyCloses": late}) == open_times(DAYS)
        assert open_times({**DAYS, "holidays": ["2027-01-06"], "earlyCloses": late}) == (
            open_times({**DAYS, "holidays": ["2027-01-06"]})
        )

    def test_before_the_open_the_date_is_closed(self) -> None:
        assert len(open_times({**DAYS, "earlyCloses": [{"date": "2027-01-06", "close": "09:30"}]})) == 4

    def test_it_closes_the_rest_of_the_date_and_nothing_of_the_next(self) -> None:
        assert open_times({**NIGHTS, "earlyCloses": [{"date": "2027-01-05", "close": "12:00"}]}, "2027-01-05", 2) == [
            "-05t12:00",
            "06t00:00-06t16:00",
            "06t17:00-",
        ]

    def test_a_break_that_it_leaves_out_is_none(self) -> None:
        spec = {**DAYS, "breaks": "GiveBack", "earlyCloses": [{"date": "2027-01-04", "close": "12:30"}]}
        assert open_times(spec, days=1) == ["04t09:30-04t12:00"]


class TestLateOpens:
    def test_the_date_opens_late(self) -> None:
        for spec, closes in ((HOURS, "16:00"), (DAYS, "16:00")):
            late = {**spec, "lateOpens": [{"date": "2027-01-06", "open": "10:15"}]}
            assert open_times(late)[2] == f"06t10:15-06t{closes}"

    def test_the_first_entry_for_a_date_wins(self) -> None:
        entries = [{"date": "2027-01-06", "open": "11:00"}, {"date": "2027-01-06", "open": "10:00"}]
        assert open_times({**DAYS, "lateOpens": entries})[2] == "06t11:00-06t16:00"

    def test_the_early_hours_of_a_night_are_of_that_date(self) -> None:
        assert open_times({**NIGHTS, "lateOpens": [{"date": "2027-01-05", "open": "10:00"}]}, "2027-01-04", 2) == [
            "-04t16:00",
            "04t17:00-05t00:00",
            "05t10:00-05t16:00",
            "05t17:00-",
        ]

    def test_with_an_early_close_what_is_between_is_left(self) -> None:
        spec = {**DAYS, "lateOpens": [{"date": "2027-01-06", "open": "11:00"}]}
        assert open_times({**spec, "earlyCloses": [{"date": "2027-01-06", "closeHour": 13}]})[2] == "06t11:00-06t14:00"
        assert len(open_times({**spec, "earlyCloses": [{"date": "2027-01-06", "closeHour": 9}]})) == 4


class TestSpecialSessions:
    SATURDAY = {"date": "2027-01-09", "open": "10:00", "close": "12:00"}  # noqa: RUF012

    def test_a_closed_day_opens(self) -> None:
        assert open_times({**DAYS, "specialSessions": [self.SATURDAY]})[-1] == "09t10:00-09t12:00"

    def test_it_replaces_the_sessions_of_its_date(self) -> None:
        special = [{**self.SATURDAY, "date": "2027-01-06"}]
        for spec in (HOURS, DAYS):
            assert open_times({**spec, "specialSessions": special})[2] == "06t10:00-06t12:00"

    def test_it_takes_place_on_a_holiday(self) -> None:
        """Muhurat trading: an hour in the evening of Diwali, which is a holiday."""
        spec = {
            "timezone": "Asia/Kolkata",
            "sessions": [session("mon-fri", "09:15", "15:30")],
            "holidays": ["2026-11-09", "2026-11-10"],
            "specialSessions": [{"date": "2026-11-09", "open": "18:15", "close": "19:15"}],
        }
        assert open_times(spec, "2026-11-08", 4) == ["09t12:45-09t13:45", "11t03:45-11t10:00"]

    def test_no_early_close_or_late_open_changes_it(self) -> None:
        spec = {
            **DAYS,
            "specialSessions": [self.SATURDAY],
            "earlyCloses": [{"date": "2027-01-09", "close": "11:00"}],
            "lateOpens": [{"date": "2027-01-09", "open": "11:30"}],
        }
        assert open_times(spec)[-1] == "09t10:00-09t12:00"

    def test_a_date_may_have_several_and_they_may_have_breaks(self) -> None:
        pauses = [{"start": "10:30", "end": "11:00"}]
        entries = [{**self.SATURDAY, "breaks": pauses}, {"date": "2027-01-09", "open": "20:00", "close": "02:00"}]
        spec = {**DAYS, "breaks": "GiveBack", "specialSessions": entries}
        assert open_times(spec)[-3:] == ["09t10:00-09t10:30", "09t11:00-09t12:00", "09t20:00-10t02:00"]

    def test_what_runs_into_the_next_date_is_not_cut_by_it(self) -> None:
        entries = [{"date": "2027-01-05", "open": "20:00", "close": "02:00"}]
        spec = {**DAYS, "specialSessions": entries, "holidays": ["2027-01-06"]}
        assert open_times(spec)[:2] == ["04t09:30-04t16:00", "05t20:00-06t02:00"]

    def test_a_night_is_cut_at_the_midnights_of_the_date(self) -> None:
        special = [{"date": "2027-01-05", "open": "10:00", "close": "12:00"}]
        assert open_times({**NIGHTS, "specialSessions": special}, "2027-01-04", 3)[1:4] == [
            "04t17:00-05t00:00",
            "05t10:00-05t12:00",
            "06t00:00-06t16:00",
        ]

    def test_a_day_with_an_interval_is_two_of_them(self) -> None:
        """An early close at noon of a market that reopens in the evening: the date is written out."""
        special = [
            {"date": "2027-01-05", "open": "00:00", "close": "12:00"},
            {"date": "2027-01-05", "open": "17:00", "close": "24:00"},
        ]
        assert open_times({**NIGHTS, "specialSessions": special}, "2027-01-04", 3)[1:3] == [
            "04t17:00-05t12:00",
            "05t17:00-06t16:00",
        ]

    @pytest.mark.parametrize("day", ["2027-06-01", "3456-07-08", "9000-01-01", "9999-12-30"])
    def test_one_far_ahead_is_found(self, day: str) -> None:
        timeline = MarketTimeline(read_calendar({"specialSessions": [{**self.SATURDAY, "date": day}]}))
        assert timeline.evaluate(z(MONDAY)).until == z(f"{day}T10:00")
        assert timeline.evaluate(z(f"{day}T11:30")).until == z(f"{day}T12:00")
        assert timeline.evaluate(z(f"{day}T12:00")).until is None


class TestClockChanges:
    @pytest.mark.parametrize(
        ("spec", "start", "expected"),
        [
            ({"sessions": [session("sun", "02:30", "05:00")]}, "2027-03-27", ["28t01:00-28t03:00"]),
            ({"sessions": [session("sun", "02:30", "05:00")]}, "2027-10-30", ["31t00:30-31t04:00"]),
            ({"sessions": [session("sun", "01:00", "02:30")]}, "2027-10-30", ["30t23:00-31t00:30"]),
            ({"sessions": [{"daysOfWeek": ["sun"], "hoursOfDay": ["2"]}]}, "2027-10-30", ["31t00:00-31t02:00"]),
            ({"sessions": [{"daysOfWeek": ["sun"], "hoursOfDay": ["2"]}]}, "2027-03-27", []),
            (
                {"sessions": [session("sun", "01:00", "05:00", ("02:15", "02:45"))], "breaks": "GiveBack"},
                "2027-10-30",
                ["30t23:00-31t00:15", "31t00:45-31t04:00"],
            ),
            (
                {"sessions": [session("sun", "01:00", "05:00", ("02:15", "02:45"))], "breaks": "GiveBack"},
                "2027-03-27",
                ["28t00:00-28t03:00"],
            ),
            (
                {
                    "sessions": [session("sun", "00:00", "05:00")],
                    "earlyCloses": [{"date": "2027-10-31", "close": "02:30"}],
                },
                "2027-10-30",
                ["30t22:00-31t00:30"],
            ),
            (
                {
                    "sessions": [session("sun", "00:00", "05:00")],
                    "lateOpens": [{"date": "2027-03-28", "open": "02:30"}],
                },
                "2027-03-27",
                ["28t01:00-28t03:00"],
            ),
            (
                {
                    "sessions": [{"daysOfWeek": ["sun"], "hoursOfDay": ["0-5"]}],
                    "earlyCloses": [{"date": "2027-10-31", "closeHour": 2}],
                },
                "2027-10-30",
                ["30t22:00-31t02:00"],
            ),
        ],
    )
    def test_berlin(self, spec: dict[str, Any], start: str, expected: list[str]) -> None:
        assert open_times({"timezone": "Europe/Berlin", **spec}, start, 2) == expected

    def test_a_session_or_a_piece_of_one_wholly_inside_a_jump_is_reported(self) -> None:
        jump = z("2027-03-28T01:00")
        sessions = [session("sun", "02:10", "05:00", ("02:40", "04:00")), session("sat-sun", "02:15", "02:30")]
        timeline = MarketTimeline(read_calendar({"timezone": "Europe/Berlin", "sessions": sessions}))
        only = SkippedWindow(date(2027, 3, 28), "02:15", "02:30", jump)
        assert timeline.skipped(z("2027-01-01"), z("2027-12-31")) == [only]
        given_back = MarketTimeline(
            read_calendar({"timezone": "Europe/Berlin", "sessions": sessions, "breaks": "GiveBack"})
        )
        piece = SkippedWindow(date(2027, 3, 28), "02:10", "02:40", jump)
        assert given_back.skipped(z("2027-01-01"), z("2027-12-31")) == [piece, only]
        holiday = {"timezone": "Europe/Berlin", "sessions": sessions, "holidays": ["2027-03-28"]}
        assert MarketTimeline(read_calendar(holiday)).skipped(z("2027-01-01"), z("2027-12-31")) == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({"timezone": "Europe/Berln"}, r'^timezone: "Europe/Berln" is not a time zone: .* did you mean "Europe/Berlin"\?'),
    ({"timezone": 1}, r"^timezone: 1 is not a text"),
    ({"sessions": [session("Mon", "09:30", "16:00")]}, r'^sessions\[0\]\.daysOfWeek\[0\]: .* did you mean "mon"\?'),
    ({"sessions": [{"daysOfWeek": ["mon"], "hoursOfDay": ["24"]}]}, r"^sessions\[0\]\.hoursOfDay\[0\]: "),
    ({"sessions": [session("mon", "9:30", "16:00")]}, r'^sessions\[0\]\.open: .* did you mean "09:30"\?'),
    ({"sessions": [session("mon", "24:00", "16:00")]}, r"^sessions\[0\]\.open: "),
    ({"sessions": [session("mon", "09:30", "4pm")]}, r'^sessions\[0\]\.close: .* did you mean "16:00"\?'),
    ({"sessions": [session("mon", "09:30", "09:30")]}, r"^sessions\[0\]\.close: .* the full day is 00:00 to 24:00"),
    ({"sessions": [{"daysOfWeek": ["mon"], "open": "09:30"}]}, r"^sessions\[0\]\.close: is missing"),
    ({"sessions": [{"open": "09:30", "close": "10:00"}]}, r"^sessions\[0\]\.daysOfWeek: is empty"),
    (
        {"sessions": [{"daysOfWeek": ["mon"], "hoursOfDay": ["9"], "open": "09:30", "close": "16:00"}]},
        r"^sessions\[0\]\.hoursOfDay: has both",
    ),
    (
        {"sessions": [{"daysOfWeek": ["mon"], "hoursOfDay": ["9"], "breaks": [{"start": "12:00", "end": "13:00"}]}]},
        r"^sessions\[0\]\.breaks: only a session with start and end",
    ),
    ({"sessions": [session("mon", "09:30", "16:00", ("12", "13:00"))]}, r"^sessions\[0\]\.breaks\[0\]\.start: "),
    ({"sessions": [session("mon", "09:30", "16:00", ("12:00", "25:00"))]}, r"^sessions\[0\]\.breaks\[0\]\.end: "),
    ({"sessions": "mon"}, r"^sessions: 'mon' is not a list"),
    ({"sessions": ["mon"]}, r"^sessions\[0\]: 'mon' is not an object"),
    ({"holidays": ["2026-12-24", "2026-13-40"]}, r'^holidays\[1\]: "2026-13-40" is not a date'),
    ({"holidays": ["24.12.2026"]}, r"^holidays\[0\]: "),
    ({"holidays": [20261224]}, r"^holidays\[0\]: 20261224 is not a text"),
    ({"earlyCloses": [{"date": "2026-02-30", "closeHour": 12}]}, r'^earlyCloses\[0\]\.date: .*"2026-02-28"\?'),
    ({"earlyCloses": [{"date": "2026-12-24", "closeHour": 24}]}, r"^earlyCloses\[0\]\.closeHour: 24 is not an hour"),
    ({"earlyCloses": [{"date": "2026-12-24", "closeHour": True}]}, r"^earlyCloses\[0\]\.closeHour: True is not"),
    ({"earlyCloses": [{"date": "2026-12-24", "close": "1pm"}]}, r'^earlyCloses\[0\]\.close: .* did you mean "13:00"\?'),
    ({"earlyCloses": [{"date": "2026-12-24"}]}, r"^earlyCloses\[0\]: an early close has either closeHour"),
    (
        {"earlyCloses": [{"date": "2026-12-24", "closeHour": 12, "close": "13:00"}]},
        r"^earlyCloses\[0\]: an early close has either closeHour",
    ),
    ({"earlyCloses": [{"closeHour": 12}]}, r"^earlyCloses\[0\]\.date: is missing"),
    ({"lateOpens": [{"date": "2026-12-24", "open": "24:00"}]}, r"^lateOpens\[0\]\.open: "),
    ({"lateOpens": [{"date": "2026-12-24"}]}, r"^lateOpens\[0\]\.open: is missing"),
    ({"specialSessions": [{"date": "2026-12-24", "open": "10:00"}]}, r"^specialSessions\[0\]\.close: is missing"),
    (
        {"specialSessions": [{"date": "2026", "open": "10:00", "close": "11:00"}]},
        r'^specialSessions\[0\]\.date: "2026" is not a date',
    ),
    ({"breaks": "giveback"}, r'^breaks: "giveback" is not .* did you mean "GiveBack"\?'),
    ({"breaks": ["Keep"]}, r"^breaks: .* write Keep or GiveBack$"),
]


@pytest.mark.parametrize(("spec", "message"), BAD)
def test_what_cannot_be_read_is_told_with_its_place_and_the_nearest_right_value(
    spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScheduleError, match=message):
        read_calendar(spec)


def test_an_unknown_zone_is_an_error_of_its_own() -> None:
    with pytest.raises(UnknownZone):
        read_calendar({"timezone": "Mars/Olympus"})


def test_nulls_are_absent_and_dates_of_a_yaml_reader_are_dates() -> None:
    names = ("timezone", "sessions", "holidays", "earlyCloses", "lateOpens", "specialSessions", "breaks")
    assert read_calendar(dict.fromkeys(names)) == read_calendar({})
    christmas = date(2026, 12, 24)
    read = read_calendar({"holidays": [christmas], "earlyCloses": [{"date": christmas, "closeHour": 12}]})
    assert (set(read.holidays), read.early_closes) == ({christmas}, (EarlyClose(christmas, 13 * 3600),))


def test_a_calendar_can_be_built_without_a_spec() -> None:
    day = date(2027, 1, 5)
    calendar = MarketCalendar(
        zone=load_zone("UTC"),
        sessions=(Session.parse(["mon-wed"], "09:30", "16:00", [("12:00", "13:00")]),),
        late_opens=(LateOpen(day, 36_000),),
        early_closes=(EarlyClose(day, close_after(14)),),
        special_sessions=(SpecialSession(date(2027, 1, 6), TradingHours.parse("10:00", "11:00")),),
        breaks=Breaks.GIVE_BACK,
    )
    changes = MarketTimeline(calendar).transitions(z("2027-01-05"), z("2027-01-11"))
    assert [f"{at:%dt%H}" for at, _ in changes] == ["05t10", "05t12", "05t13", "05t15", "06t10", "06t11"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: TradingHours(0, 0),
        lambda: TradingHours(86_400, 60),
        lambda: TradingHours(0, 86_401),
        lambda: TradingHours(0, 60, ((0, 61),)),
        lambda: Session(frozenset({7}), TradingHours(0, 60)),
        lambda: EarlyClose(date(2027, 1, 1), -1),
        lambda: LateOpen(date(2027, 1, 1), 86_400),
        lambda: close_after(24),
    ],
)
def test_a_value_that_makes_no_sense_cannot_be_built(make: Callable[[], object]) -> None:
    with pytest.raises(GrammarError):
        make()


def test_an_instant_without_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="offset"):
        MarketTimeline(read_calendar({})).evaluate(datetime(2027, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Kiritimati", "Etc/GMT+12"])
@pytest.mark.parametrize("spec", [{}, HOURS, DAYS, NIGHTS, {**DAYS, "holidays": ["9999-12-31", "1000-01-01"]}])
def test_the_first_and_last_instants_have_a_verdict(zone: str, spec: dict[str, Any]) -> None:
    timeline = MarketTimeline(read_calendar({**spec, "timezone": zone}))
    beginning = datetime(1, 1, 1, tzinfo=UTC)
    for at in (beginning, beginning + timedelta(days=3), END - timedelta(hours=3), END):
        until = timeline.evaluate(at).until
        assert until is None or at < until <= END


@pytest.mark.parametrize(
    ("spec", "weeks"),
    [
        ({"timezone": "Europe/Berlin", **ROUND_THE_CLOCK}, 3),
        ({"timezone": "Europe/Berlin", "sessions": [{"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}]}, 3),
        ({"timezone": "Europe/Berlin", **ROUND_THE_CLOCK, "holidays": ["8999-01-01"]}, 6),
        ({"holidays": [f"{year}-01-01" for year in range(2028, 2128)]}, 300),
    ],
)
def test_however_far_ahead_the_next_change_is_few_weeks_are_looked_at(
    spec: dict[str, Any], weeks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    look = Search.active

    def counted(self: Search, start: int, end: int) -> list[tuple[int, int]]:
        calls.append(start)
        return look(self, start, end)

    monkeypatch.setattr(Search, "active", counted)
    MarketTimeline(read_calendar(spec)).evaluate(z(MONDAY))
    assert 0 < len(calls) <= weeks


def test_the_example_in_the_package_is_true() -> None:
    assert doctest.testmod(fivespot.schedule.market).failed == 0
    assert doctest.testmod(fivespot.schedule.market).attempted > 0
