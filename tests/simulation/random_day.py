"""Random days: edits by users, lost machines, managers that are killed, and faults of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final

from fivespot.api import names
from fivespot.apiserver import ApiRequest, ApiResponse
from fivespot.controllers import scheduledmachine as machine_controller
from fivespot.providers.registry import shipped_providers
from fivespot.providers.sdk import build_controller
from fivespot.runtime import ElectionSettings, Key, ManagerSettings, NotFoundError, Object, Resource, merge_patch
from fivespot.runtime.manager import ElectionTimings
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import CLUSTERS, MACHINES
from fivespot.testing.faults import Fail, RequestInfo, Rule
from fivespot.testing.system import EmbeddedSystem
from fivespot.testing.virtual_time import VirtualTimeLoop, run_virtual
from support.pausable import PausableLoop

from .checker import Checker
from .faults import random_faults
from .fleet import SCHEDULED_MACHINES, SCHEDULES, SWITCHES, add_machine, add_schedule, add_switch
from .invariants import Invariant
from .managers import Managers

__all__ = ["RandomDay"]

_START: Final = datetime(2026, 3, 2, 7, 50, tzinfo=UTC)
_HOUR: Final = 3600.0
_END: Final = 2 * _HOUR
"""The time of the last change of a schedule."""
_STEPS: Final = 60
_LOOK: Final = 60.0
_PATIENCE: Final = 2 * _HOUR
"""The sum of the longest waits of the contract: back-off of replacements, grace, drain, several times each."""
_REST: Final = 0.25 * _HOUR
_RECOVERY: Final = 600.0
"""The longest wait after faults end: a refused request is retried after at most five minutes."""
_MACHINES: Final = 4
_PAIR: Final = ("5spot-one", "5spot-two")
_ON_MACHINES: Final = {*_PAIR, "5spot-all", "5spot-machines"}
_PAUSES: Final = (8.0, 45.0, 75.0, 130.0)
"""Seconds: below the retry period of the election, beyond its renew deadline, beyond the Lease, and two terms."""
_LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")


class RandomDayCluster(EmbeddedCluster):
    """A cluster that handles requests in separate tasks: a sent request arrives while its sender is paused.

    :ivar failed_patches: the time of the last failed patch of each Machine, by name.
    """

    def __init__(self, seed: int, *, separate: bool) -> None:
        super().__init__(seed=seed, start=_START)
        self._separate = separate
        self.failed_patches: dict[str, float] = {}

    async def _scripted(self, request: ApiRequest) -> ApiResponse:
        work = super()._scripted(request)
        handled: Awaitable[ApiResponse] = work
        if self._separate:
            handled = asyncio.get_running_loop().create_task(work, context=Context())
        code = 0
        try:
            response = await handled
            code = response.status
        finally:
            seen = RequestInfo.of(request)
            if (seen.verb, seen.resource) == ("patch", MACHINES.plural) and not 200 <= code < 300:
                self.failed_patches[seen.name] = self.elapsed
        return response


class RandomDay:
    """One random day, which follows from its seed.

    :ivar log: the events, for people.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.log: list[str] = []
        self._random = Random(seed)
        self._managers = Managers()
        self._faults_active = False
        self._names = [f"web-{number}" for number in range(_MACHINES)]
        self.elected = _PAIR if seed % 3 == 1 else ()
        self.cluster = RandomDayCluster(seed, separate=bool(self.elected))
        self.system = EmbeddedSystem(self.cluster)
        self.checker: Checker

    def play(self) -> None:
        """Run the day in virtual time.

        :raises AssertionError: see :meth:`run`.
        """
        run_virtual(self.run(), loop_factory=PausableLoop if self.elected else VirtualTimeLoop)

    async def run(self) -> None:
        """
        :raises AssertionError: with the seed, the violations and the last events.
        """
        async with self.cluster, self.system:
            self.checker = Checker(self.system, elected=self.elected)
            self.checker.reference.failed_patches = self.cluster.failed_patches
            try:
                await self._day()
            except AssertionError as error:
                history = "\n".join(self.log[-25:])
                raise AssertionError(f"seed {self.seed}: {error}\n{history}") from error

    async def _day(self) -> None:
        await self.system.add_cluster("default")
        await self._begin()
        await asyncio.sleep(self._random.choice((0.0, 30.0)))
        for _ in range(_STEPS):
            await self._step()
            self._check()
            await asyncio.sleep(self._random.choice((0.01, 0.3, 2.0, 20.0, 60.0, 120.0, 400.0)))
            self._check()
        await self._end_faults()
        await self._settle()
        await self._check_idle()
        await self._managers.stop_all()
        self._check()

    def _check(self) -> None:
        """Fail on a violated invariant or on overdue work."""
        paused = self._paused()
        disturbed = self._faults_active or bool(self._managers.dead) or bool(paused)
        since = float("inf") if disturbed else self.cluster.elapsed + _RECOVERY
        reference = self.checker.reference
        reference.undisturbed_since = since if disturbed else min(reference.undisturbed_since, since)
        reference.unattended.record(self.cluster.elapsed, not _ON_MACHINES & (set(self._managers.running) - paused))
        self.checker.check_overdue()
        assert not self.checker.violations, "; ".join(self.checker.violations)

    def _log(self, what: str) -> None:
        self.log.append(f"{self.cluster.elapsed:10.2f} s  {what}")

    # Managers and objects ----------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        await add_schedule(self.system, "hours", windows=[{"days": ["mon-sun"], "start": "08:00", "end": "09:40"}])
        await add_schedule(self.system, "shifts", windows=[_shift(hour) for hour in (8, 9)])
        for name in self._names:
            await add_switch(self.system, name, enabled=self._random.random() < 0.5)
        for name in self._names:
            await self._add_machine(name)
        alone = ManagerSettings(look_interval=60.0)
        match self.seed % 3:
            case 0:
                await self._managers.add("5spot-all", partial(self.system.manager, name="5spot-all", settings=alone))
            case 1:
                for name in _PAIR:
                    settings = replace(alone, election=_election(name))
                    await self._managers.add(name, partial(self.system.manager, name=name, settings=settings))
            case _:
                providers = [partial(build_controller, provider) for provider in shipped_providers()]
                manager = partial(self.cluster.manager, settings=alone)
                await self._managers.add("5spot-schedules", partial(manager, *providers, name="5spot-schedules"))
                build = partial(machine_controller.build, timings=None)
                await self._managers.add("5spot-machines", partial(manager, build, name="5spot-machines"))

    async def _add_machine(self, name: str) -> None:
        schedule = self._random.choice(
            [(SWITCHES.kind, name)] * 3 + [(SCHEDULES.kind, "hours"), (SCHEDULES.kind, "shifts")]
        )
        grace = self._random.choice(["0s", "30s", "2m", "5m"])
        drain = self._random.choice(["0s", "1m", "5m"])
        times = {"graceful_shutdown_timeout": grace, "node_drain_timeout": drain}
        given = {"gracefulShutdownTimeout": grace, "nodeDrainTimeout": drain}
        self._log(f"{name} follows {schedule[0]} {schedule[1]} {times}")
        await add_machine(self.system, name, schedule[1], kind=schedule[0], **given)

    # Steps ------------------------------------------------------------------------------------------------

    async def _step(self) -> None:
        name = self._random.choice(self._names)
        if self._random.random() < 0.3:
            await self._repair(name)
        steps: list[tuple[int, Callable[[str], Awaitable[None]]]] = [
            (16, self._switch),
            (3, self._kill_switch),
            (4, self._enabled),
            (2, self._grace),
            (2, self._template),
            (2, self._lose_machine),
            (1, self._lose_infrastructure),
            (2, self._remove_or_add),
            (2, self._remove_or_add_schedule),
            (2, self._break_schedule),
            (2, self._pause),
            (1, self._pause_all),
            (2, self._take_name),
            (4, self._kill_or_start),
            (4, self._change_faults),
            (2, self._refuse_machines),
        ]
        if self.elected:
            steps.append((5, self._pause_manager))
        (step,) = self._random.choices([step for _, step in steps], [weight for weight, _ in steps])
        await step(name)

    async def _repair(self, name: str) -> None:
        """Undo a pause, a kill switch or a deletion: otherwise the day would end with nothing to do."""
        if await self._find(SCHEDULED_MACHINES, name) is None:
            await self._add_machine(name)
        elif self._random.random() < 0.5:
            await self._patch(CLUSTERS, "prod", {"spec": {"paused": None}})
            await self._patch(SCHEDULED_MACHINES, name, {"metadata": {"annotations": {names.ANNOTATION_PAUSED: None}}})
        else:
            await self._patch(SCHEDULED_MACHINES, name, {"spec": {"enabled": True, "killSwitch": False}})

    async def _patch(self, resource: Resource, name: str, change: dict[str, Any]) -> None:
        self._log(f"{resource.kind} {name}: {change}")
        try:
            await self.cluster.client.patch(resource, Key("default", name), merge_patch(change))
        except NotFoundError:
            self._log("  not found")

    async def _switch(self, name: str) -> None:
        await self._patch(SWITCHES, name, {"spec": {"enabled": self._random.random() < 0.6, "base": None}})

    async def _break_schedule(self, name: str) -> None:
        """Make a schedule unresolved, so that its last verdict is held."""
        base = {"kind": SWITCHES.kind, "name": "nowhere"}
        await self._patch(SWITCHES, name, {"spec": {"enabled": None, "base": base}})

    async def _kill_switch(self, name: str) -> None:
        await self._patch(SCHEDULED_MACHINES, name, {"spec": {"killSwitch": self._random.random() < 0.4}})

    async def _enabled(self, name: str) -> None:
        await self._patch(SCHEDULED_MACHINES, name, {"spec": {"enabled": self._random.random() < 0.75}})

    async def _grace(self, name: str) -> None:
        grace = self._random.choice(["0s", "45s", "3m"])
        await self._patch(SCHEDULED_MACHINES, name, {"spec": {"gracefulShutdownTimeout": grace}})

    async def _template(self, name: str) -> None:
        labels = {"example.com/round": str(self._random.randrange(100))}
        await self._patch(SCHEDULED_MACHINES, name, {"spec": {"machineTemplate": {"labels": labels}}})

    async def _pause(self, name: str) -> None:
        value = "true" if self._random.random() < 0.3 else None
        change = {"metadata": {"annotations": {names.ANNOTATION_PAUSED: value}}}
        await self._patch(SCHEDULED_MACHINES, name, change)

    async def _pause_all(self, _: str) -> None:
        await self._patch(CLUSTERS, "prod", {"spec": {"paused": self._random.random() < 0.3}})

    async def _lose_machine(self, name: str) -> None:
        await self._delete(MACHINES, name)

    async def _lose_infrastructure(self, name: str) -> None:
        await self._delete(self.system.family.machine, name)

    async def _delete(self, resource: Resource, name: str) -> bool:
        found = await self._find(resource, name)
        if found is None:
            return False
        self._log(f"a user deletes {resource.kind} {name}")
        await self.cluster.client.delete(resource, found.key, uid=found.head.uid)
        return True

    async def _find(self, resource: Resource, name: str) -> Object | None:
        try:
            return await self.cluster.client.get(resource, Key("default", name))
        except NotFoundError:
            return None

    async def _remove_or_add(self, name: str) -> None:
        if not await self._delete(SCHEDULED_MACHINES, name):
            await self._add_machine(name)

    async def _remove_or_add_schedule(self, name: str) -> None:
        # Not deleted for long: without schedules the day has nothing to do.
        if self._random.random() < 0.5 or not await self._delete(SWITCHES, name):
            if await self._find(SWITCHES, name) is not None:
                return
            self._log(f"a user creates ManualSchedule {name}")
            await add_switch(self.system, name, enabled=self._random.random() < 0.5)

    async def _take_name(self, name: str) -> None:
        """Create a foreign object with the name of a child, or delete it."""
        resource = self.system.family.machine
        found = await self._find(resource, name)
        if found is None:
            self._log(f"a user creates {resource.kind} {name}")
            metadata = {"name": name, "namespace": "default", "labels": {"example.com/foreign": ""}}
            body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": {}}
            made = await self.cluster.client.create(resource, body)
            self.checker.foreign.add(made.head.uid)
        elif found.head.uid in self.checker.foreign:
            await self._delete(resource, name)

    async def _kill_or_start(self, name: str) -> None:
        if self._managers.dead and self._random.random() < 0.9:
            who = self._random.choice(self._managers.dead)
            self._log(f"{who} starts")
            await self._managers.start(who)
        elif running := sorted(set(self._managers.running) - self._paused()):
            who = self._random.choice(running)
            self._log(f"{who} is killed")
            await self._managers.kill(who)

    async def _pause_manager(self, name: str) -> None:
        """Stop scheduling one of two managers: below the retry period, or beyond a deadline of the election."""
        running = sorted(set(self._managers.running) - self._paused())
        if running:
            who, length = self._random.choice(running), self._random.choice(_PAUSES)
            self._log(f"{who} is paused for {length:g} s")
            loop = asyncio.get_running_loop()
            assert isinstance(loop, PausableLoop)
            loop.pause(who, length)
            # The world changes while it is away.
            await self._switch(name)

    def _paused(self) -> frozenset[str]:
        loop = asyncio.get_running_loop()
        return loop.paused if isinstance(loop, PausableLoop) else frozenset()

    async def _change_faults(self, name: str) -> None:
        rules = random_faults(self._random)
        self._log(f"faults: {', '.join(f'{rule.fault} for {rule.verb} {rule.resource}' for rule in rules)}")
        self.cluster.faults.replace(rules)
        self._faults_active = bool(rules)

    async def _refuse_machines(self, name: str) -> None:
        """Have a machine wanted while the server refuses to create Machines and nothing else."""
        self._log("the server refuses to create Machines")
        self.cluster.faults.replace([Rule(Fail(403), verb="create", resource="machines")])
        self._faults_active = True
        await self._patch(SCHEDULED_MACHINES, name, {"spec": {"enabled": True, "killSwitch": False}})
        await self._patch(SWITCHES, name, {"spec": {"enabled": True, "base": None}})

    # The end of the day ------------------------------------------------------------------------------------------

    async def _end_faults(self) -> None:
        self._log("faults end")
        self.cluster.faults.clear()
        self._faults_active = False
        if self._paused():
            await asyncio.sleep(max(_PAUSES))
        await self._patch(CLUSTERS, "prod", {"spec": {"paused": None}})
        for who in self._managers.dead:
            await self._managers.start(who)
        for name in self._names:
            found = await self._find(self.system.family.machine, name)
            if found is not None and found.head.uid in self.checker.foreign:
                await self._delete(self.system.family.machine, name)
            switch = await self._find(SWITCHES, name)
            if switch is None:
                await add_switch(self.system, name, enabled=True)
            elif "base" in switch.decode()["spec"]:
                await self._switch(name)
            await self._patch(SCHEDULED_MACHINES, name, {"metadata": {"annotations": {names.ANNOTATION_PAUSED: None}}})
        await asyncio.sleep(_LOOK)
        for name in self._names:
            # Cluster API does not replace a lost infrastructure object; a user or a health check deletes the Machine.
            if await self._find(self.system.family.machine, name) is None:
                await self._delete(MACHINES, name)
        # Until the last change of a schedule.
        await self.system.sleep_until(_END)

    async def _settle(self) -> None:
        deadline = self.cluster.elapsed + _PATIENCE
        while left := self.checker.unsettled():
            self._check()
            if self.cluster.elapsed >= deadline:
                self.checker.report(Invariant.SETTLED, "; ".join(left))
                continue
            await asyncio.sleep(_LOOK)
        self._check()

    async def _check_idle(self) -> None:
        """Check that an idle system writes nothing but its Lease."""
        # For the last Events and status updates.
        await asyncio.sleep(_REST)
        before = dict(self.checker.writes)
        await asyncio.sleep(_REST)
        written = {
            what: count - before.get(what, 0)
            for what, count in self.checker.writes.items()
            if what[1] != _LEASES.plural and count != before.get(what, 0)
        }
        if written:
            self.checker.report(Invariant.REST, str(written))
        self._check()


def _shift(hour: int) -> dict[str, Any]:
    return {"days": ["mon-sun"], "start": f"{hour:02}:05", "end": f"{hour:02}:25"}


def _election(identity: str) -> ElectionSettings:
    # Slower than the default: renewals would otherwise be most of the work of a day.
    timings = ElectionTimings(lease_duration=60.0, renew_deadline=40.0, retry_period=15.0)
    return ElectionSettings("default", names.LEADER_LEASE, identity, names.ANNOTATION_RECONCILERS, timings=timings)
