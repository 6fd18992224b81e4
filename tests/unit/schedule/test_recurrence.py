"""Recurring dates against dateutil's rules, and windows on them against instants constructed one by one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from dateutil.rrule import rrulestr  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from whenever import Date

from fivespot.schedule import GrammarError, Timeline, evaluate, read_schedule, transitions
from fivespot.schedule.recurrence import Recurrence
from unit.schedule.oracle import fires

EPOCH = date(1970, 1, 1)
DAY = timedelta(days=1)
Json = dict[str, object]


def z(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def dates(rule: str, first: str | None = None, *, begin: str = "2027-01-01", count: int = 6) -> list[str]:
    recurrence = Recurrence.parse(rule, date.fromisoformat(first) if first else None)
    day = (date.fromisoformat(begin) - EPOCH).days
    found: list[str] = []
    while len(found) < count and (following := recurrence.next(day)) is not None:
        found.append((EPOCH + timedelta(days=following)).isoformat())
        day = following + 1
    return found


@pytest.mark.parametrize(
    ("rule", "first", "expected"),
    [
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "2027-01-04", ["2027-01-04", "2027-01-18", "2027-02-01"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "2026-12-28", ["2027-01-11", "2027-01-25", "2027-02-08"]),
        ("FREQ=WEEKLY;INTERVAL=2", "2027-01-05", ["2027-01-05", "2027-01-19", "2027-02-02"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO", "2027-01-04", ["2027-01-04", "2027-01-10", "2027-01-18"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;WKST=SU", "2027-01-04", ["2027-01-04", "2027-01-17", "2027-01-18"]),
        ("FREQ=DAILY;INTERVAL=10", "2027-01-04", ["2027-01-04", "2027-01-14", "2027-01-24"]),
        ("FREQ=MONTHLY;BYDAY=1SA", None, ["2027-01-02", "2027-02-06", "2027-03-06"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", None, ["2027-01-29", "2027-02-26", "2027-03-26"]),
        ("FREQ=MONTHLY;BYDAY=5MO", None, ["2027-03-29", "2027-05-31", "2027-08-30"]),
        (
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            None,
            ["2027-01-29", "2027-02-26", "2027-03-31"],
        ),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1", None, ["2027-01-01", "2027-02-01", "2027-03-01"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", None, ["2027-01-31", "2027-02-28", "2027-03-31"]),
        ("FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR", None, ["2027-08-13", "2028-10-13", "2029-04-13"]),
        ("FREQ=MONTHLY", "2027-01-31", ["2027-01-31", "2027-03-31", "2027-05-31"]),
        ("FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=1", "2026-10-15", ["2027-01-01", "2027-04-01", "2027-07-01"]),
        ("FREQ=MONTHLY;BYMONTH=3,6;BYDAY=-1FR", None, ["2027-03-26", "2027-06-25", "2028-03-31"]),
        ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", None, ["2027-11-25", "2028-11-23", "2029-11-22"]),
        ("FREQ=YEARLY", "2024-02-29", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("RRULE:FREQ=WEEKLY;BYDAY=MO;UNTIL=20270112T235959Z", None, ["2027-01-04", "2027-01-11"]),
    ],
)
def test_rules_name_these_dates(rule: str, first: str | None, expected: list[str]) -> None:
    assert dates(rule, first, count=3) == expected


CODES = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


CODE_SETS = st.sets(st.sampled_from(CODES), min_size=1, max_size=4)
ORDINAL_SETS = st.sets(
    st.sampled_from([f"{number}{code}" for number in (1, 2, 5, -1, -2) for code in CODES]), min_size=1
)
MONTH_SETS = st.sets(st.integers(1, 12), min_size=1, max_size=4)
MONTH_DAY_SETS = st.sets(st.integers(-28, 31).filter(bool), min_size=1, max_size=6)


def part(name: str, values: set[int] | set[str]) -> str:
    return f";{name}={','.join(map(str, sorted(values)))}"


WEEKLY = st.builds(
    lambda days, start: f"FREQ=WEEKLY{part('BYDAY', days) if days else ''};WKST={start}",
    st.one_of(CODE_SETS, st.just(set())),
    st.sampled_from(CODES),
)
# dateutil counts ordinals by the year where FREQ=YEARLY names no month, and joins them with days of the month.
CHOICES = st.one_of(
    CODE_SETS.map(lambda found: part("BYDAY", found)),
    ORDINAL_SETS.map(lambda found: part("BYDAY", found)),
    MONTH_DAY_SETS.map(lambda found: part("BYMONTHDAY", found)),
    st.builds(lambda days, numbers: part("BYDAY", days) + part("BYMONTHDAY", numbers), CODE_SETS, MONTH_DAY_SETS),
)
POSITIONS = st.sampled_from(["", ";BYSETPOS=1", ";BYSETPOS=-1", ";BYSETPOS=2", ";BYSETPOS=1,-1"])
MONTHLY = st.builds(
    lambda months, choice, position: f"FREQ=MONTHLY{months}{choice}{position}",
    st.one_of(st.just(""), MONTH_SETS.map(lambda found: part("BYMONTH", found))),
    CHOICES,
    POSITIONS,
)
YEARLY = st.builds(
    lambda months, choice, position: f"FREQ=YEARLY{part('BYMONTH', months)}{choice}{position}",
    MONTH_SETS,
    CHOICES,
    POSITIONS,
)
RULES = st.builds(
    lambda rule, interval: f"{rule};INTERVAL={interval}",
    st.one_of(st.just("FREQ=DAILY"), st.just("FREQ=MONTHLY"), st.just("FREQ=YEARLY"), WEEKLY, MONTHLY, YEARLY),
    st.integers(1, 8),
)
FIRST = st.integers(0, 2_000).map(lambda days: date(2020, 1, 1) + timedelta(days=days))


@settings(max_examples=200, deadline=None)
@given(RULES, FIRST)
def test_any_rule_names_the_dates_that_dateutil_names(rule: str, first: date) -> None:
    start = datetime(first.year, first.month, first.day)  # noqa: DTZ001 - a date
    end = start + timedelta(days=3_000)
    expected = [each.date().isoformat() for each in rrulestr(rule, dtstart=start).between(start - DAY, end)]
    if not expected:
        # None within eight years; a rule that never has one is refused.
        return
    found = dates(rule, first.isoformat(), begin=first.isoformat(), count=len(expected))
    assert [each for each in found if each <= end.date().isoformat()] == expected


@pytest.mark.parametrize(
    ("rule", "first", "words"),
    [
        ("every monday", None, "must be a part such as FREQ=WEEKLY"),
        ("BYDAY=MO", None, "must begin with FREQ="),
        ("FREQ=HOURLY", None, "must begin with FREQ="),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", None, "startDate: is required: it says from when INTERVAL=2 counts"),
        ("FREQ=WEEKLY", None, "startDate: is required: it says from when the day counts"),
        ("FREQ=YEARLY;BYMONTHDAY=1", None, "needs BYMONTH; for every month write FREQ=MONTHLY"),
        ("FREQ=WEEKLY;BYDAY=1MO", None, "a number before a day needs FREQ=MONTHLY or YEARLY"),
        ("FREQ=WEEKLY;BYDAY=MON", None, '"MON" must be MO, TU'),
        ("FREQ=WEEKLY;BYDAY=MO;COUNT=3", None, "COUNT is not read: write UNTIL"),
        ("FREQ=WEEKLY;BYDAY=MO;BYHOUR=8", None, "the window's start and end say the time of day"),
        ("FREQ=DAILY;BYDAY=MO", None, "for days of the week write FREQ=WEEKLY"),
        ("FREQ=WEEKLY;BYDAY=MO;BYDAY=TU", None, "BYDAY occurs twice"),
        ("FREQ=DAILY;INTERVAL=367", "2027-01-01", 'INTERVAL="367" must be a whole number, 1 to 366'),
        ("FREQ=DAILY;INTERVAL=0", "2027-01-01", "must be a whole number, 1 to 366"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", None, "must be 1 to 31, or -1 to -31 from the end"),
        ("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", None, "names no date: nothing would ever open"),
        ("FREQ=MONTHLY;BYDAY=1MO;UNTIL=20261301", None, "must be the last date"),
        ("FREQ=DAILY;INTERVAL=2;UNTIL=20261231", "2027-01-01", "names no date"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused_with_what_to_write(rule: str, first: str | None, words: str) -> None:
    with pytest.raises(GrammarError) as refused:
        Recurrence.parse(rule, date.fromisoformat(first) if first else None)
    assert words in str(refused.value)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("FREQ=WEKLYMONTHDAIBSP;,-+0123456789"), max_size=80))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    try:
        Recurrence.parse(text, date(2027, 1, 1))
    except GrammarError:
        return


# Windows on recurring dates ------------------------------------------------------------------------------------------


def window(rule: str, start: str, end: str, first: str | None = None) -> Json:
    recurrence = {"rule": rule, **({"startDate": first} if first else {})}
    return {"recurrence": recurrence, "start": start, "end": end}


LAST_BUSINESS_NIGHT = window("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "22:00", "04:00")


def opened(spec: Json, start: str, end: str) -> list[str]:
    changes = transitions(read_schedule(spec), z(start), z(end))
    return [f"{'+' if active else '-'}{at:%Y-%m-%dT%H:%MZ}" for at, active in changes]


def test_windows_follow_the_wall_clock_across_its_changes() -> None:
    spec: Json = {"timezone": "Europe/Berlin", "windows": [window("FREQ=MONTHLY;BYDAY=-1SU", "01:30", "03:30")]}
    assert opened(spec, "2027-02-01", "2027-05-01") == [
        *("+2027-02-28T00:30Z", "-2027-02-28T02:30Z"),
        *("+2027-03-28T00:30Z", "-2027-03-28T01:30Z"),  # an hour is missing
        *("+2027-04-24T23:30Z", "-2027-04-25T01:30Z"),
    ]
    assert opened(spec, "2027-10-01", "2027-11-01") == ["+2027-10-30T23:30Z", "-2027-10-31T02:30Z"]


def test_a_window_in_the_missing_hour_is_skipped_and_reported() -> None:
    spec: Json = {
        "timezone": "Europe/Berlin",
        "windows": [window("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", "02:10", "02:40")],
    }
    timeline = Timeline(read_schedule(spec))
    assert timeline.evaluate(z("2027-01-01")).until is None, "it never takes place"
    [skipped] = timeline.skipped(z("2027-03-01"), z("2027-04-01"))
    assert (skipped.date, skipped.start) == (date(2027, 3, 28), "02:10")


def test_an_exception_replaces_what_recurs_on_its_date() -> None:
    exception = {"date": "2027-02-06", "windows": [{"start": "10:00", "end": "11:00"}]}
    spec: Json = {"windows": [window("FREQ=MONTHLY;BYDAY=1SA", "04:00", "12:00")], "exceptions": [exception]}
    assert opened(spec, "2027-01-03", "2027-03-07") == [
        *("+2027-02-06T10:00Z", "-2027-02-06T11:00Z"),
        *("+2027-03-06T04:00Z", "-2027-03-06T12:00Z"),
    ]


def test_a_night_that_recurs_merges_with_what_follows_it_and_moves_by_lead_and_lag_time() -> None:
    daily = {"days": ["mon-fri"], "start": "04:00", "end": "06:00"}
    spec: Json = {"windows": [LAST_BUSINESS_NIGHT, daily], "leadTime": "1h", "lagTime": "30m"}
    assert opened(spec, "2027-03-31T12:00", "2027-04-01T12:00") == ["+2027-03-31T21:00Z", "-2027-04-01T06:30Z"]


def test_every_other_week_is_not_disturbed_by_a_change_of_the_clock() -> None:
    rule = window("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "08:00", "18:00", "2027-01-04")
    timeline = Timeline(read_schedule({"timezone": "America/New_York", "windows": [rule]}))
    at, days = z("2027-01-01"), []
    for _ in range(60):
        evaluation = timeline.evaluate(at)
        assert evaluation.until is not None
        at = evaluation.until
        days.append(at)
    expected = [
        datetime.fromtimestamp(fires("America/New_York", Date(2027, 1, 4).add(days=week * 14), hour * 60), UTC)
        for week in range(30)
        for hour in (8, 18)
    ]
    assert days == expected


def test_a_rule_without_interval_or_end_is_a_weekly_window() -> None:
    recurring = read_schedule({"windows": [window("FREQ=WEEKLY;BYDAY=MO,FR", "08:00", "18:00")]})
    weekly = read_schedule({"windows": [{"days": ["mon", "fri"], "start": "08:00", "end": "18:00"}]})
    for hours in range(0, 24 * 9, 5):
        at = z("2027-01-01") + timedelta(hours=hours)
        assert evaluate(recurring, at) == evaluate(weekly, at)


ALWAYS: Json = {"days": ["mon-sun"], "start": "00:00", "end": "24:00"}


@pytest.mark.parametrize(
    ("spec", "until"),
    [
        (
            {"windows": [window("FREQ=YEARLY;INTERVAL=10;BYMONTH=2;BYMONTHDAY=29", "08:00", "09:00", "2020-02-29")]},
            "2040-02-29T08:00",
        ),
        ({"windows": [window("FREQ=MONTHLY;BYDAY=1MO;UNTIL=20270101", "08:00", "09:00", "2026-01-01")]}, None),
        ({"windows": [ALWAYS, LAST_BUSINESS_NIGHT]}, None),
        ({"windows": [ALWAYS, LAST_BUSINESS_NIGHT], "exceptions": [{"date": "2400-05-01"}]}, "2400-05-01T00:00"),
    ],
)
def test_the_next_change_is_found_however_far_away(spec: Json, until: str | None) -> None:
    found = evaluate(read_schedule(spec), z("2027-01-02")).until
    assert found == (z(until) if until else None)


@pytest.mark.contract("C1")
def test_more_recurring_windows_than_that_are_refused() -> None:
    with pytest.raises(GrammarError, match="windows: 9 windows have a recurrence: at most 8 may"):
        read_schedule({"windows": [LAST_BUSINESS_NIGHT] * 9})


@pytest.mark.contract("C1")
@pytest.mark.parametrize(
    "recurrence",
    ["FREQ=WEEKLY;BYDAY=MO", {"startDate": "2027-01-01"}, {"rule": "FREQ=DAILY", "startDate": "2027-02-30"}],
)
def test_a_recurrence_that_is_no_object_or_has_no_rule_is_refused_with_its_field(recurrence: object) -> None:
    with pytest.raises(GrammarError, match=r"windows\[0\]\.recurrence"):
        read_schedule({"windows": [{"recurrence": recurrence, "start": "08:00", "end": "09:00"}]})


@pytest.mark.parametrize(
    "windows",
    [
        [window("FREQ=DAILY", "00:00", "24:00", "2020-01-01")],
        [window("FREQ=DAILY;INTERVAL=2", "00:00", "24:00", f"2020-01-0{day}") for day in (1, 2)],
        [
            window("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU,WE,TH,FR,SA,SU", "00:00", "24:00", f"2020-01-0{day}")
            for day in (6,)
        ]
        + [window("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU,WE,TH,FR,SA,SU", "00:00", "24:00", "2020-01-13")],
        [ALWAYS] + [LAST_BUSINESS_NIGHT] * 8,
        [window("FREQ=MONTHLY;BYDAY=1MO,2TU,3WE,4TH,5FR;BYMONTHDAY=1,2,3,4,5,6", "02:10", "02:20")] * 8,
    ],
    ids=["daily", "two by turns", "weeks by turns", "always", "many"],
)
def test_a_search_costs_a_bounded_amount_of_work(windows: list[Json]) -> None:
    timeline = Timeline(read_schedule({"timezone": "Europe/Berlin", "windows": windows}))
    timeline.evaluate(z("2027-01-04T12:00"))
    assert timeline._search.work < 500_000
