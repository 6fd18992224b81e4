"""Decide all schedules that are due at one instant before the status of the first is written."""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable
from datetime import datetime

from fivespot.runtime import Clock, Key

__all__ = ["DueBatch"]


class DueBatch:
    """Schedules by the instant of their next change; for decisions that are pure.

    A run decides and writes, and writes take time. The first run after an instant therefore decides for all schedules
    that change at it, and their own runs, which follow, use that decision.

    :param decide: decides for one schedule at an instant, and keeps the decision for its run.
    :param spend: waits for a turn of the loop in which there is room for that decision.
    """

    def __init__(
        self, clock: Clock, decide: Callable[[Key, datetime], None], spend: Callable[[Key], Awaitable[None]]
    ) -> None:
        self._clock = clock
        self._decide = decide
        self._spend = spend
        self._queue: list[tuple[datetime, Key]] = []
        self._due: dict[Key, datetime] = {}

    def add(self, key: Key, until: datetime | None) -> None:
        """Set the instant at which a schedule changes next; None for never."""
        if until == self._due.get(key):
            return
        if until is None:
            self._due.pop(key, None)
            return
        self._due[key] = until
        heapq.heappush(self._queue, (until, key))
        if len(self._queue) > 2 * len(self._due) + 64:
            # Most entries have been superseded.
            self._queue = [(instant, other) for other, instant in self._due.items()]
            heapq.heapify(self._queue)

    async def decide_due(self, now: datetime) -> None:
        """Decide for all that are due; returns quickly for all runs but the first after an instant."""
        while self._queue and self._queue[0][0] <= now:
            instant, key = heapq.heappop(self._queue)
            if self._due.get(key) != instant:
                continue
            del self._due[key]
            await self._spend(key)
            self._decide(key, max(now, self._clock.now()))

    def forget(self, key: Key) -> None:
        """Drop a schedule that is gone."""
        self._due.pop(key, None)
