"""The report of a run: at most one status write, events beside it, and the time of the next run."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.metrics import MachineMetrics
from fivespot.controllers.scheduledmachine.plan import Plan
from fivespot.controllers.scheduledmachine.snapshot import Snapshot
from fivespot.controllers.scheduledmachine.status import build_status
from fivespot.controllers.scheduledmachine.status_writer import MachineStatusWriter
from fivespot.controllers.scheduledmachine.stored_status import StoredStatus
from fivespot.controllers.scheduledmachine.timings import Timings
from fivespot.runtime import ConflictError, Key, ManagerContext, Metrics, NotFoundError, Object, Result
from fivespot.runtime.manager import PlanBook
from fivespot.runtime.telemetry import EventNote
from unit.controllers.build import (
    DOWN,
    NAME,
    NAMESPACE,
    NOW,
    UID,
    UP,
    at,
    head,
    machine,
    ready_machine,
    snapshot,
    stored_status,
)

KEY = Key(NAMESPACE, NAME)
WARNING = EventNote(reason="Sample", message="once", warning=True, once="token")


class Server:
    """Takes status patches, or refuses them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.patches: list[tuple[Mapping[str, Any], bool]] = []

    async def patch_status(self, resource: Any, head_: Any, status: Mapping[str, Any], *, dry_run: bool) -> Object:
        self.patches.append((status, dry_run))
        if self.error is not None:
            raise self.error
        return obj()


class Reports:
    """A writer with what it wrote and recorded."""

    def __init__(self, server: Server | None = None, *, dry_run: bool = False) -> None:
        self.server = server or Server()
        self.now = 1000.0
        self.events: list[EventNote] = []
        self.plans = PlanBook()
        self.registry = Metrics(process=False)
        context = SimpleNamespace(
            client=self.server,
            clock=SimpleNamespace(monotonic=lambda: self.now),
            rng=random.Random(1),
            settings=SimpleNamespace(dry_run=dry_run),
            events=SimpleNamespace(note=lambda _, note: self.events.append(note)),
            plans=self.plans,
        )
        metrics = MachineMetrics(self.registry, lambda: ())
        self.writer = MachineStatusWriter(cast("ManagerContext", context), metrics, Timings())

    async def write(self, s: Snapshot, plan: Plan | None = None, **options: Any) -> Result:
        return await self.writer.write(obj(), s, plan or decide(s), **options)

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]


def obj() -> Object:
    metadata = {"name": NAME, "namespace": NAMESPACE, "uid": UID, "resourceVersion": "7"}
    return Object.parse(json.dumps({"metadata": metadata}).encode())


def reported(s: Snapshot, **changes: Any) -> Snapshot:
    """The snapshot after its status was written, with other changes."""
    return replace(s, stored=stored_status(build_status(s, decide(s)) | changes))


UP_AND_READY = snapshot(UP, machine=ready_machine(), stored=stored_status(phase="Active"))


@pytest.mark.contract("B5.2")
async def test_a_report_is_one_write_of_the_changed_fields_and_the_next_is_none() -> None:
    reports = Reports()
    await reports.write(UP_AND_READY)
    [(change, dry_run)] = reports.server.patches
    assert not dry_run
    assert change["ready"] is True
    await reports.write(reported(UP_AND_READY))
    assert len(reports.server.patches) == 1


async def test_events_of_a_change_follow_the_write_and_are_not_sent_without_it() -> None:
    s = snapshot(DOWN, stored=stored_status(phase="Active"))
    reports = Reports()
    await reports.write(s)
    assert reports.reasons
    refused = Reports(Server(ConflictError(409, "Conflict", "changed", request="patch")))
    with pytest.raises(ConflictError):
        await refused.write(s)
    assert refused.events == []


async def test_an_event_with_a_token_is_recorded_before_the_write_so_that_no_failure_loses_it() -> None:
    s = snapshot(DOWN, stored=stored_status(phase="Active"))
    reports = Reports(Server(ConflictError(409, "Conflict", "changed", request="patch")))
    with pytest.raises(ConflictError):
        await reports.write(s, replace(decide(s), events=(WARNING,)))
    assert reports.events == [WARNING]


async def test_an_object_that_is_gone_needs_no_report() -> None:
    reports = Reports(Server(NotFoundError(404, "NotFound", "gone", request="patch")))
    await reports.write(snapshot(DOWN, stored=stored_status(phase="Active")))
    assert len(reports.server.patches) == 1


async def test_once_the_finalizer_is_removed_nothing_is_written() -> None:
    reports = Reports()
    s = snapshot(UP, head=head(deleted=at(minutes=1)), stored=stored_status(phase="Inactive"))
    await reports.write(s, replace(decide(s), events=(WARNING,)), let_go=True)
    assert reports.server.patches == []
    assert reports.events == [WARNING]


async def test_a_dry_run_writes_nothing_and_shows_its_plan() -> None:
    reports = Reports(dry_run=True)
    await reports.write(snapshot(UP, stored=stored_status(phase="Inactive")))
    assert reports.server.patches == []
    assert reports.plans.snapshot()


async def test_a_plan_that_knows_nothing_yet_leaves_status_alone_and_comes_back() -> None:
    reports = Reports()
    s = snapshot(UP)
    result = await reports.write(s, replace(decide(s), quiet=True, recheck=True, steps=(), wake=None))
    assert reports.server.patches == []
    assert result.requeue_after is not None
    assert 48 <= result.requeue_after <= 72


# Writes that wait ----------------------------------------------------------------------------------------------------


@pytest.mark.contract("B5.2")
async def test_progress_of_a_machine_is_mirrored_once_a_second_and_never_lost() -> None:
    def starting(waits_for: str, stored: StoredStatus) -> Snapshot:
        return snapshot(UP, machine=machine(ready_message=waits_for), stored=stored)

    reports = Reports()
    first = starting("bootstrap data", stored_status(phase="Active"))
    await reports.write(first)
    assert len(reports.server.patches) == 1
    second = starting("infrastructure", reported(first).stored)
    reports.now += 0.4
    result = await reports.write(second)
    assert len(reports.server.patches) == 1
    assert result.requeue_after == pytest.approx(0.6)
    reports.now += 0.6
    await reports.write(second)
    assert len(reports.server.patches) == 2
    assert "infrastructure" in json.dumps(reports.server.patches[1][0])


@pytest.mark.contract("B5.2")
async def test_a_machine_that_becomes_ready_is_reported_at_once() -> None:
    reports = Reports()
    starting = snapshot(UP, machine=machine(), stored=stored_status(phase="Active"))
    await reports.write(starting)
    ready = replace(snapshot(UP, machine=ready_machine()), stored=reported(starting).stored)
    reports.now += 0.01
    await reports.write(ready)
    assert len(reports.server.patches) == 2


# The next run --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "least", "most"),
    [
        ({"wake": NOW + timedelta(seconds=90)}, 90.0, 90.01),
        ({"wake": NOW - timedelta(seconds=5)}, 0.0, 0.0),
        ({"recheck": True}, 48.0, 72.0),
        ({"wake": NOW + timedelta(seconds=90), "recheck": True}, 48.0, 72.0),
        ({"settled": False}, 300.0, 360.0),
    ],
    ids=["a boundary", "a boundary that is past", "no event may tell", "the earlier of both", "not as wanted"],
)
@pytest.mark.contract("B8.5")
async def test_the_next_run_is_at_the_earliest_reason_for_one(plan: dict[str, Any], least: float, most: float) -> None:
    s = reported(UP_AND_READY)
    base = replace(decide(s), wake=None, recheck=False, settled=True)
    result = await Reports().write(s, replace(base, **plan))
    assert result.requeue_after is not None
    assert least <= result.requeue_after <= most


async def test_a_machine_that_is_as_wanted_waits_for_events_alone() -> None:
    s = reported(UP_AND_READY)
    result = await Reports().write(s, replace(decide(s), wake=None, recheck=False, settled=True))
    assert result.requeue_after is None


# Deletions are announced ---------------------------------------------------------------------------------------------


@pytest.mark.contract("B5.5")
async def test_an_announced_deletion_is_a_write_even_if_nothing_changes() -> None:
    """Its preconditions are what matters: another leader's write makes it fail, and nothing is deleted."""
    s = snapshot(DOWN, machine=machine(), stored=stored_status(phase="Active", shutdownRequestedTime=at(hours=1)))
    reports = Reports()
    plan = decide(s)
    await reports.writer.announce(obj(), s, plan)
    same = replace(s, stored=stored_status(build_status(s, plan)))
    await reports.writer.announce(obj(), same, plan)
    assert [dry_run for _, dry_run in reports.server.patches] == [False, True]
    refused = Reports(Server(ConflictError(409, "Conflict", "changed", request="patch")))
    for each in (s, same):
        with pytest.raises(ConflictError):
            await refused.writer.announce(obj(), each, plan)


async def test_an_overdue_deletion_counts_once_for_each_object() -> None:
    reports = Reports()
    s = snapshot(UP, machine=machine(deleting=True), head=head(deleted=at(hours=5)), stored=stored_status())
    plan = decide(s)
    assert plan.overdue
    for _ in range(3):
        await reports.write(s, plan)
    samples = [line for line in reports.registry.render().decode().splitlines() if "timeout" in line and line[0] != "#"]
    assert [float(line.rpartition(" ")[2]) for line in samples if "_created" not in line] == [1.0]


def test_a_failure_that_no_status_can_tell_is_an_event_of_limited_length() -> None:
    reports = Reports()
    reports.writer.record_failure(obj(), "x" * 5000)
    [event] = reports.events
    assert event.warning
    assert len(event.message) == 1024


async def test_nothing_of_an_object_that_is_gone_is_kept() -> None:
    reports = Reports(dry_run=True)
    await reports.write(snapshot(UP, stored=stored_status(phase="Inactive")))
    reports.writer.forget(KEY)
    assert not reports.plans.snapshot()
