"""Timers and deadlines of virtual time."""

from __future__ import annotations

import asyncio
from random import Random

from fivespot.testing.virtual_time import run_virtual


def test_no_timer_fires_before_its_time() -> None:
    """After a timer that is a nanosecond early, code that waits for a deadline would wait again at that instant."""

    async def late_by(seconds: float) -> float:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        await asyncio.sleep(seconds)
        return loop.time() - deadline

    async def together() -> list[float]:
        random = Random(1)
        waits = [random.uniform(0, 1000) for _ in range(200)]
        return await asyncio.gather(*(late_by(wait + more) for wait in waits for more in (0.0, 5e-10, 1e-12)))

    late = run_virtual(together())
    assert min(late) >= 0
    assert max(late) < 2e-6


def test_tasks_that_wait_for_each_other_end_at_their_deadline() -> None:
    async def until(deadline: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < deadline:
            await asyncio.sleep(deadline - loop.time())

    async def both() -> None:
        await asyncio.gather(*(until(100 / 3 + number * 3e-10) for number in range(10)))

    run_virtual(both())
