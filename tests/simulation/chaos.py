"""Random days: people who change their minds, machines that are lost, managers that die, a server that misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final

from fivespot.api import names
from fivespot.controllers import scheduledmachine as machine_controller
from fivespot.providers.registry import shipped_providers
from fivespot.providers.sdk import build_controller
from fivespot.runtime import ElectionSettings, ElectionTimings, Key, ManagerSettings, Object, Resource, merge_patch
from fivespot.runtime.errors import NotFoundError
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import CLUSTERS, MACHINES
from fivespot.testing.faults import Fail, Rule
from fivespot.testing.system import EmbeddedSystem

from .checker import Checker
from .faults import random_faults
from .invariants import Invariant
from .managers import Managers
from .world import SCHEDULED_MACHINES, SCHEDULES, SWITCHES, add_machine, add_schedule, add_switch

__all__ = ["Chaos"]

_START: Final = datetime(2026, 3, 2, 7, 50, tzinfo=UTC)
_HOUR: Final = 3600.0
_END: Final = 2 * _HOUR
"""When the last schedule has changed for the last time."""
_STEPS: Final = 60
_LOOK: Final = 60.0
_PATIENCE: Final = 2 * _HOUR
"""The longest waits of the contract: ten minutes before a replacement, five of grace, five of drain, some of each."""
_REST: Final = 0.25 * _HOUR
_RECOVERY: Final = 600.0
"""Until the longest wait that trouble leaves behind is over: a refusal is tried again after five minutes at most."""
_MACHINES: Final = 4
_PAIR: Final = ("5spot-one", "5spot-two")
_ON_MACHINES: Final = {*_PAIR, "5spot-all", "5spot-machines"}
_LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")


class Chaos:
    """One random day; everything in it follows from the seed.

    :ivar log: what happened, for people.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.log: list[str] = []
        self._random = Random(seed)
        self._crew = Managers()
        self._misbehaving = False
        self._names = [f"web-{number}" for number in range(_MACHINES)]
        self.cluster = EmbeddedCluster(seed=seed, start=_START)
        self.system = EmbeddedSystem(self.cluster)
        self.witness: Checker

    async def run(self) -> None:
        """
        :raises AssertionError: with the seed, what is wrong, and what happened.
        """
        async with self.cluster, self.system:
            self.witness = Checker(self.system, elected=_PAIR if self.seed % 3 == 1 else ())
            try:
                await self._day()
            except AssertionError as error:
                story = "\n".join(self.log[-25:])
                raise AssertionError(f"seed {self.seed}: {error}\n{story}") from error

    async def _day(self) -> None:
        await self.system.add_cluster("default")
        await self._begin()
        await asyncio.sleep(self._random.choice((0.0, 30.0)))
        for _ in range(_STEPS):
            await self._step()
            self._check()
            await asyncio.sleep(self._random.choice((0.01, 0.3, 2.0, 20.0, 60.0, 120.0, 400.0)))
            self._check()
        await self._calm_down()
        await self._settle()
        await self._rest()
        await self._crew.dismiss()
        self._check()

    def _check(self) -> None:
        """Anything that should never have happened, or should have by now."""
        troubled = self._misbehaving or bool(self._crew.dead)
        since = float("inf") if troubled else self.cluster.elapsed + _RECOVERY
        truth = self.witness.truth
        truth.calm = since if troubled else min(truth.calm, since)
        truth.idle.turn(self.cluster.elapsed, not _ON_MACHINES & set(self._crew.running))
        self.witness.look()
        assert not self.witness.violations, "; ".join(self.witness.violations)

    def _tell(self, what: str) -> None:
        self.log.append(f"{self.cluster.elapsed:10.2f} s  {what}")

    # Who works ---------------------------------------------------------------------------------------------------

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
                await self._crew.hire("5spot-all", partial(self.system.manager, name="5spot-all", settings=alone))
            case 1:
                for name in _PAIR:
                    settings = replace(alone, election=_election(name))
                    await self._crew.hire(name, partial(self.system.manager, name=name, settings=settings))
            case _:
                providers = [partial(build_controller, provider) for provider in shipped_providers()]
                manager = partial(self.cluster.manager, settings=alone)
                await self._crew.hire("5spot-schedules", partial(manager, *providers, name="5spot-schedules"))
                build = partial(machine_controller.build, timings=None)
                await self._crew.hire("5spot-machines", partial(manager, build, name="5spot-machines"))

    async def _add_machine(self, name: str) -> None:
        schedule = self._random.choice(
            [(SWITCHES.kind, name)] * 3 + [(SCHEDULES.kind, "hours"), (SCHEDULES.kind, "shifts")]
        )
        grace = self._random.choice(["0s", "30s", "2m", "5m"])
        drain = self._random.choice(["0s", "1m", "5m"])
        times = {"graceful_shutdown_timeout": grace, "node_drain_timeout": drain}
        given = {"gracefulShutdownTimeout": grace, "nodeDrainTimeout": drain}
        self._tell(f"{name} follows {schedule[0]} {schedule[1]} {times}")
        await add_machine(self.system, name, schedule[1], kind=schedule[0], **given)

    # What happens ------------------------------------------------------------------------------------------------

    async def _step(self) -> None:
        name = self._random.choice(self._names)
        if self._random.random() < 0.3:
            await self._put_right(name)
        steps: list[tuple[int, Callable[[str], Awaitable[None]]]] = [
            (16, self._turn),
            (3, self._kill_switch),
            (4, self._enabled),
            (2, self._grace),
            (2, self._template),
            (2, self._lose_machine),
            (1, self._lose_infrastructure),
            (2, self._remove_or_add),
            (2, self._remove_or_add_schedule),
            (2, self._spoil),
            (2, self._pause),
            (1, self._pause_all),
            (2, self._squat),
            (4, self._kill_or_start),
            (4, self._misbehave),
            (2, self._half_make),
        ]
        (step,) = self._random.choices([step for _, step in steps], [weight for weight, _ in steps])
        await step(name)

    async def _put_right(self, name: str) -> None:
        """Where all is paused, killed or gone, nothing happens any more."""
        if await self._find(SCHEDULED_MACHINES, name) is None:
            await self._add_machine(name)
        elif self._random.random() < 0.5:
            await self._patch(CLUSTERS, "prod", {"spec": {"paused": None}})
            await self._patch(SCHEDULED_MACHINES, name, {"metadata": {"annotations": {names.ANNOTATION_PAUSED: None}}})
        else:
            await self._patch(SCHEDULED_MACHINES, name, {"spec": {"enabled": True, "killSwitch": False}})

    async def _patch(self, resource: Resource, name: str, change: dict[str, Any]) -> None:
        self._tell(f"{resource.kind} {name}: {change}")
        try:
            await self.cluster.client.patch(resource, Key("default", name), merge_patch(change))
        except NotFoundError:
            self._tell("  which is not there")

    async def _turn(self, name: str) -> None:
        await self._patch(SWITCHES, name, {"spec": {"enabled": self._random.random() < 0.6, "base": None}})

    async def _spoil(self, name: str) -> None:
        """A schedule that gives no verdict any more, so that the last one counts."""
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
        self._tell(f"somebody deletes {resource.kind} {name}")
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
        # Gone for long, nothing follows from anything.
        if self._random.random() < 0.5 or not await self._delete(SWITCHES, name):
            if await self._find(SWITCHES, name) is not None:
                return
            self._tell(f"ManualSchedule {name} comes")
            await add_switch(self.system, name, enabled=self._random.random() < 0.5)

    async def _squat(self, name: str) -> None:
        """Somebody else's object takes a name, or gives it back."""
        resource = self.system.family.machine
        found = await self._find(resource, name)
        if found is None:
            self._tell(f"somebody makes {resource.kind} {name}")
            metadata = {"name": name, "namespace": "default", "labels": {"example.com/foreign": ""}}
            body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": {}}
            made = await self.cluster.client.create(resource, body)
            self.witness.foreign.add(made.head.uid)
        elif found.head.uid in self.witness.foreign:
            await self._delete(resource, name)

    async def _kill_or_start(self, name: str) -> None:
        if self._crew.dead and self._random.random() < 0.9:
            who = self._random.choice(self._crew.dead)
            self._tell(f"{who} starts")
            await self._crew.start(who)
        elif self._crew.running:
            who = self._random.choice(self._crew.running)
            self._tell(f"{who} dies")
            await self._crew.kill(who)

    async def _misbehave(self, name: str) -> None:
        rules = random_faults(self._random)
        self._tell(f"the server: {', '.join(f'{rule.fault} for {rule.verb} {rule.resource}' for rule in rules)}")
        self.cluster.faults.replace(rules)
        self._misbehaving = bool(rules)

    async def _half_make(self, name: str) -> None:
        """A machine is wanted while all that belongs to it can be made, but not the Machine."""
        self._tell("the server makes no Machines")
        self.cluster.faults.replace([Rule(Fail(403), verb="create", resource="machines")])
        self._misbehaving = True
        await self._patch(SCHEDULED_MACHINES, name, {"spec": {"enabled": True, "killSwitch": False}})
        await self._patch(SWITCHES, name, {"spec": {"enabled": True, "base": None}})

    # The end -----------------------------------------------------------------------------------------------------

    async def _calm_down(self) -> None:
        self._tell("calm")
        self.cluster.faults.clear()
        self._misbehaving = False
        await self._patch(CLUSTERS, "prod", {"spec": {"paused": None}})
        for who in self._crew.dead:
            await self._crew.start(who)
        for name in self._names:
            found = await self._find(self.system.family.machine, name)
            if found is not None and found.head.uid in self.witness.foreign:
                await self._delete(self.system.family.machine, name)
            switch = await self._find(SWITCHES, name)
            if switch is None:
                await add_switch(self.system, name, enabled=True)
            elif "base" in switch.decode()["spec"]:
                await self._turn(name)
            await self._patch(SCHEDULED_MACHINES, name, {"metadata": {"annotations": {names.ANNOTATION_PAUSED: None}}})
        await asyncio.sleep(_LOOK)
        for name in self._names:
            # Cluster API does not replace what a Machine has lost; somebody or a health check deletes the Machine.
            if await self._find(self.system.family.machine, name) is None:
                await self._delete(MACHINES, name)
        # Where no schedule changes any more.
        await self.system.sleep_until(_END)

    async def _settle(self) -> None:
        deadline = self.cluster.elapsed + _PATIENCE
        while left := self.witness.unsettled():
            self._check()
            if self.cluster.elapsed >= deadline:
                self.witness.report(Invariant.SETTLED, "; ".join(left))
                continue
            await asyncio.sleep(_LOOK)
        self._check()

    async def _rest(self) -> None:
        """A system where nothing happens writes nothing but its Lease."""
        # What was still to be told about the last change.
        await asyncio.sleep(_REST)
        before = dict(self.witness.writes)
        await asyncio.sleep(_REST)
        written = {
            what: count - before.get(what, 0)
            for what, count in self.witness.writes.items()
            if what[1] != _LEASES.plural and count != before.get(what, 0)
        }
        if written:
            self.witness.report(Invariant.REST, str(written))
        self._check()


def _shift(hour: int) -> dict[str, Any]:
    return {"days": ["mon-sun"], "start": f"{hour:02}:05", "end": f"{hour:02}:25"}


def _election(identity: str) -> ElectionSettings:
    # Slower than usual: hours of renewals are most of the work otherwise.
    timings = ElectionTimings(lease_duration=60.0, renew_deadline=40.0, retry_period=15.0)
    return ElectionSettings("default", names.LEADER_LEASE, identity, names.ANNOTATION_RECONCILERS, timings=timings)
