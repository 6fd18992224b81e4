"""Records every state of the objects under test, through one watch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from fivespot.runtime import Client, Clock, FivespotError, Key, Resource
from fivespot.runtime.client import Watch, WatchEnd, WatchEnded
from fivespot.runtime.objects import parse_version

from .history import ObjectHistory, Observation

__all__ = ["Recorder", "RecordingLostError"]

T = TypeVar("T")

_SERVER_TIMEOUT = 600.0
_REOPEN_DELAY = 0.2
"""Seconds before a broken watch is reopened."""

_RESUMED = frozenset({WatchEnd.CLEAN, WatchEnd.BROKEN, WatchEnd.IDLE, WatchEnd.THROTTLED})


class RecordingLostError(FivespotError):
    """The watch lost events, so the provider cannot be judged."""


class Recorder:
    """Histories of the objects that the kit created, by key. Other objects are ignored."""

    def __init__(self, client: Client, resource: Resource, namespace: str, clock: Clock) -> None:
        self.records: dict[Key, ObjectHistory] = {}
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._clock = clock
        self._changed = asyncio.Event()
        self._version = ""

    async def begin(self) -> None:
        """Find the resourceVersion to watch from: everything after it is recorded once :meth:`run` runs."""
        page = await self._client.page(self._resource, self._namespace, limit=1, metadata_only=True)
        self._version = page.version

    async def run(self) -> None:
        """Record until cancelled.

        :raises RecordingLostError: events were lost.
        """
        while True:
            try:
                watch = await self._client.watch(
                    self._resource, self._namespace, version=self._version, server_timeout=_SERVER_TIMEOUT
                )
                async with watch:
                    await self._read(watch)
            except WatchEnded as ended:
                if ended.reason not in _RESUMED:
                    raise RecordingLostError(f"the watch for {self._resource.qualified} was lost: {ended}") from ended
            await asyncio.sleep(_REOPEN_DELAY)

    def register(self, key: Key) -> ObjectHistory:
        """Start the history of an object."""
        return self.records.setdefault(key, ObjectHistory(key))

    async def until(self, key: Key, check: Callable[[ObjectHistory], T | None], seconds: float) -> T | None:
        """Wait until ``check`` finds something in the history of an object; None after that many seconds."""
        record = self.records[key]
        try:
            async with asyncio.timeout(seconds):
                while True:
                    changed = self._changed
                    found = check(record)
                    if found:
                        return found
                    await changed.wait()
        except TimeoutError:
            return None

    async def _read(self, watch: Watch) -> None:
        while True:
            event = await watch.next()
            body = msgspec.json.decode(event.object)
            metadata = body.get("metadata") or {}
            version = parse_version(str(metadata.get("resourceVersion", "")))
            self._version = str(version)
            record = self.records.get(Key(metadata.get("namespace", ""), metadata.get("name", "")))
            if event.type != "BOOKMARK" and record is not None:
                record.seen.append(Observation(event.type, version, self._clock.monotonic(), self._clock.now(), body))
                changed, self._changed = self._changed, asyncio.Event()
                changed.set()
