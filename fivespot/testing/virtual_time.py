"""Event loops with virtual time: waiting takes no real time."""

from __future__ import annotations

import asyncio
import gc
import math
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

__all__ = ["PacedLoop", "StuckError", "VirtualTimeLoop", "run_virtual"]

T = TypeVar("T")

Ts = TypeVarTuple("Ts")

_COLLECT_AFTER: Final = 100_000
"""Allocations between garbage collections: scanning all live objects of a server after every few hundred costs a
quarter of a long run."""

_TICKS: Final = 2.0**20
"""Ticks in a second, a power of two: sums of whole ticks are exact for centuries."""


class StuckError(RuntimeError):
    """A deadlock: all tasks wait, and no timer is scheduled."""


class _JumpingSelector(selectors.DefaultSelector):
    """Polls for input without waiting; instead of waiting, time jumps to the end of the time-out."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise StuckError("everything waits, and no timer is set")
        self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and jumps to the next timer when no task is ready.

    For code that waits only on the loop's clock: sockets and threads take real time, which this loop does not wait for.
    A run with seeded random numbers repeats exactly.

    :raises StuckError: from ``run_until_complete``, where an ordinary loop would hang.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        # Round up to a whole tick. asyncio fires timers up to a nanosecond early; time would then stand still before
        # the deadline, and code that waits until it has passed would loop for ever.
        if math.isfinite(when):
            when = math.ceil(when * _TICKS) / _TICKS
        return super().call_at(when, callback, *args, context=context)


def run_virtual(main: Coroutine[Any, Any, T], *, loop_factory: Callable[[], VirtualTimeLoop] = VirtualTimeLoop) -> T:
    """Run a coroutine in virtual time, as :func:`asyncio.run` does in real time.

    Garbage collection runs less often meanwhile.
    """
    with _rare_collections(), asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(main)


@contextmanager
def _rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


_BEHIND: Final = 0.1
"""Real seconds of delay that are caught up. After a longer delay, as of a busy or suspended machine, virtual time
continues from where it was."""


class _PacedSelector(selectors.DefaultSelector):
    """Waits for input or for the end of the time-out, scaled to real time."""

    def __init__(self, speed: float, outside: Callable[[], float]) -> None:
        super().__init__()
        self.now = 0.0
        self._speed = speed
        self._outside = outside
        self._anchor = outside()
        """Real time at virtual time 0."""
        self._skip_until = 0.0

    def skip(self, seconds: float) -> None:
        """Run the next virtual seconds without waiting."""
        self._skip_until = max(self._skip_until, self.now) + seconds

    @property
    def skipping(self) -> bool:
        return self.now < self._skip_until

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if self.skipping:
            then = self._skip_until if timeout is None else min(self.now + timeout, self._skip_until)
            ready = super().select(0)
            self.now = self.now if ready else then
            self._anchor = self._outside() - self.now / self._speed
            return ready
        late = -self._due(self.now) - _BEHIND
        if late > 0:
            self._anchor += late
        if timeout is None:
            ready = super().select(None)
            self.now = max(self.now, self._inside())
            return ready
        then = self.now + timeout
        ready = super().select(max(0.0, self._due(then)))
        self.now = min(then, max(self.now, self._inside())) if ready else then
        return ready

    def _due(self, inside: float) -> float:
        """Real seconds until the virtual time ``inside``; negative when it has passed."""
        return self._anchor + inside / self._speed - self._outside()

    def _inside(self) -> float:
        return (self._outside() - self._anchor) * self._speed


class PacedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and runs ``speed`` times as fast as real time.

    Unlike a scaled clock, time stands still while a callback runs, and no timer is skipped: a time-out of ten seconds,
    which is a sixth of a real second at speed 60, does not expire because the machine is slow. When callbacks take
    longer than the time between timers, virtual time falls behind ``speed``.

    Unlike on :class:`VirtualTimeLoop`, sockets work. Time-outs for other processes have to be multiplied by ``speed``.

    :param speed: above zero.
    """

    def __init__(self, speed: float) -> None:
        self._paced = _PacedSelector(speed, super().time)
        self.speed = speed
        super().__init__(self._paced)
        if not 0 < speed < float("inf"):
            self.close()
            raise ValueError("speed must be above zero")

    def time(self) -> float:
        return self._paced.now

    def skip(self, seconds: float) -> None:
        """Run the next virtual seconds as fast as possible; timers still fire in order and at their time."""
        self._paced.skip(seconds)

    @property
    def skipping(self) -> bool:
        """Whether a skip is under way."""
        return self._paced.skipping
