"""B5.3: what happened while no manager was there, or none was told."""

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
    """Found by a random day: the verdict of before the restart was taken for that of now, until schedules were read."""
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
        # Another manager, without the machine controller, sees to the schedule meanwhile.
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
class Deaf:
    """One manager's watch hears nothing any more."""

    agent: str

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if not request.header("user-agent").startswith(self.agent):
            return await handler(request)
        return await HalfOpen().apply(request, handler)


async def test_a_machine_that_came_up_unheard_is_not_replaced_when_what_it_came_from_goes(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    """Found by a random day: the caches of the two are not of one instant, and the Machine only seemed not to begin."""
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
            fivespot_cluster.faults.add(Rule(Deaf("5spot"), verb="watch", resource=MACHINES.plural))
            await asyncio.sleep(900)
            found = (await client.get(MACHINES, machine.key)).decode()
            assert found["status"]["nodeRef"]
            lost = await client.get(family, machine.key)
            await client.delete(family, lost.key, uid=lost.head.uid)
            await asyncio.sleep(5)
            left = await client.get(MACHINES, machine.key)
            assert (left.head.uid, left.head.deleting) == (machine.head.uid, False)


async def test_a_status_that_is_lost_before_its_answer_came_is_as_lost_as_any(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    """B2.3: what is left of it would never be searched for."""
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
