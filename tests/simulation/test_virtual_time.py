"""Virtual time itself."""

from __future__ import annotations

import asyncio
from random import Random

from fivespot.testing.virtual_time import run_virtual


def test_nobody_is_woken_before_the_time_that_was_asked_for() -> None:
    """Not by a fraction of a nanosecond: who waits until a deadline has passed would wait again at the same instant."""

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


def test_waiting_for_each_other_until_a_deadline_ends() -> None:
    async def until(deadline: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < deadline:
            await asyncio.sleep(deadline - loop.time())

    async def both() -> None:
        await asyncio.gather(*(until(100 / 3 + number * 3e-10) for number in range(10)))

    run_virtual(both())
