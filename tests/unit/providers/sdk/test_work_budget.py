"""Work per turn of the event loop, counted."""

from __future__ import annotations

import asyncio

import pytest

from fivespot.providers.sdk.work_budget import WorkBudget

pytestmark = pytest.mark.looptime


async def turns_of(sizes: list[int], limit: int) -> list[int]:
    """For each piece of work, the turn of the loop in which it was done."""
    budget, turn, done = WorkBudget(limit), 0, [-1] * len(sizes)

    async def work(number: int) -> None:
        await budget.spend(sizes[number])
        done[number] = turn

    tasks = [asyncio.create_task(work(number)) for number in range(len(sizes))]
    while not all(task.done() for task in tasks):
        turn += 1
        await asyncio.sleep(0)
    return done


async def test_no_turn_does_more_than_its_budget() -> None:
    done = await turns_of([30] * 20, limit=100)
    assert all(sum(30 for each in done if each == turn) <= 100 for turn in done)
    assert max(done) - min(done) < 12, "no turn is left unused for long"


async def test_what_is_larger_than_a_budget_has_a_turn_of_its_own() -> None:
    done = await turns_of([500, 500, 10, 500], limit=100)
    assert len(set(done)) == 4
    assert -1 not in done


async def test_small_work_does_not_wait() -> None:
    budget = WorkBudget(100)
    for _ in range(10):
        with pytest.raises(StopIteration):
            budget.spend(10).send(None)
