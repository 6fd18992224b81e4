"""A budget after which a loop that never has to wait lets other tasks run."""

from __future__ import annotations

__all__ = ["YieldBudget"]


class YieldBudget:
    """Counts the work since other tasks last ran.

    Reading events that have arrived already never suspends, so a burst of them would starve everything else, the
    renewal of a lease included.
    """

    __slots__ = ("_count", "_limit", "_seconds", "_since")

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._count = 0
        self._since = 0.0

    def over(self, now: float) -> bool:
        """Count one piece of work; True when it is time for ``await asyncio.sleep(0)``."""
        if self._count == 0:
            self._since = now
        self._count += 1
        if self._count < self._limit and now - self._since < self._seconds:
            return False
        self._count = 0
        return True
