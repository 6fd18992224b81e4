"""The owner of all informers of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextvars import Context
from types import TracebackType
from typing import Any, Self

from fivespot.runtime.client import Client
from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.objects import EVERYTHING, FULL, Key, Object, Projection, Resource, Selector

from .informer import Informer
from .kinds import Kinds
from .reflector import Reflector
from .reflector_state import ReflectorSettings
from .shared_informer import InformerStatus, SharedInformer

__all__ = ["Cache"]


class Cache:
    """Shared informers: one for all who want the same objects, started when first asked for, stopped when released.

    Use it as an async context manager; informers may be asked for before (they start with it) and inside, at any
    time. It hears of every write of its client, so that its readers see their own writes (``WriteObserver``).

    Guaranteed: what is stored of an object never goes back in time; a finished list replaces what was there in one
    step; a deletion that was missed is told as such; and all tasks have ended when the context is left.

    Not guaranteed: that every state of an object is seen (states between two looks may be skipped, and so may an object
    that lived between two); that two informers are of the same instant; or how old a state is. A lost connection is
    noticed after :data:`~fivespot.runtime.client.WATCH_LIMITS`; until then, and while the server is away, readers see
    the last known state.

    :param namespaces: if given, a request for all namespaces of a namespaced resource means these only.
    :ivar kinds: what CustomResourceDefinitions say; costs nothing until it is asked.
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
        self._namespaces = tuple(dict.fromkeys(namespaces)) if namespaces is not None else None
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

        :param namespace: one namespace, or None for all.
        :raises RuntimeError: the cache was left.
        """
        if self._closed:
            raise RuntimeError(f"no informer for {resource}: the cache was left")
        where: Sequence[str | None] = (namespace,)
        if namespace is None and resource.namespaced and self._namespaces is not None:
            where = self._namespaces
        parts = [self._part(resource, one, selector, projection) for one in where]
        return Informer(resource, parts, self._release)

    def informers(self) -> list[InformerStatus]:
        """How every informer is doing."""
        return [shared.status for shared in self._all()]

    def nudge(self, qualified: str) -> None:
        """Say that the definition of a resource (``plural.group``) changed: waits for it to be served end."""
        for shared in self._all():
            if shared.resource.qualified == qualified:
                shared.nudged.set()

    def reconnect(self) -> None:
        """Have every watch resume, from where it is, on another connection.

        For whoever has reason to think that the connections are dead although nothing says so: a silent one would be
        noticed at the idle limit only. Costs the server one request per informer.
        """
        for shared in self._all():
            shared.reconnect()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run something as part of this cache: it is cancelled and awaited when the cache is left."""
        if self._group is None or self._closed:
            work.close()
            raise RuntimeError(f"{name}: the cache is not running")
        # Of its own context, because it outlives the run that happens to ask for it: that one's ids are not its own.
        self._adopt(self._group.create_task(work, name=name, context=Context()))

    # WriteObserver

    def wrote(self, resource: Resource, obj: Object) -> None:
        for shared in self._of(resource):
            shared.wrote(resource, obj)

    def removed(self, resource: Resource, key: Key, uid: str) -> None:
        for shared in self._of(resource):
            shared.removed(key, uid)

    # Own steps

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
        driver = Reflector(self._client, shared, clock=self._clock, rng=self._rng, no_streaming=self._no_streaming)
        shared.reconnect = driver.reconnect
        shared.task = self._group.create_task(driver.run(), name=f"reflector {shared}", context=Context())
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
        if shared.task is not None:
            shared.task.cancel()
