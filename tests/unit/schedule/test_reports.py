"""Faults that users of other schedulers reported, with the right answer. Each test names its issue."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from fivespot.schedule import GrammarError, SkippedWindow, evaluate, read_schedule, skipped, transitions


def z(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def intervals(spec: dict[str, Any], start: str, end: str) -> list[str]:
    """The active intervals that open in the period, as ``MM-DDTHH:MM/MM-DDTHH:MM``."""
    found: list[str] = []
    for at, active in transitions(read_schedule(spec), z(start) - timedelta(seconds=1), z(end)):
        text = f"{at:%m-%dT%H:%M}"
        if active:
            found.append(text)
        elif found:
            found[-1] += f"/{text}"
    return found


def window(days: str, start: str, end: str) -> dict[str, Any]:
    return {"days": [days], "start": start, "end": end}


REPORTS = [
    pytest.param(
        {"timezone": "Europe/Berlin", "windows": [window("mon-sun", "02:00", "02:20")]},
        ("2027-10-30T12:00", "2027-10-31T12:00"),
        ["10-31T00:00/10-31T00:20"],
        id="kubernetes#121594-runs-once-in-the-repeated-hour",
    ),
    pytest.param(
        {"timezone": "America/Los_Angeles", "windows": [window("mon-sun", "02:00", "04:00")]},
        ("2027-03-14T00:00", "2027-03-15T00:00"),
        ["03-14T10:00/03-14T11:00"],
        id="robfig-cron#541-opens-at-the-jump",
    ),
    pytest.param(
        {"timezone": "America/New_York", "windows": [window("mon-sun", "02:10", "02:40")]},
        ("2027-03-14T00:00", "2027-03-16T00:00"),
        ["03-15T06:10/03-15T06:40"],
        id="librefang#3831-nothing-inside-the-gap",
    ),
    pytest.param(
        {"timezone": "Europe/Berlin", "windows": [window("mon-sun", "08:00", "22:00")]},
        ("2027-10-30T00:00", "2027-11-02T00:00"),
        ["10-30T06:00/10-30T20:00", "10-31T07:00/10-31T21:00", "11-01T07:00/11-01T21:00"],
        id="home-assistant#81382-the-offset-of-the-day",
    ),
    pytest.param(
        {"timezone": "Europe/Berlin", "windows": [window("mon-sun", "07:00", "08:00")]},
        ("2027-03-27T23:00", "2027-03-28T12:00"),
        ["03-28T05:00/03-28T06:00"],
        id="scheduler-component#94-the-offset-of-the-boundary",
    ),
    pytest.param(
        {"timezone": "Europe/Berlin", "windows": [window("fri,mon", "08:00", "17:00")]},
        ("2027-03-26T00:00", "2027-03-30T00:00"),
        ["03-26T07:00/03-26T16:00", "03-29T06:00/03-29T15:00"],
        id="gardener#862-closes-at-the-same-local-time",
    ),
    pytest.param(
        {"timezone": "America/New_York", "windows": [window("mon-fri", "08:00", "18:00")]},
        ("2027-03-12T00:00", "2027-03-16T00:00"),
        ["03-12T13:00/03-12T23:00", "03-15T12:00/03-15T22:00"],
        id="karpenter#3074-a-zone-for-each-rule",
    ),
    pytest.param(
        {"timezone": "Pacific/Auckland", "windows": [window("mon-fri", "06:30", "19:30")]},
        ("2027-02-27T00:00", "2027-03-01T12:00"),
        ["02-28T17:30/03-01T06:30"],
        id="kube-downscaler#25-the-day-is-the-zones",
    ),
    pytest.param(
        {"timezone": "America/Vancouver", "windows": [window("mon-fri", "09:00", "17:00")]},
        ("2026-11-30T00:00", "2026-12-01T12:00"),
        ["11-30T16:00/12-01T00:00"],
        id="tzdata#60-the-law-of-2026",
    ),
    pytest.param(
        {"timezone": "EST", "windows": [window("mon-sun", "09:00", "10:00")]},
        ("2027-07-01T00:00", "2027-07-02T00:00"),
        ["07-01T14:00/07-01T15:00"],
        id="keda#5688-EST-has-no-summer-time",
    ),
    pytest.param(
        {"timezone": "US/Eastern", "windows": [window("mon-sun", "09:00", "10:00")]},
        ("2027-03-15T00:00", "2027-03-16T00:00"),
        ["03-15T13:00/03-15T14:00"],
        id="instance-scheduler#204-links-have-summer-time",
    ),
    pytest.param(
        {"windows": [window("mon-sun", "06:00", "01:00")]},
        ("2027-01-04T02:00", "2027-01-06T02:00"),
        ["01-04T06:00/01-05T01:00", "01-05T06:00/01-06T01:00"],
        id="instance-scheduler#12-an-end-past-midnight",
    ),
    pytest.param(
        {"windows": [window("mon", "12:00", "24:00")]},
        ("2027-01-04T00:00", "2027-01-06T00:00"),
        ["01-04T12:00/01-05T00:00"],
        id="instance-scheduler#12-an-end-at-midnight",
    ),
    pytest.param(
        {"windows": [window("sat-sun", "15:30", "08:00")]},
        ("2027-01-08T00:00", "2027-01-12T00:00"),
        ["01-09T15:30/01-10T08:00", "01-10T15:30/01-11T08:00"],
        id="kube-downscaler#61-the-day-names-the-evening",
    ),
    pytest.param(
        {"timezone": "Europe/Prague", "windows": [window("mon-fri", "06:30", "22:10")]},
        ("2027-01-08T00:00", "2027-01-12T00:00"),
        ["01-08T05:30/01-08T21:10", "01-11T05:30/01-11T21:10"],
        id="keda#4677-start-and-end-belong-to-one-day",
    ),
    pytest.param(
        {"timezone": "Europe/Rome", "windows": [{"from": "mon 06:00", "until": "fri 21:00"}]},
        ("2027-10-31T00:00", "2027-11-08T00:00"),
        ["11-01T05:00/11-05T20:00"],
        id="kube-green#332-a-whole-weekend-off",
    ),
    pytest.param(
        {"windows": [window("sun", "23:00", "24:00"), window("mon", "00:00", "07:00")]},
        ("2027-01-03T00:00", "2027-01-05T00:00"),
        ["01-03T23:00/01-04T07:00"],
        id="home-assistant.io#24385-no-flap-at-a-seam",
    ),
    pytest.param(
        {
            "windows": [window("mon-sun", "00:00", "24:00")],
            "validFrom": "2026-12-24T18:00:00+01:00",
            "validUntil": "2026-12-27T06:00:00+01:00",
        },
        ("2026-12-01T00:00", "2027-12-01T00:00"),
        ["12-24T17:00/12-27T05:00"],
        id="kube-downscaler#71-once-and-never-again",
    ),
    pytest.param(
        {"timezone": "America/Bogota", "windows": [window("thu", "12:55", "13:00")]},
        ("2027-01-07T00:00", "2027-01-08T00:00"),
        ["01-07T17:55/01-07T18:00"],
        id="GoKubeDownscaler#502-the-zone-that-is-written-counts",
    ),
    pytest.param(
        {
            "timezone": "Europe/London",
            "windows": [window("mon-fri", "09:00", "17:00")],
            "exceptions": [{"date": "2026-12-25"}, {"date": "2026-12-28"}],
        },
        ("2026-12-24T00:00", "2026-12-30T00:00"),
        ["12-24T09:00/12-24T17:00", "12-29T09:00/12-29T17:00"],
        id="kube-green#343-holidays-are-exceptions",
    ),
    pytest.param(
        {
            "timezone": "US/Eastern",
            "exceptions": [{"date": "2027-01-02", "windows": [{"start": "04:00", "end": "12:00"}]}],
        },
        ("2027-01-01T00:00", "2027-12-31T00:00"),
        ["01-02T09:00/01-02T17:00"],
        id="instance-scheduler#114-the-first-saturday-as-a-date",
    ),
]


@pytest.mark.parametrize(("spec", "period", "expected"), REPORTS)
def test_reported_case_is_right(spec: dict[str, Any], period: tuple[str, str], expected: list[str]) -> None:
    assert intervals(spec, *period) == expected


def test_the_carry_is_the_windows_and_the_hour_grammar_has_none() -> None:
    """GoKubeDownscaler, Timespans: the same words mean a night in one tool and two pieces of a day in another."""
    saturday_night = z("2027-01-09T03:00")
    nights = read_schedule({"windows": [window("mon-fri", "20:00", "08:00")]})
    hours = read_schedule({"daysOfWeek": ["mon-fri"], "hoursOfDay": ["20-7"]})

    assert evaluate(nights, saturday_night).active
    assert not evaluate(hours, saturday_night).active


def test_after_downtime_the_verdict_is_that_of_now() -> None:
    """gardener/gardener#1278: the controller was down at the opening, and the cluster stayed asleep."""
    schedule = read_schedule({"windows": [window("mon-sun", "06:00", "20:00")]})
    before_the_break = evaluate(schedule, z("2027-01-04T05:50"))
    assert not before_the_break.active
    assert evaluate(schedule, z("2027-01-04T07:10")).active


@pytest.mark.parametrize("days", ["wed#3", "sat#1", "1-7", "sunday", "mon-", ""])
def test_what_no_rule_means_is_refused_and_never_read_as_something_else(days: str) -> None:
    """instance-scheduler-on-aws#114: the third Wednesday ran daily. karpenter#1866: 1-7 passed and failed later."""
    with pytest.raises(GrammarError, match=r"windows\[0\]\.days\[0\]"):
        read_schedule({"windows": [window(days, "06:00", "20:00")]})


def test_a_window_wholly_inside_a_gap_is_reported_once() -> None:
    """librefang/librefang#3831: a rule was dropped on the gap day and nothing said so."""
    schedule = read_schedule({"timezone": "America/New_York", "windows": [window("mon-sun", "02:10", "02:40")]})

    assert skipped(schedule, z("2027-01-01"), z("2028-01-01")) == [
        SkippedWindow(date(2027, 3, 14), "02:10", "02:40", z("2027-03-14T07:00"))
    ]
