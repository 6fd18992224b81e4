"""Time, chance and threads: the seams behind which the runtime meets the machine it runs on.

Nothing else in the runtime, the providers or the controllers reads a clock, draws a random number or
starts a thread, so that a virtual-time loop with a seeded source repeats a run exactly.
"""

from __future__ import annotations

import asyncio
import random
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
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds on the running event loop's clock: for durations and deadlines; never goes back."""
        ...

    def now(self) -> datetime:
        """The wall clock as an aware UTC datetime: for what people and the API see; may step."""
        ...


class SystemClock:
    """The loop's monotonic clock and the machine's wall clock."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return datetime.now(UTC)


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
    """A source for jitter (not for secrets); a seed makes it repeatable."""
    return random.Random(seed)  # noqa: S311 - jitter, not a secret


class Offload(Protocol):
    """Runs blocking or long pure work away from the event loop."""

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``fn`` and return what it returns or raise what it raises."""
        ...


class ThreadOffload:
    """Runs the work in threads, a few at a time. Cancelling the await does not stop a thread that has begun.

    :param threads: work that runs at once; more waits for its turn, which a cancelled await gives up.
    """

    def __init__(self, threads: int = 8) -> None:
        self._threads = threads
        self._limiter: CapacityLimiter | None = None

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        # Imported when first used: whoever brings another offload does not need it.
        from anyio import CapacityLimiter, to_thread  # noqa: PLC0415

        if self._limiter is None:
            self._limiter = CapacityLimiter(self._threads)
        work = partial(fn, *args, **kwargs)
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)


class InlineOffload:
    """Runs the work at once on the loop: for virtual time, where a thread would let the clock run ahead."""

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return fn(*args, **kwargs)
