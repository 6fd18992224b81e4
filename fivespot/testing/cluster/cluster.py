"""A cluster in one process: API server, client, clock, faults and managers on one event loop."""

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
    CRDS,
    Client,
    Clock,
    Connection,
    Key,
    Manager,
    ManagerSettings,
    NotFoundError,
    Random,
    Resource,
)
from fivespot.runtime.cache import ReflectorSettings
from fivespot.runtime.client import WATCH_LIMITS
from fivespot.runtime.clock import InlineOffload, LoopClock, system_random
from fivespot.runtime.errors import KindNotServedError, NotServedError
from fivespot.runtime.manager import ControllerFactory, ControllerSettings, assemble
from fivespot.testing.faults import Faults

from .transport import ServerTransport

__all__ = ["EmbeddedCluster", "RunningManager"]

START: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday, at midnight."""
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_POLL: Final = 0.05
_NOT_YET: Final = (AssertionError, LookupError, NotFoundError, NotServedError, KindNotServedError)
"""Seconds between two checks of :meth:`EmbeddedCluster.until`, on the cluster's clock."""


class RunningManager:
    """A manager that runs until its scope is left, or until :meth:`stop` or :meth:`kill`.

    An async context manager: leaving it stops the manager in order, leaving it by an exception kills it.
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
        """Wait until it has ended; its error is raised by the scope or by :meth:`stop`."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Stop as at SIGTERM and raise the manager's error."""
        self._stop.set()
        await self._end()

    async def kill(self) -> None:
        """End at once, as when its node fails; the Lease is not released."""
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

    Everything waits on the running loop's clock. On a virtual-time loop a month passes in seconds and, with the same
    ``seed``, repeats exactly. On an ordinary loop time is real.

    ::

        async with EmbeddedCluster() as cluster:
            await cluster.install(my_definition)
            async with cluster.manager(build_my_controller):
                await cluster.client.create(MY_KIND, {...})
                await cluster.until(lambda: ..., what="it is ready")

    :param start: wall clock at the beginning.
    :param seed: of uids, generated names, jitter and faults.
    :param clock: source of time; by default it starts at ``start`` and follows the loop.
    :param window: changes kept for each resource; watches that are further behind get 410.
    :param stride: seconds between bookmarks; watch time-outs and readiness checks are in proportion. An hour makes
        simulations of months faster.
    :ivar faults: the fault script; empty at first.
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
        # Not the server's middleware: faults do not apply to the test's own client.
        self.server = ApiServer(clock=self.clock, seed=seed, window=window, bookmarks=stride)
        self._connections: list[Connection] = []
        self.client: Client
        """The test's own client; faults do not apply to it."""

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
        # Without the error, so that it is not wrapped in an exception group.
        await self.server.__aexit__(None, None, None)

    @property
    def elapsed(self) -> float:
        """Seconds since ``start`` on the wall clock."""
        return (self.clock.now() - self._start).total_seconds()

    def connect(self, user_agent: str = "fivespot-testing") -> Connection:
        """Open another connection, to which faults apply; it is closed with the cluster."""
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
            await self.client.create(CRDS, definition)
        names = [Key("", definition["metadata"]["name"]) for definition in definitions]

        async def established() -> bool:
            found = [(await self.client.get(CRDS, name)).decode() for name in names]
            return all(_is_established(definition) for definition in found)

        await self.until(established, what="the definitions are established")

    async def namespace(self, name: str) -> str:
        """Create a namespace; returns its name."""
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
        """Run a manager with a connection of its own inside the scope.

        :param name: user agent, field manager and reporter of events.
        :param setup: adds runnables that are not controllers.
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
        """Call ``check`` every 50 ms until its result is true, and return it.

        :param check: a function or a coroutine function.
        :param within: seconds on the cluster's clock.
        :raises AssertionError: the time is up; with the last result. An AssertionError or LookupError from ``check``
            means "not yet", and so does an object, or a kind, that does not exist.
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
            except _NOT_YET as error:
                last = f"{type(error).__name__}: {error}"
            if self.clock.monotonic() >= deadline:
                raise AssertionError(f"not within {within:g} s: {what or check}; last: {last!r}")
            await asyncio.sleep(_POLL)


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions: Iterable[Mapping[str, Any]] = (definition.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
