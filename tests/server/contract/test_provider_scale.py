"""Many schedules of one provider of somebody else's: the same minute for a thousand, one that is broken, and rest."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import harmonic_mean
from typing import Any

import pytest

from consumer.bells import BELL
from controlplane import ControlPlane
from controlplane.audit import select
from fivespot.cli.crds.definitions import render, render_rbac
from fivespot.providers.registry import shipped_provider
from fivespot.runtime import Client, Key, Resource, Selector, SystemClock, connect, merge_patch
from fivespot.runtime.clock import ThreadOffload, system_random
from fivespot.runtime.objects import EVERYTHING, Patch
from harness import MANAGER_USER, ManagerProcess, install
from support import eventually_async, make_namespace
from support.measurements import received, spent

Json = dict[str, Any]

RINGING, ALL, BARE = 1_000, 5_000, 400
IN_FLIGHT = 16
IDLE_SECONDS = 4.0
TURN = 15
"""Seconds between two boundaries: time to write all, and to measure what the server takes otherwise."""
TRIES = 12
"""Boundaries that are looked at: on a busy machine a process may not be given a CPU at the instant."""
PROGRAMS = Path(__file__).resolve().parents[2] / "consumer"
CPU_TICKS = os.sysconf("SC_CLK_TCK")

RINGS = {"example.com/rings": "yes"}
RING = Selector.labels(RINGS)
NO_LABELS: Mapping[str, str] = {}

BELLS = BELL.resource
OTHERS = shipped_provider("TimeBasedSpotSchedule").resource
"""A kind that nobody writes here: its statuses take bare patches."""


@pytest.fixture
def plane(own_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """A control plane of its own: rates are no fair thing to measure next to another manager."""
    plane = own_control_plane()
    install(plane)
    for text in (*render([BELL]).values(), render_rbac([BELL])):
        plane.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    return plane


@pytest.mark.contract("C9", "C10")
@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_thousands_rest_a_thousand_ring_at_once_and_a_broken_one_harms_nobody(plane: ControlPlane) -> None:
    path = os.pathsep.join(filter(None, (str(PROGRAMS), os.environ.get("PYTHONPATH"))))
    # As its team would start it: by name.
    with ManagerProcess(plane, "--provider", "bells:BELL", environment={"PYTHONPATH": path}) as process:
        asyncio.run(_Scale(plane, process).play())


class _Scale:
    def __init__(self, plane: ControlPlane, process: ManagerProcess) -> None:
        self.plane = plane
        self.process = process
        self.namespace = make_namespace(plane.api, "bells", cluster=None)

    async def play(self) -> None:
        async with administrator(self.plane) as client:
            self.client = client
            rate = await self.set_up()
            # Time for the rest to be there, their first status too, and for a while in which nothing happens.
            wait = 4 * RINGING / rate + IDLE_SECONDS + 14
            boundary = (datetime.now(UTC) + timedelta(seconds=wait)).replace(microsecond=0)
            ringing = (f"ring-{number}" for number in range(RINGING - 1))
            await self.create(ringing, labels=RINGS, rings=boundary.isoformat(), seconds=TURN)
            await self.create(["broken"], rings=boundary.isoformat(), broken=True)
            await self.decided()
            assert datetime.now(UTC) < boundary - timedelta(seconds=IDLE_SECONDS + 2), "setting up took too long"
            await self.rest()
            await self.ring(boundary)
            await self.check_others()

    async def set_up(self) -> float:
        """Create the objects that stay for the whole test; return how many were created per second."""
        others: Iterable[Json] = (
            {"metadata": {"name": f"bare-{n}", "namespace": self.namespace}, "spec": {}} for n in range(BARE)
        )
        await in_flight(self.client.create(OTHERS, {**_head(OTHERS), **body}) for body in others)
        begun = time.monotonic()
        await self.create(f"idle-{number}" for number in range(ALL - RINGING))
        return (ALL - RINGING) / (time.monotonic() - begun)

    async def rest(self) -> None:
        """C9: a steady provider writes nothing, and does nothing."""
        await asyncio.sleep(1)
        mark, used = self.plane.audit_log.mark(), cpu_seconds(self.process.pid)
        await asyncio.sleep(IDLE_SECONDS)
        busy = (cpu_seconds(self.process.pid) - used) / IDLE_SECONDS
        assert spent(self.plane, mark) == {}
        assert busy < 0.02, f"an idle provider with {ALL} objects used {busy:.1%} of a CPU"

    async def ring(self, boundary: datetime) -> None:
        """All decide at the boundary, and write about as fast as the server takes anything just before and after."""
        late: list[timedelta] = []
        ratios: list[float] = []
        before = await self.bare_rate()
        for turn in range(TRIES):
            mark = self.plane.audit_log.mark()
            assert datetime.now(UTC) < boundary, "measuring took longer than expected"
            statuses = await self.turned(boundary)
            assert {status["active"] for status in statuses.values()} == {turn % 2 == 0}
            moments = sorted(moment_of(status) for status in statuses.values())
            assert len(moments) == RINGING - 1
            assert boundary <= moments[0]
            late.append(moments[-1] - boundary)
            ours = self.write_rate(mark)
            after = await self.bare_rate()
            ratios.append(ours / harmonic_mean((before, after)))
            if min(late) < timedelta(milliseconds=100) and max(ratios) >= 0.8:
                return
            before, boundary = after, boundary + timedelta(seconds=TURN)
        assert min(late) < timedelta(milliseconds=100), f"the last was decided so long after the boundary: {late}"
        assert max(ratios) >= 0.8, f"statuses were written at these fractions of what bare patches reach: {ratios}"

    async def check_others(self) -> None:
        """C10: the broken one says so, and the others are as if it were not there."""
        statuses = await self.statuses()
        [condition] = statuses["broken"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "DecisionFailed")
        assert "RuntimeError: this one is broken" in condition["message"]
        idle = [status for name, status in statuses.items() if name.startswith("idle-")]
        assert len(idle) == ALL - RINGING
        assert {(status["active"], status["conditions"][0]["reason"]) for status in idle} == {(False, "Waiting")}

    async def create(self, names: Iterable[str], labels: Mapping[str, str] = NO_LABELS, **spec: Any) -> None:
        place = {"namespace": self.namespace, "labels": dict(labels)}
        bodies = ({**_head(BELLS), "metadata": {"name": name, **place}, "spec": spec} for name in names)
        await in_flight(self.client.create(BELLS, body) for body in bodies)

    async def statuses(self, selector: Selector = EVERYTHING) -> dict[str, Json]:
        found = [obj.decode() for obj in await self.client.list(BELLS, self.namespace, selector=selector, limit=5000)]
        return {obj["metadata"]["name"]: obj.get("status", {}) for obj in found}

    async def decided(self) -> dict[str, Json]:
        """The statuses, once all have one."""

        async def found() -> dict[str, Json]:
            # First of those that were created last; then of all: a write that was put off would disturb the rest.
            for selector in (RING, EVERYTHING):
                statuses = await self.statuses(selector)
                missing = sum("active" not in status for status in statuses.values())
                assert not missing, missing
            return statuses

        return await eventually_async(found, 90, what="all have a status", poll=0.5)

    async def turned(self, boundary: datetime) -> dict[str, Json]:
        """The same, once all are of this boundary."""
        since = boundary.isoformat().replace("+00:00", "Z")

        async def found() -> dict[str, Json]:
            statuses = await self.statuses(RING)
            left = sum(status["lastTransitionTime"] < since for status in statuses.values())
            assert not left, left
            return statuses

        ahead = (boundary - datetime.now(UTC)).total_seconds()
        await asyncio.sleep(ahead)
        return await eventually_async(found, TURN - 5, what="all have turned", poll=0.5)

    def write_rate(self, mark: int) -> float:
        """Statuses a second, from the first to the last."""
        writes = select(self.plane.audit(since=mark), user=MANAGER_USER, verbs=["patch"], namespace=self.namespace)
        at = sorted(received(event) for event in writes if event["objectRef"].get("subresource") == "status")
        codes = Counter(event["responseStatus"]["code"] for event in writes)
        assert len(at) == RINGING - 1, f"each is written once: {codes}\n{self.process.tail(20)}"
        return (len(at) - 1) / (at[-1] - at[0]).total_seconds()

    async def bare_rate(self) -> float:
        """Status patches of the same shape a second, sixteen in flight, by nothing but a client."""
        words = f"decided at {datetime.now(UTC).isoformat()}"
        times = {"lastTransitionTime": "2026-12-01T12:00:00Z", "observedGeneration": 1}
        ready = {"type": "Ready", "status": "True", "reason": "Bare", "message": words, **times}
        patch = merge_patch({"status": {"active": False, "conditions": [ready], **times}})
        begun = time.monotonic()
        await in_flight(self.patched(f"bare-{number}", patch) for number in range(BARE))
        return BARE / (time.monotonic() - begun)

    async def patched(self, name: str, patch: Patch) -> None:
        await self.client.patch(OTHERS, Key(self.namespace, name), patch, subresource="status")


def _head(resource: Resource) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def moment_of(status: Json) -> datetime:
    return datetime.fromisoformat(status["conditions"][0]["message"].removeprefix("decided at "))


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CPU_TICKS


async def in_flight(requests: Iterable[Awaitable[object]]) -> None:
    """Send them all, sixteen at a time."""
    waiting = iter(requests)

    async def work() -> None:
        for request in waiting:
            await request

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(work())


@asynccontextmanager
async def administrator(plane: ControlPlane) -> AsyncIterator[Client]:
    """The runtime's own client: what a status costs beyond a patch is then the provider's."""
    clock, rng = SystemClock(), system_random()
    connection = await connect(
        kubeconfig=str(plane.admin_kubeconfig),
        user_agent="fivespot-tests",
        clock=clock,
        rng=rng,
        offload=ThreadOffload(),
    )
    try:
        yield Client(connection.transport, field_manager="bare", clock=clock, rng=rng)
    finally:
        await connection.close()
