"""The administrator's brake on deletions by schedule (contract B8.3)."""

from __future__ import annotations

from collections import deque

from fivespot.runtime.objects import Key

__all__ = ["DeletionLimiter"]

_MINUTE = 60.0


class DeletionLimiter:
    """Gives each machine that is to be deleted a time for it: first come, first served, so many in any minute.

    A machine keeps its time until it used or lost it, so thousands that wait each wake up once.

    :param per_minute: deletions that may begin within any 60 seconds; None for no brake.
    """

    def __init__(self, per_minute: int | None) -> None:
        self._per_minute = per_minute
        self._last: deque[float] = deque(maxlen=per_minute or 1)
        self._reserved: dict[Key, float] = {}

    def wait(self, key: Key, now: float) -> float:
        """Seconds until the deletion of this machine may begin; 0: now. Times are the loop's monotonic seconds."""
        if self._per_minute is None:
            return 0.0
        slot = self._reserved.get(key)
        if slot is None:
            full = len(self._last) == self._per_minute
            slot = max(now, self._last[0] + _MINUTE) if full else now
            self._last.append(slot)
            self._reserved[key] = slot
        return max(slot - now, 0.0)

    def release(self, key: Key) -> None:
        """The deletion has begun, or is not wanted any more."""
        self._reserved.pop(key, None)
