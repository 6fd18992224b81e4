"""Changes run the ScheduledMachines that they concern, and kinds are read while one names them; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from fivespot.controllers.scheduledmachine.informers import MachineInformers
from fivespot.controllers.scheduledmachine.reconciler import MachineReconciler
from fivespot.runtime import CRDS, GroupKind, Key, Resource, Result, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import CLUSTERS
from fivespot.testing.system import EmbeddedSystem
from simulation.fleet import SCHEDULED_MACHINES, SWITCHES, add_machine, add_switch, turn

GROUP = SWITCHES.group


@dataclass
class Runs:
    """The runs of the machine controller, and the informers that cause them."""

    system: EmbeddedSystem
    keys: list[Key]
    informers: MachineInformers

    async def after(self, change: Any) -> set[str]:
        """Make a change, and return the names of the machines that ran for it."""
        self.keys.clear()
        await change
        await asyncio.sleep(2)
        return {key.name for key in self.keys}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Key], list[MachineInformers]]:
    keys: list[Key] = []
    made: list[MachineInformers] = []
    reconcile, init = MachineReconciler.reconcile, MachineInformers.__init__

    async def record(self: MachineReconciler, key: Key) -> Result:
        if key.namespace:
            keys.append(key)
        return await reconcile(self, key)

    def remember(self: MachineInformers, *args: Any) -> None:
        init(self, *args)
        made.append(self)

    monkeypatch.setattr(MachineReconciler, "reconcile", record)
    monkeypatch.setattr(MachineInformers, "__init__", remember)
    return keys, made


@asynccontextmanager
async def settled(cluster: EmbeddedCluster, runs: tuple[list[Key], list[MachineInformers]]) -> AsyncIterator[Runs]:
    """Machines a and b follow schedule web, c follows other; all are down and have been for a while."""
    keys, made = runs
    async with EmbeddedSystem(cluster) as system:
        await system.add_cluster("default")
        for schedule in ("web", "other"):
            await add_switch(system, schedule, enabled=False)
        for name, schedule in (("a", "web"), ("b", "web"), ("c", "other")):
            await add_machine(system, name, schedule, kind=SWITCHES.kind, gracefulShutdownTimeout="0s")
        async with system.manager():
            await asyncio.sleep(30)
            yield Runs(system, keys, made[0])


async def test_a_schedule_runs_the_machines_that_follow_it_and_no_others(
    fivespot_cluster: EmbeddedCluster, runs: tuple[list[Key], list[MachineInformers]]
) -> None:
    async with settled(fivespot_cluster, runs) as world:
        assert await world.after(turn(world.system, "other", on=True)) == {"c"}
        assert await world.after(turn(world.system, "web", on=True)) == {"a", "b"}
        assert await world.after(add_switch(world.system, "nobody", enabled=True)) == set()


async def test_a_schedule_of_that_name_in_another_namespace_or_of_another_kind_runs_nobody(
    fivespot_cluster: EmbeddedCluster, runs: tuple[list[Key], list[MachineInformers]]
) -> None:
    async with settled(fivespot_cluster, runs) as world:
        client = world.system.cluster.client
        namespaces = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
        await client.create(namespaces, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
        change = add_switch(world.system, "web", enabled=True, namespace="elsewhere")
        assert await world.after(change) == set()
        metadata = {"name": "web", "namespace": "default"}
        timebased = Resource(GROUP, "v1alpha1", "timebasedspotschedules", "TimeBasedSpotSchedule")
        body = {"apiVersion": timebased.api_version, "kind": timebased.kind, "metadata": metadata, "spec": {}}
        assert await world.after(client.create(timebased, body)) == set()


async def test_an_object_that_takes_the_name_of_a_child_runs_that_machine(
    fivespot_cluster: EmbeddedCluster, runs: tuple[list[Key], list[MachineInformers]]
) -> None:
    async with settled(fivespot_cluster, runs) as world:
        machine = world.system.family.machine

        async def take(name: str) -> None:
            metadata = {"name": name, "namespace": "default"}
            body = {"apiVersion": machine.api_version, "kind": machine.kind, "metadata": metadata, "spec": {}}
            await world.system.cluster.client.create(machine, body)

        assert await world.after(take("b")) == {"b"}
        assert await world.after(take("unrelated")) == set()


@pytest.mark.contract("B6.2")
async def test_a_cluster_runs_its_machines_when_it_is_paused(
    fivespot_cluster: EmbeddedCluster, runs: tuple[list[Key], list[MachineInformers]]
) -> None:
    async with settled(fivespot_cluster, runs) as world:
        await add_machine(world.system, "d", "web", kind=SWITCHES.kind, clusterName="test")
        await asyncio.sleep(5)
        pause = world.system.cluster.client.patch(
            CLUSTERS, Key("default", "prod"), merge_patch({"spec": {"paused": True}})
        )
        assert await world.after(pause) == {"a", "b", "c"}


async def test_an_edited_machine_runs_and_its_own_status_does_not_run_it_again(
    fivespot_cluster: EmbeddedCluster, runs: tuple[list[Key], list[MachineInformers]]
) -> None:
    async with settled(fivespot_cluster, runs) as world:
        edit = world.system.cluster.client.patch(
            SCHEDULED_MACHINES, Key("default", "a"), merge_patch({"spec": {"priority": 7}})
        )
        assert await world.after(edit) == {"a"}
        assert len(world.keys) == 1, "the run wrote a status, which is no cause for another"


async def test_a_kind_that_is_installed_runs_the_machines_that_wait_for_it(
    fivespot_cluster: EmbeddedCluster, runs: tuple[list[Key], list[MachineInformers]]
) -> None:
    async with settled(fivespot_cluster, runs) as world:
        await add_machine(world.system, "d", "tide", kind="TideSchedule")
        await asyncio.sleep(5)
        client = world.system.cluster.client
        definition = (await client.get(CRDS, Key("", SWITCHES.qualified))).decode()
        names = {"kind": "TideSchedule", "plural": "tides", "singular": "tideschedule", "listKind": "TideScheduleList"}
        body = {**definition, "metadata": {"name": f"tides.{GROUP}"}, "spec": definition["spec"] | {"names": names}}
        assert await world.after(client.create(CRDS, body)) == {"d"}
        assert world.informers.schedules(GroupKind(GROUP, "TideSchedule")) is not None


async def test_a_kind_is_read_until_the_last_machine_that_names_it_is_gone(
    fivespot_cluster: EmbeddedCluster, runs: tuple[list[Key], list[MachineInformers]]
) -> None:
    async with settled(fivespot_cluster, runs) as world:
        kind = GroupKind(GROUP, SWITCHES.kind)
        client = world.system.cluster.client
        for name in ("a", "b", "c"):
            assert world.informers.schedules(kind) is not None
            found = await client.get(SCHEDULED_MACHINES, Key("default", name))
            await client.delete(SCHEDULED_MACHINES, found.key, uid=found.head.uid)
            await asyncio.sleep(5)
        assert world.informers.schedules(kind) is None
        assert world.informers.children(world.system.family.machine.group_kind) is None
