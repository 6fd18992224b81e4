"""Ends of overrides as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.cli.override.instants import read_duration, read_until
from fivespot.runtime import ConfigError
from fivespot.schedule import load_zone

BERLIN = load_zone("Europe/Berlin")
NOW = datetime(2027, 3, 12, 16, 30, tzinfo=UTC)
"""Friday, 17:30 in Berlin."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90m", timedelta(minutes=90)),
        ("2h", timedelta(hours=2)),
        ("2h30m", timedelta(hours=2, minutes=30)),
        ("3d", timedelta(days=3)),
        (" 1D12H ", timedelta(hours=36)),
        ("45s", timedelta(seconds=45)),
    ],
)
def test_durations(text: str, expected: timedelta) -> None:
    assert read_duration(text) == expected


@pytest.mark.parametrize("text", ["", "0m", "2", "h", "-1h", "1.5h", "30m2h", "2 h", "2h extra", "9999999d", "٢h"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write 90m, 2h, 2h30m or 3d"):
        read_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20:00", "2027-03-12T19:00:00Z"),
        ("8:00", "2027-03-13T07:00:00Z"),
        ("17:30", "2027-03-13T16:30:00Z"),
        ("fri 20:00", "2027-03-12T19:00:00Z"),
        ("fri 08:00", "2027-03-19T07:00:00Z"),
        ("Mon 06:15", "2027-03-15T05:15:00Z"),
        ("2027-03-13", "2027-03-12T23:00:00Z"),
        ("2027-03-12 20:00", "2027-03-12T19:00:00Z"),
        ("2027-03-12T20:00:30", "2027-03-12T19:00:30Z"),
        ("2027-03-12T20:00:00-05:00", "2027-03-13T01:00:00Z"),
        ("2027-03-28 02:30", "2027-03-28T01:00:00Z"),
        ("2027-06-01 20:00", "2027-06-01T18:00:00Z"),
    ],
)
def test_ends_are_read_in_the_zone_of_the_schedule(text: str, expected: str) -> None:
    assert read_until(text, NOW, BERLIN) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    ("text", "expected"), [("forever", "forever"), ("Forever", "forever"), ("nexttransition", "nextTransition")]
)
def test_words_in_any_case(text: str, expected: Any) -> None:
    assert read_until(text, NOW, None) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2027-03-12 17:30", "is in the past: it is 2027-03-12T16:30:00Z"),
        ("2027-03-12T16:30:00Z", "is in the past"),
        ("tomorrow", "write a time of day such as 20:00"),
        ("25:00", "write a time of day"),
        ("xyz 20:00", "write a time of day"),
        ("2027-02-30", "write a time of day"),
        ("9000-01-01T00:00:00Z", "more than ten years ahead"),
    ],
)
def test_other_ends_are_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_until(text, NOW, BERLIN)
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["20:00", "fri 20:00", "2027-03-13", "2027-03-13 20:00"])
def test_a_local_time_needs_a_zone(text: str) -> None:
    with pytest.raises(ConfigError, match="add --timezone Europe/Berlin"):
        read_until(text, NOW, None)
