"""Every answer to every request: plans of the machine controller and the providers, with one request that goes wrong.

A case is a plan (what a user does), a call site (a verb and a resource that the manager asks for while it carries the
plan out), an answer, and whether it comes once or lasts. The call sites are found by runs without faults.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from itertools import product, zip_longest
from random import Random
from typing import Any, Final, Self

from fivespot.api import names
from fivespot.apiserver import ApiRequest, ApiResponse, Handler, StatusError
from fivespot.runtime import ElectionSettings, Key, ManagerSettings, Resource, merge_patch
from fivespot.testing.cluster import EmbeddedCluster, RunningManager
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import Fail, Fault, HalfOpen, RequestInfo, Reset, Rule, Throttle
from fivespot.testing.faults.streams import close
from fivespot.testing.system import EmbeddedSystem
from fivespot.testing.virtual_time import run_virtual

from .checker import Checker
from .fleet import SCHEDULED_MACHINES, SWITCHES, add_machine, add_switch, turn

__all__ = ["ANSWERS", "PLANS", "Case", "Site", "cases", "cases_of", "play"]

Json = dict[str, Any]

AGENT: Final = "5spot-controller"
KEY: Final = Key("default", "web")
_LASTING: Final = 300.0
"""Seconds for which an answer lasts."""
_TOLD: Final = 60.0
"""B8.5: seconds within which a failure is reported."""
_RECOVERY: Final = 720.0
"""Seconds after which all is well: the longest waits are five minutes for a refusal and for the next look, and more."""
_MOST: Final = 300
"""Requests of one call site for one object while an answer lasts: more are a hot loop. A lost watch is opened again
after three seconds at most, a Lease is claimed every two, with retries, and the first tries follow each other fast."""
_UNSEEN: Final = ("list", "watch", "")
"""Verbs of requests that fill caches: what they do not show cannot be in a status, only in metrics and health."""
_ERRORS: Final = re.compile(r"[a-z_]*(errors|failures)_total\b")


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """Requests of the manager: a verb, "" for discovery, and a resource, or a path of discovery."""

    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb or 'discover'} {self.resource}"


# Answers -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gone:
    """404 with a Status that names the object, though it may exist."""

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        seen = RequestInfo.of(request)
        message = f'{seen.resource} "{seen.name}" not found'
        details = {"name": seen.name, "group": seen.group, "kind": seen.resource.partition("/")[0]}
        return StatusError(404, "NotFound", message, details=details).response()


@dataclass(frozen=True)
class Body:
    """The request takes effect, and another body comes back.

    :param content: the body.
    """

    content: bytes

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        close(await handler(request))
        return ApiResponse(200, [("Content-Type", "application/json")], self.content)


@dataclass
class _Endless:
    """The request takes effect, and the body of the answer does not end."""

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        close(await handler(request))
        return ApiResponse(200, [("Content-Type", "application/json")], _Spaces())


class _Spaces:
    async def read(self) -> bytes:
        return b" " * 1_048_576

    def close(self) -> None:
        pass


_FALSE: Final = "404 NotFound"

ANSWERS: Final[dict[str, Fault]] = {
    "lost": Reset(after=True),
    "reset": Reset(),
    "time-out": HalfOpen(),
    "broken": Body(b'{"kind": "Mach'),
    "deep": Body(b"[" * 100_000),
    "empty": Body(b""),
    "wrong": Body(b'{"kind": [], "metadata": "no"}'),
    "endless": _Endless(),
    "400": Fail(400),
    "401": Fail(401),
    "403": Fail(403),
    _FALSE: Gone(),
    "404": Fail(404, "text"),
    "409 Conflict": Fail(409),
    "409 AlreadyExists": Fail(409, message="already exists"),
    "410": Fail(410),
    "413": Fail(413, "text"),
    "422": Fail(422),
    "429 Retry-After": Throttle(7),
    "429": Fail(429),
    "500": Fail(500),
    "503": Fail(503, "html"),
    "504": Fail(504),
}


@dataclass
class _OfManager:
    """A fault of the manager's requests alone.

    :ivar first: time of the first request, on the loop's clock.
    :ivar counts: requests by the name of their object.
    :ivar on_failure: called with each request that fails.
    """

    fault: Fault
    once: bool
    first: float = math.inf
    counts: Counter[str] = field(default_factory=Counter)
    on_failure: Callable[[RequestInfo], None] = lambda _: None

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if not request.header("user-agent").startswith(AGENT):
            return await handler(request)
        seen = RequestInfo.of(request)
        again = bool(self.counts)
        self.counts[seen.name] += 1
        if self.once and again:
            return await handler(request)
        self.first = min(self.first, asyncio.get_running_loop().time())
        self.on_failure(seen)
        return await self.fault.apply(request, handler)


@dataclass
class _Recorder:
    seen: set[Site] = field(default_factory=set)

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if request.header("user-agent").startswith(AGENT):
            info = RequestInfo.of(request)
            self.seen.add(Site(info.verb, info.resource))
        return await handler(request)


# Plans ---------------------------------------------------------------------------------------------------------------

Act = Callable[[EmbeddedSystem], Awaitable[None]]


@dataclass(frozen=True)
class Plan:
    """A change by a user, and the state that it has to lead to.

    :param on: the schedule's verdict before.
    :param act: the change.
    :param exists: whether the machine has to exist at the end.
    :param made: the ScheduledMachine exists before.
    :param restart: the manager starts after the change.
    :param elected: the manager that starts has leader election.
    """

    act: Act
    exists: bool
    on: bool = True
    spec: Json = field(default_factory=dict)
    made: bool = True
    restart: bool = False
    elected: bool = False


def _turn(*, on: bool) -> Act:
    return lambda system: turn(system, KEY.name, on=on)


def _edit(**spec: Any) -> Act:
    async def edit(system: EmbeddedSystem) -> None:
        await system.cluster.client.patch(SCHEDULED_MACHINES, KEY, merge_patch({"spec": spec}))

    return edit


def _delete(resource: Resource) -> Act:
    async def delete(system: EmbeddedSystem) -> None:
        found = await system.cluster.client.get(resource, KEY)
        await system.cluster.client.delete(resource, KEY, uid=found.head.uid)

    return delete


async def _make(system: EmbeddedSystem, **spec: Any) -> None:
    await add_machine(system, KEY.name, KEY.name, kind=SWITCHES.kind, **spec)


async def _lose(system: EmbeddedSystem) -> None:
    """The Machine vanishes without Cluster API, and the schedule ends: its other objects are left over."""
    await _delete(MACHINES)(system)
    await system.cluster.client.patch(MACHINES, KEY, merge_patch({"metadata": {"finalizers": None}}))
    await turn(system, KEY.name, on=False)


async def _nothing(system: EmbeddedSystem) -> None:
    pass


_AT_ONCE: Final = {"gracefulShutdownTimeout": "0s"}
_SOON: Final = {"gracefulShutdownTimeout": "30s"}

PLANS: Final[dict[str, Plan]] = {
    "begin": Plan(_make, exists=True, made=False),
    "create": Plan(_turn(on=True), exists=True, on=False),
    "create with taints": Plan(
        _turn(on=True), exists=True, on=False, spec={"nodeTaints": [{"key": "a", "effect": "NoSchedule"}]}
    ),
    "shut down": Plan(_turn(on=False), exists=False, spec=_AT_ONCE),
    "shut down with grace": Plan(_turn(on=False), exists=False, spec=_SOON),
    "disable": Plan(_edit(enabled=False), exists=False, spec=_SOON),
    "kill": Plan(_edit(killSwitch=True), exists=False),
    "delete": Plan(_delete(SCHEDULED_MACHINES), exists=False),
    "replace": Plan(_delete(MACHINES), exists=True),
    "restart": Plan(_nothing, exists=True, restart=True),
    "restart to create": Plan(_turn(on=True), exists=True, on=False, restart=True),
    "restart to shut down": Plan(_turn(on=False), exists=False, spec=_AT_ONCE, restart=True),
    "restart to clean up": Plan(_lose, exists=False, restart=True),
    "lead": Plan(_turn(on=True), exists=True, on=False, restart=True, elected=True),
}


# Cases ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """One plan with one answer at one call site."""

    plan: str
    site: Site
    answer: str
    lasting: bool

    def __str__(self) -> str:
        return f"{self.plan}: {self.site}: {self.answer} {'for 5 minutes' if self.lasting else 'once'}"


def cases(rng: Random) -> Iterator[Case]:
    """Yield every case once, in random order; the plans take turns, so that any part of the cases has all of them."""
    for turn_ in zip_longest(*(cases_of(plan, rng) for plan in PLANS)):
        yield from (case for case in turn_ if case is not None)


def cases_of(plan: str, rng: Random) -> list[Case]:
    """Return every case of a plan, in random order."""
    found = [Case(plan, *rest) for rest in product(_sites(plan), ANSWERS, (False, True))]
    rng.shuffle(found)
    return found


def _sites(plan: str) -> list[Site]:
    """Find the call sites of a plan: the requests of a manager that meets no fault."""

    async def run() -> list[Site]:
        recorder = _Recorder()
        async with _Scene(PLANS[plan]) as scene:
            scene.system.cluster.faults.add(Rule(recorder))
            await scene.begin()
            await asyncio.sleep(_LASTING)
        return sorted(recorder.seen)

    return run_virtual(run())


def play(case: Case) -> list[str]:
    """Run a case in virtual time and return what went wrong."""
    return run_virtual(_play(case))


async def _play(case: Case) -> list[str]:
    plan = PLANS[case.plan]
    fault = _OfManager(ANSWERS[case.answer], once=not case.lasting)
    problems: list[str] = []
    async with _Scene(plan) as scene:
        fault.on_failure = scene.patch_failed
        faults = scene.system.cluster.faults
        faults.add(Rule(fault, verb=case.site.verb, resource=case.site.resource))
        await scene.begin()
        if case.lasting:
            await asyncio.sleep(_TOLD + 1.0)
            problems += await _untold(case, scene, fault)
            await asyncio.sleep(_LASTING - _TOLD)
            problems += _hot_loop(fault)
            faults.clear()
        else:
            await asyncio.sleep(_LASTING)
        await asyncio.sleep(_RECOVERY)
        problems += [f"not well afterwards: {what}" for what in scene.checker.unsettled()]
        if scene.exists() is not plan.exists:
            problems.append(f"at the end the Machine {'is missing' if plan.exists else 'still exists'}")
        problems += scene.checker.violations
        if not fault.counts:
            problems.append("the call site was never reached")
    return problems


async def _untold(case: Case, scene: _Scene, fault: _OfManager) -> list[str]:
    """Return what a user reads that is not true, a minute after the first failure."""
    if asyncio.get_running_loop().time() - fault.first < _TOLD or scene.exists() is PLANS[case.plan].exists:
        return []
    if case.answer == _FALSE or case.site.resource == "leases":
        # Who is told that the object does not exist has nothing to report, and who does not lead may not report.
        return []
    body = scene.checker.reference.find(SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural, KEY.namespace, KEY.name)
    status = (body or {}).get("status") or {}
    ready = next((c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"), "")
    if ready != "True":
        return []
    # What fills caches, the status itself, and what a provider meets cannot be in the status of the machine.
    elsewhere = case.site.verb in _UNSEEN or case.site.resource.endswith("/status")
    if elsewhere and (scene.errors() > 0 or scene.unready()):
        return []
    return [f"untold after a minute: {status.get('phase')}, Ready, {status.get('message')!r}"]


def _hot_loop(fault: _OfManager) -> list[str]:
    most = max(fault.counts.values(), default=0)
    return [f"{most} requests in {_LASTING:g} s"] if most > _MOST else []


class _Scene:
    """The system with one machine, and its manager."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stack = AsyncExitStack()
        self.system = EmbeddedSystem(EmbeddedCluster())
        self.checker: Checker
        self._running: RunningManager

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.system.cluster)
            await stack.enter_async_context(self.system)
            self.checker = Checker(self.system)
            await self.system.add_cluster(KEY.namespace)
            await add_switch(self.system, KEY.name, enabled=self._plan.on)
            if self._plan.made:
                await _make(self.system, **self._plan.spec)
            self._running = await stack.enter_async_context(self._manager())
            await asyncio.sleep(90)
            if self._plan.restart:
                await self._running.kill()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def begin(self) -> None:
        """Do what the plan says."""
        await self._plan.act(self.system)
        if self._plan.restart:
            self._running = await self._stack.enter_async_context(self._manager())

    def _manager(self) -> AbstractAsyncContextManager[RunningManager]:
        election = None
        if self._plan.elected:
            election = ElectionSettings(KEY.namespace, names.LEADER_LEASE, AGENT, names.ANNOTATION_RECONCILERS)
        return self.system.manager(name=AGENT, settings=ManagerSettings(look_interval=15.0, election=election))

    def exists(self) -> bool:
        """Whether there is a Machine that nobody has deleted."""
        return any("deletionTimestamp" not in m["metadata"] for m in self.checker.objects(MACHINES))

    def patch_failed(self, seen: RequestInfo) -> None:
        """Tell the checker that a Machine could not be prepared for its deletion."""
        if (seen.verb, seen.resource) == ("patch", MACHINES.plural):
            self.checker.reference.failed_patches[seen.name] = self.system.cluster.elapsed

    def errors(self) -> float:
        """The sum of all metrics of the manager that count errors."""
        lines = self._running.manager.context.metrics.render().decode().splitlines()
        counted = (line.rpartition(" ") for line in lines if _ERRORS.match(line))
        return sum(float(value) for _, _, value in counted)

    def unready(self) -> bool:
        return bool(self._running.manager.health.ready().problems)
