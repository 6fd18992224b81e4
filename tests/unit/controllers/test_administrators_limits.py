"""B8.4 on the whole system in memory: what the administrator's limits and stop hold back, and that they say so."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from fivespot.api import names
from fivespot.controllers.scheduledmachine import MachineSettings
from fivespot.controllers.scheduledmachine.activation_limiter import ActivationLimits
from fivespot.controllers.scheduledmachine.holds import Holds
from fivespot.runtime import Key, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.system import EmbeddedSystem
from simulation.fleet import SCHEDULED_MACHINES, add_machine, add_switch, turn
from unit.controllers.one_machine import One, one_machine
from unit.controllers.test_holds import lease

pytestmark = pytest.mark.contract("B8.4")


async def machines(system: EmbeddedSystem) -> list[str]:
    return sorted(obj.head.name for obj in await system.cluster.client.list(MACHINES, "default"))


async def reason(system: EmbeddedSystem, name: str) -> tuple[str, str]:
    status = (await system.cluster.client.get(SCHEDULED_MACHINES, Key("default", name))).decode()["status"]
    [ready] = [condition for condition in status["conditions"] if condition["type"] == "Ready"]
    return status["phase"], ready["reason"]


async def flap(one: One, times: int) -> int:
    """Turn the schedule on and off; the number of different Machines that were seen."""
    seen: set[str] = set()
    for _ in range(times):
        for on in (True, False):
            await one.turn(on=on)
            await asyncio.sleep(90)
            found = await one.machine()
            if found is not None:
                seen.add(found.head.uid)
    return len(seen)


async def test_flapping_makes_no_more_machines_than_allowed_in_an_hour(fivespot_cluster: EmbeddedCluster) -> None:
    limits = {"activations": ActivationLimits(per_machine=3)}
    async with one_machine(fivespot_cluster, on=False, settings=limits, gracefulShutdownTimeout="0s") as (one, _):
        assert await flap(one, 10) == 3
        await one.turn(on=True)
        await asyncio.sleep(60)
        assert await reason(one.system, "web") == ("Pending", "ActivationRateLimited")
        assert "3 activations an hour (--max-activations-per-hour)" in (await one.status())["message"]
        await asyncio.sleep(3600)
        assert (await one.status())["phase"] == "Active", "it is made when its hour has passed"


async def test_the_limit_outlasts_a_restart_as_far_as_objects_show(fivespot_cluster: EmbeddedCluster) -> None:
    limits = {"activations": ActivationLimits(per_machine=1)}
    async with one_machine(fivespot_cluster, settings=limits, gracefulShutdownTimeout="0s") as (one, running):
        await one.turn(on=False)
        await asyncio.sleep(120)
        assert await one.machine() is None
        await running.kill()
        async with one.manager(**limits):
            await one.turn(on=True)
            await asyncio.sleep(120)
            assert await reason(one.system, "web") == ("Pending", "ActivationRateLimited")


async def test_a_namespace_has_no_more_machines_than_allowed(fivespot_cluster: EmbeddedCluster) -> None:
    limits = MachineSettings(activations=ActivationLimits(machines=2))
    async with EmbeddedSystem(fivespot_cluster) as system:
        await system.add_cluster("default")
        for name in ("a", "b"):
            await add_switch(system, name, enabled=True)
        for number, switch in enumerate("aabb"):
            options: dict[str, Any] = {"kind": "ManualSchedule", "gracefulShutdownTimeout": "0s"}
            await add_machine(system, f"m-{number}", switch, **options)
        async with system.manager(machine_settings=limits):
            await asyncio.sleep(120)
            assert len(await machines(system)) == 2
            states = [await reason(system, f"m-{number}") for number in range(4)]
            assert sorted(states)[2:] == [("Pending", "NamespaceLimitReached")] * 2
            await turn(system, "a", on=False)
            await turn(system, "b", on=True)
            await asyncio.sleep(120)
            assert await machines(system) == ["m-2", "m-3"], "those that waited have the room"


async def test_grace_is_at_least_the_administrators(fivespot_cluster: EmbeddedCluster) -> None:
    settings = {"shortest_grace": timedelta(minutes=10)}
    async with one_machine(fivespot_cluster, settings=settings, gracefulShutdownTimeout="0s") as (one, _):
        await one.turn(on=False)
        await asyncio.sleep(590)
        found = await one.machine()
        assert found is not None
        assert not found.head.deleting
        assert "--shortest-grace" in (await one.status())["message"]
        await asyncio.sleep(60)
        assert await one.machine() is None


async def test_a_stop_holds_everything_but_the_kill_switch_and_ends(fivespot_cluster: EmbeddedCluster) -> None:
    holds = Holds()
    async with EmbeddedSystem(fivespot_cluster) as system:
        await system.add_cluster("default")
        await add_switch(system, "on", enabled=True)
        await add_switch(system, "off", enabled=False)
        options: dict[str, Any] = {"kind": "ManualSchedule", "gracefulShutdownTimeout": "0s"}
        for name, switch in (("up", "on"), ("killed", "on"), ("deleted", "on"), ("down", "off")):
            await add_machine(system, name, switch, **options)
        async with system.manager(holds=holds):
            await asyncio.sleep(120)
            assert await machines(system) == ["deleted", "killed", "up"]
            holds.lease_observed(lease("data centre"))
            client = fivespot_cluster.client
            await turn(system, "on", on=False)
            await turn(system, "off", on=True)
            await asyncio.sleep(5)
            doomed = await client.get(SCHEDULED_MACHINES, Key("default", "deleted"))
            await client.delete(SCHEDULED_MACHINES, doomed.key, uid=doomed.head.uid)
            await asyncio.sleep(600)
            assert await machines(system) == ["deleted", "killed", "up"]
            assert not any(obj.head.deleting for obj in await client.list(MACHINES, "default"))
            assert await reason(system, "up") == ("ShuttingDown", "Stopped")
            assert await reason(system, "down") == ("Pending", "Stopped")
            await client.patch(
                SCHEDULED_MACHINES, Key("default", "killed"), merge_patch({"spec": {"killSwitch": True}})
            )
            await asyncio.sleep(120)
            assert await machines(system) == ["deleted", "up"]
            holds.lease_observed(lease(None))
            await asyncio.sleep(120)
            assert await machines(system) == ["down"]


async def test_nothing_is_created_until_the_policy_is_in_force(fivespot_cluster: EmbeddedCluster) -> None:
    holds = Holds(require_policy=True)
    async with EmbeddedSystem(fivespot_cluster) as system:
        await system.add_cluster("default")
        await add_switch(system, "on", enabled=True)
        await add_machine(system, "web", "on", kind="ManualSchedule")
        async with system.manager(holds=holds):
            await asyncio.sleep(60)
            assert await machines(system) == []
            assert await reason(system, "web") == ("Pending", "AdmissionPolicyMissing")
            holds.policies_observed({names.ADMISSION_POLICY: ""})
            await asyncio.sleep(5)
            assert await machines(system) == ["web"], "at once"
