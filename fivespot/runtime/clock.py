"""Clocks, random numbers and threads, behind interfaces that tests replace.

Nothing else in the runtime, the providers or the controllers reads a clock, draws a random number or starts a thread,
so that a run on a virtual-time loop with a seeded random source is repeatable.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from anyio import CapacityLimiter

__all__ = [
    "Clock",
    "InlineOffload",
    "LoopClock",
    "Offload",
    "Random",
    "SystemClock",
    "ThreadOffload",
    "system_random",
]

P = ParamSpec("P")
T = TypeVar("T")


class Clock(Protocol):
    """A source of time."""

    def monotonic(self) -> float:
        """Seconds on the running event loop's clock: for durations. Never goes back, may stop in suspend."""
        ...

    def boottime(self) -> float:
        """Seconds on a monotonic clock that continues while the machine is suspended: for what a lease permits."""
        ...

    def now(self) -> datetime:
        """The wall clock as an aware UTC datetime, for people and the API; may step."""
        ...


class SystemClock:
    """The loop's monotonic clock and the machine's wall clock."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def boottime(self) -> float:
        return _boottime()

    def now(self) -> datetime:
        return datetime.now(UTC)


if sys.platform == "linux":

    def _boottime() -> float:
        # CLOCK_MONOTONIC stops while the machine is suspended (clock_gettime(2)).
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:

    def _boottime() -> float:
        return time.monotonic()


class LoopClock:
    """A wall clock that starts at ``start`` and advances with the loop's own clock, scaled by ``speed``.

    Under a virtual-time loop it makes months pass in seconds; under a real one it serves demonstrations.
    """

    def __init__(self, start: datetime, *, speed: float = 1.0) -> None:
        self._start = start
        self._speed = speed
        self._origin: float | None = None

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def boottime(self) -> float:
        return self.monotonic()

    def now(self) -> datetime:
        elapsed = self.monotonic()
        if self._origin is None:
            self._origin = elapsed
        return self._start + timedelta(seconds=(elapsed - self._origin) * self._speed)


class Random(Protocol):
    """A source of random numbers; :class:`random.Random` is one."""

    def random(self) -> float:
        """A float in [0, 1)."""
        ...

    def uniform(self, a: float, b: float) -> float:
        """A float between a and b."""
        ...


def system_random(seed: int | None = None) -> Random:
    """A random source for jitter (not for secrets); a seed makes it repeatable."""
    return random.Random(seed)  # noqa: S311 - jitter, not a secret


class Offload(Protocol):
    """Runs blocking or long pure work away from the event loop."""

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``fn`` and return its result or raise its exception."""
        ...


class ThreadOffload:
    """Runs functions in a limited number of threads. Cancelling the await does not stop a running thread.

    :param threads: functions that run at once; further ones wait, and leave the queue when their await is cancelled.
    """

    def __init__(self, threads: int = 8) -> None:
        self._threads = threads
        self._limiter: CapacityLimiter | None = None

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        # Imported when first used, because other implementations do not need it.
        from anyio import CapacityLimiter, to_thread  # noqa: PLC0415

        if self._limiter is None:
            self._limiter = CapacityLimiter(self._threads)
        work = partial(fn, *args, **kwargs)
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)


class InlineOffload:
    """Runs functions on the loop: for virtual time, where the clock would run ahead of a thread."""

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return fn(*args, **kwargs)
