"""Advice on specs: parts without effect, and gaps of a minute."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.api import validate
from fivespot.providers.registry import shipped_provider
from fivespot.providers.sdk import Verdict
from fivespot.providers.sdk.decider import Decider, PreparedSpec
from fivespot.providers.sdk.status import decided_status

Json = dict[str, Any]
NOW = datetime(2027, 1, 4, tzinfo=UTC)
DAY: Json = {"days": ["mon-fri"], "start": "09:30", "end": "16:00"}
SATURDAY, MONDAY = "2027-01-02", "2027-01-04"


def prepared(kind: str, spec: Json) -> PreparedSpec:
    provider = shipped_provider(kind)
    validate(provider.model, spec)
    found = Decider(provider).prepare("u", 1, spec)
    assert found.failure is None
    return found


def week(*windows: Json, **rest: Any) -> Json:
    return {"windows": list(windows), **rest}


TIME_BASED: dict[str, tuple[Json, str]] = {
    "a minute between two windows": (
        week({**DAY, "end": "11:24"}, {**DAY, "start": "11:25", "end": "12:00"}),
        'it closes for one minute at mon 11:24, and 4 times more a week: an end is exclusive, so write "11:25" for it',
    ),
    "a minute before midnight": (week({"days": ["mon-sun"], "start": "00:00", "end": "23:59"}), 'so write "24:00"'),
    "a minute over the end of the week": (week({"from": "mon 00:00", "until": "sun 23:59"}), "minute at sun 23:59"),
    "an exception on a day without windows": (
        week(DAY, exceptions=[{"date": SATURDAY}]),
        'exceptions[0] ("2027-01-02") has no effect: it is a sat, on which nothing starts, and it has no windows',
    ),
    "an exception before validity": (
        week(DAY, exceptions=[{"date": MONDAY}], validFrom="2027-06-01T00:00:00Z"),
        'exceptions[0] ("2027-01-04") has no effect: the schedule is not valid on that date',
    ),
    "an exception after validity": (
        week(DAY, exceptions=[{"date": MONDAY}], validUntil="2026-12-01T00:00:00Z"),
        "has no effect: the schedule is not valid on that date",
    ),
    "days without hours": ({"daysOfWeek": ["mon"]}, "daysOfWeek has no effect without hoursOfDay"),
    "hours without days": ({"hoursOfDay": ["9"]}, "hoursOfDay has no effect without daysOfWeek"),
    "a lead time before nothing": ({"leadTime": "15m"}, "leadTime has no effect: nothing opens"),
    "a lag time after nothing": ({"lagTime": "15m"}, "lagTime has no effect: nothing opens"),
}

MARKET: dict[str, tuple[Json, str]] = {
    "early close on a holiday": (
        {"sessions": [DAY], "holidays": [MONDAY], "earlyCloses": [{"date": MONDAY, "close": "13:00"}]},
        'earlyCloses[0] ("2027-01-04") has no effect: the date is a holiday',
    ),
    "early close after the close": (
        {"sessions": [DAY], "earlyCloses": [{"date": MONDAY, "close": "16:00"}]},
        "has no effect: nothing is open after 16:00 on that day of the week",
    ),
    "early close before the open": (
        {"sessions": [DAY], "earlyCloses": [{"date": MONDAY, "close": "09:00"}]},
        'earlyCloses[0] ("2027-01-04") closes the whole day, before the open at 09:30: write a holiday if that is',
    ),
    "early close on a Saturday": (
        {"sessions": [DAY], "earlyCloses": [{"date": SATURDAY, "close": "13:00"}]},
        "has no effect: it is a sat, on which nothing is open",
    ),
    "early close on a date with special sessions": (
        {
            "sessions": [DAY],
            "earlyCloses": [{"date": MONDAY, "close": "13:00"}],
            "specialSessions": [{"date": MONDAY, "start": "10:00", "end": "14:00"}],
        },
        "has no effect: the date has special sessions, which nothing changes",
    ),
    "two early closes": (
        {"sessions": [DAY], "earlyCloses": [{"date": MONDAY, "close": "13:00"}, {"date": MONDAY, "closeHour": 11}]},
        'earlyCloses[1] ("2027-01-04") has no effect: the date is there twice, and the first entry counts',
    ),
    "late open before the open": (
        {"sessions": [DAY], "lateOpens": [{"date": MONDAY, "open": "09:00"}]},
        'lateOpens[0] ("2027-01-04") has no effect: nothing opens before 09:30 on that day of the week',
    ),
    "holiday on a Saturday": (
        {"sessions": [DAY], "holidays": [SATURDAY]},
        'holidays[0] ("2027-01-02") has no effect: it is a sat, on which nothing is open',
    ),
    "holiday twice": (
        {"sessions": [DAY], "holidays": [MONDAY, MONDAY]},
        'holidays[1] ("2027-01-04") has no effect: the date is there twice',
    ),
    "days without hours": ({"sessions": [{"days": ["mon"]}]}, "sessions[0].days has no effect without hoursOfDay"),
    "a minute between two sessions": (
        {"sessions": [{**DAY, "end": "11:59"}, {**DAY, "start": "12:00"}]},
        "it closes for one minute at mon 11:59",
    ),
}


@pytest.mark.parametrize(("spec", "advice"), TIME_BASED.values(), ids=TIME_BASED)
def test_a_weekly_schedule_with_a_probable_mistake_gets_one_piece_of_advice(spec: Json, advice: str) -> None:
    (found,) = prepared("TimeBasedSpotSchedule", spec).advice
    assert advice in found


@pytest.mark.parametrize(("spec", "advice"), MARKET.values(), ids=MARKET)
def test_a_calendar_with_a_probable_mistake_gets_one_piece_of_advice(spec: Json, advice: str) -> None:
    (found,) = prepared("CapitalMarketsSchedule", spec).advice
    assert advice in found


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("TimeBasedSpotSchedule", {}),
        ("TimeBasedSpotSchedule", week(DAY, {**DAY, "start": "16:00", "end": "18:00"})),
        ("TimeBasedSpotSchedule", week(DAY, {**DAY, "start": "16:02", "end": "18:00"})),
        ("TimeBasedSpotSchedule", week(DAY, exceptions=[{"date": MONDAY}], validFrom="2027-01-04T12:00:00Z")),
        ("TimeBasedSpotSchedule", week({"from": "fri 12:00", "until": "mon 06:00"}, exceptions=[{"date": SATURDAY}])),
        (
            "TimeBasedSpotSchedule",
            {"exceptions": [{"date": SATURDAY, "windows": [{"start": "01:00", "end": "02:00"}]}]},
        ),
        ("TimeBasedSpotSchedule", {"daysOfWeek": ["sat"], "hoursOfDay": ["9"], "exceptions": [{"date": SATURDAY}]}),
        ("CapitalMarketsSchedule", {"sessions": [DAY], "earlyCloses": [{"date": MONDAY, "close": "13:00"}]}),
        ("CapitalMarketsSchedule", {"sessions": [{"from": "fri 17:00", "until": "sun 17:00"}], "holidays": [SATURDAY]}),
        (
            "CapitalMarketsSchedule",
            {"sessions": [{"days": ["fri"], "start": "22:00", "end": "02:00"}], "holidays": [SATURDAY]},
        ),
        (
            "CapitalMarketsSchedule",
            {"holidays": [MONDAY], "specialSessions": [{"date": MONDAY, "start": "18:00", "end": "19:00"}]},
        ),
        ("ManualSchedule", {"enabled": True}),
    ],
)
def test_a_schedule_in_order_gets_no_advice(kind: str, spec: Json) -> None:
    assert prepared(kind, spec).advice == ()


def test_the_condition_is_there_as_long_as_the_advice() -> None:
    advice = [f"exceptions[{index}] has no effect" for index in range(7)]
    status = decided_status({}, Verdict(True), generation=1, now=NOW, advice=advice)
    assert [each["type"] for each in status["conditions"]] == ["Ready", "SpecWarnings"]
    warning = status["conditions"][1]
    assert (warning["status"], warning["reason"]) == ("True", "CheckSpec")
    assert warning["message"] == f"{'; '.join(advice[:5])}; and 2 more"
    assert decided_status(status, Verdict(True), generation=1, now=NOW, advice=advice) == status
    cleared = decided_status(status, Verdict(True), generation=2, now=NOW)
    assert [each["type"] for each in cleared["conditions"]] == ["Ready"]
