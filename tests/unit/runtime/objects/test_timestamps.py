"""Timestamps are written as metav1.Time and metav1.MicroTime, and read as RFC 3339 allows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime.objects import parse_rfc3339, rfc3339, rfc3339_micro

INSTANT = datetime(2027, 1, 31, 6, 0, 0, 123456, tzinfo=UTC)
EAST = timezone(timedelta(hours=5, minutes=45))


def test_both_forms_are_utc_with_z() -> None:
    assert rfc3339(INSTANT) == rfc3339(INSTANT.astimezone(EAST)) == "2027-01-31T06:00:00Z"
    assert rfc3339_micro(INSTANT) == rfc3339_micro(INSTANT.astimezone(EAST)) == "2027-01-31T06:00:00.123456Z"


def test_micro_time_has_six_decimals_even_when_they_are_zero() -> None:
    assert rfc3339_micro(INSTANT.replace(microsecond=0)) == "2027-01-31T06:00:00.000000Z"


def test_a_fraction_is_kept_only_where_there_is_one() -> None:
    assert rfc3339(INSTANT, fraction=True) == "2027-01-31T06:00:00.123456Z"
    assert rfc3339(INSTANT.replace(microsecond=0), fraction=True) == "2027-01-31T06:00:00Z"


def test_the_last_microsecond_of_a_second_is_not_rounded_up() -> None:
    assert rfc3339(INSTANT.replace(microsecond=999_999)) == "2027-01-31T06:00:00Z"


@given(st.datetimes(timezones=st.sampled_from([UTC, EAST]), min_value=datetime(2, 1, 1)))  # noqa: DTZ001
def test_what_is_written_is_read_back(instant: datetime) -> None:
    assert parse_rfc3339(rfc3339_micro(instant)) == parse_rfc3339(rfc3339(instant, fraction=True)) == instant
    assert parse_rfc3339(rfc3339(instant)) == instant.replace(microsecond=0)


@pytest.mark.parametrize(
    "text",
    [
        "2027-01-31T06:00:00.123456Z",
        "2027-01-31t06:00:00.123456z",
        "2027-01-31T06:00:00.123456999Z",
        "2027-01-31T11:45:00.123456+05:45",
        "2027-01-30T06:01:00.123456-23:59",
    ],
)
def test_other_spellings_of_an_instant_are_read(text: str) -> None:
    found = parse_rfc3339(text)
    assert found == INSTANT
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2027-01-31",
        "2027-01-31T06:00:00",
        "2027-01-31 06:00:00Z",
        "2027-02-30T06:00:00Z",
        "2027-01-31T24:00:00Z",
        "2027-01-31T06:00:60Z",
        "2027-01-31T06:00:00+25:00",
        "2027-W04-7T06:00:00Z",
        "20270131T060000Z",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:59-01:00",
        "٢٠٢٧-01-31T06:00:00Z",
        "2027-01-31T06:00:00Z\n",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rfc3339(text)
