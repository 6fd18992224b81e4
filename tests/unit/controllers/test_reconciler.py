"""Effects of the reconciler's memory and timing on a user's machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from fivespot.api import names
from fivespot.apiserver import ApiRequest, ApiResponse, Handler, StatusError
from fivespot.runtime import Key, merge_patch
from fivespot.runtime.clock import LoopClock
from fivespot.testing.cluster import START, EmbeddedCluster
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import Fail
from simulation.fleet import add_machine, add_switch
from unit.controllers.one_machine import KEY, One, one_machine


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


# A deletion that was decided on an old state ------------------------------------------------------------------------


@pytest.mark.contract("B5.5")
async def test_an_edit_at_the_last_moment_stops_the_deletion(fivespot_cluster: EmbeddedCluster) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="10s") as (one, _):
        machine = await one.machine()
        assert machine is not None
        await one.edit(enabled=False)
        await asyncio.sleep(5)
        one.before("patch", "scheduledmachines/status", lambda: one.edit(enabled=True))
        await asyncio.sleep(60)
        left = await one.machine()
        assert left is not None
        assert (left.head.uid, left.head.deleting) == (machine.head.uid, False)
        assert (await one.status())["phase"] == "Active"


@pytest.mark.contract("B5.5", "B2.8")
@pytest.mark.parametrize("reverse", [True, False])
async def test_a_deletion_holds_only_for_the_machine_as_it_was_decided_on(
    fivespot_cluster: EmbeddedCluster, reverse: bool
) -> None:
    async def touch() -> None:
        change = {"metadata": {"annotations": {"someone.example/acted": ""}}}
        await fivespot_cluster.client.patch(MACHINES, KEY, merge_patch(change))
        if reverse:
            await one.edit(enabled=True)

    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="0s") as (one, _):
        machine = await one.machine()
        assert machine is not None
        one.before("delete", "machines", touch)
        await one.edit(enabled=False)
        await asyncio.sleep(120)
        left = await one.machine()
        if reverse:
            assert left is not None
            assert left.head.uid == machine.head.uid
            assert not left.head.deleting
        else:
            assert left is None, "it is decided anew, and as before"


@pytest.mark.contract("B5.5", "B7.1")
async def test_a_machine_that_is_lost_to_a_late_deletion_is_replaced_without_brake(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    """A deposed leader's request that was on its way when the shutdown was cancelled."""
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="10m") as (one, _):
        await one.edit(enabled=False)
        await asyncio.sleep(10)
        await one.edit(enabled=True)
        await asyncio.sleep(5)
        machine = await one.machine()
        assert machine is not None
        await fivespot_cluster.client.delete(MACHINES, KEY, uid=machine.head.uid)
        await asyncio.sleep(60)
        other = await one.machine()
        assert other is not None
        assert other.head.uid != machine.head.uid
        status = await one.status()
        assert "replacements" not in status
        assert not await one.events("MachineLost")


# The kill switch ----------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.14", "B2.6")
@pytest.mark.parametrize("fault", [Fail(403), Fail(409), Fail(422), Fail(500), Fail(504), Fail(404, "text")])
async def test_a_preparation_that_fails_does_not_hold_back_the_kill_switch(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    async with one_machine(fivespot_cluster) as (one, _):
        one.fail(fault, "patch", "machines")
        await one.edit(killSwitch=True)
        await asyncio.sleep(10)
        machine = await one.machine()
        assert machine is None or machine.head.deleting
        await asyncio.sleep(600)
        assert (await one.status())["phase"] == "Terminated"


@pytest.mark.contract("B2.5")
@pytest.mark.parametrize("fault", [Fail(403), Fail(422), Fail(500)])
async def test_a_preparation_that_fails_does_not_hold_back_the_end_of_a_machine_taken_over(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="0s") as (one, running):
        await running.kill()
        spec = {"deletion": None}
        metadata = {"annotations": {names.ANNOTATION_TEMPLATE_HASH: None}}
        await fivespot_cluster.client.patch(MACHINES, KEY, merge_patch({"metadata": metadata, "spec": spec}))
        one.fail(fault, "patch", "machines")
        async with one.manager():
            await asyncio.sleep(10)
            await one.turn(on=False)
            await asyncio.sleep(900)
            assert (await one.status())["phase"] == "Inactive"


NO_DRAIN = "machine.cluster.x-k8s.io/exclude-node-draining"


async def begin_a_drain_that_lasts(one: One) -> None:
    """Take the machine away while a finalizer of another controller keeps it."""
    held = merge_patch({"metadata": {"finalizers": ["example.com/held"]}})
    await one.cluster.client.patch(MACHINES, KEY, held)
    await one.turn(on=False)
    await asyncio.sleep(30)
    machine = await one.machine()
    assert machine is not None
    assert machine.head.deleting
    assert NO_DRAIN not in machine.head.annotations


async def touch(one: One, count: int) -> None:
    """Change the Machine as Cluster API does while it drains."""
    await one.cluster.client.patch(MACHINES, KEY, merge_patch({"metadata": {"labels": {"touched": str(count)}}}))


@pytest.mark.contract("B2.6")
async def test_the_kill_switch_stops_a_drain_though_cluster_api_changes_the_machine_first(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="0s") as (one, _):
        await begin_a_drain_that_lasts(one)
        change = one.before("patch", "machines", lambda: touch(one, 0))
        await one.edit(killSwitch=True)
        await asyncio.sleep(5)
        assert change.done
        machine = await one.machine()
        assert machine is not None
        assert NO_DRAIN in machine.head.annotations


@pytest.mark.contract("B2.6")
async def test_a_refused_preparation_is_retried_when_it_is_due_though_the_machine_changes_in_between(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="0s") as (one, _):
        await begin_a_drain_that_lasts(one)
        refused = one.fail(Fail(403), "patch", "machines")
        await one.edit(killSwitch=True)
        await asyncio.sleep(1)
        assert refused.count == 1
        await touch(one, 1)
        # The first delay is 30 s, a little more or less.
        await asyncio.sleep(40)
        assert refused.count == 2


@pytest.mark.contract("B2.6")
async def test_a_machine_that_survives_the_kill_switch_is_drained_again_later(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with one_machine(fivespot_cluster) as (one, _):
        one.fail(Fail(403), "delete", "machines")
        await one.edit(killSwitch=True)
        await asyncio.sleep(10)
        machine = await one.machine()
        assert machine is not None
        assert "machine.cluster.x-k8s.io/exclude-node-draining" in machine.head.annotations
        await one.edit(killSwitch=False)
        await asyncio.sleep(10)
        machine = await one.machine()
        assert machine is not None
        assert "machine.cluster.x-k8s.io/exclude-node-draining" not in machine.head.annotations
        assert (await one.status())["phase"] == "Active"


@pytest.mark.contract("B6.2")
async def test_the_kill_switch_on_a_paused_cluster_says_what_it_waits_for(fivespot_cluster: EmbeddedCluster) -> None:
    async with one_machine(fivespot_cluster) as (one, _):
        await one.pause_cluster(on=True)
        await asyncio.sleep(5)
        await one.edit(killSwitch=True)
        await asyncio.sleep(3600)
        machine = await one.machine()
        assert machine is not None
        assert machine.head.deleting
        assert (await one.condition("Paused"))["status"] == "True"
        assert "Cluster prod is paused, so Cluster API does not remove the machine" in (await one.status())["message"]


# Grace --------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.21")
@pytest.mark.parametrize("cause", ["killSwitch", "delete"])
async def test_another_cause_restarts_no_grace_and_costs_no_write_for_each_try(
    fivespot_cluster: EmbeddedCluster, cause: str
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="4h") as (one, _):
        await one.edit(enabled=False)
        await asyncio.sleep(60)
        begun = (await one.status())["shutdownRequestedTime"]
        one.fail(Fail(500), "delete", "machines")
        writes = one.watch("patch", "scheduledmachines/status")
        if cause == "delete":
            await one.delete()
        else:
            await one.edit(killSwitch=True)
        await asyncio.sleep(3600)
        assert (await one.status())["shutdownRequestedTime"] == begun
        assert len(writes.sent) < 5
        if cause == "killSwitch":
            await one.edit(killSwitch=False)
            await asyncio.sleep(60)
            due = instant((await one.status())["nextCleanup"])
            assert due - instant(begun) == timedelta(hours=4)


class SetClock(LoopClock):
    """A wall clock that somebody sets."""

    def __init__(self, start: datetime) -> None:
        super().__init__(start)
        self.by = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.by


@pytest.fixture
async def clock() -> SetClock:
    return SetClock(START)


@contextlib.asynccontextmanager
async def with_clock(clock: SetClock, **spec: Any) -> AsyncIterator[One]:
    async with (
        EmbeddedCluster(clock=clock) as cluster,
        one_machine(cluster, **spec) as (one, _),
    ):
        yield one


@pytest.mark.contract("B1.21")
@pytest.mark.usefixtures("fivespot_cluster")
async def test_grace_ends_when_the_wall_clock_says_so_though_it_was_set_forward(clock: SetClock) -> None:
    async with with_clock(clock, gracefulShutdownTimeout="6h") as one:
        await one.edit(enabled=False)
        await asyncio.sleep(60)
        due = instant((await one.status())["nextCleanup"])
        clock.by = timedelta(hours=5)
        await asyncio.sleep((due - clock.now()).total_seconds() - 60)
        machine = await one.machine()
        assert machine is not None
        assert not machine.head.deleting
        await asyncio.sleep(120)
        machine = await one.machine()
        assert machine is None or machine.head.deleting


@pytest.mark.contract("B1.22")
async def test_a_changed_reference_that_never_resolved_has_five_minutes_from_the_change(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="15m") as (one, running):
        await one.edit(enabled=False)
        await asyncio.sleep(14 * 60)
        await one.edit(enabled=True, schedule={"name": "never"})
        await asyncio.sleep(10)
        due = instant((await one.status())["nextCleanup"])
        assert due - fivespot_cluster.clock.now() > timedelta(minutes=4, seconds=45)
        await running.kill()
        async with one.manager():
            await asyncio.sleep(240)
            machine = await one.machine()
            assert machine is not None
            assert not machine.head.deleting
            await asyncio.sleep(120)
            machine = await one.machine()
            assert machine is None or machine.head.deleting


@pytest.mark.contract("B1.22")
async def test_a_reference_that_is_missing_from_the_start_says_so(fivespot_cluster: EmbeddedCluster) -> None:
    async with one_machine(fivespot_cluster) as (one, _):
        await add_machine(one.system, "lost", "nowhere", kind="ManualSchedule")
        await asyncio.sleep(30)
        found = await fivespot_cluster.client.get(_scheduled_machines(), Key("default", "lost"))
        message = found.decode()["status"]["message"]
        assert "ManualSchedule/nowhere does not exist" in message
        assert "outside the schedule" not in message


def _scheduled_machines() -> Any:
    from simulation.fleet import SCHEDULED_MACHINES  # noqa: PLC0415

    return SCHEDULED_MACHINES


# Refusals and ownership ----------------------------------------------------------------------------------------------


class Quota:
    """A refusal whose words differ each time."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.tries = 0

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        self.tries += 1
        return StatusError(403, "Forbidden", self.words.format(n=self.tries)).response()


@pytest.mark.contract("B1.7")
@pytest.mark.parametrize(
    ("words", "most"),
    [("exceeded quota: c, used: {n}", 2), ("denied the request: trace {n:x}z{n}", 14), ("no", 2)],
    ids=["numbers", "ids", "same"],
)
async def test_back_off_does_not_depend_on_the_servers_words(
    fivespot_cluster: EmbeddedCluster, words: str, most: int
) -> None:
    async with one_machine(fivespot_cluster, on=False) as (one, _):
        quota = Quota(words)
        one.fail(quota, "create", "machines")
        writes = one.watch("patch", "scheduledmachines/status")
        await one.turn(on=True)
        await asyncio.sleep(3600)
        assert quota.tries <= 18
        assert len(writes.sent) <= most


@pytest.mark.contract("B2.2")
@pytest.mark.parametrize("end", ["schedule", "disabled", "killed", "deleted"])
async def test_nothing_is_deleted_under_a_machine_whose_owner_reference_was_taken_off(
    fivespot_cluster: EmbeddedCluster, end: str
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="1h") as (one, _):
        await fivespot_cluster.client.patch(MACHINES, KEY, merge_patch({"metadata": {"ownerReferences": None}}))
        await asyncio.sleep(5)
        match end:
            case "schedule":
                await one.turn(on=False)
            case "disabled":
                await one.edit(enabled=False)
            case "killed":
                await one.edit(killSwitch=True)
            case _:
                await one.delete()
        await asyncio.sleep(2 * 3600)
        machine = await one.machine()
        assert machine is not None
        assert not machine.head.deleting
        for kind in (one.system.family.bootstrap, one.system.family.machine):
            child = await one.find(kind)
            assert child is not None
            assert not child.head.deleting
        if end != "deleted":
            assert (await one.condition("Ready"))["status"] == "False", "the machine runs on"
            assert "no longer controlled" in (await one.status())["message"]


@pytest.mark.contract("B8.3")
async def test_deletions_in_two_namespaces_take_turns_under_the_limit(fivespot_cluster: EmbeddedCluster) -> None:
    settings = {"max_deletions_per_minute": 1}
    async with one_machine(fivespot_cluster, settings=settings, gracefulShutdownTimeout="0s") as (one, _):
        namespace = await fivespot_cluster.namespace("many")
        await one.system.add_cluster(namespace)
        await add_switch(one.system, "all", enabled=True, namespace=namespace)
        for number in range(10):
            options = {"kind": "ManualSchedule", "gracefulShutdownTimeout": "0s"}
            await add_machine(one.system, f"m-{number}", "all", namespace=namespace, **options)
        await asyncio.sleep(60)
        switch = _switches()
        await fivespot_cluster.client.patch(switch, Key(namespace, "all"), merge_patch({"spec": {"enabled": False}}))
        await asyncio.sleep(5)
        await one.turn(on=False)
        await asyncio.sleep(5)
        status = await one.status()
        if status["phase"] == "ShuttingDown":
            assert (await one.condition("Ready"))["reason"] == "DeletionRateLimited"
            assert instant(status["nextCleanup"]) - fivespot_cluster.clock.now() < timedelta(minutes=2)
        await asyncio.sleep(150)
        assert (await one.status())["phase"] == "Inactive"


def _switches() -> Any:
    from simulation.fleet import SWITCHES  # noqa: PLC0415

    return SWITCHES
