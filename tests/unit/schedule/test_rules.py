"""Combinations of rules, exceptions, lead time and validity, by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, ClassVar

import pytest

from fivespot.schedule import (
    Cause,
    DailyWindow,
    DateException,
    GrammarError,
    HourRule,
    SkippedWindow,
    SpanWindow,
    Timeline,
    WeeklySchedule,
    evaluate,
    load_zone,
    read_schedule,
    skipped,
    transitions,
)
from fivespot.schedule.search import Search

BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
END = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
MONDAY = "2027-01-04"  # a Monday; the week runs to Sunday the 10th


def z(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def open_times(spec: dict[str, Any], start: str = MONDAY, days: int = 7) -> list[str]:
    """The active intervals of a period as ``DDtHH:MM-DDtHH:MM``; those already or still open have no edge there."""
    schedule = read_schedule(spec)
    begin, end = z(start), z(start) + timedelta(days=days)
    found = ["-"] if evaluate(schedule, begin).active else []
    for at, active in transitions(schedule, begin, end):
        text = f"{at:%dt%H:%M}"
        if active:
            found.append(f"{text}-")
        else:
            found[-1] += text
    return found


def window(days: str, start: str, end: str) -> dict[str, Any]:
    return {"days": [days], "start": start, "end": end}


WEEKDAYS = {"windows": [window("mon-fri", "09:00", "17:00")]}
SPAN = {"windows": [{"from": "mon 06:00", "until": "fri 21:00"}]}
NIGHTS = {"windows": [window("mon-sun", "22:00", "06:00")]}
HOURS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["22-6"]}


def test_a_week_of_weekday_windows() -> None:
    assert open_times(WEEKDAYS) == [f"0{day}t09:00-0{day}t17:00" for day in (4, 5, 6, 7, 8)]


@pytest.mark.parametrize("spec", [{}, {"daysOfWeek": ["mon"]}, {"hoursOfDay": ["1"]}, {"windows": [], "enabled": True}])
def test_empty_days_or_hours_are_inactive_for_ever(spec: dict[str, Any]) -> None:
    result = evaluate(read_schedule(spec), z(MONDAY))
    assert (result.active, result.until, result.cause) == (False, None, Cause.CLOSED)


def test_the_last_hour_is_open_to_its_end() -> None:
    schedule = read_schedule({"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]})
    assert evaluate(schedule, z("2027-01-04T17:59:59.999999")).active
    assert not evaluate(schedule, z("2027-01-04T18:00")).active


def test_a_change_is_the_first_instant_of_the_new_state() -> None:
    schedule = read_schedule(WEEKDAYS)
    before = evaluate(schedule, z("2027-01-04T08:59:59.999999"))
    assert (before.active, before.until) == (False, z("2027-01-04T09:00"))
    assert evaluate(schedule, z("2027-01-04T09:00")).active


def test_both_grammars_are_joined_without_a_seam() -> None:
    spec = {"daysOfWeek": ["mon"], "hoursOfDay": ["9-11"], "windows": [window("mon", "12:00", "13:30")]}
    assert open_times(spec) == ["04t09:00-04t13:30"]


def test_a_span_of_the_same_moment_is_refused_with_the_way_to_say_a_whole_week() -> None:
    with pytest.raises(GrammarError, match=r'until: .* the whole week is \{from: "mon 00:00", until: "sun 24:00"\}'):
        read_schedule({"windows": [{"from": "mon 06:00", "until": "mon  06:00"}]})
    schedule = read_schedule({"windows": [{"from": "mon 00:00", "until": "sun 24:00"}]})
    assert evaluate(schedule, z(MONDAY)).active
    assert evaluate(schedule, z(MONDAY)).until is None


def test_a_span_runs_over_the_end_of_the_week() -> None:
    assert open_times({"windows": [{"from": "sat 12:00", "until": "tue 24:00"}]}) == ["-06t00:00", "09t12:00-"]


class TestExceptions:
    def test_nothing_starts_on_the_date(self) -> None:
        assert open_times({**WEEKDAYS, "exceptions": [{"date": "2027-01-06"}]}) == [
            f"0{day}t09:00-0{day}t17:00" for day in (4, 5, 7, 8)
        ]

    def test_its_windows_replace_what_starts_on_the_date(self) -> None:
        exception = {"date": "2027-01-06", "windows": [{"start": "10:00", "end": "12:00"}]}
        assert "06t10:00-06t12:00" in open_times({**WEEKDAYS, "exceptions": [exception]})
        assert "06t09:00-06t17:00" not in open_times({**WEEKDAYS, "exceptions": [exception]})

    def test_its_windows_count_on_a_day_without_rule_and_may_run_into_the_next(self) -> None:
        exception = {"date": "2027-01-10", "windows": [{"start": "23:00", "end": "01:00"}]}
        assert open_times({**WEEKDAYS, "exceptions": [exception]}, "2027-01-09") == [
            "10t23:00-11t01:00",
            *(f"{day}t09:00-{day}t17:00" for day in (11, 12, 13, 14, 15)),
        ]

    def test_a_night_begun_the_day_before_ends_as_written(self) -> None:
        assert open_times({**NIGHTS, "exceptions": [{"date": "2027-01-05"}]}, days=3) == [
            "-04t06:00",
            "04t22:00-05t06:00",
            "06t22:00-",
        ]

    def test_a_span_is_cut_at_the_midnights_of_the_date(self) -> None:
        assert open_times({**SPAN, "exceptions": [{"date": "2027-01-06"}]}) == [
            "04t06:00-06t00:00",
            "07t00:00-08t21:00",
        ]

    def test_a_span_is_cut_on_the_days_it_starts_and_ends_too(self) -> None:
        exceptions = [{"date": "2027-01-04"}, {"date": "2027-01-08"}]
        assert open_times({**SPAN, "exceptions": exceptions}) == ["05t00:00-08t00:00"]

    def test_an_exceptions_window_is_not_cut_by_the_next_exception(self) -> None:
        exceptions = [
            {"date": "2027-01-05", "windows": [{"start": "20:00", "end": "04:00"}]},
            {"date": "2027-01-06"},
        ]
        assert open_times({**SPAN, "exceptions": exceptions}) == [
            "04t06:00-05t00:00",
            "05t20:00-06t04:00",
            "07t00:00-08t21:00",
        ]

    def test_the_hour_grammar_loses_the_whole_local_date(self) -> None:
        assert open_times({**HOURS, "exceptions": [{"date": "2027-01-05"}]}, days=3) == [
            "-04t07:00",
            "04t22:00-05t00:00",
            "06t00:00-06t07:00",
            "06t22:00-",
        ]

    def test_the_date_is_the_zones(self) -> None:
        spec = {"timezone": "Pacific/Auckland", **WEEKDAYS, "exceptions": [{"date": "2027-01-05"}]}
        assert open_times(spec, days=3) == ["-04t04:00", "05t20:00-06t04:00", "06t20:00-"]

    @pytest.mark.parametrize("day", ["2027-06-01", "3456-07-08", "9000-01-01", "9999-12-30"])
    def test_one_far_ahead_is_found(self, day: str) -> None:
        schedule = read_schedule({"exceptions": [{"date": day, "windows": [{"start": "08:00", "end": "09:00"}]}]})
        result = evaluate(schedule, z(MONDAY))
        assert result.until == z(f"{day}T08:00")
        assert evaluate(schedule, z(f"{day}T08:30")).until == z(f"{day}T09:00")
        assert evaluate(schedule, z(f"{day}T09:00")).until is None

    @pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
    def test_one_far_ahead_ends_what_is_always_open(self, zone: str) -> None:
        always = {"timezone": zone, "windows": [window("mon-sun", "00:00", "24:00")]}
        schedule = read_schedule({**always, "exceptions": [{"date": "7777-07-07"}]})
        until = evaluate(schedule, z(MONDAY)).until
        assert until == z("7777-07-07") - timedelta(hours=0 if zone == "UTC" else 2)
        assert evaluate(schedule, until).until == until + timedelta(days=1)
        assert evaluate(schedule, until + timedelta(days=1)).until is None

    def test_the_same_date_twice_is_refused(self) -> None:
        with pytest.raises(GrammarError, match=r"exceptions\[1\]\.date: \"2027-01-04\" occurs twice"):
            read_schedule({"exceptions": [{"date": MONDAY}, {"date": MONDAY}]})


class TestLeadTime:
    def test_each_opening_moves_and_no_closing(self) -> None:
        assert open_times({**WEEKDAYS, "leadTime": "30m"}, days=1) == ["04t08:30-04t17:00"]

    def test_it_is_elapsed_time_across_a_jump(self) -> None:
        spec = {"timezone": "Europe/Berlin", "windows": [window("sun", "04:00", "05:00")], "leadTime": "2h"}
        assert open_times(spec, "2027-03-27", 2) == ["28t00:00-28t03:00"]

    def test_windows_it_makes_touch_are_one(self) -> None:
        spec = {"windows": [window("mon", "08:00", "10:00"), window("mon", "11:00", "12:00")], "leadTime": "1h"}
        assert open_times(spec) == ["04t07:00-04t12:00"]

    def test_it_comes_after_the_merge_so_seams_do_not_move(self) -> None:
        spec = {"windows": [window("mon", "08:00", "10:00"), window("mon", "10:00", "12:00")], "leadTime": "15m"}
        assert open_times(spec) == ["04t07:45-04t12:00"]

    def test_it_does_not_open_before_validity(self) -> None:
        spec = {**WEEKDAYS, "leadTime": "30m", "validFrom": "2027-01-04T08:45:00Z"}
        assert open_times(spec, days=1) == ["04t08:45-04t17:00"]

    def test_it_moves_an_exceptions_window_into_the_day_before(self) -> None:
        exception = {"date": "2027-01-06", "windows": [{"start": "00:15", "end": "01:00"}]}
        assert open_times({"exceptions": [exception], "leadTime": "1h"}) == ["05t23:15-06t01:00"]

    def test_a_gap_that_is_longer_once_a_year_is_found(self) -> None:
        """Twelve hours open, twelve hours of lead: always open, but for the night that has thirteen hours."""
        spec = {"timezone": "Europe/Berlin", "windows": [window("mon-sun", "08:00", "20:00")], "leadTime": "12h"}
        schedule = read_schedule(spec)
        assert list(transitions(schedule, z("2027-01-01"), z("2029-12-31"))) == [
            (z("2027-10-30T18:00"), False),
            (z("2027-10-30T19:00"), True),
            (z("2028-10-28T18:00"), False),
            (z("2028-10-28T19:00"), True),
            (z("2029-10-27T18:00"), False),
            (z("2029-10-27T19:00"), True),
        ]
        assert evaluate(read_schedule({**spec, "leadTime": "13h"}), z("2027-01-01")).until is None

    @pytest.mark.parametrize("name", ["leadTime", "lagTime"])
    def test_more_than_a_week_is_refused(self, name: str) -> None:
        with pytest.raises(GrammarError, match=rf'{name}: "169h" is too long: .* did you mean "168h"\?'):
            read_schedule({name: "169h"})


@pytest.mark.contract("C12")
class TestLagTime:
    def test_each_closing_moves_and_no_opening(self) -> None:
        assert open_times({**WEEKDAYS, "lagTime": "30m"}, days=1) == ["04t09:00-04t17:30"]

    def test_it_is_elapsed_time_across_a_jump(self) -> None:
        spec = {"timezone": "Europe/Berlin", "windows": [window("sun", "01:00", "01:30")], "lagTime": "2h"}
        assert open_times(spec, "2027-03-27", 2) == ["28t00:00-28t02:30"]

    def test_windows_it_makes_touch_are_one(self) -> None:
        spec = {"windows": [window("mon", "08:00", "10:00"), window("mon", "11:00", "12:00")], "lagTime": "1h"}
        assert open_times(spec) == ["04t08:00-04t13:00"]

    def test_both_together_close_a_gap_as_long_as_their_sum(self) -> None:
        spec = {"windows": [window("mon", "08:00", "10:00"), window("mon", "11:00", "12:00")]}
        assert open_times({**spec, "leadTime": "40m", "lagTime": "20m"}) == ["04t07:20-04t12:20"]
        assert open_times({**spec, "leadTime": "40m", "lagTime": "19m"}) == ["04t07:20-04t10:19", "04t10:20-04t12:19"]

    def test_seams_do_not_move(self) -> None:
        spec = {"windows": [window("mon", "08:00", "10:00"), window("mon", "10:00", "12:00")], "lagTime": "15m"}
        assert open_times(spec) == ["04t08:00-04t12:15"]

    def test_hours_move_as_windows_do(self) -> None:
        spec = {"daysOfWeek": ["mon"], "hoursOfDay": ["9"], "leadTime": "15m", "lagTime": "30m"}
        assert open_times(spec) == ["04t08:45-04t10:30"]

    def test_validity_clips_it(self) -> None:
        spec = {**WEEKDAYS, "lagTime": "30m", "validUntil": "2027-01-04T17:10:00Z"}
        assert open_times(spec, days=1) == ["04t09:00-04t17:10"]

    def test_a_window_before_validity_that_lag_carries_into_it_is_clipped_too(self) -> None:
        spec = {**WEEKDAYS, "lagTime": "30m", "validFrom": "2027-01-04T17:10:00Z"}
        assert open_times(spec, days=1) == ["04t17:10-04t17:30"]

    def test_it_carries_an_exceptions_window_into_the_next_day(self) -> None:
        exception = {"date": "2027-01-06", "windows": [{"start": "23:00", "end": "23:45"}]}
        assert open_times({"exceptions": [exception], "lagTime": "1h"}) == ["06t23:00-07t00:45"]

    def test_a_skipped_window_gets_none(self) -> None:
        spec = {"timezone": "Europe/Berlin", "windows": [window("sun", "02:10", "02:40")], "lagTime": "1h"}
        assert open_times(spec, "2027-03-28", 1) == []

    def test_it_ends_with_the_calendar(self) -> None:
        spec = {"exceptions": [{"date": "9999-12-31", "windows": [{"start": "23:00", "end": "24:00"}]}]}
        timeline = Timeline(read_schedule({**spec, "lagTime": "1h"}))
        assert timeline.evaluate(z("9999-12-31T22:00")).until == z("9999-12-31T23:00")
        assert timeline.evaluate(z("9999-12-31T23:30")).until is None


class TestValidity:
    ALWAYS: ClassVar[dict[str, Any]] = {"windows": [window("mon-sun", "00:00", "24:00")]}

    def test_it_clips_from_inclusive_to_exclusive(self) -> None:
        spec = {**self.ALWAYS, "validFrom": "2027-01-05T12:30:15.25Z", "validUntil": "2027-01-06T00:00:00+01:00"}
        schedule = read_schedule(spec)
        opens = z("2027-01-05T12:30:15.250")
        before, within = evaluate(schedule, z(MONDAY)), evaluate(schedule, opens)
        after = evaluate(schedule, z("2027-01-05T23:00"))
        assert (before.active, before.until, before.cause) == (False, opens, Cause.NOT_YET_VALID)
        assert (within.active, within.until, within.cause) == (True, z("2027-01-05T23:00"), Cause.OPEN)
        assert (after.active, after.until, after.cause) == (False, None, Cause.NO_LONGER_VALID)

    def test_outside_of_windows_the_next_change_is_the_next_opening(self) -> None:
        schedule = read_schedule({**WEEKDAYS, "validFrom": "2027-01-04T18:00:00Z"})
        assert evaluate(schedule, z(MONDAY)).until == z("2027-01-05T09:00")

    def test_an_opening_at_or_after_its_end_is_none(self) -> None:
        schedule = read_schedule({**WEEKDAYS, "validUntil": "2027-01-05T09:00:00Z"})
        assert evaluate(schedule, z("2027-01-04T17:00")).until is None
        assert evaluate(schedule, z("2027-01-04T16:00")).until == z("2027-01-04T17:00")

    def test_an_end_far_ahead_is_found(self) -> None:
        schedule = read_schedule({**self.ALWAYS, "validUntil": "8888-08-08T08:08:08Z"})
        assert evaluate(schedule, z(MONDAY)).until == z("8888-08-08T08:08:08")

    def test_a_beginning_far_ahead_is_found(self) -> None:
        schedule = read_schedule({**WEEKDAYS, "validFrom": "8888-08-07T00:00:00Z"})
        assert evaluate(schedule, z(MONDAY)).until == z("8888-08-09T09:00")

    def test_an_end_before_the_beginning_is_never(self) -> None:
        spec = {**self.ALWAYS, "validFrom": "2028-01-01T00:00:00Z", "validUntil": "2027-01-01T00:00:00Z"}
        assert open_times(spec, "2026-12-31", 1000) == []

    def test_an_instant_that_utc_cannot_hold_is_refused(self) -> None:
        west = END.replace(tzinfo=timezone(timedelta(hours=-12)))
        with pytest.raises(GrammarError, match="validUntil: an instant needs an offset, and a year 1 to 9999 in UTC"):
            WeeklySchedule(zone=load_zone("UTC"), valid_until=west)


def test_disabled_is_inactive_whatever_else_is_said() -> None:
    result = evaluate(read_schedule({**WEEKDAYS, "enabled": False}), z("2027-01-04T12:00"))
    assert (result.active, result.until, result.cause) == (False, None, Cause.DISABLED)


class TestSkipped:
    BERLIN: ClassVar[dict[str, Any]] = {
        "timezone": "Europe/Berlin",
        "windows": [window("sun", "02:15", "02:45"), window("sun", "01:00", "02:30")],
    }
    JUMP = z("2027-03-28T01:00")
    THE_WINDOW = SkippedWindow(date(2027, 3, 28), "02:15", "02:45", JUMP)

    def test_only_the_window_wholly_inside_is_reported(self) -> None:
        assert skipped(read_schedule(self.BERLIN), z("2027-01-01"), z("2027-12-31")) == [self.THE_WINDOW]

    def test_the_period_is_half_open(self) -> None:
        schedule = read_schedule(self.BERLIN)
        tick = timedelta(microseconds=1)
        assert skipped(schedule, self.JUMP, self.JUMP + tick) == [self.THE_WINDOW]
        assert skipped(schedule, self.JUMP + tick, self.JUMP + timedelta(days=1)) == []
        assert skipped(schedule, self.JUMP - timedelta(days=1), self.JUMP) == []

    def test_a_window_that_would_not_have_been_is_not_reported(self) -> None:
        year = z("2027-01-01"), z("2027-12-31")
        for change in (
            {"enabled": False},
            {"exceptions": [{"date": "2027-03-28"}]},
            {"validFrom": "2027-04-01T00:00:00Z"},
            {"validUntil": "2027-03-28T01:00:00Z"},
        ):
            assert skipped(read_schedule({**self.BERLIN, **change}), *year) == []

    def test_an_exceptions_window_and_a_span_are_reported(self) -> None:
        spec = {
            "timezone": "Europe/Berlin",
            "windows": [{"from": "sun 02:00", "until": "sun 03:00"}],
            "exceptions": [{"date": "2028-03-26", "windows": [{"start": "02:20", "end": "02:30"}]}],
        }
        found = skipped(read_schedule(spec), z("2027-01-01"), z("2028-12-31"))
        assert [(entry.date.year, entry.start, entry.end) for entry in found] == [
            (2027, "02:00", "03:00"),
            (2028, "02:20", "02:30"),
        ]

    def test_a_date_that_a_country_left_out_is_one_skip(self) -> None:
        spec = {
            "timezone": "Pacific/Apia",
            "windows": [window("mon-sun", "00:00", "24:00"), window("fri", "09:00", "17:00")],
        }
        found = skipped(read_schedule(spec), z("2011-12-01"), z("2012-01-31"))
        assert [(str(entry.date), entry.start, entry.end) for entry in found] == [
            ("2011-12-30", "00:00", "24:00"),
            ("2011-12-30", "09:00", "17:00"),
        ]


class TestValues:
    UTC_ZONE = load_zone("UTC")

    def test_rules_can_be_built_without_a_spec(self) -> None:
        schedule = WeeklySchedule(
            zone=self.UTC_ZONE,
            hours=HourRule.parse(["mon"], ["9"]),
            windows=(DailyWindow.parse(["tue"], "22:00", "06:00"), SpanWindow.parse("thu 08:00", "fri 24:00")),
            exceptions=(DateException.parse("2027-01-10", [("10:00", "11:00")]),),
        )
        changes = [f"{at:%dt%H}" for at, _ in transitions(schedule, z(MONDAY), z("2027-01-11"))]
        assert changes == ["04t09", "04t10", "05t22", "06t06", "07t08", "09t00", "10t10", "10t11"]

    @pytest.mark.parametrize(
        "make",
        [
            lambda: HourRule(frozenset({7}), frozenset()),
            lambda: HourRule(frozenset(), frozenset({24})),
            lambda: DailyWindow(frozenset({0}), 0, 0),
            lambda: DailyWindow(frozenset({0}), 86_400, 0),
            lambda: DailyWindow(frozenset({-1}), 0, 60),
            lambda: SpanWindow(0, 0, 0, 86_401),
            lambda: DateException(date(2027, 1, 1), ((60, 60),)),
            lambda: WeeklySchedule(zone=load_zone("UTC"), valid_from=datetime(2027, 1, 1)),  # noqa: DTZ001
            lambda: WeeklySchedule(zone=load_zone("UTC"), lead_time=timedelta(seconds=-1)),
            lambda: WeeklySchedule(zone=load_zone("UTC"), lead_time=timedelta(days=8)),
        ],
    )
    def test_one_that_makes_no_sense_cannot_be_built(self, make: Any) -> None:
        with pytest.raises(GrammarError):
            make()

    def test_an_instant_without_offset_is_refused(self) -> None:
        with pytest.raises(ValueError, match="offset"):
            evaluate(read_schedule({}), datetime(2027, 1, 1))  # noqa: DTZ001

    def test_an_instant_may_be_written_with_any_offset(self) -> None:
        schedule = read_schedule(WEEKDAYS)
        assert evaluate(schedule, datetime.fromisoformat("2027-01-04T10:30:00+01:30")).active
        assert not evaluate(schedule, datetime.fromisoformat("2027-01-04T10:29:59+01:30")).active


class TestEndsOfTime:
    @pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kathmandu"])
    @pytest.mark.parametrize("spec", [{}, WEEKDAYS, NIGHTS, SPAN, HOURS, {**NIGHTS, "leadTime": "168h"}])
    def test_the_first_and_last_instants_have_a_verdict(self, zone: str, spec: dict[str, Any]) -> None:
        schedule = read_schedule({**spec, "timezone": zone})
        for at in (BEGINNING, BEGINNING + timedelta(days=3), END - timedelta(hours=3), END):
            until = evaluate(schedule, at).until
            assert until is None or at < until <= END
            assert list(transitions(schedule, at, min(at, END - timedelta(days=9)) + timedelta(days=9)))[:1] in (
                [],
                [(until, not evaluate(schedule, at).active)],
            )

    def test_a_change_after_the_last_instant_is_none(self) -> None:
        schedule = read_schedule(NIGHTS)  # closes on 1 January 10000
        assert evaluate(schedule, END).active
        assert evaluate(schedule, END).until is None


class TestBoundedWork:
    """However far ahead the next change is, few weeks are looked at."""

    @pytest.mark.parametrize(
        ("spec", "weeks"),
        [
            ({"timezone": "Europe/Berlin", **TestValidity.ALWAYS}, 3),
            ({"timezone": "Europe/Berlin", "daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}, 3),
            ({"timezone": "Europe/Berlin", **TestValidity.ALWAYS, "exceptions": [{"date": "9000-01-01"}]}, 6),
            ({"timezone": "Europe/Berlin", **NIGHTS, "leadTime": "100h"}, 12),
            ({"timezone": "Asia/Kathmandu", **NIGHTS, "leadTime": "100h"}, 12),
            ({"exceptions": [{"date": f"{year}-01-01"} for year in range(2028, 2128)]}, 300),
        ],
    )
    def test_few_weeks_are_looked_at(self, spec: dict[str, Any], weeks: int, monkeypatch: pytest.MonkeyPatch) -> None:
        calls = []
        look = Search.active

        def counted(self: Search, start: int, end: int) -> list[tuple[int, int]]:
            calls.append(start)
            return look(self, start, end)

        monkeypatch.setattr(Search, "active", counted)
        Timeline(read_schedule(spec)).evaluate(z(MONDAY))
        assert 0 < len(calls) <= weeks

    def test_what_was_found_is_remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        timeline = Timeline(read_schedule(WEEKDAYS))
        first = timeline.evaluate(z("2027-01-04T10:00"))
        monkeypatch.setattr(Search, "active", None)
        assert timeline.evaluate(z("2027-01-04T16:59")) == first
