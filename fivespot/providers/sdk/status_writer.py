"""Write statuses, a limited number at a time, and record events when no status waits to be written."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from fivespot.runtime import ManagerContext, Object, ObjectRef, Resource

from .verdict import EventNote

__all__ = ["StatusWriter"]

WRITERS: Final = 24
"""Concurrent writes of one kind. More do not make the server faster, and leave less of it to others."""
_BACKLOG: Final = 4096
"""The most events that are kept back."""


class StatusWriter:
    """Writes the status of a provider's objects, and records their events.

    Machines wait for a verdict, nobody waits for an event: while statuses wait to be written, events are kept back.
    """

    def __init__(self, resource: Resource, context: ManagerContext) -> None:
        self._resource = resource
        self._client = context.client
        self._events = context.events
        self._turns = asyncio.Semaphore(WRITERS)
        self._unwritten = 0
        self._backlog: deque[Callable[[], None]] = deque()

    async def write(self, obj: Object, change: Mapping[str, Any], current: Callable[[], bool]) -> bool:
        """Apply a merge patch to the status; False when the object has changed since it was read.

        :param current: called when it is this write's turn; whether ``obj`` is still the newest state. If it is not,
            the change that superseded it causes another run.
        :raises NotFoundError: the object is gone.
        """
        self._unwritten += 1
        try:
            async with self._turns:
                if not current():
                    return False
                await self._client.patch_status(self._resource, obj.head, change)
        finally:
            self._unwritten -= 1
            self._release()
        return True

    def record(self, obj: Object, note: EventNote) -> None:
        """Record an event about an object."""
        resource, head = self._resource, obj.head
        regarding = ObjectRef.of(resource, head)

        def record() -> None:
            self._events.note(regarding, note)

        self._backlog.append(record)
        self._release()

    def _release(self) -> None:
        while self._backlog and (not self._unwritten or len(self._backlog) > _BACKLOG):
            self._backlog.popleft()()
