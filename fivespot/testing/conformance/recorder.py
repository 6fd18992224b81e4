"""Records every state of the objects under test, through one watch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from fivespot.runtime.client import Client, Watch, WatchEnd, WatchEnded
from fivespot.runtime.clock import Clock
from fivespot.runtime.errors import FivespotError
from fivespot.runtime.objects import Key, Resource, parse_version

from .history import ObjectHistory, Observation

__all__ = ["Recorder", "RecordingLostError"]

T = TypeVar("T")

_SERVER_TIMEOUT = 600.0
_PAUSE = 0.2
"""Seconds before a broken watch is opened again."""

_RESUMED = frozenset({WatchEnd.CLEAN, WatchEnd.BROKEN, WatchEnd.IDLE, WatchEnd.THROTTLED})


class RecordingLostError(FivespotError):
    """The server could not tell everything that happened, so nothing can be said of the provider."""


class Recorder:
    """The records of all objects that the kit made, by key. What other objects do is not kept."""

    def __init__(self, client: Client, resource: Resource, namespace: str, clock: Clock) -> None:
        self.records: dict[Key, ObjectHistory] = {}
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._clock = clock
        self._bell = asyncio.Event()
        self._version = ""

    async def begin(self) -> None:
        """Finds the version to watch from; what happens after this returns is recorded, once :meth:`run` runs."""
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
            await asyncio.sleep(_PAUSE)

    def register(self, key: Key) -> ObjectHistory:
        """Begin to keep what is seen of an object."""
        return self.records.setdefault(key, ObjectHistory(key))

    async def until(self, key: Key, check: Callable[[ObjectHistory], T | None], seconds: float) -> T | None:
        """What ``check`` finds in an object's record, as soon as it finds something; None after that many seconds."""
        record = self.records[key]
        try:
            async with asyncio.timeout(seconds):
                while True:
                    bell = self._bell
                    found = check(record)
                    if found:
                        return found
                    await bell.wait()
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
                bell, self._bell = self._bell, asyncio.Event()
                bell.set()
