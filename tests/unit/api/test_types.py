"""The value types that kinds share."""

from __future__ import annotations

import calendar
import re
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from fivespot.api.types import (
    DATE_PATTERN,
    Annotations,
    Duration,
    Instant,
    Labels,
    LongDuration,
    duration_seconds,
)
from fivespot.runtime.objects import parse_rfc3339


def accepts(annotation: Any, value: object) -> bool:
    try:
        TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("30s", 30), ("5m", 300), ("24h", 86_400), ("007m", 420), ("86400s", 86_400)]
)
def test_a_duration_has_seconds(text: str, seconds: int) -> None:
    assert accepts(Duration, text)
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "5d", "1h30m", "-5m", "5 m", "1.5h", "٥m", "²m", "5M", "5m\n"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert not accepts(Duration, text)
    with pytest.raises(ValueError, match="is not a duration"):
        duration_seconds(text)


@pytest.mark.parametrize("text", ["25h", "1441m", "86401s", "9" * 30 + "h"])
def test_a_duration_is_at_most_a_day(text: str) -> None:
    assert not accepts(Duration, text)


def test_a_long_duration_is_at_most_a_week() -> None:
    assert accepts(LongDuration, "168h")
    assert not accepts(LongDuration, "169h")


@pytest.mark.parametrize(
    "text", ["2027-01-31T06:00:00Z", "2028-02-29T23:59:59-23:59", "2027-01-31T06:00:00.123456789+05:45"]
)
def test_an_instant_carries_its_offset(text: str) -> None:
    assert accepts(Instant, text)
    assert parse_rfc3339(text).tzinfo is not None


@pytest.mark.parametrize(
    "text", ["2027-01-31", "2027-01-31T06:00:00", "2027-02-30T06:00:00Z", "2027-01-31 06:00:00Z", "20270131T060000Z"]
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    assert not accepts(Instant, text)


@pytest.mark.parametrize(
    "key", ["team", "example.com/team", "node-role.kubernetes.io/worker", "node.cluster.x-k8s.io/pool", "a" * 63]
)
def test_ordinary_keys_are_taken(key: str) -> None:
    assert accepts(Labels, {key: ""})
    assert accepts(Annotations, {key: "any text: of any length"})


@pytest.mark.parametrize(
    "key",
    [
        "kubernetes.io/role",
        "k8s.io/x",
        "cluster.x-k8s.io/cluster-name",
        "5spot.finos.org/scheduled-machine",
        "",
        "-a",
        "Example.com/a",
        "a/b/c",
        "a" * 64,
    ],
)
def test_reserved_and_malformed_keys_are_refused(key: str) -> None:
    assert not accepts(Labels, {key: "x"})
    assert not accepts(Annotations, {key: "x"})


@pytest.mark.parametrize("value", ["a" * 64, "a b", "-a", "a/b"])
def test_a_label_value_that_no_object_takes_is_refused(value: str) -> None:
    assert not accepts(Labels, {"team": value})


def test_nothing_is_coerced() -> None:
    assert not accepts(Duration, 300)
    assert not accepts(Labels, {"team": 7})


@given(st.dates(date(1000, 1, 1), date(8999, 12, 31)))
def test_every_date_is_a_date_and_an_instant(day: date) -> None:
    assert re.fullmatch(DATE_PATTERN, day.isoformat())
    assert accepts(Instant, f"{day}T00:00:00Z")


@given(st.integers(1000, 8999), st.integers(0, 13), st.integers(0, 32))
def test_what_looks_like_a_date_and_is_none_is_refused(year: int, month: int, day: int) -> None:
    text = f"{year}-{month:02}-{day:02}"
    try:
        date.fromisoformat(text)
    except ValueError:
        assert not re.fullmatch(DATE_PATTERN, text)
    else:
        assert re.fullmatch(DATE_PATTERN, text)


@pytest.mark.parametrize("year", [1000, 1100, 1200, 1900, 2000, 2024, 2026, 2100, 2400, 8800, 8600])
def test_leap_days_are_known(year: int) -> None:
    assert bool(re.fullmatch(DATE_PATTERN, f"{year}-02-29")) == calendar.isleap(year)
