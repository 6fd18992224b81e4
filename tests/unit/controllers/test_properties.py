"""Properties of decisions for every possible snapshot."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from fivespot.api import Phase, ScheduledMachineStatus, names
from fivespot.contract import Unreadable
from fivespot.controllers.scheduledmachine.children import EXCLUDE_DRAIN
from fivespot.controllers.scheduledmachine.cluster_api import MACHINE, Known
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.plan import (
    CreateChildren,
    DeleteChildren,
    DeleteMachine,
    DropFinalizer,
    PatchMachine,
    Plan,
    Want,
)
from fivespot.controllers.scheduledmachine.refusals import fingerprint
from fivespot.controllers.scheduledmachine.snapshot import Slot, Snapshot
from fivespot.controllers.scheduledmachine.spec import read_spec
from fivespot.controllers.scheduledmachine.status import build_status, status_events
from fivespot.runtime import find_condition, merge_diff
from fivespot.runtime.objects import rfc3339
from support.machines import bootstrap, infrastructure
from support.machines import machine as scheduled_machine
from unit.controllers.build import UID, after, steps
from unit.controllers.strategies import snapshots

few = settings(max_examples=30)
many = settings(max_examples=100)


def known_down(s: Snapshot, plan: Plan) -> bool:
    """Whether something other than the schedule's word takes the machine away."""
    return s.head.deleting or plan.want not in (Want.ACTIVE, Want.INACTIVE)


@many
@given(snapshots)
def test_deciding_and_reporting_never_raise_and_every_report_fits_the_schema(s: Snapshot) -> None:
    plan = decide(s)
    stored = build_status(s, plan)
    for told in status_events(s, plan, stored) if not plan.quiet else ():
        assert told.reason
        assert told.message
    ScheduledMachineStatus.model_validate(stored)
    assert not plan.quiet or plan.why_waiting
    assert stored["phase"] in set(Phase)


@few
@given(snapshots)
def test_the_same_snapshot_has_the_same_plan(s: Snapshot) -> None:
    copied: Snapshot = pickle.loads(pickle.dumps(s))
    assert decide(copied) == decide(s)
    assert build_status(copied, decide(copied)) == build_status(s, decide(s))


@pytest.mark.contract("B2.2")
@many
@given(snapshots)
def test_nothing_foreign_is_ever_touched(s: Snapshot) -> None:
    plan = decide(s)
    touched = [step.machine for step in plan.steps if isinstance(step, DeleteMachine | PatchMachine)]
    for found in touched:
        assert found is s.world.machine
        assert any(owner.controller and owner.uid == UID for owner in found.head.owners)
    for step in steps(plan, DeleteChildren):
        assert step.children
        assert all(child.ours and child in s.world.children and not child.deleting for child in step.children)


@pytest.mark.contract("B1.10")
@many
@given(snapshots)
def test_children_are_never_deleted_beside_a_machine_and_creation_stands_alone(s: Snapshot) -> None:
    plan = decide(s)
    if s.machine is not None and s.world.capi.installed is not Known.NO:
        assert not steps(plan, DeleteChildren)
        assert not steps(plan, CreateChildren)
    if steps(plan, CreateChildren):
        assert len(plan.steps) == 1
        (step,) = steps(plan, CreateChildren)
        event(f"creates {len(step.slots)}")
        assert step.rehearse is s.spec.tainted
        assert s.world.machine is None
        assert not any(child.deleting for child in s.ours)
        assert {child.slot for child in s.ours} == set(Slot) - set(step.slots)


@many
@given(snapshots)
def test_nothing_is_created_without_all_that_creation_needs(s: Snapshot) -> None:
    if steps(decide(s), CreateChildren):
        world = s.world
        assert world.capi.installed is world.cluster.exists is world.templates.usable is Known.YES
        assert world.machine_known is world.children_known is Known.YES
        assert world.capi.version
        assert not any((s.spec.problems, s.paused, s.head.deleting, world.cluster.deleting))
        assert s.spec.enabled
        assert not s.spec.kill_switch


@pytest.mark.contract("A15")
@many
@given(snapshots)
def test_a_failure_to_read_creates_nothing_and_begins_no_deletion(s: Snapshot) -> None:
    s = replace(s, world=replace(s.world, resolution=Unreadable("forbidden")))
    plan = decide(s)
    if known_down(s, plan):
        return
    assert not steps(plan, CreateChildren)
    begun = s.stored.shutdown_requested is not None
    if steps(plan, DeleteMachine) and not begun:
        assert s.machine is not None
        assert s.machine.remediate
    if steps(plan, DeleteChildren):
        assert begun
    if not begun and plan.want is Want.INACTIVE and s.machine is not None and not s.machine.deleting:
        assert plan.shutdown_requested is None


@pytest.mark.contract("A6")
@many
@given(snapshots)
def test_the_kill_switch_overrides_everything_and_waits_for_no_pause_or_grace(s: Snapshot) -> None:
    s = replace(s, spec=replace(s.spec, kill_switch=True), refusal=None)
    plan = decide(s)
    assert plan.want is Want.KILLED
    assert plan.next_cleanup is None
    assert not steps(plan, CreateChildren)
    reachable = s.world.capi.installed is Known.YES and s.world.capi.version and s.world.machine_known is Known.YES
    if s.machine is not None and not s.machine.deleting and reachable:
        assert steps(plan, DeleteMachine)
        excluded = [name for step in steps(plan, PatchMachine) for name, _ in step.annotations]
        assert s.machine.excludes_drain or EXCLUDE_DRAIN in excluded
    if plan.nothing_left:
        assert plan.phase is Phase.TERMINATED


@pytest.mark.contract("B6.2")
@many
@given(snapshots)
def test_nothing_is_done_while_paused_unless_killed(s: Snapshot) -> None:
    plan = decide(s)
    if s.paused and plan.want is not Want.KILLED:
        assert plan.steps == ()
    if s.world.cluster.exists is Known.UNKNOWN and s.world.capi.installed is not Known.NO:
        assert plan.steps == () or plan.want is Want.KILLED


@pytest.mark.contract("B3.2")
@many
@given(snapshots)
def test_the_finalizer_goes_last_and_only_when_nothing_of_ours_is_left(s: Snapshot) -> None:
    plan = decide(s)
    if not steps(plan, DropFinalizer):
        return
    event("drops the finalizer")
    assert s.head.deleting
    assert isinstance(plan.steps[-1], DropFinalizer)
    assert len(steps(plan, DropFinalizer)) == 1
    if plan.overdue and s.force_finalizer:
        return
    assert plan.steps == (DropFinalizer(),)
    if s.world.capi.installed is not Known.NO:
        assert s.machine is None
        assert s.ours == ()
        assert s.world.machine_known is Known.YES


@pytest.mark.contract("B1.21", "B1.22")
@many
@given(snapshots)
def test_grace_is_never_shortened(s: Snapshot) -> None:
    plan = decide(s)
    without_grace = s.head.deleting or plan.want in (Want.KILLED, Want.CLUSTER_DELETING)
    if without_grace or plan.want is Want.ACTIVE or not steps(plan, DeleteMachine):
        return
    event("deletes after grace")
    least = s.spec.grace
    if plan.want is Want.INACTIVE and not plan.verdict.known:
        least = max(least, timedelta(minutes=5))
    begun = s.stored.shutdown_requested
    assert not least or (begun is not None and begun + least <= s.now)
    assert plan.shutdown_requested is not None


@pytest.mark.contract("B1.21")
@many
@given(snapshots)
def test_a_grace_that_runs_ends_when_it_should_and_wakes_the_key(s: Snapshot) -> None:
    plan = decide(s)
    if plan.next_cleanup is None:
        return
    begun = plan.shutdown_requested
    assert begun is not None
    assert plan.next_cleanup >= begun + s.spec.grace
    assert s.now < plan.next_cleanup
    assert plan.wake is not None
    assert plan.wake <= plan.next_cleanup
    before = s.stored.shutdown_requested
    if before is not None and before <= s.now:
        assert begun == before
    assert begun <= s.now + timedelta(seconds=1)


def settled_again(s: Snapshot, plan: Plan) -> tuple[Snapshot, Plan]:
    """The decision on the report just written; a search it asks for finds what is there already."""
    told = after(s, plan)
    again = decide(told)
    if again.ask is not None:
        told = replace(told, answers=replace(told.answers, searched=True))
        again = decide(told)
    return told, again


@pytest.mark.contract("B4.6")
@many
@given(snapshots)
def test_a_report_that_was_written_is_not_written_again(s: Snapshot) -> None:
    plan = decide(s)
    assume(not plan.quiet and plan.ask is None and not plan.steps)
    told, again = settled_again(s, plan)
    event(f"settled {plan.settled}")
    assert merge_diff(told.stored.raw, build_status(told, again)) == {}
    events = status_events(told, again, build_status(told, again))
    assert [event for event in events if not event.once] == []
    if plan.settled:
        assert events == []
        assert again.steps == ()


@pytest.mark.contract("B4.4")
@many
@given(snapshots)
def test_timestamps_move_only_with_the_status_of_a_condition(s: Snapshot) -> None:
    stored = build_status(s, decide(s))
    before = s.stored.raw.get("conditions")
    for entry in stored["conditions"]:
        old = find_condition(before, entry["type"])
        if old is not None and old["status"] == entry["status"]:
            assert entry["lastTransitionTime"] == old["lastTransitionTime"]
        else:
            assert entry["lastTransitionTime"] == rfc3339(s.now)
    theirs = find_condition(before, "Theirs")
    assert find_condition(stored["conditions"], "Theirs") == theirs
    types = [entry["type"] for entry in stored["conditions"]]
    assert len(types) == len(set(types))


@pytest.mark.contract("B4.1")
@many
@given(snapshots)
def test_ready_agrees_with_the_plan_and_is_loud_while_unresolved(s: Snapshot) -> None:
    plan = decide(s)
    stored = build_status(s, plan)
    ready = find_condition(stored["conditions"], "Ready")
    assert ready is not None
    if ready["status"] == "True" and not isinstance(s.world.resolution, Unreadable):
        assert plan.settled
    stalled = find_condition(stored["conditions"], "Stalled") is not None
    moving = find_condition(stored["conditions"], "Reconciling") is not None
    assert (stalled, moving) == (plan.stalled, not plan.settled and not plan.stalled)
    assert stored["ready"] is (plan.machine is not None and plan.machine.ready)
    if stored["phase"] in ("Inactive", "Disabled", "Terminated"):
        assert plan.settled or plan.paused
        assert plan.machine is None


@many
@given(snapshots)
def test_a_plan_wakes_in_the_future_or_not_at_all_and_unresolved_ones_are_rechecked(s: Snapshot) -> None:
    plan = decide(s)
    assert plan.wake is None or plan.wake >= s.now
    assert plan.recheck or type(s.world.resolution).__name__ == "Resolved" or plan.ask is not None
    if plan.quiet and plan.ask is None:
        assert plan.recheck


@pytest.mark.contract("B7.1")
@many
@given(snapshots)
def test_the_brake_counts_up_by_one_at_most_and_never_from_the_future(s: Snapshot) -> None:
    plan = decide(s)
    before = s.stored.replaced.count
    assert plan.replaced.count in (before, before + 1, 0)
    assert plan.replaced.last is None or plan.replaced.last <= s.now + timedelta(seconds=1)
    if plan.replaced.count == before + 1 and not plan.quiet:
        assert plan.replacement
        assert plan.replaced.uid != s.stored.replaced.uid
    if plan.replaced.count == 0 and before:
        assert s.machine is not None
        assert s.machine.ready


SECRET = "hunter2-9f31"


@pytest.mark.contract("B4.8")
@few
@given(snapshots, st.sampled_from([SECRET, [SECRET], {"token": SECRET}, {"files": [{"content": SECRET, SECRET: 1}]}]))
def test_no_text_of_an_embedded_spec_is_ever_shown_or_remembered(s: Snapshot, body: Any) -> None:
    stored = scheduled_machine(
        "web-1", "team-a", bootstrapSpec=bootstrap(spec=body), infrastructureSpec=infrastructure(spec=body)
    )
    s = replace(s, spec=read_spec(stored))
    plan = decide(s)
    status = build_status(s, plan)
    shown = (s.spec, plan, status, status_events(s, plan, status), fingerprint(s), plan.why_waiting)
    assert SECRET not in repr(shown)


def test_the_annotations_that_decisions_rest_on_are_kept_by_the_cache() -> None:
    assert MACHINE.annotations is not None
    assert {
        names.ANNOTATION_SCHEDULE_REF,
        names.ANNOTATION_TEMPLATE_HASH,
        names.ANNOTATION_PAUSED,
    } <= MACHINE.annotations
