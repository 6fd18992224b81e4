"""An event loop whose time is virtual: waiting costs nothing, and nothing happens too late."""

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

"""New containers before Python looks for garbage in cycles: a server's worth of objects is live, and looking through
them after every few hundred costs a quarter of a long run."""

_TICKS: Final = 2.0**20

"""Ticks in a second, a power of two: sums of whole ticks are exact for centuries."""


class StuckError(RuntimeError):
    """Nothing is ready, nothing is scheduled, and nothing can ever happen: everything waits for something else."""


class _JumpingSelector(selectors.DefaultSelector):
    """Looks for input without waiting; where it would wait, time jumps to the end of the wait."""

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
    """Time begins at 0 and jumps to the next timer as soon as nothing else is left to do.

    For code that waits on the loop's clock alone and meets no other process: sockets and threads take real time, which
    this loop does not wait for. A run that draws its chance from a seed repeats exactly.

    :raises StuckError: out of ``run_until_complete``, where an ordinary loop would hang.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        # To the next whole tick. asyncio takes a timer for due a nanosecond early; time would then stand still before
        # the deadline, and whoever waits until it has passed would ask again, for ever.
        if math.isfinite(when):
            when = math.ceil(when * _TICKS) / _TICKS
        return super().call_at(when, callback, *args, context=context)


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time, as :func:`asyncio.run` does in real time.

    Python looks for garbage in cycles more rarely meanwhile.
    """
    with _rare_collections(), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
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

"""Real seconds of delay that are caught up with. What a busy machine or a suspended one loses beyond is not: time
then goes on from where it was, as if it had been stopped."""


class _PacedSelector(selectors.DefaultSelector):
    """Waits for input or for the end of the wait, which comes earlier outside than inside."""

    def __init__(self, speed: float, outside: Callable[[], float]) -> None:
        super().__init__()
        self.now = 0.0
        self._speed = speed
        self._outside = outside
        self._anchor = outside()
        """When it was 0 inside."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
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
        """Real seconds from now until it is ``inside``; below zero: it should be already."""
        return self._anchor + inside / self._speed - self._outside()

    def _inside(self) -> float:
        return (self._outside() - self._anchor) * self._speed


class PacedLoop(asyncio.SelectorEventLoop):
    """Time begins at 0 and runs ``speed`` times as fast as outside, for everything that waits on this loop.

    Unlike a clock that is merely multiplied, it stands still while something works, and no timer is passed over: a
    limit of ten seconds, which is a sixth of a second outside at 60, is not exceeded because the machine is slow. Where
    the work takes longer than there is time for, time inside falls behind ``speed``.

    Unlike on a virtual-time loop, sockets work. What waits for another process on a limit of this loop gives it so much
    less time, so such limits have to be multiplied.

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
