"""B8.3: so many deletions by schedule in any minute, first come, first served."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.deletion_limiter import DeletionLimiter
from fivespot.controllers.scheduledmachine.plan import DeleteMachine
from fivespot.runtime.objects import Key
from unit.controllers.build import DOWN, machine, snapshot, spec


def key(number: int) -> Key:
    return Key("prod", f"m{number}")


@pytest.mark.contract("B8.3")
def test_without_a_limit_nothing_waits() -> None:
    brake = DeletionLimiter(None)
    assert [brake.wait(key(number), 0.0) for number in range(100)] == [0.0] * 100


@pytest.mark.contract("B8.3")
def test_a_machine_keeps_its_turn_until_it_used_it() -> None:
    brake = DeletionLimiter(2)
    assert [brake.wait(key(number), 0.0) for number in range(5)] == [0.0, 0.0, 60.0, 60.0, 120.0]
    assert brake.wait(key(4), 100.0) == 20.0
    assert brake.wait(key(2), 61.0) == 0.0
    brake.release(key(2))
    assert brake.wait(key(2), 61.0) == 59.0


@pytest.mark.contract("B8.3")
@given(st.integers(1, 5), st.lists(st.floats(0, 30), min_size=1, max_size=60))
def test_no_minute_sees_more_deletions_than_the_limit(limit: int, gaps: list[float]) -> None:
    brake, now, begun = DeletionLimiter(limit), 0.0, []
    for number, gap in enumerate(gaps):
        now += gap
        begun.append(now + brake.wait(key(number), now))
    for start in begun:
        assert len([instant for instant in begun if start <= instant < start + 59.999]) <= limit


@pytest.mark.contract("B8.3")
def test_a_deletion_by_schedule_waits_for_its_turn_and_says_so() -> None:
    s = snapshot(DOWN, machine=machine(), spec=spec(grace=timedelta(0)), deletion_wait=12.0)
    plan = decide(s)
    assert (plan.phase.value, plan.reason) == ("ShuttingDown", "DeletionRateLimited")
    assert not [step for step in plan.steps if isinstance(step, DeleteMachine)]
    assert plan.wake is not None
    assert (plan.wake - s.now).total_seconds() == 12.0


@pytest.mark.contract("B8.3")
def test_the_kill_switch_does_not_wait() -> None:
    plan = decide(snapshot(DOWN, machine=machine(), spec=spec(kill_switch=True), deletion_wait=12.0))
    assert [step for step in plan.steps if isinstance(step, DeleteMachine)]
