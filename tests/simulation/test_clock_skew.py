"""Two managers without leader election, with clocks apart, on the whole system in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from fivespot.runtime import Key, Resource
from fivespot.runtime.clock import LoopClock
from fivespot.testing.cluster import START, EmbeddedCluster
from fivespot.testing.faults import Rule
from fivespot.testing.system import EmbeddedSystem

from .fleet import SCHEDULES, add_machine, add_schedule, counts

EVENTS = Resource("events.k8s.io", "v1", "events", "Event")


@dataclass
class Counted:
    """Counts the writes that the server takes."""

    taken: int = 0

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        answer = await handler(request)
        self.taken += answer.status == 200
        return answer


class AheadClock(LoopClock):
    """A wall clock that is 90 s ahead."""

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=90)


@pytest.mark.contract("C13")
async def test_clocks_apart_cause_a_handful_of_writes_at_an_opening_and_one_machine(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    right, ahead = fivespot_cluster.clock, AheadClock(START)
    ahead.now()
    async with EmbeddedSystem(fivespot_cluster) as system:
        await system.add_cluster("default")
        windows = [{"days": ["mon-sun"], "start": "00:10", "end": "23:00"}]
        await add_schedule(system, "web", timezone="UTC", windows=windows)
        await add_machine(system, "web", "web")
        async with system.manager(name="right"):
            await asyncio.sleep(5)
            fivespot_cluster.clock = ahead
            async with system.manager(name="ahead"):
                await asyncio.sleep(5)
                fivespot_cluster.clock = right
                await system.sleep_until(400)
                verdicts, reports = Counted(), Counted()
                fivespot_cluster.faults.add(Rule(verdicts, verb="patch", resource="timebasedspotschedules/status"))
                fivespot_cluster.faults.add(Rule(reports, verb="patch", resource="scheduledmachines/status"))
                await system.sleep_until(1200)
                assert 4 <= verdicts.taken <= 16
                assert reports.taken <= 60
                assert await counts(system) == 1
                schedule = await system.cluster.client.get(SCHEDULES, Key("default", "web"))
                assert schedule.decode()["status"]["active"] is True
                told = [obj.decode()["reason"] for obj in await system.cluster.client.list(EVENTS)]
                assert "AnotherWriter" in told
