"""B7: replacement is braked, and only lasting readiness takes the brake off."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fivespot.controllers.scheduledmachine.cluster_api import Known
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.plan import CreateChildren, DeleteMachine
from fivespot.controllers.scheduledmachine.snapshot import Answers, Slot, TemplateState
from fivespot.controllers.scheduledmachine.stored_status import ReplacementCount
from unit.controllers.build import (
    BLIND,
    DOWN,
    NOW,
    UP,
    adopted,
    after,
    at,
    child,
    judged,
    machine,
    machine_ref,
    ready_machine,
    refusal,
    snapshot,
    spec,
    steps,
    stored_status,
)


def braked(count: int, **ago: float) -> dict[str, Any]:
    return {"replacements": {"count": count, "lastTime": at(**ago), "uid": "m-0"}}


@pytest.mark.contract("B7.1")
@pytest.mark.parametrize(("count", "seconds"), [(1, 10), (2, 20), (3, 40), (7, 600), (50, 600)])
def test_a_replacement_waits_ten_seconds_doubling_to_ten_minutes(count: int, seconds: int) -> None:
    early = decide(snapshot(UP, stored=stored_status(**braked(count, seconds=seconds - 1))))
    assert (early.steps, early.wake) == ((), NOW + timedelta(seconds=1))
    assert str(count) in early.message
    assert steps(decide(snapshot(UP, stored=stored_status(**braked(count, seconds=seconds)))), CreateChildren)


@pytest.mark.contract("B7.1")
def test_each_loss_counts_and_doubles() -> None:
    s = snapshot(UP, stored=stored_status(machineRef=machine_ref(), **braked(2, hours=1)))
    plan, stored = judged(replace(s, answers=Answers(gone=frozenset({"m-1"}))))
    assert plan.replaced == ReplacementCount(3, NOW, "m-1")
    assert stored["replacements"] == {"count": 3, "lastTime": at(), "uid": "m-1"}
    assert plan.wake == NOW + timedelta(seconds=40)


@pytest.mark.contract("B7.1")
@pytest.mark.parametrize(
    "changes", [{"resolution": DOWN}, {"spec": spec(enabled=False)}, {"spec": spec(kill_switch=True)}]
)
def test_the_verdict_flipping_does_not_reset_the_brake(changes: dict[str, Any]) -> None:
    s = snapshot(**{"resolution": UP} | changes, stored=stored_status(**braked(4, hours=5)))
    for world in (s.world, replace(s.world, machine=ready_machine())):
        assert judged(replace(s, world=world))[1]["replacements"]["count"] == 4


@pytest.mark.contract("B7.1")
def test_ten_minutes_of_readiness_take_the_brake_off() -> None:
    ready = ready_machine(ready_since=NOW - timedelta(minutes=10))
    _, stored = judged(snapshot(UP, machine=ready, stored=stored_status(**braked(4, hours=1))))
    assert "replacements" not in stored


@pytest.mark.contract("B7.1")
@pytest.mark.parametrize(
    ("found", "last", "wake"),
    [
        (ready_machine(ready_since=NOW - timedelta(minutes=9)), {"hours": 1.0}, timedelta(minutes=1)),
        (ready_machine(ready_since=NOW - timedelta(hours=1)), {"minutes": 9.0}, timedelta(minutes=1)),
        (ready_machine(ready_since=None), {"minutes": 9.0}, timedelta(minutes=1)),
        (machine(), {"hours": 1.0}, None),
    ],
    ids=["not-long-ready", "counted-since", "ready-since-unknown", "not-ready"],
)
def test_nothing_less_takes_it_off(found: Any, last: dict[str, float], wake: timedelta | None) -> None:
    plan, stored = judged(snapshot(UP, machine=found, stored=stored_status(**braked(4, **last))))
    assert stored["replacements"]["count"] == 4
    assert plan.wake == (None if wake is None else NOW + wake)


@pytest.mark.contract("B7.1")
def test_a_clock_that_was_set_back_does_not_stretch_the_wait() -> None:
    s = snapshot(UP, stored=stored_status(**braked(1, days=-365)))
    plan = decide(s)
    assert (plan.steps, plan.wake) == ((), NOW + timedelta(seconds=10))
    later = replace(after(s, plan), now=NOW + timedelta(seconds=10))
    assert steps(decide(later), CreateChildren)


@pytest.mark.contract("B7.1")
def test_a_brake_without_a_time_holds_nothing() -> None:
    stored = {"replacements": {"count": 3, "uid": "m-0"}}
    assert steps(decide(snapshot(UP, stored=stored_status(**stored))), CreateChildren)


BOOTSTRAP, INFRASTRUCTURE = adopted()


@pytest.mark.contract("B1.6")
@pytest.mark.parametrize(
    ("phase", "children", "named"),
    [
        ("", (INFRASTRUCTURE,), "StandInBootstrap web-1"),
        ("Pending", (), "StandInBootstrap web-1"),
        ("Pending", (BOOTSTRAP,), "StandInMachine web-1"),
        ("Provisioning", (BOOTSTRAP,), "StandInMachine web-1"),
        ("Provisioning", (), "StandInMachine web-1"),
    ],
)
def test_a_machine_whose_objects_are_gone_before_it_began_is_deleted_and_replaced(
    phase: str, children: Any, named: str
) -> None:
    found = machine(phase=phase)
    plan, stored = judged(snapshot(UP, machine=found, children=children, stored=stored_status(**braked(1, hours=1))))
    assert plan.steps == (DeleteMachine(found),)
    assert named in plan.message
    assert (stored["phase"], stored["replacements"]["count"], plan.replacement) == ("ShuttingDown", 2, "Lost")
    # Counted once, also when the deletion has to be asked for again and while it goes on.
    again = snapshot(UP, machine=machine(phase=phase, deleting=True), children=children, stored=stored_status(stored))
    assert judged(again)[1]["replacements"]["count"] == 2


@pytest.mark.contract("B1.2")
@pytest.mark.parametrize(
    "changes",
    [
        {"machine": machine(phase="Provisioning"), "children": (INFRASTRUCTURE,)},
        {"machine": machine(phase="Provisioned"), "children": ()},
        {"machine": machine(phase="Running"), "children": ()},
        {"machine": machine(phase="Pending", provider_id="x://1"), "children": ()},
        {"machine": machine(phase="Pending", node="node-1"), "children": ()},
        {"machine": machine(phase="Pending"), "children": (child(Slot.BOOTSTRAP, deleting=True), INFRASTRUCTURE)},
        {"machine": machine(phase="Pending"), "children": (child(Slot.BOOTSTRAP, ours=False), INFRASTRUCTURE)},
        {"machine": machine(phase="Pending"), "children": (), "children_known": Known.UNKNOWN},
        {"machine": machine(phase="Pending"), "children": (), "templates": TemplateState(Known.NO, "not installed")},
        {"machine": machine(phase="Pending"), "children": (), "templates": TemplateState(Known.UNKNOWN, "not read")},
        {"machine": machine(phase="Pending", bootstrap=None), "children": (INFRASTRUCTURE,)},
        {"machine": machine(phase="Pending"), "children": (), "spec": spec(bootstrap=None, infrastructure=None)},
    ],
    ids=[
        "data-were-made",
        "provisioned",
        "running",
        "has-provider-id",
        "has-node",
        "still-going",
        "somebody-elses",
        "not-read",
        "kind-not-served",
        "kind-unknown",
        "data-given",
        "template-unreadable",
    ],
)
def test_a_machine_that_runs_or_may_yet_begin_is_left_alone(changes: dict[str, Any]) -> None:
    plan = decide(snapshot(UP, **changes))
    assert not steps(plan, DeleteMachine)
    assert plan.phase == "Active"


@pytest.mark.contract("A15", "B1.6")
def test_nothing_is_deleted_that_could_not_be_made_again_now() -> None:
    s = snapshot(BLIND, machine=machine(phase="Pending"), children=(), unreadable_for=90.0)
    assert not decide(s).steps


@pytest.mark.contract("B1.6")
def test_a_refused_deletion_of_such_a_machine_is_not_repeated_before_it_is_due() -> None:
    s = snapshot(UP, machine=machine(phase="Pending"), children=(), refusal=refusal())
    assert (decide(s).steps, decide(s).phase) == ((), "Error")


@pytest.mark.contract("B7.1")
@pytest.mark.parametrize("minutes", [1, 30])
def test_a_clock_that_is_set_back_does_not_stretch_the_brake(minutes: int) -> None:
    later = {"count": 1, "lastTime": at(minutes=-minutes), "uid": "m-0"}
    plan = decide(snapshot(UP, stored=stored_status(replacements=later)))
    assert plan.wake is not None
    assert (plan.wake - NOW).total_seconds() <= 11


@pytest.mark.contract("B1.3")
def test_our_own_drain_is_no_loss_when_the_schedule_opens_again() -> None:
    going = snapshot(DOWN, machine=machine(deleting=True), stored=stored_status(machineRef=machine_ref()))
    again = after(going, decide(going), world=replace(going.world, resolution=UP))
    assert decide(again).replaced.count == 0
