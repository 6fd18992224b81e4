"""A3, A8: how soon a machine's status follows what its schedule shows, on the whole system in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from fivespot.runtime import Key, find_condition, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.system import EmbeddedSystem
from simulation.fleet import SCHEDULES, add_machine, add_schedule
from unit.controllers.one_machine import One, Passing

WEB = Key("default", "web")
LATE = {"timezone": "UTC", "windows": [{"days": ["mon-sun"], "start": "21:47", "end": "23:00"}]}
NOW = {"timezone": "UTC", "windows": [{"days": ["mon-sun"], "start": "00:00", "end": "23:00"}]}


@asynccontextmanager
async def scheduled(cluster: EmbeddedCluster, **schedule: Any) -> AsyncIterator[tuple[One, Passing]]:
    """A machine on a TimeBasedSpotSchedule for some minutes, and the writes of its status."""
    async with EmbeddedSystem(cluster) as system:
        await system.add_cluster("default")
        await add_schedule(system, "web", **schedule)
        await add_machine(system, "web", "web")
        async with system.manager():
            await asyncio.sleep(120)
            one = One(system)
            yield one, one.watch("patch", "scheduledmachines/status")


async def edit(one: One, start: str) -> None:
    windows = [{"days": ["mon-sun"], "start": start, "end": "23:00"}]
    await one.cluster.client.patch(SCHEDULES, WEB, merge_patch({"spec": {"windows": windows}}))


async def message(one: One) -> str:
    return str((await one.status())["spotSchedule"]["message"])


@pytest.mark.contract("A3")
async def test_an_edited_schedule_is_shown_within_seconds_and_with_one_write(fivespot_cluster: EmbeddedCluster) -> None:
    async with scheduled(fivespot_cluster, **LATE) as (one, written):
        assert "21:47" in await message(one)
        await edit(one, "20:30")
        await asyncio.sleep(2)
        assert "20:30" in await message(one)
        assert len(written.sent) == 1
        await edit(one, "19:15")
        await asyncio.sleep(11)
        assert "19:15" in await message(one)
        assert len(written.sent) == 2


@pytest.mark.contract("A3")
async def test_edits_in_quick_succession_cause_a_write_every_ten_seconds(fivespot_cluster: EmbeddedCluster) -> None:
    async with scheduled(fivespot_cluster, **LATE) as (one, written):
        for number in range(120):
            await edit(one, f"20:{number % 60:02}")
            await asyncio.sleep(0.5)
        await asyncio.sleep(11)
        assert "20:59" in await message(one)
        assert len(written.sent) <= 8


@pytest.mark.contract("A8")
@pytest.mark.parametrize("gap", [0.0, 0.5])
async def test_a_schedule_that_is_recreated_leaves_its_machine_ready(
    fivespot_cluster: EmbeddedCluster, gap: float
) -> None:
    async with scheduled(fivespot_cluster, **NOW) as (one, written):
        ready = await one.condition("Ready")
        assert ready["status"] == "True"
        client = one.cluster.client
        found = await client.get(SCHEDULES, WEB)
        await client.delete(SCHEDULES, WEB, uid=found.head.uid)
        await asyncio.sleep(gap)
        await add_schedule(one.system, "web", **NOW)
        await asyncio.sleep(30)
        assert await one.condition("Ready") == ready
        shown = [find_condition(body["status"].get("conditions"), "Ready") for body in map(_body, written.sent)]
        assert not [condition for condition in shown if condition and condition["status"] != "True"]
        assert not await one.events("ProviderNotFound")


@pytest.mark.contract("A8")
async def test_a_schedule_that_stays_away_is_reported_after_two_seconds(fivespot_cluster: EmbeddedCluster) -> None:
    async with scheduled(fivespot_cluster, **NOW) as (one, _):
        found = await one.cluster.client.get(SCHEDULES, WEB)
        await one.cluster.client.delete(SCHEDULES, WEB, uid=found.head.uid)
        await asyncio.sleep(3)
        resolved = await one.condition("SpotScheduleResolved")
        assert (resolved["status"], resolved["reason"]) == ("False", "ProviderNotFound")
        assert (await one.condition("Ready"))["status"] == "False"


def _body(request: Any) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(request.body)
    return body
