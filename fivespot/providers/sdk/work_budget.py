"""Bound the synchronous work in one turn of the event loop, counted and not timed."""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["TURN_BYTES", "WorkBudget"]

TURN_BYTES: Final = 65_536
"""Bytes of objects that are evaluated in one turn of the loop: some tens of ordinary schedules, or one of the largest
that the definitions admit, whose evaluation takes a few hundredths of a second."""


class WorkBudget:
    """A budget that is full again in every turn of the event loop.

    Whoever evaluates an object spends its size first. What a tenant's objects cost is thereby spread over turns, and
    between any two of them other tasks run, the renewal of the leader election Lease included.
    """

    def __init__(self, limit: int = TURN_BYTES) -> None:
        self._limit = limit
        self._spent = 0

    async def spend(self, size: int) -> None:
        """Return at once while the turn's budget lasts, else in a later turn. Anything may be spent in a fresh turn."""
        while self._spent and self._spent + size > self._limit:  # noqa: ASYNC110 - each turn is what is waited for
            await asyncio.sleep(0)
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._refill)
        self._spent += max(size, 1)

    def _refill(self) -> None:
        self._spent = 0
