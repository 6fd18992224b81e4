"""B7: replacement is braked, and only lasting readiness takes the brake off."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.memory import Replaced
from fivespot.controllers.scheduledmachine.model import Answers
from fivespot.controllers.scheduledmachine.plan import CreateChildren
from unit.controllers.build import (
    DOWN,
    NOW,
    UP,
    after,
    at,
    judged,
    machine,
    machine_ref,
    memory,
    ready_machine,
    snapshot,
    spec,
    steps,
)


def braked(count: int, **ago: float) -> dict[str, Any]:
    return {"replacements": {"count": count, "lastTime": at(**ago), "uid": "m-0"}}


@pytest.mark.parametrize(("count", "seconds"), [(1, 10), (2, 20), (3, 40), (7, 600), (50, 600)])
def test_b7_1_a_replacement_waits_ten_seconds_doubling_to_ten_minutes(count: int, seconds: int) -> None:
    early = decide(snapshot(UP, memory=memory(**braked(count, seconds=seconds - 1))))
    assert (early.steps, early.wake) == ((), NOW + timedelta(seconds=1))
    assert str(count) in early.message
    assert steps(decide(snapshot(UP, memory=memory(**braked(count, seconds=seconds)))), CreateChildren)


def test_b7_1_each_loss_counts_and_doubles() -> None:
    s = snapshot(UP, memory=memory(machineRef=machine_ref(), **braked(2, hours=1)))
    plan, stored = judged(replace(s, answers=Answers(gone=frozenset({"m-1"}))))
    assert plan.replaced == Replaced(3, NOW, "m-1")
    assert stored["replacements"] == {"count": 3, "lastTime": at(), "uid": "m-1"}
    assert plan.wake == NOW + timedelta(seconds=40)


@pytest.mark.parametrize(
    "changes", [{"reading": DOWN}, {"spec": spec(enabled=False)}, {"spec": spec(kill_switch=True)}]
)
def test_b7_1_the_verdict_flipping_does_not_reset_the_brake(changes: dict[str, Any]) -> None:
    s = snapshot(**{"reading": UP} | changes, memory=memory(**braked(4, hours=5)))
    for world in (s.world, replace(s.world, machine=ready_machine())):
        assert judged(replace(s, world=world))[1]["replacements"]["count"] == 4


def test_b7_1_ten_minutes_of_readiness_take_the_brake_off() -> None:
    ready = ready_machine(ready_since=NOW - timedelta(minutes=10))
    _, stored = judged(snapshot(UP, machine=ready, memory=memory(**braked(4, hours=1))))
    assert "replacements" not in stored


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
def test_b7_1_nothing_less_takes_it_off(found: Any, last: dict[str, float], wake: timedelta | None) -> None:
    plan, stored = judged(snapshot(UP, machine=found, memory=memory(**braked(4, **last))))
    assert stored["replacements"]["count"] == 4
    assert plan.wake == (None if wake is None else NOW + wake)


def test_b7_1_a_clock_that_was_set_back_does_not_stretch_the_wait() -> None:
    s = snapshot(UP, memory=memory(**braked(1, days=-365)))
    plan = decide(s)
    assert (plan.steps, plan.wake) == ((), NOW + timedelta(seconds=10))
    later = replace(after(s, plan), now=NOW + timedelta(seconds=10))
    assert steps(decide(later), CreateChildren)


def test_b7_1_a_brake_without_a_time_holds_nothing() -> None:
    stored = {"replacements": {"count": 3, "uid": "m-0"}}
    assert steps(decide(snapshot(UP, memory=memory(**stored))), CreateChildren)
