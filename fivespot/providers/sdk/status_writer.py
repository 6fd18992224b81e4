"""Write statuses, a limited number at a time, and record events when no status waits to be written."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from fivespot.runtime import ManagerContext, Object, ObjectRef, Resource
from fivespot.runtime.objects import field_writer, parse_rfc3339

from .overrides import OVERRIDE_STARTED
from .verdict import EventNote

__all__ = ["StatusWriter", "with_setter", "with_switch"]

WRITERS: Final = 24
"""Concurrent writes of one kind. More do not make the server faster, and leave less of it to others."""
_BACKLOG: Final = 4096
"""The most events that are kept back."""
_JUST_NOW: Final = 60.0
"""Seconds for which a switch counts as the cause of a change."""


class StatusWriter:
    """Writes the status of a provider's objects, and records their events.

    Machines wait for a verdict, nobody waits for an event: while statuses wait to be written, events are kept back.

    :param reporter: ``reportingController`` of the events; "" for the manager's own name.
    """

    def __init__(self, resource: Resource, context: ManagerContext, reporter: str = "") -> None:
        self._reporter = reporter
        self._resource = resource
        self._client = context.client
        self._events = context.events
        self._turns = asyncio.Semaphore(WRITERS)
        self._unwritten = 0
        self._answer: Object | None = None
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
                self._answer = await self._client.patch_status(self._resource, obj.head, change)
        finally:
            self._unwritten -= 1
            self._release()
        return True

    def take_answer(self, obj: Object) -> Object | None:
        """Return the server's answer to the write that has just ended, if it was one of this object, and forget it.

        To be called before anything is awaited: only the last answer is kept, since it may be large.
        """
        answer, self._answer = self._answer, None
        return answer if answer is not None and answer.head.uid == obj.head.uid else None

    def record(self, obj: Object, note: EventNote) -> None:
        """Record an event about an object."""
        resource, head = self._resource, obj.head
        regarding = ObjectRef.of(resource, head)

        def record() -> None:
            self._events.note(regarding, note, controller=self._reporter)

        self._backlog.append(record)
        self._release()

    def _release(self) -> None:
        while self._backlog and (not self._unwritten or len(self._backlog) > _BACKLOG):
            self._backlog.popleft()()


def with_switch(message: str, answer: Object | None, now: datetime) -> str:
    """Return the message of a verdict that an edit has changed, with who set ``spec.enabled`` if that was just now.

    Of a field that was removed nobody is recorded, so other edits are not attributed.

    :param answer: the object as the server returned it; None where nothing was written.
    """
    writer = field_writer(answer.decode(), "spec", "enabled") if answer is not None else None
    set_at = parse_rfc3339(writer.time) if writer is not None else None
    if set_at is None or abs((now - set_at).total_seconds()) > _JUST_NOW:
        return message
    return f"{message}; spec.enabled was {writer}"


def with_setter(note: EventNote, answer: Object | None) -> EventNote:
    """Return the event about an override that begins with who set the override; any other as it is.

    :param answer: as :func:`with_switch` takes it.
    """
    if note.reason != OVERRIDE_STARTED or answer is None:
        return note
    name = note.once.split(" ")[1]
    body = answer.decode()
    # A list without keys, as another provider's schema may have it, is recorded as a whole.
    writer = field_writer(body, "spec", "overrides", f'k:{{"name":"{name}"}}') or field_writer(
        body, "spec", "overrides"
    )
    return note if writer is None else replace(note, message=f"{note.message}; {writer}")
