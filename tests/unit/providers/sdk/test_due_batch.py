"""Deciding all schedules that are due at one instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fivespot.providers.sdk.due_batch import DueBatch
from fivespot.runtime import Key
from fivespot.runtime.clock import LoopClock

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


async def free(key: Key) -> None:
    """Room for a decision, at once."""


@pytest.mark.looptime
async def test_what_is_no_longer_expected_does_not_pile_up() -> None:
    batch = DueBatch(LoopClock(NOON), lambda key, at: None, free)
    for number in range(10_000):
        batch.add(Key("ns", "one"), NOON + timedelta(seconds=number))
    assert len(batch._queue) < 100


@pytest.mark.looptime
async def test_all_that_are_due_are_decided_at_the_first_look_and_once() -> None:
    asked: list[tuple[str, datetime]] = []
    batch = DueBatch(LoopClock(NOON), lambda key, at: asked.append((key.name, at)), free)
    keys = [Key("ns", f"k{number}") for number in range(6)]
    for number, key in enumerate(keys):
        batch.add(key, NOON + number * MINUTE)
    batch.add(keys[0], NOON + MINUTE)
    batch.add(keys[4], None)
    batch.forget(keys[3])
    now = NOON + 4 * MINUTE
    await batch.decide_due(now)
    assert sorted(asked) == [("k0", now), ("k1", now), ("k2", now)]
    await batch.decide_due(now)
    assert len(asked) == 3
    batch.add(keys[0], NOON + MINUTE)
    await batch.decide_due(now)
    assert len(asked) == 4, "it may be expected again"
