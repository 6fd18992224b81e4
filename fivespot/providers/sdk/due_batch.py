"""Decides all schedules that are due at one instant in one go, before the first of them is written."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import datetime
from typing import Final

from fivespot.runtime.clock import Clock
from fivespot.runtime.objects import Key

__all__ = ["Together"]

SLICE: Final = 0.05
"""Seconds of decisions after which other tasks get a turn."""


class Together:
    """Schedules by the instant of their next change; for decisions that are pure.

    A run decides and writes, and writes take their time. The first run after an instant therefore decides for all whose
    instant it is, and their own runs, which follow, find what was decided.

    :param decide: decides for one schedule at an instant, and keeps what it says for its run.
    """

    def __init__(self, clock: Clock, decide: Callable[[Key, datetime], None]) -> None:
        self._clock = clock
        self._decide = decide
        self._queue: list[tuple[datetime, Key]] = []
        self._due: dict[Key, datetime] = {}

    def expect(self, key: Key, until: datetime | None) -> None:
        """The schedule of that key changes next at this instant."""
        if until == self._due.get(key):
            return
        if until is None:
            self._due.pop(key, None)
            return
        self._due[key] = until
        heapq.heappush(self._queue, (until, key))
        if len(self._queue) > 2 * len(self._due) + 64:
            # What was expected before and is no longer.
            self._queue = [(instant, other) for other, instant in self._due.items()]
            heapq.heapify(self._queue)

    async def decide_due(self, now: datetime) -> None:
        """Decide for all that are due; soon over, as all but the first run find nothing left to do."""
        begun = self._clock.monotonic()
        while self._queue and self._queue[0][0] <= now:
            instant, key = heapq.heappop(self._queue)
            if self._due.get(key) != instant:
                continue
            del self._due[key]
            self._decide(key, now)
            if self._clock.monotonic() - begun > SLICE:
                await asyncio.sleep(0)
                begun, now = self._clock.monotonic(), self._clock.now()

    def forget(self, key: Key) -> None:
        self._due.pop(key, None)
