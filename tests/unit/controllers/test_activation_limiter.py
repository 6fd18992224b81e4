"""B8.4: limits on activations an hour, for a machine and a namespace, and on the machines of a namespace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.controllers.scheduledmachine.activation_limiter import ActivationLimiter, ActivationLimits, Exceeded
from fivespot.runtime import Key

pytestmark = pytest.mark.contract("B8.4")

A, B, C = Key("one", "a"), Key("one", "b"), Key("two", "c")


class Fleet:
    """Machines that are created and deleted, on a clock that is moved by hand."""

    def __init__(self, **limits: int) -> None:
        self.now = 10_000.0
        self.woken: list[Key] = []
        self.machines: set[Key] = set()
        self.limiter = ActivationLimiter(ActivationLimits(**limits), lambda key, after: self.woken.append(key))

    def count(self, key: Key) -> int:
        return sum(found.namespace == key.namespace for found in self.machines)

    def ask(self, key: Key) -> Exceeded | None:
        return self.limiter.exceeded(key, self.now, lambda: self.count(key))

    def create(self, key: Key) -> Exceeded | None:
        found = self.ask(key)
        if found is None:
            self.machines.add(key)
            self.limiter.used(key, self.now)
        return found

    def delete(self, key: Key) -> None:
        self.machines.discard(key)
        self.limiter.release(key)
        self.limiter.offer(key, lambda: self.count(key))


def test_without_limits_nothing_is_held_and_nothing_remembered() -> None:
    fleet = Fleet()
    for _ in range(100):
        assert fleet.create(A) is None
    assert len(fleet.limiter) == 0


def test_a_machine_is_held_until_its_oldest_activation_is_an_hour_old() -> None:
    fleet = Fleet(per_machine=2)
    assert fleet.create(A) is None
    fleet.now += 600
    assert fleet.create(A) is None
    fleet.now += 60
    assert fleet.create(A) == Exceeded("per_machine", 2, 2940)
    assert fleet.create(B) is None, "another machine has its own"
    fleet.now += 2940
    assert fleet.create(A) is None
    assert fleet.create(A) == Exceeded("per_machine", 2, 600)


def test_a_namespace_is_held_and_another_is_not() -> None:
    fleet = Fleet(per_namespace=2)
    assert (fleet.create(A), fleet.create(B)) == (None, None)
    assert fleet.create(A) == Exceeded("per_namespace", 2, 3600)
    assert fleet.create(C) is None


def test_creations_under_way_count() -> None:
    for limits in ({"per_namespace": 1}, {"machines": 1}):
        fleet = Fleet(**limits)
        assert fleet.ask(A) is None
        assert fleet.ask(B) is not None
        assert fleet.ask(A) is None, "it has its place already"
        fleet.limiter.release(A)
        assert fleet.ask(B) is None


def test_a_machine_that_waits_for_room_is_woken_once_there_is_some() -> None:
    fleet = Fleet(machines=1)
    fleet.create(A)
    assert fleet.create(B) == Exceeded("machines", 1, None)
    fleet.limiter.offer(A, lambda: fleet.count(A))
    assert fleet.woken == []
    fleet.delete(A)
    assert fleet.woken == [B]
    fleet.limiter.offer(A, lambda: fleet.count(A))
    assert fleet.woken == [B], "woken once"
    assert fleet.create(B) is None


def test_what_is_not_wanted_any_more_is_not_woken() -> None:
    fleet = Fleet(machines=1)
    fleet.create(A)
    fleet.create(B)
    fleet.limiter.release(B)
    fleet.delete(A)
    assert fleet.woken == []


def test_a_new_term_begins_with_the_known_creations() -> None:
    fleet = Fleet(per_machine=1)
    fleet.limiter.begin_term([(A, fleet.now - 3000), (B, fleet.now - 3601)])
    assert fleet.create(A) == Exceeded("per_machine", 1, 600)
    assert fleet.create(B) is None


def test_an_object_that_is_made_again_under_its_name_has_no_new_allowance() -> None:
    fleet = Fleet(per_machine=1)
    fleet.create(A)
    fleet.delete(A)
    assert fleet.create(A) is not None


@given(
    steps=st.lists(st.tuples(st.sampled_from([A, B, C]), st.floats(0, 1500), st.booleans()), max_size=60),
    per_machine=st.integers(1, 3),
    per_namespace=st.integers(1, 4),
    machines=st.integers(1, 2),
)
def test_no_hour_and_no_instant_exceeds_a_limit(
    steps: list[tuple[Key, float, bool]], per_machine: int, per_namespace: int, machines: int
) -> None:
    fleet = Fleet(per_machine=per_machine, per_namespace=per_namespace, machines=machines)
    created: list[tuple[float, Key]] = []
    for key, seconds, up in steps:
        fleet.now += seconds
        if not up or key in fleet.machines:
            fleet.delete(key)
            continue
        held = fleet.create(key)
        if held is None:
            created.append((fleet.now, key))
        lately = [made for at, made in created if at > fleet.now - 3600]
        assert lately.count(key) <= per_machine
        assert sum(made.namespace == key.namespace for made in lately) <= per_namespace
        assert fleet.count(key) <= machines
        assert held is None or held.wait is None or 0 < held.wait <= 3600
    fleet.now += 3700
    fleet.machines.clear()
    assert fleet.create(A) is None, "every hold by the hour ends"
