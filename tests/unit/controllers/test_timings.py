"""The waiting times of the contract, pinned: they are behaviour, not tuning."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.controllers.scheduledmachine.timings import Timings


def test_the_waiting_times_are_those_of_the_contract() -> None:
    assert msgspec.to_builtins(Timings()) == {
        "unresolved_recheck": 60.0,
        "unresolved_jitter": 0.2,
        "display_interval": 300.0,
        "edit_interval": 10.0,
        "mirror_interval": 1.0,
        "recreation": 2.0,
        "unreadable_limit": 30.0,
        "start_limit": 15.0,
        "conflict_limit": 15.0,
        "refusal_base": 30.0,
        "refusal_cap": 300.0,
        "refusal_jitter": 0.2,
        "reference_grace": 300.0,
        "deletion_limit": 600.0,
        "replacement_base": 10.0,
        "replacement_cap": 600.0,
        "replacement_reset": 600.0,
        "late_deletion": 60.0,
        "next_look": 300.0,
        "clock_check": 10.0,
        "orphan_search": 600.0,
        "orphan_age": 120.0,
    }


@pytest.mark.contract("B7.1")
def test_replacements_wait_ten_seconds_doubling_to_ten_minutes() -> None:
    waits = [Timings().replacement_delay(count).total_seconds() for count in range(1, 9)]
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600]


@pytest.mark.contract("B1.7")
def test_refused_steps_wait_half_a_minute_doubling_to_five() -> None:
    assert [Timings().refusal_delay(attempt) for attempt in range(1, 6)] == [30, 60, 120, 240, 300]


@given(st.integers(min_value=-5, max_value=10**9))
def test_no_count_makes_a_wait_overflow_or_vanish(count: int) -> None:
    timings = Timings()
    assert timedelta(seconds=10) <= timings.replacement_delay(count) <= timedelta(seconds=600)
    assert 30.0 <= timings.refusal_delay(count) <= 300.0
