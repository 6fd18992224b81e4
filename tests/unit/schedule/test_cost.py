"""The largest calendars that the definitions admit cost a bounded amount of work, which is counted and not timed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pytest

from fivespot.schedule import Timeline, read_schedule
from fivespot.schedule.market import MarketTimeline, read_calendar

Json = dict[str, Any]

LIMIT: Final = 160_000
"""Intervals examined for one verdict: about a tenth of a second."""
EVERY_DAY: Final = ["mon-sun"]
EVEN_HOURS: Final = {"daysOfWeek": EVERY_DAY, "hoursOfDay": [",".join(str(hour) for hour in range(0, 24, 2))]}
ODD_HOURS: Final = [{"days": EVERY_DAY, "start": f"{h:02}:00", "end": f"{h + 1:02}:00"} for h in range(1, 24, 2)]
MINUTES: Final = [{"days": EVERY_DAY, "start": f"{h:02}:10", "end": f"{h:02}:20"} for h in range(20)]
WHOLE_DAY: Final = [
    {"start": "00:00", "end": "08:00"},
    {"start": "07:00", "end": "15:00"},
    {"start": "14:00", "end": "20:00"},
    {"start": "19:00", "end": "24:00"},
]
START: Final = datetime(2026, 12, 1, tzinfo=UTC)


def dates(every: float, first: date = date(2027, 3, 26), count: int = 366) -> list[str]:
    return [(first + timedelta(days=int(every * number))).isoformat() for number in range(count)]


def exceptions(every: float, windows: Sequence[Json] = WHOLE_DAY) -> list[Json]:
    return [{"date": day, "windows": list(windows)} for day in dates(every)]


ALWAYS: Final[Json] = {**EVEN_HOURS, "windows": ODD_HOURS + MINUTES}
HALF_YEAR: Final = 182.62
"""So that each exception is next to a change of the clock."""
NIGHTS: Final = {"daysOfWeek": EVERY_DAY, "open": "08:00", "close": "07:59"}
DAYS: Final = {"daysOfWeek": EVERY_DAY, "open": "07:00", "close": "15:00"}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"timezone": "Europe/Berlin", **ALWAYS, "exceptions": exceptions(1)}, id="every-day"),
        pytest.param({"timezone": "Europe/Berlin", **ALWAYS, "exceptions": exceptions(9)}, id="for-nine-years"),
        pytest.param({"timezone": "Europe/Berlin", **ALWAYS, "exceptions": exceptions(HALF_YEAR)}, id="near-changes"),
        pytest.param(
            {"timezone": "Europe/Berlin", **ALWAYS, "leadTime": "168h", "exceptions": exceptions(HALF_YEAR)},
            id="near-changes-with-lead-time",
        ),
        pytest.param(
            {
                "timezone": "Europe/Berlin",
                "windows": [{"days": ["mon"], "start": "10:00", "end": "10:01"}, *MINUTES],
                "leadTime": "168h",
                "lagTime": "168h",
                "exceptions": exceptions(20),
            },
            id="gaps-that-lead-and-lag-time-close",
        ),
        pytest.param({"timezone": "Africa/Casablanca", **ALWAYS, "exceptions": exceptions(60)}, id="ramadan"),
        pytest.param({"timezone": "Europe/Berlin", "exceptions": exceptions(HALF_YEAR, [])}, id="never"),
        pytest.param(
            {
                "timezone": "Europe/Berlin",
                "windows": [{"days": ["mon"], "start": "10:00", "end": "10:01"}, *MINUTES],
                "leadTime": "168h",
                "exceptions": exceptions(9),
            },
            id="gaps-that-lead-time-closes",
        ),
    ],
)
def test_the_largest_schedules_cost_a_bounded_amount_of_work(spec: Json) -> None:
    timeline = Timeline(read_schedule(spec))
    assert timeline.evaluate(START).until is None
    assert timeline._search.work < LIMIT


def test_the_largest_market_costs_a_bounded_amount_of_work() -> None:
    days, pauses = dates(9), [{"start": f"{10 + hour}:00", "end": f"{10 + hour}:30"} for hour in range(4)]
    timeline = MarketTimeline(
        read_calendar(
            {
                "timezone": "Europe/Berlin",
                "breaks": "GiveBack",
                "sessions": [{**NIGHTS, "breaks": pauses}, *[DAYS] * 31],
                "holidays": days,
                "specialSessions": [
                    *({"date": day, "open": "00:00", "close": "24:00", "breaks": pauses} for day in days[::2]),
                    *({"date": day, "open": "00:01", "close": "24:00"} for day in days[::2]),
                ],
                "earlyCloses": [{"date": day, "close": "23:00"} for day in days],
                "lateOpens": [{"date": day, "open": "01:00"} for day in days],
            }
        )
    )
    timeline.evaluate(START)
    assert timeline._search.work < LIMIT


def test_asking_about_many_instants_costs_no_more_than_asking_about_one() -> None:
    spec = {"timezone": "Europe/Berlin", **ALWAYS, "exceptions": exceptions(9)}
    once, often = Timeline(read_schedule(spec)), Timeline(read_schedule(spec))
    once.evaluate(START)
    instants = [START + timedelta(days=number * 37) for number in range(64)]
    random.Random(7).shuffle(instants)
    for instant in instants:
        assert often.evaluate(instant).until is None
    assert often._search.work < 3 * once._search.work


@pytest.mark.parametrize(("lead", "lag"), [("0s", "0s"), ("100h", "0s"), ("3h", "90m")])
def test_periods_that_were_found_before_change_no_answer(lead: str, lag: str) -> None:
    spec = {
        "timezone": "Europe/Berlin",
        "leadTime": lead,
        "lagTime": lag,
        "windows": [
            {"days": ["mon-fri"], "start": "22:00", "end": "06:00"},
            {"from": "sat 00:00", "until": "sun 12:00"},
        ],
        "exceptions": exceptions(11, [{"start": "01:00", "end": "04:00"}]),
    }
    kept, rng = Timeline(read_schedule(spec)), random.Random(3)
    for _ in range(400):
        at = START + timedelta(seconds=rng.randrange(0, 4 * 365 * 86_400))
        assert kept.evaluate(at) == Timeline(read_schedule(spec)).evaluate(at)
