"""An informer, kinds and a reconciler that tests steer by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from fivespot.runtime.cache import InformerStatus
from fivespot.runtime.objects import (
    EVERYTHING,
    FULL,
    Change,
    ChangeType,
    GroupKind,
    Key,
    KindAbsent,
    KindState,
    KindUnknown,
    Object,
    Resource,
)
from fivespot.runtime.reconcile import DONE, Result

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
WIDGET = WIDGETS.group_kind


def make_object(name: str, namespace: str = "ns", version: int = 1, **metadata: Any) -> Object:
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(version)} | metadata
    return Object.parse(json.dumps({"metadata": meta}).encode())


class Handle:
    """A subscription."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close

    def close(self) -> None:
        self._close()


class FakeInformer:
    """Replays what is there, says when it has told all, and passes on what a test emits."""

    def __init__(self, *objects: Object, synced: bool = True, resource: Resource = WIDGETS) -> None:
        self.resource = resource
        self.objects = {obj.key: obj for obj in objects}
        self.synced = synced
        self.last_error: Exception | None = None
        self.error_since: float | None = None
        self.released = False
        self.subscribers: list[tuple[Callable[[Change], None], Callable[[], None] | None]] = []
        self.listeners: list[Callable[[InformerStatus], None]] = []

    @property
    def status(self) -> InformerStatus:
        state = "watching" if self.synced else "listing"
        count = len(self.objects)
        return InformerStatus(
            self.resource,
            None,
            EVERYTHING,
            FULL,
            state,
            self.synced,
            1,
            count,
            None,
            0,
            0,
            self.last_error,
            self.error_since,
            0,
        )

    def subscribe(self, handler: Callable[[Change], None], /, *, on_synced: Callable[[], None] | None = None) -> Handle:
        entry = (handler, on_synced)
        self.subscribers.append(entry)
        for obj in list(self.objects.values()):
            handler(Change(ChangeType.ADDED, obj))
        if self.synced and on_synced is not None:
            on_synced()
        return Handle(lambda: self.subscribers.remove(entry) if entry in self.subscribers else None)

    def on_status(self, fn: Callable[[InformerStatus], None], /) -> Handle:
        self.listeners.append(fn)
        return Handle(lambda: self.listeners.remove(fn) if fn in self.listeners else None)

    def list(self) -> list[Object]:
        return list(self.objects.values())

    def release(self) -> None:
        self.released = True
        self.objects.clear()

    def sync(self) -> None:
        self.synced = True
        for _, on_synced in list(self.subscribers):
            if on_synced is not None:
                on_synced()
        for listener in list(self.listeners):
            listener(self.status)

    def put(self, obj: Object) -> None:
        old = self.objects.get(obj.key)
        self.objects[obj.key] = obj
        self.emit(Change(ChangeType.MODIFIED if old else ChangeType.ADDED, obj, old))

    def emit(self, change: Change) -> None:
        for handler, _ in list(self.subscribers):
            handler(change)


class FakeKinds:
    """Facts of one group as a test sets them."""

    def __init__(self, facts: KindState | KindAbsent | KindUnknown) -> None:
        self.facts = facts
        self.groups: list[str] = []
        self.listeners: list[Callable[[str], None]] = []

    def watch_group(self, group: str, /) -> None:
        self.groups.append(group)

    def lookup(self, gk: GroupKind, /) -> KindState | KindAbsent | KindUnknown:
        return self.facts

    def subscribe(self, fn: Callable[[str], None], /) -> Handle:
        self.listeners.append(fn)
        return Handle(lambda: self.listeners.remove(fn) if fn in self.listeners else None)

    def set(self, facts: KindState | KindAbsent | KindUnknown) -> None:
        self.facts = facts
        for listener in list(self.listeners):
            listener("example.com")


def kind_state(
    *served: str, established: bool = True, deleting: bool = False, plural: str = "widgets", storage: str = ""
) -> KindState:
    return KindState(
        "example.com",
        "Widget",
        plural,
        f"{plural}.example.com",
        True,
        established,
        deleting,
        served,
        storage or (served[0] if served else ""),
        {},
        "uid",
        1,
    )


class Runs:
    """A reconciler that records its runs and then does what the test wants."""

    def __init__(self, act: Callable[[Key], Awaitable[Result]] | None = None) -> None:
        self.act = act
        self.keys: list[Key] = []
        self.at: list[float] = []
        self.active: set[Key] = set()
        self.most = 0

    async def reconcile(self, key: Key) -> Result:
        assert key not in self.active, "two runs of one key at a time"
        self.active.add(key)
        self.most = max(self.most, len(self.active))
        self.keys.append(key)
        self.at.append(asyncio.get_running_loop().time())
        try:
            return await self.act(key) if self.act is not None else DONE
        finally:
            self.active.discard(key)


class RecordingMetrics:
    """Results and the number of busy workers."""

    def __init__(self) -> None:
        self.results: list[str] = []
        self.seconds: list[float] = []
        self.busy = 0
        self.capacity = 0

    def result(self, result: str, seconds: float, /) -> None:
        self.results.append(result)
        self.seconds.append(seconds)

    def active(self, change: int, /) -> None:
        self.busy += change

    def workers(self, count: int, /) -> None:
        self.capacity = count
