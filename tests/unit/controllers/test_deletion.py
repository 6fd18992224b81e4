"""B3: deletion of the ScheduledMachine itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from fivespot.api import Phase, names
from fivespot.contract import Resolution
from fivespot.controllers.scheduledmachine.children import EXCLUDE_DRAIN
from fivespot.controllers.scheduledmachine.cluster_api import Known
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.decide_down import FINALIZER_TIMEOUT
from fivespot.controllers.scheduledmachine.plan import (
    DeleteChildren,
    DeleteMachine,
    DropFinalizer,
    PatchMachine,
    Question,
)
from fivespot.controllers.scheduledmachine.snapshot import Slot, Snapshot
from fivespot.controllers.scheduledmachine.status import build_status, status_events
from fivespot.runtime import merge_diff
from unit.controllers.build import (
    BLIND,
    DOWN,
    LOST,
    NO_CAPI,
    NOW,
    UP,
    after,
    at,
    child,
    head,
    judged,
    machine,
    ready_machine,
    snapshot,
    spec,
    status,
    steps,
    stored_status,
)

LEFT = (child(Slot.BOOTSTRAP), child(Slot.INFRASTRUCTURE))


def deleted(resolution: Resolution = UP, *, ago: float = 1.0, **changes: Any) -> Snapshot:
    return snapshot(resolution, **({"head": head(deleted=at(seconds=ago))} | changes))


@pytest.mark.contract("B3.2")
def test_deleted_with_its_dependents_to_be_left_it_touches_nothing_and_lets_go() -> None:
    orphaned = msgspec.structs.replace(head(deleted=at(seconds=1)), finalizers=("orphan", names.FINALIZER))
    plan = decide(deleted(head=orphaned, machine=ready_machine(), children=LEFT))
    assert plan.steps == (DropFinalizer(),)


@pytest.mark.contract("B3.2")
@pytest.mark.parametrize("resolution", [UP, DOWN, LOST, BLIND], ids=["up", "down", "lost", "blind"])
def test_deletion_takes_the_machine_without_grace_and_with_drain(resolution: Resolution) -> None:
    plan = decide(deleted(resolution, machine=ready_machine()))
    assert plan.steps == (DeleteMachine(ready_machine()),)
    assert EXCLUDE_DRAIN not in repr(plan.steps)


@pytest.mark.contract("B3.2")
@pytest.mark.parametrize("resolution", [UP, DOWN, LOST, BLIND], ids=["up", "down", "lost", "blind"])
def test_then_what_is_left_and_the_finalizer_last(resolution: Resolution) -> None:
    assert decide(deleted(resolution, machine=machine(deleting=True))).steps == ()
    assert decide(deleted(resolution, children=LEFT)).steps == (DeleteChildren(LEFT),)
    going = (child(Slot.BOOTSTRAP, deleting=True),)
    assert decide(deleted(resolution, children=going)).steps == ()
    assert decide(deleted(resolution)).steps == (DropFinalizer(),)


@pytest.mark.contract("B3.2")
def test_a_killed_machine_goes_without_drain_also_when_deleted() -> None:
    plan = decide(deleted(machine=ready_machine(), spec=spec(kill_switch=True)))
    assert [type(step) for step in plan.steps] == [PatchMachine, DeleteMachine]


@pytest.mark.contract("B3.2")
@pytest.mark.parametrize(
    "changes",
    [
        {"machine_known": Known.UNKNOWN},
        {"children_known": Known.UNKNOWN},
        {"capi": replace(NO_CAPI, installed=Known.UNKNOWN)},
    ],
    ids=["machines", "children", "capi"],
)
def test_the_finalizer_stays_while_it_is_not_known_what_is_left(changes: dict[str, Any]) -> None:
    assert decide(deleted(**changes)).steps == ()


@pytest.mark.contract("B2.3")
def test_the_finalizer_stays_until_a_lost_status_was_made_up_for() -> None:
    plan = decide(deleted(stored=stored_status({})))
    assert (plan.ask, plan.steps) == (Question.LEFTOVERS, ())


@pytest.mark.contract("B3.4")
def test_without_cluster_api_the_finalizer_goes() -> None:
    plan = decide(
        deleted(capi=NO_CAPI, children_known=Known.UNKNOWN, stored=stored_status(status(machineRef={"uid": "m"})))
    )
    assert plan.steps == (DropFinalizer(),)


@pytest.mark.contract("B1.17")
def test_an_invalid_object_can_be_deleted() -> None:
    assert decide(deleted(spec=spec(problems=("broken",), bootstrap=None))).steps == (DropFinalizer(),)


# Over time ------------------------------------------------------------------------------------------------------

LIMIT = 600 + 2 * 300


@pytest.mark.contract("B3.3")
def test_a_deletion_within_its_time_says_nothing_and_wakes_at_the_limit() -> None:
    plan = decide(deleted(ago=LIMIT - 1, machine=machine(deleting=True)))
    assert (plan.overdue, plan.events, plan.wake) == (False, (), NOW + timedelta(seconds=1))


@pytest.mark.contract("B3.3")
def test_an_overdue_deletion_warns_once_and_waits_on() -> None:
    s = deleted(ago=LIMIT, machine=machine(deleting=True, deleting_message="PDB web"))
    plan = decide(s)
    assert (plan.overdue, plan.steps) == (True, ())
    (event,) = plan.events
    assert (event.reason, event.warning, event.once) == (FINALIZER_TIMEOUT, True, "sm-uid")
    assert "20 min" in event.message
    assert "PDB web" in event.message


@pytest.mark.contract("B3.3")
def test_the_limit_follows_the_drain_timeout() -> None:
    s = deleted(ago=LIMIT, machine=machine(deleting=True), spec=spec(drain_timeout=timedelta(minutes=6)))
    assert not decide(s).overdue
    assert decide(replace(s, spec=spec(drain_timeout=timedelta(0)))).overdue


@pytest.mark.contract("B3.3")
def test_status_changes_with_the_warning_so_that_it_is_told_and_only_then() -> None:
    s = deleted(ago=LIMIT, machine=machine(deleting=True))
    earlier = replace(s, now=NOW - timedelta(seconds=1))
    stored = build_status(earlier, decide(earlier))
    plan = decide(replace(s, stored=stored_status(stored)))
    assert merge_diff(stored, build_status(s, plan))
    assert any(n.reason == FINALIZER_TIMEOUT for n in status_events(s, plan, build_status(s, plan)))
    told = after(s, plan)
    assert merge_diff(told.stored.raw, judged(told)[1]) == {}


@pytest.mark.contract("B3.3")
def test_the_finalizer_is_forced_off_only_when_asked_for() -> None:
    s = deleted(ago=LIMIT, machine=machine(deleting=True))
    assert steps(decide(s), DropFinalizer) == []
    assert decide(replace(s, force_finalizer=True)).steps == (DropFinalizer(forced=True),)
    assert (
        steps(decide(deleted(ago=LIMIT - 1, machine=machine(deleting=True), force_finalizer=True)), DropFinalizer) == []
    )


@pytest.mark.contract("B3.3")
def test_a_living_object_is_never_overdue() -> None:
    plan = decide(snapshot(DOWN, machine=machine(deleting=True), force_finalizer=True))
    assert (plan.overdue, plan.steps) == (False, ())


@pytest.mark.parametrize("stamp", ["", "garbage", "2026-11-30T08:00:00"])
def test_a_deletion_time_that_cannot_be_read_delays_nothing_and_breaks_nothing(stamp: str) -> None:
    assert decide(deleted(head=head(deleted=stamp))).steps == (DropFinalizer(),)
    assert decide(deleted(head=head(deleted=stamp), machine=machine(deleting=True))).phase is Phase.SHUTTING_DOWN


@pytest.mark.contract("B3.3")
def test_status_says_that_a_deletion_takes_longer_than_it_should() -> None:
    s = deleted(head=head(deleted=at(hours=9)), machine=machine(deleting=True))
    assert "takes longer than it should" in build_status(s, decide(s))["message"]
    early = deleted(head=head(deleted=at(seconds=9)), machine=machine(deleting=True))
    assert "takes longer" not in build_status(early, decide(early))["message"]
