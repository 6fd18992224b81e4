"""The object store: encoded JSON under one increasing resourceVersion, and the history that watches resume from."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .json_codec import decode_json, encode_json

__all__ = ["Collection", "Entry", "Event", "Notifier", "ObjectStore", "encode_tail"]

_OPENING: Final = len('{"metadata":{')


@dataclass(slots=True, eq=False)
class Entry:
    """An object at one version; immutable.

    :param key: ``namespace/name``, or the name alone for kinds without namespaces.
    :param tail: the JSON of the object after ``{"metadata":{``; apiVersion, kind and resourceVersion are put in front
        when it is sent, so that neither a new version nor another API version costs an encoding.
    :param fields: values for field selectors beside name and namespace.
    :param epoch: epoch of the kind when it was stored.
    """

    key: str
    uid: str
    version: int
    tail: bytes
    labels: Mapping[str, str]
    owners: tuple[str, ...]
    deleting: bool
    fields: Mapping[str, str]
    epoch: int

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    def decode(self) -> dict[str, Any]:
        """A copy of the object, without apiVersion and kind."""
        body: dict[str, Any] = decode_json(b'{"metadata":{' + self.tail)
        body["metadata"]["resourceVersion"] = str(self.version)
        return body

    def at(self, version: int) -> Entry:
        """A copy under another version."""
        return Entry(
            self.key, self.uid, version, self.tail, self.labels, self.owners, self.deleting, self.fields, self.epoch
        )


def encode_tail(body: Mapping[str, Any]) -> bytes:
    """The stored form of an object."""
    metadata = {name: value for name, value in body["metadata"].items() if name != "resourceVersion"}
    rest = {name: value for name, value in body.items() if name not in {"apiVersion", "kind", "metadata"}}
    return encode_json({"metadata": metadata, **rest})[_OPENING:]


@dataclass(slots=True, eq=False)
class Event:
    """A change. ``old`` is None for a creation; for a deletion ``new`` is the last state, at the deletion's version."""

    version: int
    new: Entry
    old: Entry | None
    deleted: bool


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Notifier:
    """Wakes all waiting tasks when it fires."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        # Ordered, so that seeded runs wake tasks in the same order.
        self._waiting: dict[asyncio.Future[None], None] = {}

    def fire(self) -> None:
        """Wake all waiting tasks."""
        for future in self._waiting:
            _wake(future)
        self._waiting.clear()

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until it fires, or until the time-out."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting[future] = None
        # A timer that completes the future costs half of asyncio.timeout, which cancels the task.
        timer = loop.call_later(seconds, _wake, future) if seconds is not None else None
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
            self._waiting.pop(future, None)


class Collection:
    """All objects of one resource.

    :param window: changes that are kept; clients that are further behind get 410.
    """

    def __init__(self, window: int) -> None:
        self.entries: dict[str, Entry] = {}
        self.changed = Notifier()
        self.closed = False
        self.floor = 0
        """The version up to which the history is compacted."""
        self._keys: list[str] = []
        self._log: list[Event] = []
        self._dropped = 0
        self._window = window

    # -- reading -------------------------------------------------------------------------------------------------

    def keys(self, namespace: str) -> list[str]:
        """Sorted keys of one namespace, or of all for "" (etcd's order)."""
        if not namespace:
            return list(self._keys)
        low, high = self._range(self._keys, namespace)
        return self._keys[low:high]

    def snapshot(self, namespace: str) -> list[Entry]:
        """The current entries, in order."""
        return [self.entries[key] for key in self.keys(namespace)]

    def snapshot_at(self, version: int, namespace: str) -> list[Entry] | None:
        """The entries at a version, in order; None when it is compacted."""
        if version < self.floor:
            return None
        if not self._log or self._log[-1].version <= version:
            return self.snapshot(namespace)
        then: dict[str, Entry] = dict(self.entries)
        for event in reversed(self._log):
            if event.version <= version:
                break
            if event.old is None:
                then.pop(event.new.key, None)
            else:
                then[event.old.key] = event.old
        keys = sorted(then)
        low, high = self._range(keys, namespace) if namespace else (0, len(keys))
        return [then[key] for key in keys[low:high]]

    @staticmethod
    def _range(keys: list[str], namespace: str) -> tuple[int, int]:
        # "0" is the letter after "/".
        return bisect_left(keys, f"{namespace}/"), bisect_left(keys, f"{namespace}0")

    # -- history -------------------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The position behind the newest event."""
        return self._dropped + len(self._log)

    def position_after(self, version: int) -> int:
        """The position of the first event after a version."""
        return self._dropped + bisect_left(self._log, version + 1, key=lambda event: event.version)

    def events(self, position: int, limit: int) -> list[Event] | None:
        """Events from a position on; None when they are compacted."""
        start = position - self._dropped
        return None if start < 0 else self._log[start : start + limit]

    def compact(self, version: int) -> None:
        """Compact the history up to a version."""
        keep = bisect_left(self._log, version + 1, key=lambda event: event.version)
        self._drop(keep)
        self.floor = max(self.floor, version)

    def _drop(self, number: int) -> None:
        if number:
            self.floor = max(self.floor, self._log[number - 1].version)
            self._dropped += number
            del self._log[:number]

    # -- writing -------------------------------------------------------------------------------------------------

    def put(self, entry: Entry) -> Event:
        """Store an object; its version is newer than all before."""
        old = self.entries.get(entry.key)
        if old is None:
            insort(self._keys, entry.key)
        self.entries[entry.key] = entry
        return self._record(Event(entry.version, entry, old, deleted=False))

    def remove(self, key: str, version: int) -> Event:
        """Remove an object."""
        old = self.entries.pop(key)
        del self._keys[bisect_left(self._keys, key)]
        return self._record(Event(version, old.at(version), old, deleted=True))

    def _record(self, event: Event) -> Event:
        self._log.append(event)
        # In steps, because each costs time in proportion to the kept changes.
        if len(self._log) > self._window + self._window // 4 + 1:
            self._drop(len(self._log) - self._window)
        self.changed.fire()
        return event

    def close(self) -> None:
        """Close: watches deliver pending events and end."""
        self.closed = True
        self.changed.fire()


class ObjectStore:
    """All collections, and the version that they share.

    :param window: changes remembered per resource.
    """

    def __init__(self, window: int = 10_000) -> None:
        self.version = 1
        self._collections: dict[tuple[str, str], Collection] = {}
        self._window = window
        self._by_uid: dict[str, tuple[str, str, str]] = {}
        self._listeners: list[Callable[[str, str, Event], None]] = []

    def collection(self, group: str, plural: str) -> Collection:
        """The objects of a resource; an empty collection when there are none."""
        found = self._collections.get((group, plural))
        if found is None:
            found = self._collections[group, plural] = Collection(self._window)
            found.floor = 0
        return found

    def listen(self, listener: Callable[[str, str, Event], None]) -> None:
        """Register a function that is called after every change, with group and plural."""
        self._listeners.append(listener)

    def next_version(self) -> int:
        """Allocate the version of the next write."""
        self.version += 1
        return self.version

    def put(self, group: str, plural: str, entry: Entry) -> None:
        """Store an object under its version."""
        self._by_uid[entry.uid] = (group, plural, entry.key)
        self._publish(group, plural, self.collection(group, plural).put(entry))

    def remove(self, group: str, plural: str, key: str) -> Entry:
        """Remove an object; returns its last state, at the version of the removal."""
        collection = self.collection(group, plural)
        self._by_uid.pop(collection.entries[key].uid, None)
        event = collection.remove(key, self.next_version())
        self._publish(group, plural, event)
        return event.new

    def _publish(self, group: str, plural: str, event: Event) -> None:
        for listener in self._listeners:
            listener(group, plural, event)

    def find(self, uid: str) -> tuple[str, str, Entry] | None:
        """Group, plural and entry of the object with a uid."""
        place = self._by_uid.get(uid)
        if place is None:
            return None
        group, plural, key = place
        return group, plural, self._collections[group, plural].entries[key]

    def compact(self, version: int | None = None) -> None:
        """Compact the history up to a version (by default the newest): older watches and continue tokens get 410."""
        upto = self.version if version is None else version
        for collection in self._collections.values():
            collection.compact(upto)

    def drop(self, group: str, plural: str) -> None:
        """Remove a resource: its watches end, and a later resource of the same name starts empty."""
        collection = self._collections.pop((group, plural), None)
        if collection is not None:
            for entry in collection.entries.values():
                self._by_uid.pop(entry.uid, None)
            collection.close()

    def close(self) -> None:
        """End every watch."""
        for collection in self._collections.values():
            collection.close()

    def all(self) -> Iterator[tuple[str, str, Collection]]:
        """Every collection with its group and plural."""
        for (group, plural), collection in list(self._collections.items()):
            yield group, plural, collection
