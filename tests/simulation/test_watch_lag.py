"""Objects that a manager meets in a refusal before its watch delivers them."""

from __future__ import annotations

import asyncio

import pytest

from fivespot.runtime import Key, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import LoseEvents, Rule
from fivespot.testing.system import EmbeddedSystem

from .fleet import SCHEDULED_MACHINES, add_machine, add_switch, phases, turn


@pytest.mark.contract("B1.7")
async def test_a_foreign_object_that_was_met_before_its_watch_event_does_not_delay_creation_once_it_is_gone(
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
            assert (status["phase"], "is not controlled by" in status["message"]) == ("Error", True)
            # The watch delivers it, then it is deleted, all before the next retry is due.
            touched = merge_patch({"metadata": {"annotations": {"example.com/touched": "yes"}}})
            await client.patch(family, key, touched)
            await asyncio.sleep(1)
            await client.delete(family, key, uid=theirs.head.uid)
            await asyncio.sleep(5)
            assert (await client.get(MACHINES, key)).head.deleting is False
            assert set(await phases(system)) == {"Active"}
