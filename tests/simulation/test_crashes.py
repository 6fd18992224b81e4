"""Managers that are killed at each of their writes, and their successors."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from fivespot.runtime import Key, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.system import EmbeddedSystem
from fivespot.testing.virtual_time import run_virtual

from .checker import Checker
from .fleet import SCHEDULED_MACHINES, add_machine, add_switch, turn
from .managers import Managers

_STEP = 5.0
_PATIENCE = 600.0
_MANAGER = "5spot-controller"


class Crash:
    """Cut a manager off at its nth write.

    :param after: the write has its effect, and the answer is lost.
    """

    def __init__(self, nth: int, *, after: bool) -> None:
        self._nth = nth
        self._after = after
        self.count = 0
        self.at = ""
        self.struck = asyncio.Event()

    async def __call__(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        self.count += 1
        if self.count != self._nth:
            return await handler(request)
        self.at = f"{request.method} {request.path}"
        if self._after:
            await handler(request)
        self.struck.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


class CrashRuns:
    """Run one ScheduledMachine after another from creation to deletion, each with a crash one write later."""

    def __init__(self, system: EmbeddedSystem, *, after: bool) -> None:
        self._system = system
        self._after = after
        self._checker = Checker(system)
        self._managers = Managers()
        self.crashes: list[str] = []

    async def run(self) -> None:
        await self._system.add_cluster("default")
        await self._managers.add(_MANAGER, partial(self._system.manager, name=_MANAGER))
        number = 0
        while True:
            number += 1
            crash = Crash(number, after=self._after)
            await self._live(f"life-{number}", crash)
            assert not self._checker.violations, f"crash at write {number} ({crash.at}): {self._checker.violations}"
            if not crash.struck.is_set():
                break
            self.crashes.append(crash.at)
        await self._managers.stop_all()

    async def _live(self, name: str, crash: Crash) -> None:
        client = self._system.cluster.client
        self._checker.on_write = crash
        await add_switch(self._system, name, enabled=True)
        await add_machine(self._system, name, name, kind="ManualSchedule", gracefulShutdownTimeout="10s")
        await self._settle(crash, name, "Active")
        await turn(self._system, name, on=False)
        await self._settle(crash, name, "Inactive")
        await turn(self._system, name, on=True)
        await self._settle(crash, name, "Active")
        found = await client.get(SCHEDULED_MACHINES, Key("default", name))
        await client.patch(SCHEDULED_MACHINES, found.key, merge_patch({"spec": {"priority": 60}}))
        await client.delete(SCHEDULED_MACHINES, found.key, uid=found.head.uid)
        await self._settle(crash, name, "")
        self._checker.on_write = None

    async def _settle(self, crash: Crash, name: str, phase: str) -> None:
        """Wait for the phase (for "": until the object is gone) and for the required state of everything else."""
        deadline = self._system.cluster.elapsed + _PATIENCE
        replaced = crash.struck.is_set()
        while True:
            await asyncio.sleep(_STEP)
            if crash.struck.is_set() and not replaced:
                replaced = True
                await self._managers.kill(_MANAGER)
                await self._managers.start(_MANAGER)
                continue
            found = [obj for obj in self._checker.objects(SCHEDULED_MACHINES) if obj["metadata"]["name"] == name]
            phases = [obj.get("status", {}).get("phase") for obj in found]
            if phases == ([phase] if phase else []) and not self._checker.unsettled():
                return
            if self._system.cluster.elapsed > deadline:
                raise AssertionError(f"{name} is not {phase or 'gone'} after {crash.at}: {self._checker.unsettled()}")


@pytest.mark.parametrize("after", [False, True], ids=["the write is lost", "the answer is lost"])
def test_after_a_crash_at_any_write_the_next_manager_reaches_the_same_end_state(after: bool) -> None:
    async def run() -> list[str]:
        async with EmbeddedCluster() as cluster, EmbeddedSystem(cluster) as system:
            runs = CrashRuns(system, after=after)
            await runs.run()
            return runs.crashes

    crashes = run_virtual(run())
    # Every kind of write was interrupted: finalizer, three creates, deletes, status, schedule status and events.
    for part in ("simulatedmachines", "simulatedbootstraps", "/machines", "/status", "manualschedules", "/events"):
        assert any(part in crash for crash in crashes), part
    assert any(crash.startswith("DELETE") for crash in crashes)
    assert len(crashes) >= 25
