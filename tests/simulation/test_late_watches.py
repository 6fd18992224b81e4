"""What the manager hears of later than it meets it."""

from __future__ import annotations

import asyncio

import pytest

from fivespot.runtime import Key, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import LoseEvents, Rule
from fivespot.testing.system import EmbeddedSystem

from .world import SCHEDULED_MACHINES, add_machine, add_switch, phases, turn


@pytest.mark.contract("B1.7")
async def test_a_foreign_object_that_a_refusal_told_of_before_the_watch_did_is_not_waited_for_once_it_is_gone(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with EmbeddedSystem(fivespot_cluster) as system:
        client, family, key = system.cluster.client, system.family.machine, Key("default", "web")
        await system.add_cluster("default")
        await add_switch(system, "web", enabled=False)
        fivespot_cluster.faults.add(Rule(LoseEvents("ADDED", "web"), verb="watch", resource=family.plural))
        async with system.manager():
            await add_machine(system, "web", "web", kind="ManualSchedule")
            await asyncio.sleep(5)
            metadata = {"name": "web", "namespace": "default"}
            foreign = {"apiVersion": family.api_version, "kind": family.kind, "metadata": metadata, "spec": {}}
            theirs = await client.create(family, foreign)
            await turn(system, "web", on=True)
            await asyncio.sleep(1)
            status = (await client.get(SCHEDULED_MACHINES, key)).decode()["status"]
            assert (status["phase"], "is not ours" in status["message"]) == ("Error", True)
            # Now it is heard of, which changes nothing but what is known; then it goes, before the next try is due.
            touched = merge_patch({"metadata": {"annotations": {"example.com/touched": "yes"}}})
            await client.patch(family, key, touched)
            await asyncio.sleep(1)
            await client.delete(family, key, uid=theirs.head.uid)
            await asyncio.sleep(5)
            assert (await client.get(MACHINES, key)).head.deleting is False
            assert set(await phases(system)) == {"Active"}
