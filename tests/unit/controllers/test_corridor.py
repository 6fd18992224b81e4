"""Several things happening to one machine at once, on the whole system in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fivespot.api import names
from fivespot.runtime import CRDS, Client, Key, Resource, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import CLUSTERS, MACHINES
from fivespot.testing.system import EmbeddedSystem
from simulation.fleet import SCHEDULED_MACHINES, SWITCHES, add_machine, add_switch
from unit.controllers.one_machine import KEY, One, one_machine

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


async def gone(one: One) -> bool:
    return await one.machine() is None


async def remove(client: Client, resource: Resource, key: Key) -> None:
    found = await client.get(resource, key)
    await client.delete(resource, key, uid=found.head.uid)


async def leftovers(system: EmbeddedSystem) -> list[str]:
    family = system.family
    return [
        str(obj.key) for kind in (family.bootstrap, family.machine) for obj in await system.cluster.client.list(kind)
    ]


@pytest.mark.contract("B1.21", "B1.22")
async def test_a_schedule_that_is_recreated_with_another_verdict_during_grace_cancels_the_shutdown(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="10m") as (one, _):
        before = await one.machine()
        assert before is not None
        await one.turn(on=False)
        await asyncio.sleep(300)
        assert (await one.status())["phase"] == "ShuttingDown"
        await remove(one.cluster.client, SWITCHES, KEY)
        await asyncio.sleep(60)
        assert "nextCleanup" in await one.status(), "what was said last holds"
        await add_switch(one.system, "web", enabled=True)
        await asyncio.sleep(600)
        after = await one.machine()
        assert after is not None
        assert after.head.uid == before.head.uid
        assert (await one.status())["phase"] == "Active"
        assert "shutdownRequestedTime" not in await one.status()


@pytest.mark.contract("B1.22")
async def test_a_reference_that_changes_while_the_machine_is_drained_makes_another_machine_afterwards(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="0s") as (one, _):
        before = await one.machine()
        assert before is not None
        await add_switch(one.system, "other", enabled=True)
        await one.turn(on=False)
        await asyncio.sleep(0.3)
        schedule = {"apiVersion": SWITCHES.api_version, "kind": SWITCHES.kind, "name": "other"}
        await one.edit(schedule=schedule)
        await asyncio.sleep(300)
        after = await one.machine()
        assert after is not None
        assert after.head.uid != before.head.uid
        status = await one.status()
        assert (status["phase"], status.get("replacements")) == ("Active", None), "our own shutdown is no loss"


@pytest.mark.contract("B6.2", "B3.2")
async def test_kill_switch_pause_and_deletion_together_end_once_the_pause_does(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="1h") as (one, _):
        await one.pause_cluster(on=True)
        await one.edit(killSwitch=True)
        await one.delete()
        await asyncio.sleep(120)
        machine = await one.machine()
        assert machine is None or machine.head.deleting
        body = await one.body()
        assert "paused" in body["status"]["message"]
        await one.pause_cluster(on=False)
        await asyncio.sleep(300)
        assert await one.find(SCHEDULED_MACHINES) is None
        assert await gone(one)
        assert await leftovers(one.system) == []


@pytest.mark.contract("B6.1")
@pytest.mark.parametrize("paused", [False, True])
async def test_a_cluster_that_is_deleted_during_grace_takes_the_machine_along(
    fivespot_cluster: EmbeddedCluster, paused: bool
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="2h") as (one, _):
        await one.turn(on=False)
        await asyncio.sleep(60)
        if paused:
            await one.pause_cluster(on=True)
        keep = {"metadata": {"finalizers": ["test/keep"]}}
        await one.cluster.client.patch(CLUSTERS, Key("default", "prod"), merge_patch(keep))
        await remove(one.cluster.client, CLUSTERS, Key("default", "prod"))
        await asyncio.sleep(300)
        if paused:
            assert (await one.condition("Paused"))["status"] == "True"
            await one.pause_cluster(on=False)
            await asyncio.sleep(300)
        assert await gone(one)
        assert await leftovers(one.system) == []
        assert (await one.status())["phase"] == "Inactive"


@pytest.mark.contract("B3.6")
@pytest.mark.parametrize("moment", ["active", "grace", "draining", "killed", "error", "pending", "inactive"])
async def test_a_namespace_that_is_deleted_in_any_phase_ends_by_itself(
    fivespot_cluster: EmbeddedCluster, moment: str
) -> None:
    options: dict[str, Any] = {"gracefulShutdownTimeout": "0s" if moment == "draining" else "1h"}
    if moment == "pending":
        options["clusterName"] = "absent"
    key = Key("team", "web")
    async with EmbeddedSystem(fivespot_cluster) as system:
        client = system.cluster.client
        if moment == "error":
            typo = {"apiVersion": system.family.machine.api_version, "kind": "Typo", "spec": {}}
            options["infrastructureSpec"] = typo
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        await system.add_cluster("team")
        await add_switch(system, "web", enabled=moment != "inactive", namespace="team")
        await add_machine(system, "web", "web", kind="ManualSchedule", namespace="team", **options)
        async with system.manager():
            await asyncio.sleep(60)
            match moment:
                case "grace" | "draining":
                    await client.patch(SWITCHES, key, merge_patch({"spec": {"enabled": False}}))
                    await asyncio.sleep(0.3)
                case "killed":
                    await client.patch(SCHEDULED_MACHINES, key, merge_patch({"spec": {"killSwitch": True}}))
            await remove(client, NAMESPACES, Key("", "team"))
            await asyncio.sleep(900)
            assert await client.list(SCHEDULED_MACHINES) == []
            assert await client.list(MACHINES) == []
            assert await leftovers(system) == []
            assert "team" not in [obj.head.name for obj in await client.list(NAMESPACES)]


@pytest.mark.contract("A12", "B2.3")
async def test_a_definition_that_is_swapped_under_a_living_machine_leaves_it_and_its_end_in_order(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="0s") as (one, _):
        family = one.system.family
        before = await one.machine()
        assert before is not None
        definition = await one.cluster.client.get(CRDS, Key("", family.machine.qualified))
        labels = dict.fromkeys(definition.head.labels)
        await one.cluster.client.patch(CRDS, definition.key, merge_patch({"metadata": {"labels": labels}}))
        await asyncio.sleep(120)
        after = await one.machine()
        assert after is not None
        assert after.head.uid == before.head.uid
        assert (await one.status())["phase"] == "Active"
        await one.turn(on=False)
        await asyncio.sleep(300)
        # Cluster API cannot handle the kind now, and nothing is deleted behind its back.
        assert (await one.status())["phase"] == "ShuttingDown"
        assert len(await leftovers(one.system)) == 2
        restored = merge_patch({"metadata": {"labels": dict(definition.head.labels)}})
        await one.cluster.client.patch(CRDS, definition.key, restored)
        await asyncio.sleep(600)
        assert await gone(one)
        assert await leftovers(one.system) == []
        await one.turn(on=True)
        await asyncio.sleep(60)
        assert (await one.status())["phase"] == "Active"


@pytest.mark.contract("B3.5", "B1.15")
async def test_a_kill_switch_cleared_during_deletion_does_not_bring_the_machine_back(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="0s") as (one, _):
        body = await one.body()
        finalizers = [*body["metadata"]["finalizers"], "test/keep"]
        await one.cluster.client.patch(SCHEDULED_MACHINES, KEY, merge_patch({"metadata": {"finalizers": finalizers}}))
        await one.edit(killSwitch=True)
        await one.delete()
        await asyncio.sleep(0.2)
        await one.edit(killSwitch=False)
        await asyncio.sleep(600)
        assert await gone(one)
        assert await leftovers(one.system) == []
        found = await one.find(SCHEDULED_MACHINES)
        assert found is not None
        assert found.head.finalizers == ("test/keep",)
        assert names.FINALIZER not in found.head.finalizers
