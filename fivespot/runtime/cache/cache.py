"""The cache: the owner of all informers of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextvars import Context
from types import TracebackType
from typing import Any, Self

import structlog

from fivespot.runtime.client import Client
from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.objects import EVERYTHING, FULL, Key, Object, Projection, Resource, Selector, Write

from .informer import Informer
from .kinds import Kinds
from .reflector import Reflector
from .reflector_state import ReflectorSettings
from .shared_informer import InformerStatus, SharedInformer

__all__ = ["Cache"]

_log = structlog.get_logger(__name__)


class Cache:
    """Shared informers: one for all who want the same objects, started when first asked for, stopped when released.

    Use it as an async context manager; informers may be asked for before (they start with it) and inside, at any
    time. It observes every write of its client, so that its readers see their own writes (``WriteObserver``).

    Guaranteed: what is stored of an object never goes back in time; a finished list replaces what was there in one
    step; a deletion that was missed is delivered as a deletion; an object that cannot be decoded affects no other; and
    all tasks have ended when the context is left.

    Not guaranteed: that every state of an object is seen (intermediate states may be skipped, and so may an object that
    was created and deleted in between); that two informers show the same instant; or how old a state is. A lost
    connection is noticed after :data:`~fivespot.runtime.client.WATCH_LIMITS`; until then, and while the server is away,
    readers see the last known state.

    :param namespaces: if given, a request for all namespaces of a namespaced resource means these only.
    :ivar kinds: the kinds that CustomResourceDefinitions define; nothing is read until it is asked.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        rng: Random,
        namespaces: Sequence[str] | None = None,
        settings: ReflectorSettings = ReflectorSettings(),  # noqa: B008 - frozen
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        # The empty name stands for all namespaces, as in every request.
        limited = namespaces is not None and "" not in namespaces
        self._namespaces = tuple(dict.fromkeys(namespaces or ())) if limited else None
        self._settings = settings
        self._shared: dict[tuple[Resource, str | None, Selector], list[SharedInformer]] = {}
        self._no_streaming: set[str] = set()
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.kinds = Kinds(self, client, rng=rng)
        client.add_observer(self)

    async def __aenter__(self) -> Self:
        if self._group is not None or self._closed:
            raise RuntimeError("a cache is entered once")
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        for shared in self._all():
            self._start(shared)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel all reflectors and wait until they have ended."""
        assert self._group is not None
        self._closed = True
        self._client.remove_observer(self)
        for task in list(self._tasks):
            task.cancel()
        # A group wraps whatever its body raised; the body's own error is to reach the owner as it is. A cancellation
        # must be seen by the group, because it may be the group's own answer to a reflector that failed.
        cancelled = isinstance(error, asyncio.CancelledError)
        await self._group.__aexit__(*((kind, error, trace) if cancelled else (None, None, None)))
        self._group = None

    def informer(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        selector: Selector = EVERYTHING,
        projection: Projection = FULL,
    ) -> Informer:
        """A handle on the informer for these objects, to be released when no longer needed.

        One that runs with a wider projection serves a narrower request.

        :param namespace: one namespace; None or "" for all. A cluster-scoped resource has none.
        :raises RuntimeError: the cache was left.
        """
        if self._closed:
            raise RuntimeError(f"no informer for {resource}: the cache was left")
        where: Sequence[str | None] = (namespace or None if resource.namespaced else None,)
        if where == (None,) and resource.namespaced and self._namespaces is not None:
            where = self._namespaces
        parts = [self._part(resource, one, selector, projection) for one in where]
        return Informer(resource, parts, self._release)

    def informers(self) -> list[InformerStatus]:
        """The status of every informer."""
        return [shared.status for shared in self._all()]

    def kind_changed(self, qualified: str) -> None:
        """Note that the definition of a resource (``plural.group``) changed, which ends waits for it to be served."""
        for shared in self._all():
            if shared.resource.qualified == qualified:
                shared.kind_changed.set()

    def reconnect(self) -> None:
        """Resume every watch, from the version that it has reached, on another connection.

        For a caller with reason to think that the connections are dead although nothing says so: a silent one would
        be noticed at the idle limit only. Costs the server one request per informer.
        """
        for shared in self._all():
            shared.reconnect()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run a task as part of this cache: it is cancelled and awaited when the cache is left."""
        if self._group is None or self._closed:
            work.close()
            raise RuntimeError(f"{name}: the cache is not running")
        # Of its own context, because it outlives the run that happens to ask for it: that one's ids are not its own.
        self._adopt(self._group.create_task(work, name=name, context=Context()))

    # WriteObserver

    def known_version(self, resource: Resource, key: Key | None) -> int:
        """The resourceVersion that the object is known to have, or (None) that the resource is known to have reached.

        The answer to a write that is sent from here on shows a later one, or the same if it changes nothing.
        """
        known = 0
        for shared in self._of(resource):
            if key is None:
                known = max(known, shared.store.version)
            elif (obj := shared.store.get(_normal(resource, key))) is not None:
                known = max(known, obj.head.version)
        return known

    def wrote(self, resource: Resource, obj: Object, write: Write) -> None:
        """Take in the answer to a write."""
        for shared in self._of(resource):
            shared.wrote(resource, obj, write)

    def removed(self, resource: Resource, key: Key, uid: str, write: Write) -> None:
        """Take in that the object with that uid is deleted."""
        for shared in self._of(resource):
            shared.removed(_normal(resource, key), uid, write)

    def rewound(self, version: int) -> None:
        """List everything again that is known from a later version: the server's history begins anew at this one.

        After etcd was restored from a backup, a watch that resumes from a version which the server has not reached
        yet is silent, and may be for hours.
        """
        ahead = [shared for shared in self._all() if shared.store.version > version and not shared.store.rewound]
        if ahead:
            _log.warning("the server's history was rewound, listing again", version=version, informers=len(ahead))
        for shared in ahead:
            # Seen by the reflector before it follows a watch again.
            shared.store.rewound = True
            shared.reconnect()

    # Internals

    def _all(self) -> list[SharedInformer]:
        return [shared for sharing in self._shared.values() for shared in sharing]

    def _of(self, resource: Resource) -> list[SharedInformer]:
        return [
            shared
            for (known, _, _), sharing in self._shared.items()
            if known.group == resource.group and known.plural == resource.plural
            for shared in sharing
        ]

    def _part(
        self, resource: Resource, namespace: str | None, selector: Selector, projection: Projection
    ) -> SharedInformer:
        sharing = self._shared.setdefault((resource, namespace, selector), [])
        serving = [shared for shared in sharing if shared.projection == projection]
        serving += [shared for shared in sharing if shared.projection.covers(projection)]
        if serving:
            shared = serving[0]
        else:
            shared = SharedInformer(
                resource,
                namespace,
                selector,
                projection,
                clock=self._clock,
                settings=self._settings,
                spawn=self.spawn,
            )
            sharing.append(shared)
            if self._group is not None:
                self._start(shared)
        shared.users += 1
        return shared

    def _start(self, shared: SharedInformer) -> None:
        assert self._group is not None
        reflector = Reflector(self._client, shared, clock=self._clock, rng=self._rng, no_streaming=self._no_streaming)
        shared.reconnect = reflector.reconnect
        shared.task = self._group.create_task(reflector.run(), name=f"reflector {shared}", context=Context())
        self._adopt(shared.task)

    def _adopt(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _release(self, shared: SharedInformer) -> None:
        shared.users -= 1
        if shared.users:
            return
        place = (shared.resource, shared.namespace, shared.selector)
        sharing = self._shared[place]
        sharing.remove(shared)
        if not sharing:
            del self._shared[place]
        if not self._of(shared.resource):
            self._no_streaming.discard(shared.resource.qualified)
        if shared.task is not None:
            shared.task.cancel()


def _normal(resource: Resource, key: Key) -> Key:
    """The key as objects bear it: those of cluster-scoped resources have no namespace."""
    return key if resource.namespaced else Key("", key.name)
