"""One ScheduledMachine on the whole system in memory and virtual time, with requests of the manager that go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from fivespot.controllers.scheduledmachine import MachineSettings
from fivespot.runtime import Key, NotFoundError, Object, Resource, find_condition, merge_patch
from fivespot.testing.cluster import EmbeddedCluster, RunningManager
from fivespot.testing.clusterapi.core import CLUSTERS, MACHINES
from fivespot.testing.faults import Fault, Rule
from fivespot.testing.system import EmbeddedSystem
from simulation.fleet import SCHEDULED_MACHINES, add_machine, add_switch, turn

AGENT = "5spot-controller"
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
KEY = Key("default", "web")
Json = dict[str, Any]


@dataclass
class OfManager:
    """A fault of the manager's requests alone."""

    fault: Fault
    count: int = 0

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if not request.header("user-agent").startswith(AGENT):
            return await handler(request)
        self.count += 1
        return await self.fault.apply(request, handler)


@dataclass
class Before:
    """Something that happens just before a request of the manager arrives, once."""

    act: Callable[[], Any]
    done: bool = False

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if not self.done and request.header("user-agent").startswith(AGENT):
            self.done = True
            await self.act()
        return await handler(request)


@dataclass
class Passing:
    """Counts the manager's requests and lets them pass."""

    sent: list[ApiRequest] = field(default_factory=list)

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if request.header("user-agent").startswith(AGENT):
            self.sent.append(request)
        return await handler(request)


@dataclass
class One:
    """The ScheduledMachine ``default/web`` of the ManualSchedule ``web``."""

    system: EmbeddedSystem

    @property
    def cluster(self) -> EmbeddedCluster:
        return self.system.cluster

    async def body(self) -> Json:
        found: Json = (await self.cluster.client.get(SCHEDULED_MACHINES, KEY)).decode()
        return found

    async def status(self) -> Json:
        found: Json = (await self.body()).get("status", {})
        return found

    async def condition(self, type_: str) -> Json:
        return dict(find_condition((await self.status()).get("conditions"), type_) or {})

    async def edit(self, **spec: Any) -> None:
        await self.cluster.client.patch(SCHEDULED_MACHINES, KEY, merge_patch({"spec": spec}))

    async def turn(self, *, on: bool) -> None:
        await turn(self.system, "web", on=on)

    async def machine(self) -> Object | None:
        return await self.find(MACHINES)

    async def find(self, resource: Resource, key: Key = KEY) -> Object | None:
        try:
            return await self.cluster.client.get(resource, key)
        except NotFoundError:
            return None

    async def delete(self) -> None:
        found = await self.cluster.client.get(SCHEDULED_MACHINES, KEY)
        await self.cluster.client.delete(SCHEDULED_MACHINES, KEY, uid=found.head.uid)

    async def pause_cluster(self, *, on: bool) -> None:
        await self.cluster.client.patch(CLUSTERS, Key("default", "prod"), merge_patch({"spec": {"paused": on}}))

    async def events(self, reason: str) -> list[Json]:
        found = await self.cluster.client.list(EVENTS, "default")
        bodies = [obj.decode() for obj in found]
        return [body for body in bodies if body.get("reason") == reason]

    def fail(self, fault: Fault, verb: str, resource: str) -> OfManager:
        of_manager = OfManager(fault)
        self.cluster.faults.add(Rule(of_manager, verb=verb, resource=resource))
        return of_manager

    def before(self, verb: str, resource: str, act: Callable[[], Any]) -> Before:
        fault = Before(act)
        self.cluster.faults.add(Rule(fault, verb=verb, resource=resource))
        return fault

    def watch(self, verb: str, resource: str) -> Passing:
        fault = Passing()
        self.cluster.faults.add(Rule(fault, verb=verb, resource=resource))
        return fault

    def manager(self, **settings: Any) -> Any:
        return self.system.manager(machine_settings=MachineSettings(**settings))


@asynccontextmanager
async def one_machine(
    cluster: EmbeddedCluster, *, on: bool = True, settings: Json | None = None, **spec: Any
) -> AsyncIterator[tuple[One, RunningManager]]:
    """The system with one machine and a manager that has worked on it for a minute."""
    async with EmbeddedSystem(cluster) as system:
        await system.add_cluster("default")
        await add_switch(system, "web", enabled=on)
        await add_machine(system, "web", "web", kind="ManualSchedule", **spec)
        one = One(system)
        async with one.manager(**(settings or {})) as running:
            await asyncio.sleep(60)
            yield one, running
