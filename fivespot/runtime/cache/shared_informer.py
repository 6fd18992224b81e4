"""One list and watch with its store: what all informers for the same objects share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import structlog

from fivespot.runtime.clock import Clock
from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import (
    Change,
    ChangeType,
    Head,
    Key,
    Object,
    Projection,
    Resource,
    Selector,
    WireMeta,
    decode_head,
)
from fivespot.runtime.telemetry import LogLimiter

from .index import IndexFunction
from .reflector_state import ReflectorSettings
from .store import Changes, Store, Swap
from .yield_budget import YieldBudget

__all__ = ["Handler", "InformerStatus", "Listener", "SharedInformer", "Spawn"]

Handler = Callable[[Change], None]
Spawn = Callable[[Coroutine[Any, Any, None], str], None]
"""Starts a task, by name, in a group that somebody owns."""

_log = structlog.get_logger(__name__)
_NOTHING = b"{}"
_FAULT_INTERVAL = 60.0
"""Seconds between two logged failures of one handler or index: enough to see, too few to flood."""


@dataclass(frozen=True, slots=True)
class InformerStatus:
    """How an informer is doing.

    :param state: ``empty``, ``listing``, ``syncing``, ``watching``, ``backing off``, ``not served`` or ``stopped``.
    :param synced: the first list is complete. It stays so while the connection is broken; ``error_since`` tells.
    :param version: the resourceVersion that the watch has reached.
    :param objects: objects held.
    :param last_activity: when the server last sent something (monotonic seconds), None: never.
    :param relists: lists completed, the first included.
    :param watches: watches opened.
    :param last_error: the latest failure, also when it is over; "" if there was none.
    :param error_since: since when the server cannot be read (monotonic seconds), None: it can.
    :param faults: failures of handlers, index functions and projections.
    """

    resource: Resource
    namespace: str | None
    selector: Selector
    projection: Projection
    state: str
    synced: bool
    version: int
    objects: int
    last_activity: float | None
    relists: int
    watches: int
    last_error: str
    error_since: float | None
    faults: int


class Listener:
    """One handler, with what it still has to be told of the objects that were there before it."""

    __slots__ = ("_handler", "_on_synced", "_report", "backlog", "closed")

    def __init__(
        self, handler: Handler, on_synced: Callable[[], None] | None, report: Callable[[str, Exception], None]
    ) -> None:
        self._handler = handler
        self._on_synced = on_synced
        self._report = report
        self.backlog: dict[Key, Object] = {}
        self.closed = False

    def tell(self, change: Change) -> None:
        if self.backlog:
            # In the order in which things happened: the object was there before it changed.
            self.tell_backlog(change.key)
        if self.closed:
            return
        try:
            self._handler(change)
        except Exception as error:
            # A handler is code of the informer's users. Its mistake is logged and counted; the others, and the
            # reflector that all of them share, go on.
            self._report(f"handler {_name_of(self._handler)}", error)

    def tell_backlog(self, key: Key) -> None:
        obj = self.backlog.pop(key, None)
        if obj is not None:
            self.tell(Change(ChangeType.ADDED, obj))

    def tell_synced(self) -> None:
        """Say once that all that was there has been told."""
        on_synced, self._on_synced = self._on_synced, None
        if on_synced is not None and not self.closed:
            try:
                on_synced()
            except Exception as error:
                # As for handlers: a consumer's mistake must not stop the reflector that others depend on.
                self._report(f"handler {_name_of(on_synced)}", error)


class SharedInformer:
    """The store of one informer and everybody who listens to it. The driver feeds it; so do our own writes."""

    def __init__(
        self,
        resource: Resource,
        namespace: str | None,
        selector: Selector,
        projection: Projection,
        *,
        clock: Clock,
        settings: ReflectorSettings,
        spawn: Spawn,
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.selector = selector
        self.projection = projection
        self.settings = settings
        self.users = 0
        self.task: asyncio.Task[None] | None = None
        self.store = Store(self._fault)
        self.synced = asyncio.Event()
        self.nudged = asyncio.Event()
        """Set when the definition of the resource changed: it may be served now."""
        self.reconnect: Callable[[], None] = _nothing_to_do
        """Gives up the connection of the watch, where one is followed."""
        self.state = "empty"
        self.last_activity: float | None = None
        self.relists = 0
        self.watches = 0
        self.last_error = ""
        self.error_since: float | None = None
        self.faults = 0
        self._clock = clock
        self._spawn = spawn
        self._limiter = LogLimiter(_FAULT_INTERVAL)
        self._swap: Swap | None = None
        self._receivers: tuple[Listener, ...] = ()
        self._joining: list[Listener] = []
        self._listeners: tuple[Callable[[], None], ...] = ()

    @property
    def status(self) -> InformerStatus:
        return InformerStatus(
            self.resource,
            self.namespace,
            self.selector,
            self.projection,
            self.state,
            self.synced.is_set(),
            self.store.version,
            len(self.store),
            self.last_activity,
            self.relists,
            self.watches,
            self.last_error,
            self.error_since,
            self.faults,
        )

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource}{where} ({self.projection.name})"

    # From the driver

    def make(self, raw: bytes | msgspec.Raw, head: Head, meta: WireMeta | None = None) -> Object:
        """An object as this informer keeps it.

        One whose body the projection cannot read is kept with an empty body: readers then miss every field of it,
        and no other object is affected.
        """
        try:
            return Object(self.projection.project(raw, meta), head)
        except ProtocolError as error:
            self._fault(f"projection {self.projection.name} of {head.namespace}/{head.name}", error)
            return Object(_NOTHING, head)

    def dispatch(self, changes: Changes) -> None:
        for change in changes:
            for receiver in self._receivers:
                receiver.tell(change)

    async def swap(self, version: int) -> None:
        """Show the staged list and tell of the difference, letting other tasks run in between."""
        self._swap = self.store.commit(version)
        settings = self.settings
        burst = YieldBudget(settings.burst_events, settings.burst_seconds)
        for changes in self._swap:
            self.dispatch(changes)
            if burst.over(self._clock.monotonic()):
                await asyncio.sleep(0)
        self._swap = None
        self.relists += 1
        first = not self.synced.is_set()
        self.synced.set()
        joining, self._joining = self._joining, []
        if first:
            for receiver in self._receivers:
                # One that is still being told its backlog hears of the sync at the end of that.
                if not receiver.backlog:
                    receiver.tell_synced()
        for receiver in joining:
            self._replay(receiver)
        if first:
            self.notify()

    def failed(self, text: str) -> None:
        """The server cannot be read."""
        self.last_error = text
        if self.error_since is None:
            self.error_since = self._clock.monotonic()
            self.notify()

    def recovered(self) -> bool:
        """The server can be read; True if it could not before."""
        if self.error_since is None:
            return False
        self.error_since = None
        self.notify()
        return True

    # From our own writes

    def wrote(self, resource: Resource, obj: Object) -> None:
        key = obj.key
        if not self._covers(key):
            return
        if resource.version != self.resource.version and not self.projection.metadata_only:
            # The answer has the shape of another version; the watch brings it in ours.
            return
        annotations = self.projection.annotations
        head = obj.head if annotations is None else decode_head(obj.raw, annotations)
        self._settle(key)
        self.dispatch(
            self.store.wrote(
                self.make(obj.raw, head),
                selected=self.selector.matches(head.labels),
                may_enter=not self.selector.fields,
            )
        )

    def removed(self, key: Key, uid: str) -> None:
        if self._covers(key):
            self._settle(key)
            self.dispatch(self.store.removed(key, uid))

    # From informers

    def subscribe(self, handler: Handler, on_synced: Callable[[], None] | None) -> Listener:
        receiver = Listener(handler, on_synced, self._fault)
        if self._swap is not None:
            # What is there and what has been told differ right now, so it joins when they agree again.
            self._joining.append(receiver)
        else:
            self._replay(receiver)
        return receiver

    def unsubscribe(self, receiver: Listener) -> None:
        receiver.closed = True
        receiver.backlog.clear()
        self._receivers = tuple(other for other in self._receivers if other is not receiver)
        if receiver in self._joining:
            self._joining.remove(receiver)

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners = (*self._listeners, listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        self._listeners = tuple(other for other in self._listeners if other is not listener)

    def add_index(self, name: str, fn: IndexFunction) -> None:
        index = self.store.add_index(name, fn)
        if index is not None and not index.fill(self.store.objects, self.settings.burst_events):
            self._spawn(self._fill_indexes(), f"index {name} of {self}")

    # Own steps

    def _covers(self, key: Key) -> bool:
        return self.namespace is None or key.namespace == self.namespace

    def _settle(self, key: Key) -> None:
        """Before a key changes, tell what a list that is being told has to say of it."""
        if self._swap is not None:
            self.dispatch(self._swap.settle(key))

    def _replay(self, receiver: Listener) -> None:
        self._receivers = (*self._receivers, receiver)
        receiver.backlog = dict(self.store.objects)
        if self._tell_slice(receiver):
            self._spawn(self._tell_rest(receiver), f"backlog of {self}")

    def _tell_slice(self, receiver: Listener) -> bool:
        """Tell a slice of the backlog; True if some is left."""
        for key in list(islice(receiver.backlog, self.settings.burst_events)):
            receiver.tell_backlog(key)
        if receiver.backlog:
            return True
        if self.synced.is_set():
            receiver.tell_synced()
        return False

    async def _tell_rest(self, receiver: Listener) -> None:
        await asyncio.sleep(0)
        while not receiver.closed and self._tell_slice(receiver):  # noqa: ASYNC110 - a turn for others, not a poll
            await asyncio.sleep(0)

    async def _fill_indexes(self) -> None:
        await asyncio.sleep(0)
        while not self.store.fill_indexes(self.settings.burst_events):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)

    def notify(self) -> None:
        for listener in self._listeners:
            try:
                listener()
            except Exception as error:
                # As for handlers.
                self._fault(f"status handler {_name_of(listener)}", error)

    def _fault(self, what: str, error: Exception) -> None:
        self.faults += 1
        held_back = self._limiter.allow((what, type(error)), self._clock.monotonic())
        if held_back is not None:
            _log.error("failed in an informer", what=what, informer=str(self), held_back=held_back, exc_info=error)


def _nothing_to_do() -> None:
    """There is no driver yet."""


def _name_of(fn: object) -> str:
    return getattr(fn, "__qualname__", None) or type(fn).__name__
