"""The store of one list and watch with its listeners: the part that all informers for the same objects share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec
import structlog

from fivespot.runtime.clock import Clock
from fivespot.runtime.errors import ProtocolError, UndecodableObjectError
from fivespot.runtime.objects import (
    Change,
    ChangeType,
    Head,
    Key,
    Object,
    PartialMeta,
    Projection,
    Resource,
    Selector,
    WireMeta,
    Write,
    decode_meta,
    head_of,
)
from fivespot.runtime.telemetry import LogLimiter
from fivespot.runtime.telemetry.logs import traceback_text

from .index import IndexFunction
from .reflector_state import ReflectorSettings
from .store import Changes, Store, Swap
from .yield_budget import YieldBudget

__all__ = ["Handler", "InformerStatus", "Listener", "SharedInformer", "Spawn"]

Handler = Callable[[Change], None]
Spawn = Callable[[Coroutine[Any, Any, None], str], None]
"""Starts a task, by name, in a group that somebody owns."""

_log = structlog.get_logger(__name__)

_NO_BODY: Final = b"{}"
_FAULT_INTERVAL: Final = 60.0
"""Seconds between two log records of the same failure: enough to see, too few to flood."""
_SHOWN: Final = 20
"""Undecodable objects that are shown and logged by name; beyond that they are only counted."""
_UNNAMED: Final = Key("", "(its name cannot be read)")


@dataclass(frozen=True, slots=True)
class InformerStatus:
    """State of an informer.

    :param state: ``empty``, ``listing``, ``syncing``, ``watching``, ``backing off``, ``not served`` or ``stopped``.
    :param synced: the first list is complete. It stays so while the connection is broken; ``error_since`` tells.
    :param version: the resourceVersion that the watch has reached.
    :param objects: number of objects held.
    :param last_activity: when the server last sent something (monotonic seconds); None if it never did.
    :param relists: lists completed, the first included.
    :param watches: watches opened.
    :param last_error: the latest failure to read, also when it is over; None if there was none.
    :param error_since: since when the server cannot be read (monotonic seconds); None while it can.
    :param faults: failures of handlers, index functions and projections.
    :param undecodable: number of objects that exist but cannot be decoded. Those whose metadata can be read are held
        without a body, or with one that :meth:`~fivespot.runtime.objects.Object.decode` refuses; of the others the
        last state that could be read is held, if there is one.
    :param undecodable_objects: the first of them, with the reason.
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
    last_error: Exception | None
    error_since: float | None
    faults: int
    undecodable: int = 0
    undecodable_objects: tuple[tuple[Key, str], ...] = ()


class Listener:
    """A handler, with the objects that existed before it and that it has not received yet."""

    __slots__ = ("_handler", "_on_synced", "_report", "backlog", "closed")

    def __init__(
        self, handler: Handler, on_synced: Callable[[], None] | None, report: Callable[[str, Exception], None]
    ) -> None:
        self._handler = handler
        self._on_synced = on_synced
        self._report = report
        self.backlog: dict[Key, Object] = {}
        self.closed = False

    def deliver(self, change: Change) -> None:
        """Hand a change to the handler, after what the backlog holds of the same object."""
        if self.backlog:
            # In the order in which things happened: the object was there before it changed.
            self.deliver_backlog(change.key)
        if self.closed:
            return
        try:
            self._handler(change)
        except Exception as error:
            # A handler is code of the informer's users. Its mistake is logged and counted; the others, and the
            # reflector that all of them share, go on.
            self._report(f"handler {_name_of(self._handler)}", error)

    def deliver_backlog(self, key: Key) -> None:
        """Hand over one object of the backlog."""
        obj = self.backlog.pop(key, None)
        if obj is not None:
            self.deliver(Change(ChangeType.ADDED, obj, initial=True))

    def deliver_synced(self) -> None:
        """Say once that all objects which existed have been delivered."""
        on_synced, self._on_synced = self._on_synced, None
        if on_synced is not None and not self.closed:
            try:
                on_synced()
            except Exception as error:
                # As for handlers: a consumer's mistake must not stop the reflector that others depend on.
                self._report(f"handler {_name_of(on_synced)}", error)


class SharedInformer:
    """The store of one informer and its listeners. The reflector feeds it, and so do the writes of this process.

    :ivar kind_changed: set when the definition of the resource changed: it may be served now.
    :ivar reconnect: gives up the connection of the watch, where one is followed.
    """

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
        self.kind_changed = asyncio.Event()
        self.reconnect: Callable[[], None] = _no_reflector
        self.state = "empty"
        self.last_activity: float | None = None
        self.relists = 0
        self.watches = 0
        self.last_error: Exception | None = None
        self.error_since: float | None = None
        self.faults = 0
        self.undecodable: dict[Key, str] = {}
        self._clock = clock
        self._spawn = spawn
        self._limiter = LogLimiter(_FAULT_INTERVAL)
        self._undecodable_in_list: set[Key] = set()
        self._swap: Swap | None = None
        self._listeners: tuple[Listener, ...] = ()
        self._joining: list[Listener] = []
        self._status_listeners: tuple[Callable[[], None], ...] = ()

    @property
    def status(self) -> InformerStatus:
        """The state as a value."""
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
            len(self.undecodable),
            tuple(islice(self.undecodable.items(), _SHOWN)) if self.undecodable else (),
        )

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource}{where} ({self.projection.name})"

    # Called by the reflector

    def begin_list(self) -> None:
        """Begin to take in a list."""
        self.store.begin()
        self._undecodable_in_list.clear()

    def stage(self, raw: bytes | msgspec.Raw, meta: WireMeta | None = None) -> None:
        """Take in an object of the list that is being read."""
        staging = self.store.staging
        try:
            meta = meta or decode_meta(raw)
            head = head_of(meta, self.projection.annotations)
        except UndecodableObjectError as error:
            key = self.note_undecodable(error)
            self._undecodable_in_list.add(key)
            staging.keep(key)
            return
        if not staging.reuse(head):
            staging.put(Key(head.namespace, head.name), self.make(raw, head, meta))

    def make(self, raw: bytes | msgspec.Raw, head: Head, meta: WireMeta) -> Object:
        """Make the object that this informer keeps.

        If the projection cannot read the body, the object is kept with an empty one: readers then miss every field of
        it, and no other object is affected.
        """
        key = Key(head.namespace, head.name)
        whole = self.projection.keep is None and not self.projection.metadata_only
        reason = meta.body_error if whole and isinstance(meta, PartialMeta) else ""
        try:
            body = self.projection.project(raw, meta)
        except ProtocolError as error:
            body, reason = _NO_BODY, str(error)
        except Exception as error:
            # A projection may be code of the informer's users.
            self._fault(f"projection {self.projection.name} of {key}", error)
            body, reason = _NO_BODY, f"projection {self.projection.name} failed: {type(error).__name__}"
        if reason:
            self._note_undecodable(key, reason)
        elif self.undecodable:
            self.undecodable.pop(key, None)
        return Object(body, head)

    def note_undecodable(self, error: UndecodableObjectError) -> Key:
        """Count and log an object whose metadata cannot be decoded, and return its key as far as it is known."""
        key = Key(error.namespace, error.name) if error.name else _UNNAMED
        self._note_undecodable(key, str(error))
        return key

    def dispatch(self, changes: Changes) -> None:
        """Deliver changes that the store shows already."""
        for change in changes:
            if self.undecodable and change.type is ChangeType.DELETED and change.key not in self.store.objects:
                self.undecodable.pop(change.key, None)
            for listener in self._listeners:
                listener.deliver(change)

    async def swap(self, version: int) -> None:
        """Show the staged list and deliver the differences, letting other tasks run in between."""
        first = not self.synced.is_set()
        self._swap = self.store.commit(version)
        if self.undecodable:
            exists = self.store.objects.keys() | self._undecodable_in_list
            self.undecodable = {key: reason for key, reason in self.undecodable.items() if key in exists}
        budget = YieldBudget(self.settings.burst_events, self.settings.burst_seconds)
        for changes in self._swap:
            if first:
                for change in changes:
                    change.initial = change.type is ChangeType.ADDED
            self.dispatch(changes)
            if budget.over(self._clock.monotonic()):
                await asyncio.sleep(0)
        self._swap = None
        self.relists += 1
        self.synced.set()
        joining, self._joining = self._joining, []
        if first:
            for listener in self._listeners:
                # One that still receives its backlog hears of the sync at the end of that.
                if not listener.backlog:
                    listener.deliver_synced()
        for listener in joining:
            self._replay(listener)
        if first:
            self.notify()

    def failed(self, error: Exception) -> None:
        """Note that the server cannot be read."""
        self.last_error = _without_frames(error)
        if self.error_since is None:
            self.error_since = self._clock.monotonic()
            self.notify()

    def recovered(self) -> bool:
        """Note that the server can be read; True if it could not before."""
        if self.error_since is None:
            return False
        self.error_since = None
        self.notify()
        return True

    # Called for the writes of this process

    def wrote(self, resource: Resource, obj: Object, write: Write) -> None:
        """Take in the answer to a write."""
        key = obj.key
        if not self._covers(key):
            return
        if resource.version != self.resource.version and not self.projection.metadata_only:
            # The answer has the shape of another version; the watch brings it in ours.
            return
        try:
            meta = decode_meta(obj.raw)
            head = head_of(meta, self.projection.annotations)
        except UndecodableObjectError as error:
            self.note_undecodable(error)
            return
        self._settle(key)
        self.dispatch(
            self.store.wrote(
                self.make(obj.raw, head, meta),
                write,
                selected=self.selector.matches(head.labels),
                may_enter=not self.selector.fields,
            )
        )

    def removed(self, key: Key, uid: str, write: Write) -> None:
        """Take in that the object with that uid is deleted."""
        if self._covers(key):
            self._settle(key)
            self.dispatch(self.store.removed(key, uid, write))

    # Called by informers

    def subscribe(self, handler: Handler, on_synced: Callable[[], None] | None) -> Listener:
        """Add a listener, which first receives all objects that exist."""
        listener = Listener(handler, on_synced, self._fault)
        if self._swap is not None:
            # The store and what has been delivered differ right now, so it joins when they agree again.
            self._joining.append(listener)
        else:
            self._replay(listener)
        return listener

    def unsubscribe(self, listener: Listener) -> None:
        """Remove a listener; it receives nothing from now on."""
        listener.closed = True
        listener.backlog.clear()
        self._listeners = tuple(other for other in self._listeners if other is not listener)
        if listener in self._joining:
            self._joining.remove(listener)

    def on_status(self, fn: Callable[[], None]) -> None:
        """Call a function when the status changes."""
        self._status_listeners = (*self._status_listeners, fn)

    def off_status(self, fn: Callable[[], None]) -> None:
        """Call a function no longer when the status changes."""
        self._status_listeners = tuple(other for other in self._status_listeners if other is not fn)

    def add_index(self, name: str, fn: IndexFunction) -> None:
        """Add an index, and fill it in slices if there are many objects."""
        index = self.store.add_index(name, fn)
        if index is not None and not index.fill(self.store.objects, self.settings.burst_events):
            self._spawn(self._fill_indexes(), f"index {name} of {self}")

    # Internals

    def _covers(self, key: Key) -> bool:
        return self.namespace is None or key.namespace == self.namespace

    def _settle(self, key: Key) -> None:
        """Before a key changes, deliver what a list that is being delivered has to say of it."""
        if self._swap is not None:
            self.dispatch(self._swap.settle(key))

    def _replay(self, listener: Listener) -> None:
        self._listeners = (*self._listeners, listener)
        listener.backlog = dict(self.store.objects)
        if self._deliver_slice(listener):
            self._spawn(self._deliver_rest(listener), f"backlog of {self}")

    def _deliver_slice(self, listener: Listener) -> bool:
        """Deliver a slice of the backlog; True if some is left."""
        for key in list(islice(listener.backlog, self.settings.burst_events)):
            listener.deliver_backlog(key)
        if listener.backlog:
            return True
        if self.synced.is_set():
            listener.deliver_synced()
        return False

    async def _deliver_rest(self, listener: Listener) -> None:
        await asyncio.sleep(0)
        while not listener.closed and self._deliver_slice(listener):  # noqa: ASYNC110 - a turn for others, not a poll
            await asyncio.sleep(0)

    async def _fill_indexes(self) -> None:
        await asyncio.sleep(0)
        while not self.store.fill_indexes(self.settings.burst_events):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)

    def notify(self) -> None:
        """Call everyone who wants to know of the status."""
        for fn in self._status_listeners:
            try:
                fn()
            except Exception as error:
                # As for handlers.
                self._fault(f"status handler {_name_of(fn)}", error)

    def _note_undecodable(self, key: Key, reason: str) -> None:
        known = self.undecodable.get(key)
        self.undecodable[key] = reason
        if known == reason:
            return
        what = str(key) if len(self.undecodable) <= _SHOWN else "others"
        held_back = self._limiter.allow(("undecodable", what), self._clock.monotonic())
        if held_back is not None:
            _log.warning(
                "cannot decode an object", informer=str(self), object=str(key), error=reason, held_back=held_back
            )

    def _fault(self, what: str, error: Exception) -> None:
        self.faults += 1
        held_back = self._limiter.allow((what, type(error)), self._clock.monotonic())
        if held_back is not None:
            _log.error(
                "failed in an informer",
                what=what,
                informer=str(self),
                held_back=held_back,
                exception=traceback_text(error),
            )


def _no_reflector() -> None:
    """Do nothing: no reflector runs yet."""


def _without_frames(error: Exception) -> Exception:
    """Drop the tracebacks of an error that is kept, lest they keep the bodies of answers alive."""
    link: BaseException | None = error
    for _ in range(16):
        if link is None:
            break
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


def _name_of(fn: object) -> str:
    return getattr(fn, "__qualname__", None) or type(fn).__name__
