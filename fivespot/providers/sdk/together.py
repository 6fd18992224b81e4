"""Decides all schedules that are due at one instant in one go, before the first of them is written."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fivespot.runtime.clock import Clock
from fivespot.runtime.objects import Key

from .deciding import Prepared
from .verdict import Verdict

__all__ = ["Decision", "Together"]

SLICE: Final = 0.05
"""Seconds of decisions after which other tasks get a turn."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a schedule says at an instant, waiting to be written."""

    prepared: Prepared
    at: datetime
    verdict: Verdict

    def holds(self, prepared: Prepared, now: datetime) -> bool:
        """Whether it is still what the schedule says: nothing was edited, and no change came since."""
        until = self.verdict.until
        return prepared is self.prepared and self.at <= now and (until is None or now < until)


class Together:
    """Schedules by the instant of their next change; for decisions that are pure.

    A run decides and writes, and writes take their time. The first run after an instant therefore decides for all whose
    instant it is, and their own runs, which follow, find what was decided.

    :param decide: what a schedule says at an instant, None when it has no verdict or is gone.
    """

    def __init__(self, clock: Clock, decide: Callable[[Key, datetime], Decision | None]) -> None:
        self._clock = clock
        self._decide = decide
        self._queue: list[tuple[datetime, Key]] = []
        self._due: dict[Key, datetime] = {}
        self._decisions: dict[Key, Decision] = {}

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
            decision = self._decide(key, now)
            if decision is not None:
                self._decisions[key] = decision
            if self._clock.monotonic() - begun > SLICE:
                await asyncio.sleep(0)
                begun, now = self._clock.monotonic(), self._clock.now()

    def take(self, key: Key, prepared: Prepared, now: datetime) -> Decision | None:
        """What was decided for that key, if it holds."""
        decision = self._decisions.pop(key, None)
        return decision if decision is not None and decision.holds(prepared, now) else None

    def forget(self, key: Key) -> None:
        self._due.pop(key, None)
        self._decisions.pop(key, None)
