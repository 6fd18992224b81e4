"""The queue against a naive model of it, metrics included, in virtual time."""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import dataclass, field

import looptime
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fivespot.runtime.clock import SystemClock
from fivespot.runtime.objects import Key
from fivespot.runtime.workqueue import Backoff, EntryState, WorkQueue

from .recorder import RecordingMetrics

BACKOFF = Backoff(base=1, factor=2, cap=8, jitter=0)
KEYS = st.builds(Key, st.sampled_from("abc"), st.sampled_from("123"))
PRIORITIES = st.one_of(st.none(), st.integers(-3, 3))


@dataclass
class Wish:
    """One pending request of the model."""

    priority: int
    order: int
    since: float


@dataclass
class Model:
    """The rules of the queue, written as plainly as possible and without regard to speed."""

    now: float = 0.0
    counter: int = 0
    wanted: dict[Key, Wish] = field(default_factory=dict)
    delayed: dict[Key, tuple[float, int, int]] = field(default_factory=dict)
    running: dict[Key, tuple[float, int]] = field(default_factory=dict)
    failed: dict[Key, tuple[int, int, float]] = field(default_factory=dict)
    rotation: list[str] = field(default_factory=list)
    adds: int = 0
    retries: int = 0
    waits: list[float] = field(default_factory=list)
    works: list[float] = field(default_factory=list)

    def ready(self) -> list[Key]:
        return [key for key in self.wanted if key not in self.running]

    def _pending_priority(self, key: Key, asked: int | None) -> int:
        if key in self.wanted or key in self.delayed:
            held = self.wanted[key].priority if key in self.wanted else self.delayed[key][2]
            return held if asked is None else max(held, asked)
        if asked is not None:
            return asked
        return self.running[key][1] if key in self.running else 0

    def _tidy(self) -> None:
        present = {key.namespace for key in self.ready()}
        self.rotation = [namespace for namespace in self.rotation if namespace in present]
        for key in sorted(self.ready(), key=lambda key: self.wanted[key].order):
            if key.namespace not in self.rotation:
                self.rotation.append(key.namespace)

    def add(self, key: Key, priority: int | None) -> None:
        priority = self._pending_priority(key, priority)
        self.delayed.pop(key, None)
        if key in self.wanted:
            self.wanted[key].priority = priority
            return
        self.counter += 1
        self.adds += 1
        self.wanted[key] = Wish(priority, self.counter, self.now)
        self._tidy()

    def add_after(self, key: Key, seconds: float, priority: int | None) -> None:
        if seconds <= 0:
            self.add(key, priority)
            return
        if seconds == math.inf:
            return
        priority = self._pending_priority(key, priority)
        due = self.now + seconds
        if key in self.wanted:
            self.wanted[key].priority = priority
            return
        self.counter += 1
        known = self.delayed.get(key)
        if known is not None and known[0] <= due:
            self.delayed[key] = (known[0], known[1], priority)
        else:
            self.delayed[key] = (due, self.counter, priority)

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        for due, _, key in sorted((due, order, key) for key, (due, order, _) in self.delayed.items()):
            if due <= end:
                self.now = due
                if key in self.failed and self.failed[key][2] <= due:
                    self.failed[key] = (*self.failed[key][:2], -math.inf)
                self.add(key, None)
        self.now = end

    def take(self) -> Key:
        namespace = self.rotation.pop(0)
        best = min(
            (key for key in self.ready() if key.namespace == namespace),
            key=lambda key: (-self.wanted[key].priority, self.wanted[key].order),
        )
        wish = self.wanted.pop(best)
        self.running[best] = (self.now, wish.priority)
        if any(key.namespace == namespace for key in self.ready()):
            self.rotation.append(namespace)
        self.waits.append(self.now - wish.since)
        return best

    def done(self, key: Key) -> None:
        self.works.append(self.now - self.running.pop(key)[0])
        self._tidy()

    def fail(self, key: Key, unreached: bool) -> float:
        count, misses, until = self.failed.get(key, (0, 0, -math.inf))
        if self.now >= until:
            count, misses = (count, misses + 1) if unreached else (count + 1, 0)
            until = self.now + (min(3.0, 2.0 ** (misses - 1)) if unreached else min(8.0, 2.0 ** (count - 1)))
            self.failed[key] = (count, misses, until)
        self.retries += 1
        self.add_after(key, until - self.now, None)
        return until - self.now


class QueueAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.new_event_loop(start=0)

    @initialize()
    def start(self) -> None:
        async def make() -> WorkQueue[Key]:
            return WorkQueue("model", clock=SystemClock(), rng=random.Random(0), backoff=BACKOFF, metrics=self.metrics)

        self.metrics = RecordingMetrics()
        self.model = Model()
        self.queue = self.loop.run_until_complete(make())

    def act(self, function: object, *args: object, **kwargs: object) -> object:
        async def run() -> object:
            return function(*args, **kwargs)  # type: ignore[operator]

        return self.loop.run_until_complete(run())

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: Key, priority: int | None) -> None:
        self.model.add(key, priority)
        self.act(self.queue.add, key, priority=priority)

    @rule(
        key=KEYS,
        seconds=st.one_of(st.integers(1, 12), st.sampled_from([0, -1, -math.inf, math.inf, 86_400 * 3653])),
        priority=PRIORITIES,
    )
    def add_after(self, key: Key, seconds: float, priority: int | None) -> None:
        self.model.add_after(key, seconds, priority)
        self.act(self.queue.add_after, key, seconds, priority=priority)

    @precondition(lambda self: self.model.ready())
    @rule()
    def take(self) -> None:
        expected = self.model.take()
        assert self.loop.run_until_complete(self.queue.get()) == expected

    @precondition(lambda self: self.model.running)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.running)))
        self.model.done(key)
        self.act(self.queue.done, key)

    @precondition(lambda self: self.model.running)
    @rule(data=st.data(), unreached=st.booleans())
    def fail(self, data: st.DataObject, unreached: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.running)))
        expected = self.model.fail(key, unreached)
        assert self.act(self.queue.add_rate_limited, key, unreached=unreached) == pytest.approx(expected)

    @rule(key=KEYS)
    def forget(self, key: Key) -> None:
        self.model.failed.pop(key, None)
        self.act(self.queue.forget, key)

    @rule(seconds=st.sampled_from([1, 2, 5, 13]))
    def advance(self, seconds: int) -> None:
        async def sleep() -> None:
            await asyncio.sleep(seconds)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        self.model.advance(seconds)
        self.loop.run_until_complete(sleep())

    @invariant()
    def depth_counts_ready_keys_only(self) -> None:
        assert len(self.queue) == len(self.model.ready())

    @invariant()
    def metrics_agree(self) -> None:
        assert self.metrics.adds == self.model.adds
        assert self.metrics.retries == self.model.retries
        assert self.metrics.waits == pytest.approx(self.model.waits)
        assert self.metrics.works == pytest.approx(self.model.works)

    @invariant()
    def snapshot_agrees(self) -> None:
        model = self.model
        snapshot = self.act(self.queue.snapshot)
        assert isinstance(snapshot, list)
        shown = {entry.key: entry for entry in snapshot}
        assert shown.keys() == model.wanted.keys() | model.delayed.keys() | model.running.keys()
        for key, entry in shown.items():
            if key in model.running:
                state = EntryState.RUNNING_AGAIN if key in model.wanted else EntryState.RUNNING
            else:
                state = EntryState.READY if key in model.wanted else EntryState.DELAYED
            assert entry.state is state
            assert entry.failures == sum(model.failed.get(key, (0, 0))[:2])
            if key in model.delayed:
                assert entry.due_in == pytest.approx(model.delayed[key][0] - model.now)
            else:
                assert entry.due_in is None
            if key in model.wanted:
                assert entry.priority == model.wanted[key].priority

    def teardown(self) -> None:
        self.queue.shut_down()
        self.loop.close()


TestQueueAgainstModel = QueueAgainstModel.TestCase
TestQueueAgainstModel.settings = settings(max_examples=120, stateful_step_count=40)
