"""A cluster in the test's own process: API server, client, clock, faults and managers on one loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

from fivespot.apiserver import ApiRequest, ApiResponse, ApiServer
from fivespot.runtime import (
    Client,
    ControllerFactory,
    Key,
    Manager,
    ManagerSettings,
    Resource,
)
from fivespot.runtime.cache import ReflectorSettings
from fivespot.runtime.client import WATCH_LIMITS, Connection
from fivespot.runtime.clock import Clock, InlineOffload, LoopClock, Random, system_random
from fivespot.runtime.manager import ControllerSettings, assemble
from fivespot.testing.faults import Faults

from .transport import ServerTransport

__all__ = ["EmbeddedCluster", "RunningManager"]

START: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday, at midnight."""
_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_POLL: Final = 0.05
"""Seconds on the cluster's clock between two looks of :meth:`EmbeddedCluster.until`."""


class RunningManager:
    """A manager that runs until its scope is left, or until it is ended in the way a test wants.

    An async context manager: left in order it stops in order, left by an exception it ends at once.
    """

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self.manager.run(self._stop))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await (self.stop() if kind is None else self.kill())

    async def wait(self) -> None:
        """Until it has ended; what ended it is raised by the scope, or by :meth:`stop`."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Stop in order, as at SIGTERM, and raise what went wrong in it."""
        self._stop.set()
        await self._end()

    async def kill(self) -> None:
        """End at once, in the middle of whatever it does, as when its node dies; nothing is released."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _end(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await task


class EmbeddedCluster:
    """An API server in memory with a client for it; an async context manager.

    Everything waits on the running loop's clock. On a virtual-time loop a month passes in seconds, and with the same
    ``seed`` in the same way. On an ordinary loop time is real.

    ::

        async with EmbeddedCluster() as cluster:
            await cluster.install(my_definition)
            async with cluster.manager(build_my_controller):
                await cluster.client.create(MY_KIND, {...})
                await cluster.until(lambda: ..., what="it is ready")

    :param start: what the wall clock shows at the beginning.
    :param seed: of uids, generated names, jitter and faults.
    :param clock: where time comes from; by default it starts at ``start`` and follows the loop.
    :param window: changes per resource that a watch may be behind before it gets 410.
    :param stride: seconds between what goes on when nothing happens: bookmarks, and in proportion the ends of watches
        and looks at readiness. A run of months is faster with an hour.
    :ivar faults: empty at first: the server behaves.
    """

    def __init__(
        self,
        *,
        start: datetime = START,
        seed: int = 0,
        clock: Clock | None = None,
        window: int = 10_000,
        stride: float = 60.0,
    ) -> None:
        self._stride = stride
        self.clock: Clock = clock or LoopClock(start)
        self._start = start
        self.rng: Random = system_random(seed)
        self.faults = Faults(seed=seed)
        # The script stands before the server, not in it: what the test itself asks for is no part of what goes wrong.
        self.server = ApiServer(clock=self.clock, seed=seed, window=window, bookmarks=stride)
        self._connections: list[Connection] = []
        self.client: Client
        """For the test itself; the fault script does not apply to it."""

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        transport = ServerTransport(self.server.handle)
        self.client = Client(transport, field_manager="test", clock=self.clock, rng=self.rng)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.close()
        for connection in self._connections:
            await connection.close()
        # Without the error: it is the test's own, and is not to be wrapped in a group.
        await self.server.__aexit__(None, None, None)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning, on the wall clock."""
        return (self.clock.now() - self._start).total_seconds()

    def connect(self, user_agent: str = "fivespot-testing") -> Connection:
        """A connection of its own, which the fault script applies to; closed with the cluster."""
        transport = ServerTransport(self._scripted, user_agent=user_agent)
        client = Client(transport, field_manager=user_agent, clock=self.clock, rng=self.rng)
        connection = Connection(client, transport, "default", False, "in-process", "the embedded API server")
        self._connections.append(connection)
        return connection

    async def _scripted(self, request: ApiRequest) -> ApiResponse:
        return await self.faults(request, self.server.handle)

    async def install(self, *definitions: Mapping[str, Any]) -> None:
        """Create CustomResourceDefinitions, and wait until their kinds are served."""
        for definition in definitions:
            await self.client.create(_DEFINITIONS, definition)
        names = [Key("", definition["metadata"]["name"]) for definition in definitions]

        async def established() -> bool:
            found = [(await self.client.get(_DEFINITIONS, name)).decode() for name in names]
            return all(_is_established(definition) for definition in found)

        await self.until(established, what="the definitions are established")

    async def namespace(self, name: str) -> str:
        """Create a namespace; its name."""
        await self.client.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    @asynccontextmanager
    async def manager(
        self,
        *factories: ControllerFactory,
        name: str = "manager",
        settings: ManagerSettings | None = None,
        controllers: ControllerSettings | None = None,
        setup: Callable[[Manager], None] | None = None,
    ) -> AsyncIterator[RunningManager]:
        """A manager with a connection of its own, running inside the scope.

        :param name: user agent, field manager and reporter of events.
        :param setup: adds what is not a controller.
        """
        manager = assemble(
            self.connect(name),
            name=name,
            clock=self.clock,
            rng=self.rng,
            offload=InlineOffload(),
            controllers=controllers or ControllerSettings(instance=name),
            settings=settings or ManagerSettings(look_interval=self._stride / 4),
            watch_limits=replace(WATCH_LIMITS, read=self._stride * 1.5),
            reflector=ReflectorSettings(watch_timeout=(self._stride * 5, self._stride * 10)),
        )
        for factory in factories:
            manager.add(factory)
        if setup is not None:
            setup(manager)
        async with RunningManager(manager) as running:
            yield running

    async def until(
        self,
        check: Callable[[], Any],
        *,
        within: float = 60.0,
        what: str = "",
    ) -> Any:
        """Look every 50 ms until ``check`` gives something true, and give that.

        :param check: a function or a coroutine function.
        :param within: seconds on the cluster's clock.
        :raises AssertionError: it did not; with what it gave or raised last. An AssertionError or LookupError raised by
            ``check`` means "not yet".
        """
        deadline = self.clock.monotonic() + within
        while True:
            last: object
            try:
                found = check()
                result: Any = await found if inspect.isawaitable(found) else found
                if result:
                    return result
                last = result
            except (AssertionError, LookupError) as error:
                last = f"{type(error).__name__}: {error}"
            if self.clock.monotonic() >= deadline:
                raise AssertionError(f"not within {within:g} s: {what or check}; last: {last!r}")
            await asyncio.sleep(_POLL)


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions: Iterable[Mapping[str, Any]] = (definition.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
