"""Memory and metrics of objects, kinds and namespaces that are gone, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fivespot.api import names
from fivespot.controllers.scheduledmachine.informers import MachineInformers
from fivespot.runtime import Key, Resource, json_patch, merge_patch
from fivespot.runtime.manager import ElectionSettings, ManagerSettings
from fivespot.testing.cluster import EmbeddedCluster, RunningManager
from fivespot.testing.system import EmbeddedSystem
from simulation.fleet import SCHEDULED_MACHINES, SWITCHES, add_machine, add_switch

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
LEASE = Key("default", names.LEADER_LEASE)
ELECTION = ElectionSettings("default", names.LEADER_LEASE, "first", names.ANNOTATION_RECONCILERS)


def metrics_of(running: RunningManager) -> str:
    return running.manager.context.metrics.render().decode()


async def delete_all(system: EmbeddedSystem, resource: Resource) -> None:
    for obj in await system.cluster.client.list(resource):
        await system.cluster.client.delete(resource, obj.key, uid=obj.head.uid)


def kind(number: int, group: str) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1beta1", "kind": f"Typo{number}", "spec": {}}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[MachineInformers]:
    """The informers of every manager that a test starts."""
    found: list[MachineInformers] = []
    init = MachineInformers.__init__

    def remember(self: MachineInformers, *args: Any) -> None:
        init(self, *args)
        found.append(self)

    monkeypatch.setattr(MachineInformers, "__init__", remember)
    return found


async def test_kinds_that_were_named_once_and_never_existed_are_forgotten(
    fivespot_cluster: EmbeddedCluster, made: list[MachineInformers]
) -> None:
    async with EmbeddedSystem(fivespot_cluster) as system:
        await system.add_cluster("default")
        await add_switch(system, "web", enabled=True)
        async with system.manager():
            await asyncio.sleep(1)
            [informers] = made
            group = system.family.machine.group
            for number in range(40):
                await add_machine(
                    system, f"m{number}", "web", kind=f"Never{number}", infrastructureSpec=kind(number, group)
                )
                if number % 4 == 0:
                    edit = merge_patch({"spec": {"infrastructureSpec": {"kind": f"Other{number}"}}})
                    await system.cluster.client.patch(SCHEDULED_MACHINES, Key("default", f"m{number}"), edit)
                if number % 2:
                    # While its first run may still be under way.
                    await delete_all(system, SCHEDULED_MACHINES)
            await asyncio.sleep(30)
            await delete_all(system, SCHEDULED_MACHINES)
            await asyncio.sleep(30)
            assert await system.cluster.client.list(SCHEDULED_MACHINES) == []
            assert len(informers) == 0


async def test_a_kind_that_a_late_run_asks_for_is_forgotten_too(
    fivespot_cluster: EmbeddedCluster, made: list[MachineInformers]
) -> None:
    async with EmbeddedSystem(fivespot_cluster) as system, system.manager():
        await asyncio.sleep(1)
        [informers] = made
        informers.require(Resource("spotschedules.5spot.finos.org", "v1", "x", "Gone").group_kind, ())
        assert len(informers) == 1
        await asyncio.sleep(15)
        assert len(informers) == 0


@asynccontextmanager
async def deposed(running: RunningManager, system: EmbeddedSystem) -> AsyncIterator[None]:
    """Somebody else takes the Lease, and leaves it again."""
    client = system.cluster.client

    async def hold(holder: str) -> None:
        await client.patch(LEASES, LEASE, merge_patch({"spec": {"holderIdentity": holder}}))

    await hold("another")
    await asyncio.sleep(5)
    assert not running.manager.leading
    yield
    await hold("")
    await asyncio.sleep(60)
    assert running.manager.leading


async def test_what_is_deleted_while_another_leads_is_in_no_metric_of_a_later_term(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with EmbeddedSystem(fivespot_cluster) as system:
        await system.add_cluster("default")
        await add_switch(system, "web", enabled=True)
        await add_machine(system, "lost", "nothing", kind="ManualSchedule")
        async with system.manager(settings=ManagerSettings(election=ELECTION)) as running:
            await asyncio.sleep(60)
            before = metrics_of(running)
            assert 'fivespot_manual_active{name="web",namespace="default"} 1.0' in before
            assert "fivespot_scheduled_machines_unresolved{" in before
            assert 'fivespot_spot_schedule_resolutions_total{kind="ManualSchedule",namespace="default"' in before
            async with deposed(running, system):
                await delete_all(system, SWITCHES)
                await delete_all(system, SCHEDULED_MACHINES)
                drop = json_patch([{"op": "remove", "path": "/metadata/finalizers"}])
                await system.cluster.client.patch(SCHEDULED_MACHINES, Key("default", "lost"), drop)
            after = metrics_of(running)
            assert 'name="web"' not in after
            assert "fivespot_scheduled_machines_unresolved{" not in after
            assert 'fivespot_spot_schedule_resolutions_total{kind="ManualSchedule"' not in after


@pytest.mark.contract("B8.5")
async def test_a_standby_shows_no_depth_of_work_that_it_does_not_do(fivespot_cluster: EmbeddedCluster) -> None:
    async with EmbeddedSystem(fivespot_cluster) as system:
        await add_switch(system, "web", enabled=True)
        async with system.manager(settings=ManagerSettings(election=ELECTION)) as running:
            await asyncio.sleep(30)
            assert "workqueue_depth{" in metrics_of(running)
            async with deposed(running, system):
                for number in range(20):
                    await add_switch(system, f"s{number}", enabled=True)
                await asyncio.sleep(5)
                assert "workqueue_depth{" not in metrics_of(running)
                assert "fivespot_manual_active{" not in metrics_of(running)
