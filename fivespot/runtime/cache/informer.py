"""Informers: handles on the cached objects of one kind, which are read without waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fivespot.runtime.objects import Key, Object, Resource

from .index import IndexFunction
from .shared_informer import Handler, InformerStatus, SharedInformer
from .store import Keys, Objects

__all__ = ["Informer", "Subscription"]


class Subscription:
    """A registration that can be ended."""

    __slots__ = ("_close",)

    def __init__(self, close: Callable[[], None]) -> None:
        self._close: Callable[[], None] | None = close

    def close(self) -> None:
        """End it: nothing is called from now on. Safe to call twice, also from within a handler."""
        close, self._close = self._close, None
        if close is not None:
            close()


class Informer:
    """A handle on shared, cached objects.

    All reads are synchronous, see our own writes at once and never wait; before :attr:`synced` they show only what
    has arrived so far. What they return is immutable or a private copy.

    In a cache bound to a set of namespaces one handle spans an informer for each of them.

    Guaranteed: a handler sees the changes of one object in order, each after the store and its indexes show it, and an
    error in a handler or index function reaches nobody else.

    Not guaranteed: that an object which is absent here is absent from the server, even when synced; a change for every
    version; an order between objects; that every object can be decoded (:attr:`status` names those that cannot); or
    that :meth:`wait_synced` ever ends, as a kind may never be served.
    """

    def __init__(
        self, resource: Resource, parts: Sequence[SharedInformer], release: Callable[[SharedInformer], None]
    ) -> None:
        self.resource = resource
        self._parts = tuple(parts)
        self._release = release
        self._subscriptions: list[Subscription] = []

    # State

    @property
    def synced(self) -> bool:
        """Whether the first list is complete and every handler has received it."""
        return bool(self._parts) and all(part.synced.is_set() for part in self._parts)

    @property
    def status(self) -> InformerStatus:
        """The state of the informer; for several namespaces the worst of each, and sums.

        :raises RuntimeError: the informer was released.
        """
        if not self._parts:
            raise RuntimeError(f"the informer of {self.resource} was released")
        if len(self._parts) == 1:
            return self._parts[0].status
        return _merged([part.status for part in self._parts])

    async def wait_synced(self) -> None:
        """Wait until :attr:`synced`. There is no limit: a resource may not be served for years."""
        for part in self._parts:
            await part.synced.wait()

    def on_status(self, fn: Callable[[InformerStatus], None]) -> Subscription:
        """Call a function when the informer has synced, and when failures to read begin and end."""

        def changed() -> None:
            if self._parts:
                fn(self.status)

        parts = self._parts
        for part in parts:
            part.on_status(changed)

        def close() -> None:
            for part in parts:
                part.off_status(changed)

        return self._keep(close)

    # Reads

    def get(self, key: Key) -> Object | None:
        """Return the object of that key, if it is known."""
        for part in self._parts:
            obj = part.store.get(key)
            if obj is not None:
                return obj
        return None

    def keys(self) -> list[Key]:
        """Return the keys of all objects."""
        return [key for part in self._parts for key in part.store.objects]

    def list(self, namespace: str | None = None) -> list[Object]:
        """Return all objects, or those of one namespace (from an index that is built when first asked for)."""
        return [obj for part in self._parts for obj in part.store.list(namespace or None)]

    def __len__(self) -> int:
        return sum(len(part.store) for part in self._parts)

    # Indexes

    def add_index(self, name: str, fn: IndexFunction) -> None:
        """Add an index that finds objects by the values that ``fn`` computes; at any time, also long after the sync.

        The index belongs to the shared informer, so the same name with the same function may be added many times. A
        lambda or nested function is the same if its code and all that it captured are. An error in ``fn`` is logged
        and counted, and the object then has no values.

        :raises ValueError: the name is taken by another function.
        """
        for part in self._parts:
            part.add_index(name, fn)

    def by_index(self, name: str, value: str) -> Objects:
        """Return the objects found under a value.

        :raises KeyError: no such index.
        """
        return [obj for part in self._parts for obj in part.store.by_index(name, value)]

    def keys_by_index(self, name: str, value: str) -> Keys:
        """Return the keys of the objects found under a value.

        :raises KeyError: no such index.
        """
        return [key for part in self._parts for key in part.store.keys_by_index(name, value)]

    # Changes

    def subscribe(self, handler: Handler, *, on_synced: Callable[[], None] | None = None) -> Subscription:
        """Call a handler with every change, in the order of the store, after the store shows it.

        Objects that exist already are delivered first as ADDED, with :attr:`~fivespot.runtime.objects.Change.initial`
        set (in slices, if there are many); changes of a key are always delivered in order. Handlers are called
        synchronously and must be quick; errors in them are logged and counted.

        :param on_synced: called once, when the first list is complete and ``handler`` has received all of it.
        """
        waiting = len(self._parts)

        def part_synced() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting and on_synced is not None:
                on_synced()

        parts = self._parts
        listeners = [part.subscribe(handler, part_synced if on_synced else None) for part in parts]

        def close() -> None:
            for part, listener in zip(parts, listeners, strict=True):
                part.unsubscribe(listener)

        return self._keep(close)

    def release(self) -> None:
        """Give the handle back: its subscriptions end, and the last release of a shared informer stops it.

        Afterwards the handle is empty. Safe to call twice.
        """
        parts, self._parts = self._parts, ()
        subscriptions, self._subscriptions = self._subscriptions, []
        for subscription in subscriptions:
            subscription.close()
        for part in parts:
            self._release(part)

    def _keep(self, close: Callable[[], None]) -> Subscription:
        def forget() -> None:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)
            close()

        subscription = Subscription(forget)
        self._subscriptions.append(subscription)
        return subscription


_WORST_FIRST = ("stopped", "not served", "backing off", "empty", "listing", "syncing", "watching")


def _merged(statuses: list[InformerStatus]) -> InformerStatus:
    errors = [status for status in statuses if status.error_since is not None]
    activities = [status.last_activity for status in statuses if status.last_activity is not None]
    return replace(
        statuses[0],
        namespace=None,
        state=min((status.state for status in statuses), key=_WORST_FIRST.index),
        synced=all(status.synced for status in statuses),
        version=min(status.version for status in statuses),
        objects=sum(status.objects for status in statuses),
        last_activity=min(activities, default=None),
        relists=sum(status.relists for status in statuses),
        watches=sum(status.watches for status in statuses),
        last_error=next((status.last_error for status in [*errors, *statuses] if status.last_error), None),
        error_since=min((status.error_since for status in errors if status.error_since is not None), default=None),
        faults=sum(status.faults for status in statuses),
        undecodable=sum(status.undecodable for status in statuses),
        undecodable_objects=tuple(shown for status in statuses for shown in status.undecodable_objects),
    )
