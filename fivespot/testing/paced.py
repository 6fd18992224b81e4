"""An event loop on which time runs faster than it does outside, and never faster than the work gets done."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Final

__all__ = ["PacedLoop"]

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
