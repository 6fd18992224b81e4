"""Hysteresis and minimum times between two changes of a verdict."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.providers.sdk import (
    Dwell,
    dwell,
    hysteresis,
)

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "active", "expected"),
    [(0.9, None, True), (0.8, False, True), (0.5, True, True), (0.5, False, False), (0.5, None, False),
     (0.2, True, False), (0.1, True, False)],
)  # fmt: skip
def test_between_two_thresholds_nothing_changes(value: float, active: bool | None, expected: bool) -> None:
    assert hysteresis(value, on=0.8, off=0.2, active=active) is expected
    # Mirrored: low values mean active.
    assert hysteresis(-value, on=-0.8, off=-0.2, active=active) is expected


def test_no_data_is_no_low_value() -> None:
    with pytest.raises(ValueError, match="not a number"):
        hysteresis(math.nan, on=1, off=0, active=True)
    with pytest.raises(ValueError, match="must differ"):
        hysteresis(0.5, on=1, off=1, active=True)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50), st.floats(0, 0.5), st.floats(0.5, 1))
def test_a_value_that_stays_within_the_band_flips_nothing(values: list[float], off: float, on: float) -> None:
    if off == on:
        return
    active: bool | None = None
    for value in values:
        before, active = active, hysteresis(value, on=on, off=off, active=active)
        if off < value < on:
            assert active is bool(before)


HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def test_a_state_lasts_for_its_least_time() -> None:
    def held(wanted: bool, minutes: int, active: bool | None = True) -> Dwell:
        at = NOON + timedelta(minutes=minutes)
        return dwell(wanted, at, active=active, since=NOON, least_active=HOUR, least_inactive=2 * HOUR)

    assert held(False, 30) == Dwell(True, NOON + HOUR)
    assert held(False, 60) == Dwell(False)
    assert held(True, 30) == Dwell(True)
    assert held(True, 90, active=False) == Dwell(False, NOON + 2 * HOUR)
    assert held(False, 1, active=None) == Dwell(False), "nothing is known, nothing is held"
    assert held(False, -30) == Dwell(False), "a start in the future is a clock that was set"
    assert dwell(False, NOON, active=True, since=None, least_active=HOUR) == Dwell(False)


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_no_state_is_shorter_than_its_least_time(wishes: list[bool]) -> None:
    active, since, flips = False, NOON - 10 * HOUR, []
    for minute, wanted in enumerate(wishes):
        at = NOON + timedelta(minutes=minute)
        found = dwell(
            wanted,
            at,
            active=active,
            since=since,
            least_active=timedelta(minutes=7),
            least_inactive=timedelta(minutes=3),
        )
        if found.active is not active:
            flips.append((at, at - since, active))
            active, since = found.active, at
    assert all(lasted >= timedelta(minutes=7 if was else 3) for _, lasted, was in flips)
