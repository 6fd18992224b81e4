"""Faults that other controllers have met in production, on the embedded server in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from fivespot.runtime import (
    DONE,
    METADATA,
    Change,
    Controller,
    Informer,
    Key,
    ManagerContext,
    ObjectRef,
    Projection,
    Resource,
    Result,
    merge_patch,
)
from fivespot.runtime.manager import ControllerSettings
from fivespot.runtime.objects import FULL
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import Fail, Fault, Gone, HalfOpen, Reset, Rule
from fivespot.testing.system import EmbeddedSystem

from .fleet import SCHEDULED_MACHINES, add_machine, add_switch, counts, phases, turn

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PART = Projection("part", bytes, frozenset())


async def test_a_machine_deleted_during_downtime_is_not_waited_for(fivespot_cluster: EmbeddedCluster) -> None:
    """kube-rs#1576, #1577: a waiter was never told that the object was gone before its first list."""
    async with EmbeddedSystem(fivespot_cluster) as system:
        await system.add_cluster("default")
        await add_switch(system, "web", enabled=True)
        await add_machine(system, "web", "web", kind="ManualSchedule", gracefulShutdownTimeout="0s")
        async with system.manager() as running:
            await asyncio.sleep(60)
            # The Node cannot be deleted, so that the manager is killed while it waits.
            fivespot_cluster.faults.add(Rule(Fail(500), verb="delete", resource="nodes"))
            await turn(system, "web", on=False)
            await asyncio.sleep(1)
            assert (await system.cluster.client.get(MACHINES, Key("default", "web"))).head.deleting
            await running.kill()
        fivespot_cluster.faults.clear()
        await asyncio.sleep(900)
        assert await system.cluster.client.list(MACHINES) == []
        assert (await phases(system))["ShuttingDown"] == 1
        async with system.manager():
            await asyncio.sleep(5)
            assert await phases(system) == {"Inactive": 1}


class Forms:
    """A controller with three informers of one resource (whole, projected, metadata); records their changes."""

    def __init__(self, context: ManagerContext) -> None:
        self.controller: Controller = context.controller("forms", self)
        self.told: dict[str, list[str]] = {}
        self.informers: list[Informer] = []
        for projection in (FULL, PART, METADATA):
            informer = context.cache.informer(CONFIG_MAPS, projection=projection)
            lines: list[str] = []
            self.told[projection.name] = lines
            informer.subscribe(lambda change, lines=lines: self.tell(lines, change))  # type: ignore[misc]
            self.controller.watches(informer)
            self.informers.append(informer)

    def tell(self, lines: list[str], change: Change) -> None:
        lines.append(f"{change.type.value} {change.head.name} {change.head.version}")

    async def reconcile(self, key: Key) -> Result:
        return DONE


@pytest.mark.parametrize("fault", [Gone(), Gone("http"), Gone("body"), Reset()], ids=repr)
async def test_watches_of_every_projection_resume_and_deliver_no_change_twice(
    fivespot_cluster: EmbeddedCluster, fault: Fault
) -> None:
    """kubernetes_asyncio#136, #134, #320: watches of some kinds lost their version and delivered everything again."""
    forms: list[Forms] = []

    def build(context: ManagerContext) -> Controller:
        forms.append(Forms(context))
        return forms[-1].controller

    client = fivespot_cluster.client
    async with fivespot_cluster.manager(build):
        for number in range(3):
            metadata = {"name": f"c{number}", "namespace": "default"}
            await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        await fivespot_cluster.until(lambda: all(len(lines) == 3 for lines in forms[0].told.values()))
        # Every watch is closed by the server within ten minutes; three openings, one of each form, go wrong.
        fivespot_cluster.faults.add(Rule(fault, verb="watch", resource="configmaps", times=3))
        await asyncio.sleep(900)
        assert len(fivespot_cluster.faults.happened) == 3
        await client.patch(CONFIG_MAPS, Key("default", "c1"), merge_patch({"data": {"a": "b"}}))
        await asyncio.sleep(60)
        told = list(forms[0].told.values())
        assert told[0] == told[1] == told[2]
        assert [line.split()[:2] for line in told[0]] == [
            *(["ADDED", f"c{number}"] for number in range(3)),
            ["MODIFIED", "c1"],
        ]


async def test_a_manager_of_one_namespace_works_until_the_namespace_is_deleted(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    """nolar/kopf#1088: the end of a namespace ended the watch on it before finalizers could be taken off."""
    async with EmbeddedSystem(fivespot_cluster) as system:
        client = system.cluster.client
        await system.cluster.namespace("team")
        await system.add_cluster("team")
        await add_switch(system, "web", enabled=True, namespace="team")
        settings = ControllerSettings(namespaces=("team",), instance="one")
        machine = system.family.machine
        slow = {"apiVersion": machine.api_version, "kind": machine.kind, "spec": {"deleteAfterSeconds": 300}}
        async with system.manager(controllers=settings):
            for name in ("web", "other"):
                await add_machine(system, name, "web", kind="ManualSchedule", namespace="team", infrastructureSpec=slow)
            await asyncio.sleep(60)
            assert await counts(system) == 2
            namespace = await client.get(NAMESPACES, Key("", "team"))
            await client.delete(NAMESPACES, namespace.key, uid=namespace.head.uid)
            await asyncio.sleep(200)
            assert (await client.get(NAMESPACES, namespace.key)).head.deleting

            async def gone() -> bool:
                return not await client.list(SCHEDULED_MACHINES) and not await client.list(MACHINES)

            await system.cluster.until(gone, within=900, what="no ScheduledMachine or Machine is left")


class EventsAtStop:
    """A controller that records a thousand events when it is cancelled."""

    def __init__(self, context: ManagerContext) -> None:
        self.controller: Controller = context.controller("events-at-stop", self)
        self.controller.watches(context.cache.informer(CONFIG_MAPS))
        self.events = context.events
        self.recorded = 0

    async def reconcile(self, key: Key) -> Result:
        try:
            await asyncio.sleep(1e6)
        finally:
            for number in range(1000):
                about = ObjectRef("v1", "ConfigMap", key.namespace, f"{key.name}-{number}", f"u{number}")
                self.events.event(about, type="Normal", reason="Stopping", message="stops")
                self.recorded += 1
        return DONE


async def test_a_thousand_events_recorded_while_stopping_do_not_delay_the_stop(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    """nolar/kopf#1212: an event posted while the operator stopped waited for the loop that waited for it."""
    controllers: list[EventsAtStop] = []

    def build(context: ManagerContext) -> Controller:
        controllers.append(EventsAtStop(context))
        return controllers[-1].controller

    fivespot_cluster.faults.add(Rule(HalfOpen(), verb="create", resource="events"))
    async with fivespot_cluster.manager(build) as running:
        metadata = {"name": "a", "namespace": "default"}
        await fivespot_cluster.client.create(
            CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        )
        await asyncio.sleep(1)
        began = fivespot_cluster.elapsed
        await running.stop()
        assert controllers[0].recorded == 1000
        assert fivespot_cluster.elapsed - began < 30
