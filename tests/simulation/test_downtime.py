"""B5.3: changes that happen while no manager runs, or before its watch delivers them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from fivespot.runtime import Key, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import HalfOpen, Latency, Rule
from fivespot.testing.system import EmbeddedSystem

from .fleet import SCHEDULED_MACHINES, SWITCHES, add_machine, add_switch, phases, turn


@pytest.mark.contract("B5.3")
async def test_a_machine_that_is_wanted_again_survives_a_restart_after_its_grace(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    """Until schedules are read after a restart, the verdict in status is an old one, and deletes nothing."""
    async with EmbeddedSystem(fivespot_cluster) as system:
        client = system.cluster.client
        await system.add_cluster("default")
        await add_switch(system, "web", enabled=True)
        await add_machine(system, "web", "web", kind="ManualSchedule", gracefulShutdownTimeout="1m")
        async with system.manager() as running:
            await asyncio.sleep(60)
            await turn(system, "web", on=False)
            await asyncio.sleep(10)
            found = (await client.get(SCHEDULED_MACHINES, Key("default", "web"))).decode()
            assert found["status"]["shutdownRequestedTime"]
            machine = await client.get(MACHINES, Key("default", "web"))
            await running.kill()
        # Another manager, without the machine controller, runs the schedule meanwhile.
        status = {"status": {"active": True, "conditions": []}}
        await turn(system, "web", on=True)
        await client.patch(SWITCHES, Key("default", "web"), merge_patch(status), subresource="status")
        await asyncio.sleep(600)
        # Machines are read before schedules are.
        fivespot_cluster.faults.add(Rule(Latency(5.0), resource=SWITCHES.plural))
        async with system.manager():
            await asyncio.sleep(120)
            assert (await client.get(MACHINES, Key("default", "web"))).head.uid == machine.head.uid
            assert set(await phases(system)) == {"Active"}


@dataclass
class SilentWatch:
    """A fault: the watches of one manager stay open and deliver nothing."""

    agent: str

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if not request.header("user-agent").startswith(self.agent):
            return await handler(request)
        return await HalfOpen().apply(request, handler)


async def test_a_provisioned_machine_is_not_replaced_when_a_stale_cache_shows_it_unprovisioned(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    """The caches of Machines and of infrastructure objects may be of different instants."""
    async with EmbeddedSystem(fivespot_cluster) as system:
        client, family = system.cluster.client, system.family.machine
        await system.add_cluster("default")
        await add_switch(system, "web", enabled=True)
        slow = {"apiVersion": family.api_version, "kind": family.kind, "spec": {"createAfterSeconds": 900}}
        await add_machine(system, "web", "web", kind="ManualSchedule", infrastructureSpec=slow)
        async with system.manager():
            await asyncio.sleep(10)
            machine = await client.get(MACHINES, Key("default", "web"))
            # Until its watch is opened again, which is within ten minutes, and from then on.
            fivespot_cluster.faults.add(Rule(SilentWatch("5spot"), verb="watch", resource=MACHINES.plural))
            await asyncio.sleep(900)
            found = (await client.get(MACHINES, machine.key)).decode()
            assert found["status"]["nodeRef"]
            lost = await client.get(family, machine.key)
            await client.delete(family, lost.key, uid=lost.head.uid)
            await asyncio.sleep(5)
            left = await client.get(MACHINES, machine.key)
            assert (left.head.uid, left.head.deleting) == (machine.head.uid, False)


async def test_leftovers_are_found_after_a_status_is_lost_before_the_response_to_its_write(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    """B2.3: otherwise nobody would search for its objects."""
    async with EmbeddedSystem(fivespot_cluster) as system:
        client, family, key = system.cluster.client, system.family.cluster, Key("default", "web")
        await system.add_cluster("default")
        await add_switch(system, "web", enabled=False)
        late = Rule(Latency(10.0, answer=True), verb="patch", resource="scheduledmachines/status", times=1)
        fivespot_cluster.faults.add(late)
        async with system.manager():
            await add_machine(system, "web", "web", kind="ManualSchedule")
            await asyncio.sleep(5)
            found = await client.get(SCHEDULED_MACHINES, key)
            status = found.decode()["status"]
            assert status["phase"] == "Inactive"
            marks = {
                "labels": {"5spot.finos.org/scheduled-machine": "web"},
                "annotations": {"5spot.finos.org/scheduled-machine-uid": found.head.uid},
            }
            metadata = {"name": "web", "namespace": "default", **marks}
            await client.create(
                family, {"apiVersion": family.api_version, "kind": family.kind, "metadata": metadata, "spec": {}}
            )
            lost = merge_patch({"status": dict.fromkeys(status)})
            await client.patch(SCHEDULED_MACHINES, key, lost, subresource="status")
            await asyncio.sleep(30)
            assert [left.key for left in await client.list(family) if left.key == key] == []
            assert set(await phases(system)) == {"Inactive"}
