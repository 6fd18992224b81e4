"""Messages of a CapitalMarketsSchedule, and faults that users of other calendars reported."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from fivespot.api import validate
from fivespot.providers.capitalmarkets.provider import decide, prepare
from fivespot.providers.capitalmarkets.spec import CapitalMarketsScheduleSpec
from fivespot.providers.sdk import SpecError, Verdict

Json = dict[str, Any]


def z(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def verdicts(spec: Json, start: str, end: str) -> Iterator[tuple[datetime, Verdict]]:
    """The verdict at the start and at each change before the end."""
    market = prepare(validate(CapitalMarketsScheduleSpec, spec))
    at: datetime | None = z(start)
    while at is not None and at < z(end):
        verdict = decide(market, at)
        yield at, verdict
        at = verdict.until


def intervals(spec: Json, start: str, end: str) -> list[str]:
    """The active intervals that open in the period, as ``MM-DDTHH:MM/MM-DDTHH:MM``."""
    found: list[str] = []
    for at, verdict in list(verdicts(spec, start, end))[1:]:
        text = f"{at:%m-%dT%H:%M}"
        if verdict.active:
            found.append(text)
        elif found:
            found[-1] += f"/{text}"
    return found


def weekdays(opens: str, closes: str, *breaks: tuple[str, str]) -> list[Json]:
    pauses = [{"start": start, "end": end} for start, end in breaks]
    return [{"daysOfWeek": ["mon-fri"], "open": opens, "close": closes, "breaks": pauses}]


LONDON = {
    "timezone": "Europe/London",
    "sessions": weekdays("08:00", "16:30"),
    "holidays": ["2026-12-25", "2026-12-28", "2027-01-01"],
    "earlyCloses": [{"date": "2026-12-24", "close": "12:30"}],
    "lateOpens": [{"date": "2027-01-05", "open": "10:00"}],
    "specialSessions": [{"date": "2027-01-09", "open": "09:00", "close": "11:00"}],
}


class TestWords:
    def message(self, spec: Json, at: str) -> str:
        return decide(prepare(validate(CapitalMarketsScheduleSpec, spec)), z(at)).message

    @pytest.mark.parametrize(
        ("at", "message"),
        [
            ("2026-12-23T09:00", "closes Wed 2026-12-23 16:30 Europe/London = 2026-12-23T16:30:00Z"),
            ("2026-12-23T18:00", "opens Thu 2026-12-24 08:00 Europe/London = 2026-12-24T08:00:00Z"),
            ("2026-12-24T09:00", "closes Thu 2026-12-24 12:30 Europe/London (early close) = 2026-12-24T12:30:00Z"),
            (
                "2026-12-26T09:00",
                (
                    "opens Tue 2026-12-29 08:00 Europe/London (after holidays 2026-12-25, 2026-12-28) = "
                    "2026-12-29T08:00:00Z"
                ),
            ),
            (
                "2027-01-01T09:00",
                "opens Mon 2027-01-04 08:00 Europe/London (after holiday 2027-01-01) = 2027-01-04T08:00:00Z",
            ),
            ("2027-01-04T20:00", "opens Tue 2027-01-05 10:00 Europe/London (late open) = 2027-01-05T10:00:00Z"),
            ("2027-01-08T20:00", "opens Sat 2027-01-09 09:00 Europe/London (special session) = 2027-01-09T09:00:00Z"),
            ("2027-01-09T10:00", "closes Sat 2027-01-09 11:00 Europe/London (special session) = 2027-01-09T11:00:00Z"),
            ("2027-01-09T12:00", "opens Mon 2027-01-11 08:00 Europe/London = 2027-01-11T08:00:00Z"),
        ],
    )
    def test_the_next_change_and_why_it_is_not_the_usual_one(self, at: str, message: str) -> None:
        assert self.message(LONDON, at) == message

    def test_the_message_stays_the_same_until_the_next_change(self) -> None:
        """A steady schedule is not written: what is said must not depend on when it is said."""
        market = prepare(validate(CapitalMarketsScheduleSpec, LONDON))
        first = decide(market, z("2026-12-24T12:30"))
        assert first.until == z("2026-12-29T08:00")
        hours = [decide(market, z("2026-12-24T12:30") + timedelta(hours=hour)) for hour in range(115)]
        assert {verdict.message for verdict in hours} == {first.message}

    def test_many_holidays_are_counted(self) -> None:
        days = [f"2026-10-{day:02}" for day in range(1, 9)]  # China's golden week; Thursday to Thursday
        spec = {"timezone": "Asia/Shanghai", "sessions": weekdays("09:30", "15:00"), "holidays": days}
        assert "(after holidays 2026-10-06, 2026-10-07, 2026-10-08 and 3 before)" in self.message(
            spec, "2026-10-03T00:00"
        )

    def test_a_holiday_that_cuts_a_night_is_named(self) -> None:
        spec = {
            "sessions": [{"daysOfWeek": ["sun-thu"], "open": "17:00", "close": "16:00"}],
            "holidays": ["2027-01-18"],
        }
        assert "closes Mon 2027-01-18 00:00 UTC (holiday)" in self.message(spec, "2027-01-17T20:00")
        assert "opens Tue 2027-01-19 00:00 UTC (after holiday 2027-01-18)" in self.message(spec, "2027-01-18T20:00")

    def test_a_close_hour_at_the_end_of_the_day_is_of_that_day(self) -> None:
        spec = {
            "sessions": [{"daysOfWeek": ["mon"], "hoursOfDay": ["0-23"]}],
            "earlyCloses": [{"date": "2027-01-04", "closeHour": 21}],
        }
        assert "closes Mon 2027-01-04 22:00 UTC (early close)" in self.message(spec, "2027-01-04T20:00")
        assert "closes Tue 2027-01-12 00:00 UTC = " in self.message(spec, "2027-01-11T20:00")

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({}, "closed, and no session opens"),
            ({"holidays": ["2027-01-18"]}, "closed, and no session opens"),
            ({"sessions": [{"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}]}, "open, and never closes"),
        ],
    )
    def test_that_nothing_ever_changes_is_said(self, spec: Json, message: str) -> None:
        assert self.message(spec, "2027-01-04T12:00") == message

    def test_reasons_are_those_of_the_existing_5_spot(self) -> None:
        reasons = {verdict.active: verdict.reason for _, verdict in verdicts(LONDON, "2026-12-23", "2026-12-24")}
        assert reasons == {True: "SessionOpen", False: "SessionClosed"}

    def test_a_session_wholly_inside_a_jump_of_the_clock_is_told_for_a_day(self) -> None:
        spec = {
            "timezone": "Europe/Berlin",
            "sessions": [{"daysOfWeek": ["mon-sun"], "open": "02:10", "close": "02:40"}],
        }
        market = prepare(validate(CapitalMarketsScheduleSpec, spec))
        before = decide(market, z("2027-03-28T00:59"))
        assert (before.notes, before.again) == ((), z("2027-03-28T01:00")), "it will look again at the jump"
        at_the_jump = decide(market, z("2027-03-28T01:00"))
        (note,) = at_the_jump.notes
        assert at_the_jump.again is None
        assert decide(market, z("2027-03-28T12:00")).notes == (note,)
        assert (note.reason, note.once) == ("WindowSkipped", "2027-03-28 02:10")
        assert note.message == (
            "the session 02:10-02:40 of 2027-03-28 does not take place: "
            "the clock jumps over all of it at 2027-03-28T01:00:00Z"
        )
        assert decide(market, z("2027-03-29T02:00")).notes == ()

    def test_a_zone_that_does_not_exist_is_told_with_the_nearest(self) -> None:
        with pytest.raises(SpecError, match=r'^spec\.timezone: "Asia/Honk_Kong" .* did you mean "Asia/Hong_Kong"\?$'):
            prepare(validate(CapitalMarketsScheduleSpec, {"timezone": "Asia/Honk_Kong"}))


NEW_YORK = {
    "timezone": "America/New_York",
    "sessions": weekdays("09:30", "16:00"),
    "earlyCloses": [{"date": "2026-11-27", "close": "13:00"}, {"date": "2026-12-24", "close": "13:00"}],
}
HONG_KONG = {"timezone": "Asia/Hong_Kong", "sessions": weekdays("09:30", "16:00", ("12:00", "13:00"))}

REPORTS = [
    pytest.param(
        {**HONG_KONG, "holidays": ["2023-09-01"]},
        ("2023-08-31T12:00", "2023-09-04T12:00"),
        ["09-04T01:30/09-04T08:00"],
        id="exchange_calendars#600-a-storm-day-is-laid-over-the-calendar",
    ),
    pytest.param(
        {**NEW_YORK, "holidays": ["2025-01-09"]},
        ("2025-01-08T12:00", "2025-01-10T22:00"),
        ["01-08T14:30/01-08T21:00", "01-10T14:30/01-10T21:00"],
        id="exchange_calendars#464-a-day-of-mourning",
    ),
    pytest.param(
        {
            "timezone": "Asia/Tokyo",
            "breaks": "GiveBack",
            "sessions": weekdays("09:00", "15:30", ("11:30", "12:30")),
            "earlyCloses": [{"date": "2024-11-01", "close": "15:00"}],
        },
        ("2024-10-31T12:00", "2024-11-05T12:00"),
        [
            "11-01T00:00/11-01T02:30",
            "11-01T03:30/11-01T06:00",
            "11-04T00:00/11-04T02:30",
            "11-04T03:30/11-04T06:30",
            "11-05T00:00/11-05T02:30",
            "11-05T03:30/11-05T06:30",
        ],
        id="exchange_calendars#432-a-close-that-moved-on-a-date",
    ),
    pytest.param(
        NEW_YORK,
        ("2026-11-26T22:00", "2026-11-28T00:00"),
        ["11-27T14:30/11-27T18:00"],
        id="pandas_market_calendars#390-a-half-day-closes-early",
    ),
    pytest.param(
        NEW_YORK,
        ("2026-12-22T22:00", "2026-12-25T00:00"),
        ["12-23T14:30/12-23T21:00", "12-24T14:30/12-24T18:00"],
        id="pandas_market_calendars#390-an-ordinary-day-and-a-half-day",
    ),
    pytest.param(
        {
            "timezone": "Australia/Sydney",
            "sessions": weekdays("10:00", "16:00"),
            "earlyCloses": [{"date": "2026-12-24", "close": "14:10"}, {"date": "2026-12-31", "close": "14:10"}],
            "holidays": ["2026-12-25", "2026-12-28", "2027-01-01"],
        },
        ("2026-12-23T12:00", "2026-12-31T12:00"),
        [
            "12-23T23:00/12-24T03:10",
            "12-28T23:00/12-29T05:00",
            "12-29T23:00/12-30T05:00",
            "12-30T23:00/12-31T03:10",
        ],
        id="pandas_market_calendars#399-half-days-to-the-minute",
    ),
    pytest.param(
        {
            "timezone": "Asia/Shanghai",
            "breaks": "GiveBack",
            "sessions": weekdays("09:30", "15:00", ("11:30", "13:00")),
        },
        ("2026-12-30T12:00", "2026-12-31T12:00"),
        ["12-31T01:30/12-31T03:30", "12-31T05:00/12-31T07:00"],
        id="trading_calendars#150-lunch-given-back",
    ),
    pytest.param(
        {"timezone": "Asia/Shanghai", "sessions": weekdays("09:30", "15:00", ("11:30", "13:00"))},
        ("2026-12-30T12:00", "2026-12-31T12:00"),
        ["12-31T01:30/12-31T07:00"],
        id="trading_calendars#150-lunch-kept",
    ),
    pytest.param(
        {
            "timezone": "Europe/London",
            "sessions": weekdays("09:00", "17:00"),
            "holidays": ["2026-12-25", "2026-12-28"],
        },
        ("2026-12-24T00:00", "2026-12-30T00:00"),
        ["12-24T09:00/12-24T17:00", "12-29T09:00/12-29T17:00"],
        id="kube-green#343-holidays-are-a-list",
    ),
    pytest.param(
        {
            "timezone": "America/New_York",
            "sessions": [{"daysOfWeek": ["mon-sun"], "open": "00:00", "close": "24:00"}],
            "holidays": ["2026-12-24", "2026-12-25", "2026-12-26"],
        },
        ("2026-12-20T00:00", "2026-12-30T00:00"),
        ["12-27T05:00"],
        id="calendar-link#678-all-day-is-the-zones-day",
    ),
]


@pytest.mark.parametrize(("spec", "period", "expected"), REPORTS)
def test_reported_case_is_right(spec: Json, period: tuple[str, str], expected: list[str]) -> None:
    assert intervals(spec, *period) == expected


def test_a_holiday_that_cannot_be_read_leaves_others_alone() -> None:
    """kubernetes-cronhpa-controller#35: a malformed date stopped the whole program."""
    with pytest.raises(SpecError, match=r"^spec\.timezone"):
        prepare(validate(CapitalMarketsScheduleSpec, {"timezone": "Europe/Nowhere", "holidays": ["2026-12-25"]}))
    assert decide(prepare(validate(CapitalMarketsScheduleSpec, LONDON)), z("2026-12-23T09:00")).active


def test_after_the_last_date_of_the_list_weekdays_are_trading_days() -> None:
    """A declared calendar has no end that could be noticed; the guide says so."""
    christmas = intervals(LONDON, "2030-12-24T00:00", "2030-12-27T00:00")
    assert christmas == [f"12-{day}T08:00/12-{day}T16:30" for day in (24, 25, 26)]


def test_the_hong_kong_example_is_closed_on_every_holiday_of_2027_and_ends_with_the_year() -> None:
    path = Path(__file__).parents[4] / "manifests" / "examples" / "hong-kong-exchange.yaml"
    body = next(yaml.load_all(path.read_text(), yaml.BaseLoader))
    market = prepare(validate(CapitalMarketsScheduleSpec, body["spec"]))
    start, end = datetime(2027, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    opened = {(at + timedelta(hours=8)).date() for at, active in market.timeline.transitions(start, end) if active}
    weekdays = {date(2027, 1, 1) + timedelta(days=day) for day in range(365)}
    closed = sorted(day for day in weekdays - opened if day.weekday() < 5)
    assert [f"{day:%m-%d}" for day in closed] == [
        *("01-01", "02-08", "02-09", "03-26", "03-29", "04-05", "05-13"),
        *("06-09", "07-01", "09-16", "10-01", "10-08", "12-27"),
    ]
    assert max(opened) == date(2027, 12, 31)


def test_a_disabled_calendar_says_so_and_no_override_brings_it_back() -> None:
    spec = {"sessions": [{"days": ["mon-sun"], "start": "00:00", "end": "24:00"}], "enabled": False}
    verdict = decide(prepare(validate(CapitalMarketsScheduleSpec, spec)), datetime(2027, 1, 4, tzinfo=UTC))
    assert (verdict.active, verdict.final, verdict.message) == (
        False,
        True,
        "disabled by spec.enabled; no session opens",
    )


@pytest.mark.contract("C12")
def test_a_lag_time_keeps_the_remark_on_an_early_close() -> None:
    spec = {
        "sessions": [{"days": ["mon-fri"], "start": "09:30", "end": "16:00"}],
        "earlyCloses": [{"date": "2027-01-04", "close": "13:00"}],
        "lagTime": "15m",
    }
    verdict = decide(prepare(validate(CapitalMarketsScheduleSpec, spec)), datetime(2027, 1, 4, 12, tzinfo=UTC))
    assert verdict.message == "closes Mon 2027-01-04 13:15 UTC (early close) = 2027-01-04T13:15:00Z"


def test_a_lead_time_keeps_the_remark_on_a_late_open() -> None:
    spec = {
        "sessions": [{"days": ["mon-fri"], "start": "09:30", "end": "16:00"}],
        "lateOpens": [{"date": "2027-01-04", "open": "11:00"}],
        "leadTime": "15m",
    }
    verdict = decide(prepare(validate(CapitalMarketsScheduleSpec, spec)), datetime(2027, 1, 4, tzinfo=UTC))
    assert verdict.message == "opens Mon 2027-01-04 10:45 UTC (late open) = 2027-01-04T10:45:00Z"
