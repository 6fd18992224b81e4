"""B5.3: what happened while no manager was there."""

from __future__ import annotations

import asyncio

from fivespot.runtime import Key, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import Latency, Rule
from fivespot.testing.system import EmbeddedSystem

from .world import SCHEDULED_MACHINES, SWITCHES, add_machine, add_switch, phases, turn


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
