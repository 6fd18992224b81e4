"""B8.3: turns of deletions by schedule, in rotation between namespaces, given back where they are not used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.controllers.scheduledmachine.deletion_limiter import DeletionLimiter
from fivespot.runtime import Key

pytestmark = pytest.mark.contract("B8.3")


class Fleet:
    """Machines that ask for their turn when they are told to, on a clock that is moved by hand."""

    def __init__(self, per_minute: int | None) -> None:
        self.now = 1000.0
        self.due: dict[Key, float] = {}
        self.limiter = DeletionLimiter(per_minute, self._wake)
        self.begun: list[tuple[float, Key]] = []

    def _wake(self, key: Key, seconds: float) -> None:
        self.due[key] = min(self.due.get(key, self.now + seconds), self.now + seconds)

    def ask(self, key: Key) -> float:
        """Ask once; the wait."""
        wait = self.limiter.wait(key, self.now)
        if wait > 0:
            self.due[key] = self.now + wait
        return wait

    def want(self, *keys: Key) -> None:
        for key in keys:
            self.due[key] = self.now

    def leave(self, key: Key) -> None:
        self.due.pop(key, None)
        self.limiter.release(key, self.now)

    def run(self, seconds: float, *, failing: float = 0.0) -> None:
        """Let everybody ask in time. Deletions that are sent before ``failing`` is over are refused."""
        end, works = self.now + seconds, self.now + failing
        while self.due and min(self.due.values()) <= end:
            key = min(self.due, key=lambda k: (self.due[k], k))
            self.now = max(self.now, self.due.pop(key))
            if self.ask(key) > 0:
                continue
            if self.now < works:
                self.limiter.release(key, self.now)
                self.due[key] = self.now + 10.0
            else:
                self.limiter.used(key, self.now)
                self.begun.append((self.now, key))
        self.now = end

    def most_in_a_minute(self) -> int:
        at = [when for when, _ in self.begun]
        return max((sum(start <= other < start + 60.0 for other in at) for start in at), default=0)


def keys(namespace: str, count: int) -> list[Key]:
    return [Key(namespace, f"m-{number}") for number in range(count)]


def test_without_a_limit_nobody_waits_and_nothing_is_remembered() -> None:
    fleet = Fleet(None)
    assert [fleet.ask(key) for key in keys("a", 50)] == [0.0] * 50
    assert len(fleet.limiter) == 0


def test_no_more_begin_in_any_minute_and_each_is_told_when() -> None:
    fleet = Fleet(2)
    assert [fleet.ask(key) for key in keys("a", 6)] == [0.0, 0.0, 60.0, 60.0, 120.0, 120.0]
    fleet = Fleet(2)
    fleet.want(*keys("a", 6))
    fleet.run(300)
    assert [round(at - 1000) for at, _ in fleet.begun] == [0, 0, 60, 60, 120, 120]


def test_a_namespace_with_many_machines_does_not_starve_another() -> None:
    fleet = Fleet(1)
    fleet.want(*keys("many", 60))
    fleet.run(1)
    fleet.want(Key("one", "m"))
    fleet.run(125)
    assert Key("one", "m") in [key for _, key in fleet.begun]


def test_turns_of_machines_that_are_wanted_again_go_to_the_next() -> None:
    fleet = Fleet(1)
    fleet.want(*keys("a", 60))
    fleet.run(5)
    for key in keys("a", 60):
        fleet.leave(key)
    fleet.run(600)
    assert fleet.ask(Key("b", "late")) == 0.0


def test_who_moves_up_is_told_and_goes_earlier_than_announced() -> None:
    fleet = Fleet(1)
    fleet.want(*keys("a", 30))
    fleet.run(1)
    last = Key("b", "last")
    fleet.want(*keys("b", 20), last)
    fleet.run(1)
    for key in [*keys("a", 30), *keys("b", 20)]:
        fleet.leave(key)
    fleet.run(70)
    assert fleet.begun[-1][1] == last


def test_deletions_that_fail_use_no_turn_and_do_not_add_up() -> None:
    fleet = Fleet(1)
    fleet.want(*keys("a", 10))
    fleet.run(599, failing=600)
    assert not fleet.begun
    fleet.run(300)
    assert fleet.most_in_a_minute() == 1
    assert len(fleet.begun) >= 4


def test_a_new_leader_counts_the_deletions_of_the_one_before() -> None:
    fleet = Fleet(3)
    fleet.limiter.begin_term([fleet.now - 10, fleet.now - 20, fleet.now - 30, fleet.now - 300])
    fleet.want(*keys("a", 4))
    fleet.run(29)
    assert not fleet.begun
    fleet.run(2)
    assert len(fleet.begun) == 1
    fleet.run(60)
    assert len(fleet.begun) == 4


def test_a_turn_that_nobody_takes_goes_to_the_next_in_the_namespace() -> None:
    fleet = Fleet(1)
    first, absent, other = keys("a", 3)
    fleet.want(first)
    fleet.run(1)
    fleet.ask(absent)
    del fleet.due[absent]
    fleet.want(other)
    fleet.run(200)
    assert fleet.begun[-1][1] == other


@given(
    limit=st.integers(1, 4),
    arrivals=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=25),
    leaving=st.lists(st.integers(0, 24), max_size=8),
)
def test_the_limit_holds_and_everybody_goes(limit: int, arrivals: list[tuple[int, int]], leaving: list[int]) -> None:
    fleet = Fleet(limit)
    wanted = [Key(f"ns-{ns}", f"m-{number}") for number, (ns, _) in enumerate(arrivals)]
    for key, (_, gap) in zip(wanted, arrivals, strict=True):
        fleet.want(key)
        fleet.run(gap)
    gone = {wanted[index] for index in leaving if index < len(wanted)} - {key for _, key in fleet.begun}
    for key in sorted(gone):
        fleet.leave(key)
    fleet.run(60.0 * (len(wanted) + 3))
    assert {key for _, key in fleet.begun} == set(wanted) - gone
    assert fleet.most_in_a_minute() <= limit
    assert len(fleet.limiter) == 0
