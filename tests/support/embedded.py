"""The contract's tests on the server in memory: the same synchronous tests, with time that is virtual.

Everything happens in the test's own thread. The loop with the server and the manager runs while the test asks the
server something and while it sleeps, and what it sleeps costs nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlencode

import pytest

from controlplane import Api, read_crds, stand_in_crds
from controlplane.audit import COMPLETE, STARTED
from fivespot.apiserver import Handler, Request, Response
from fivespot.apiserver.messages import parse_query
from fivespot.controllers import scheduledmachine
from fivespot.controllers.scheduledmachine import Timings
from fivespot.providers.registry import shipped_providers
from fivespot.providers.sdk import build_controller
from fivespot.runtime import ControllerSettings
from fivespot.testing.cluster import EmbeddedCluster, RunningManager
from fivespot.testing.clusterapi.core import core_definitions
from fivespot.testing.virtual import VirtualTimeLoop
from harness import MANAGER_USER, MANIFESTS, SYSTEM_NAMESPACE

__all__ = ["EmbeddedManager", "EmbeddedPlane", "RealOnly", "manager_in_process", "on_virtual_time"]

Json = dict[str, Any]
T = TypeVar("T")

AGENT = "5spot-controller"
START = datetime(2026, 6, 1, 10, tzinfo=UTC)
READY_SECONDS = 30.0

_PATH = re.compile(
    r"/apis?(?:/(?P<apiGroup>[^/]+\.[^/]+|apps|batch))?/(?P<version>v[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[^/?]+)(?:/(?P<name>[^/?]+))?(?:/(?P<subresource>[^/?]+))?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


class RealOnly(Exception):
    """The test needs something that only the real control plane has."""


class Held(Generic[T]):
    """An async context manager that is entered and left from outside its loop, by a task of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, context: AbstractAsyncContextManager[T]) -> None:
        self._loop = loop
        self._stop = asyncio.Event()
        self._entered: asyncio.Future[T] = loop.create_future()
        self._task = loop.create_task(self._hold(context))
        self.value: T = loop.run_until_complete(self._entered)

    async def _hold(self, context: AbstractAsyncContextManager[T]) -> None:
        try:
            async with context as value:
                self._entered.set_result(value)
                await self._stop.wait()
        except BaseException as error:
            if self._entered.done():
                raise
            self._entered.set_exception(error)

    def close(self) -> None:
        self._stop.set()
        self._loop.run_until_complete(self._task)


class EmbeddedApi(Api):
    """The tests' client, without a socket."""

    def __init__(self, plane: EmbeddedPlane, *, user_agent: str = "fivespot-tests") -> None:
        super().__init__("https://in-process", ca_file=None, token="", user_agent=user_agent)
        self._plane = plane

    def create_many(self, bodies: Iterable[Json], *, workers: int = 8) -> list[Json]:
        return [self.create(body) for body in bodies]

    def _exchange(self, method: str, target: str, payload: bytes | None, headers: Any) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        asked = {name.lower(): value for name, value in headers.items()}
        request = Request(method, path, parse_query(query), asked, payload or b"")
        answer = self._plane.run(self._plane.cluster.server.handle(request))
        assert isinstance(answer.body, bytes)
        return answer.status, answer.body


class Audit:
    """What the audit log of the real server has, as far as the tests look at it."""

    def __init__(self, plane: EmbeddedPlane) -> None:
        self._plane = plane
        self._events: list[Json] = []

    def mark(self) -> int:
        return len(self._events)

    def events(self, *, since: int = 0, stages: Iterable[str] = (COMPLETE,)) -> list[Json]:
        wanted = frozenset(stages)
        return [event for event in self._events[since:] if event["stage"] in wanted]

    async def note(self, request: Request, handler: Handler) -> Response:
        """A middleware."""
        begun = self._plane.cluster.clock.now()
        answer = await handler(request)
        agent = request.header("user-agent")
        event = {
            "stage": COMPLETE if isinstance(answer.body, bytes) else STARTED,
            "verb": _verb(request),
            "user": {"username": MANAGER_USER if agent.startswith(AGENT) else "admin"},
            "userAgent": agent,
            "requestURI": f"{request.path}?{urlencode(request.query)}",
            "responseStatus": {"code": answer.status},
            "requestReceivedTimestamp": _micro(begun),
            "stageTimestamp": _micro(self._plane.cluster.clock.now()),
        }
        if reference := _reference(request):
            event["objectRef"] = reference
        self._events.append(event)
        return answer


class EmbeddedPlane:
    """What the tests use of a control plane; whatever it does not have is an AttributeError that names it."""

    def __init__(self, crds: Iterable[Json] | None = None, *, audit: bool = True) -> None:
        self._loop = VirtualTimeLoop()
        self._given = list(crds) if crds is not None else read_crds(MANIFESTS / "crds")
        self.audit_log = Audit(self)
        self.cluster = EmbeddedCluster(start=START)
        self.cluster.server.middleware = self.audit_log.note
        self._held = Held(self._loop, self.cluster)
        self.api = EmbeddedApi(self)
        self.managers: list[EmbeddedManager] = []
        for definition in (*self._given, *core_definitions(), *stand_in_crds()):
            self.api.create(definition)
        self.sleep(0.1)
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})

    def stop(self) -> None:
        for manager in self.managers:
            manager.stop()
        self._held.close()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(main)

    def hold(self, context: AbstractAsyncContextManager[T]) -> Held[T]:
        return Held(self._loop, context)

    # What stands for the modules time and datetime.

    def sleep(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    def monotonic(self) -> float:
        return self._loop.time()

    def now(self) -> datetime:
        return self.run(_call(self.cluster.clock.now))

    def audit(self, *, since: int = 0, stages: Iterable[str] = (COMPLETE,)) -> list[Json]:
        return self.audit_log.events(since=since, stages=stages)

    def install_crds(self, crds: Iterable[Json]) -> None:
        for definition in crds:
            self.api.create(definition)
        self.sleep(0.1)

    def __getattr__(self, name: str) -> Any:
        raise RealOnly(f"the server in memory has no {name}")


async def _call(function: Callable[[], T]) -> T:
    """On the loop, for what reads its clock."""
    return function()


class EmbeddedManager:
    """What the tests use of a manager's process."""

    def __init__(
        self,
        plane: EmbeddedPlane,
        *arguments: str,
        timings: Timings | None = None,
        settings: ControllerSettings | None = None,
    ) -> None:
        if arguments:
            raise RealOnly(f"the manager in memory has no command line: {' '.join(arguments)}")
        self._plane = plane
        self._timings, self._settings = timings, settings
        self._held: Held[RunningManager] | None = None
        plane.managers.append(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        return self._held is not None

    @property
    def exit_code(self) -> int | None:
        return None if self.running else 0

    def start(self, *, wait: bool = True) -> None:
        factories = [partial(scheduledmachine.build, timings=self._timings)]
        factories += [partial(build_controller, provider) for provider in shipped_providers()]
        context = self._plane.cluster.manager(*factories, name=AGENT, controllers=self._settings)
        self._held = self._plane.hold(context)
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        until = self._plane.monotonic() + READY_SECONDS
        while not (self._controllers and all(controller.ready for controller in self._controllers)):
            assert self._plane.monotonic() < until, "the manager did not become ready"
            self._plane.sleep(0.05)

    def stop(self) -> int:
        held, self._held = self._held, None
        if held is not None:
            held.close()
        return 0

    def kill(self) -> None:
        """End it without warning."""
        held, self._held = self._held, None
        if held is not None:
            self._plane.run(held.value.kill())
            held.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    def metrics(self) -> dict[str, float]:
        text = self._plane.run(_call(self._manager.context.metrics.render)).decode()
        lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def __getattr__(self, name: str) -> Any:
        raise RealOnly(f"the manager in memory has no {name}")

    @property
    def _manager(self) -> Any:
        assert self._held is not None, "the manager does not run"
        return self._held.value.manager

    @property
    def _controllers(self) -> Any:
        return self._manager.controllers


@contextmanager
def manager_in_process(
    plane: EmbeddedPlane, timings: Timings, *, namespaces: Sequence[str] | None = None, **changes: Any
) -> Iterator[None]:
    """As :func:`support.manager.manager_in_process`; it serves no endpoints, so ``metrics_port`` means nothing."""
    changes.pop("metrics_port", None)
    chosen = tuple(namespaces) if namespaces is not None else None
    settings = ControllerSettings(namespaces=chosen, instance="in-process", **changes)
    with EmbeddedManager(plane, timings=timings, settings=settings):
        yield


def _verb(request: Request) -> str:
    reference = _reference(request)
    if request.method == "GET":
        named = "name" in reference
        return "get" if named else "watch" if request.parameter("watch") else "list"
    if request.method == "DELETE":
        return "delete" if "name" in reference else "deletecollection"
    return _VERBS[request.method]


def _reference(request: Request) -> Json:
    found = _PATH.fullmatch(request.path)
    if found is None:
        return {}
    reference = {name: value for name, value in found.groupdict().items() if value and name != "version"}
    if request.method == "POST" and request.body:
        with suppress(ValueError):
            reference.setdefault("name", json.loads(request.body).get("metadata", {}).get("name", ""))
    if reference["resource"] == "namespaces" and "name" in reference:
        reference["namespace"] = reference["name"]
    return reference


def _micro(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def on_virtual_time(plane: EmbeddedPlane, patch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Give modules of tests the plane's time, and its managers for processes and threads of their own."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return plane.now().astimezone(tz)

    stand_ins = {
        "time": SimpleNamespace(monotonic=plane.monotonic, sleep=plane.sleep),
        "datetime": Clock,
        "ManagerProcess": EmbeddedManager,
        "manager_in_process": manager_in_process,
        "install": lambda plane: None,
    }
    for module in modules:
        for name, stand_in in stand_ins.items():
            if hasattr(module, name):
                patch.setattr(module, name, stand_in)
