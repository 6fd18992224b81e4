"""The work queue in virtual time: waiting, delays, order, shutdown."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from functools import partial

import pytest

from fivespot.runtime.clock import SystemClock
from fivespot.runtime.errors import QueueShutDownError
from fivespot.runtime.objects import Key
from fivespot.runtime.workqueue import Backoff, EntryState, WorkQueue

from .recorder import RecordingMetrics

pytestmark = pytest.mark.looptime

A, B, C = Key("one", "a"), Key("one", "b"), Key("two", "c")
YEARS = 10 * 365.25 * 86_400


def make(**settings: object) -> WorkQueue[Key]:
    return WorkQueue("test", clock=SystemClock(), rng=random.Random(1), **settings)  # type: ignore[arg-type]


def now() -> float:
    return asyncio.get_running_loop().time()


async def drain(queue: WorkQueue[Key]) -> list[Key]:
    keys = []
    while len(queue):
        keys.append(await queue.get())
    for key in keys:
        queue.done(key)
    return keys


async def test_a_key_added_many_times_is_taken_once() -> None:
    metrics = RecordingMetrics()
    queue = make(metrics=metrics)
    for _ in range(5):
        queue.add(A)
    assert await drain(queue) == [A]
    assert metrics.adds == 1


async def test_a_key_added_while_it_runs_is_not_handed_out_twice_at_a_time_but_runs_again() -> None:
    queue = make()
    queue.add(A)
    key = await queue.get()
    queue.add(A)
    assert len(queue) == 0
    assert queue.snapshot()[0].state is EntryState.RUNNING_AGAIN
    queue.done(key)
    assert await queue.get() == A
    queue.done(A)
    assert queue.snapshot() == []


async def test_namespaces_take_turns_whatever_their_size_and_priority() -> None:
    queue = make()
    for index in range(100):
        queue.add(Key("large", f"{index:03}"), priority=100)
    queue.add(Key("small", "x"))
    queue.add(Key("tiny", "y"))
    order = await drain(queue)
    assert [key.namespace for key in order[:4]] == ["large", "small", "tiny", "large"]
    assert [key.name for key in order if key.namespace == "large"] == [f"{index:03}" for index in range(100)]


async def test_within_a_namespace_the_highest_priority_goes_first_then_the_oldest() -> None:
    queue = make()
    for name, priority in (("old-low", 1), ("low", 1), ("high", 7), ("negative", -2)):
        queue.add(Key("n", name), priority=priority)
    assert [key.name for key in await drain(queue)] == ["high", "old-low", "low", "negative"]


async def test_a_higher_priority_moves_a_ready_key_forward_and_a_lower_one_does_not_move_it_back() -> None:
    queue = make()
    queue.add(A)
    queue.add(B)
    queue.add(B, priority=3)
    queue.add(B, priority=-9)
    assert await drain(queue) == [B, A]


async def test_priority_raises_leave_no_growing_garbage() -> None:
    queue = make()
    for priority in range(5000):
        queue.add(A, priority=priority)
    assert len(queue._core._turns["one"].heap) < 40
    for index in range(5000):
        queue.add_after(B, 1e9 - index)
    assert len(queue._core._delayed) < 40
    assert await drain(queue) == [A]


async def test_the_earliest_of_several_delays_wins() -> None:
    queue = make()
    for seconds in (30, 10, 20):
        queue.add_after(A, seconds)
    assert queue.snapshot()[0].due_in == pytest.approx(10)
    assert await queue.get() == A
    assert now() == pytest.approx(10)
    queue.done(A)
    await asyncio.sleep(60)
    assert len(queue) == 0


async def test_an_add_stands_for_a_pending_delay() -> None:
    queue = make()
    queue.add_after(A, 10, priority=4)
    queue.add(A, priority=1)
    assert queue.snapshot()[0].priority == 4
    assert await drain(queue) == [A]
    await asyncio.sleep(60)
    assert len(queue) == 0


async def test_a_delay_that_ends_while_the_key_runs_makes_it_run_again() -> None:
    queue = make()
    queue.add(A)
    await queue.get()
    queue.add_after(A, 5)
    await asyncio.sleep(6)
    assert len(queue) == 0
    queue.done(A)
    assert await drain(queue) == [A]


@pytest.mark.parametrize("seconds", [0, -1, -math.inf])
async def test_a_delay_of_nothing_or_less_is_now(seconds: float) -> None:
    queue = make()
    queue.add_after(A, seconds)
    assert len(queue) == 1


async def test_an_infinite_delay_never_ends_and_holds_nothing() -> None:
    queue = make()
    queue.add_after(A, math.inf)
    assert queue.snapshot() == []


async def test_a_delay_that_is_no_number_is_refused() -> None:
    queue = make()
    with pytest.raises(ValueError, match="not a number"):
        queue.add_after(A, math.nan)
    assert queue.snapshot() == []


async def test_a_delay_of_ten_years_ends_after_ten_years() -> None:
    """kube-rs/kube#1772, #1489: far delays overflowed."""
    # Beyond 194 days a float of seconds cannot hold the loop's own resolution of a nanosecond, and a virtual clock
    # that stands exactly on a timer would never reach it; a real clock moves on by itself.
    asyncio.get_running_loop()._clock_resolution = 1e-6  # type: ignore[attr-defined]
    queue = make()
    started = now()
    queue.add_after(A, YEARS)
    assert await queue.get() == A
    assert now() - started == pytest.approx(YEARS)


async def test_thousands_of_delays_that_end_together_are_all_served_in_slices() -> None:
    queue = make()
    for index in range(10_000):
        queue.add_after(Key(f"n{index % 7}", str(index)), 60)
    await asyncio.sleep(59)
    assert len(queue) == 0
    await asyncio.sleep(2)
    assert len(queue) == 10_000
    assert len(set(await drain(queue))) == 10_000


async def test_back_off_grows_per_key_and_forget_starts_it_anew() -> None:
    queue = make(backoff=Backoff(base=1, jitter=0))
    for expected in (1, 2, 4, 8):
        queue.add(B)
        started = now()
        assert queue.add_rate_limited(A) == expected
        assert await queue.get() == B
        queue.done(B)
        assert await queue.get() == A
        assert now() - started == pytest.approx(expected)
        queue.done(A)
    assert (queue.failures(A), queue.failures(B)) == (4, 0)
    queue.forget(A)
    assert queue.add_rate_limited(A) == 1


async def test_events_run_a_failing_key_at_once_but_change_neither_its_count_nor_its_deadline() -> None:
    """java-operator-sdk#3380, #3525: busy events burned the retry budget."""
    queue = make(backoff=Backoff(base=1, jitter=0))
    runs = []

    async def fail_always() -> None:
        while True:
            key = await queue.get()
            runs.append((round(now(), 3), queue.failures(key)))
            queue.add_rate_limited(key)
            queue.done(key)

    async with asyncio.TaskGroup() as group:
        worker = group.create_task(fail_always())
        started = now()
        for _ in range(69):
            queue.add(A)
            await asyncio.sleep(0.1)
        worker.cancel()
    # Failures at 0, 1, 3 seconds count; in 6.9 s the third deadline (7 s) is not reached.
    assert queue.failures(A) == 3
    assert queue.snapshot()[0].due_in == pytest.approx(started + 7 - now(), abs=0.001)
    assert len(runs) >= 69


async def test_a_deadline_that_the_timer_served_counts_even_when_the_run_takes_no_time() -> None:
    queue = make(backoff=Backoff(base=0.005, jitter=0.2))
    queue.add(A)
    for expected in range(1, 25):
        await queue.get()
        queue.add_rate_limited(A)
        queue.done(A)
        assert queue.failures(A) == expected


async def test_a_retry_keeps_the_priority_of_its_run_and_a_new_request_may_lower_it() -> None:
    queue = make()
    queue.add(A, priority=5)
    await queue.get()
    queue.add_rate_limited(A)
    queue.done(A)
    await queue.get()
    assert queue.snapshot()[0].priority == 5
    queue.add_after(A, 1, priority=2)
    queue.done(A)
    assert queue.snapshot()[0].priority == 2


async def test_metrics_tell_waits_works_and_what_is_unfinished() -> None:
    metrics = RecordingMetrics()
    queue = make(metrics=metrics, backoff=Backoff(base=8, jitter=0))
    queue.add(A)
    await asyncio.sleep(2)
    key = await queue.get()
    await asyncio.sleep(3)
    assert metrics.queue is queue
    assert queue.unfinished() == pytest.approx([3])
    queue.add_rate_limited(key)
    queue.done(key)
    await queue.get()
    assert metrics.waits == pytest.approx([2, 0])
    assert metrics.works == pytest.approx([3])
    assert (metrics.adds, metrics.retries) == (2, 1)


async def test_handing_back_what_was_not_taken_is_an_error() -> None:
    queue = make()
    with pytest.raises(ValueError, match="one/a was not taken"):
        queue.done(A)
    queue.add(A)
    with pytest.raises(ValueError, match="was not taken"):
        queue.done(A)


async def test_each_of_three_keys_readded_while_another_runs_gets_its_turn() -> None:
    """kube-rs/kube#1324: under a concurrency limit keys vanished."""
    queue = make()
    for key in (A, B, C):
        queue.add(key)
    runs: list[Key] = []
    for _ in range(30):
        key = await queue.get()
        runs.append(key)
        for other in (A, B, C):
            queue.add(other)
        queue.done(key)
    assert {key: runs.count(key) for key in (A, B, C)} == {A: 8, B: 7, C: 15}


@pytest.mark.parametrize("seed", range(25))
async def test_shutdown_wakes_every_getter_at_whatever_moment(seed: int) -> None:
    """controller-runtime#3538, #3239: a getter waited for ever after the shutdown."""
    rng = random.Random(seed)
    for _ in range(40):
        queue = make()
        ended = 0

        async def getter(queue: WorkQueue[Key] = queue, pause: float = rng.choice([0, 0.1])) -> None:
            nonlocal ended
            try:
                while True:
                    key = await queue.get()
                    await asyncio.sleep(pause)
                    queue.done(key)
            except QueueShutDownError:
                ended += 1

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(getter())
            for _ in range(rng.randrange(30)):
                queue.add(Key(rng.choice("xyz"), rng.choice("123456")))
                if rng.random() < 0.3:
                    await asyncio.sleep(rng.choice([0, 0, 0.1]))
            queue.shut_down()
            queue.shut_down()
        assert ended == 20


async def test_a_closed_queue_takes_nothing_gives_nothing_and_holds_no_timer() -> None:
    queue = make()
    queue.add(A)
    queue.add_after(B, 5)
    queue.shut_down()
    queue.add(C)
    queue.add_after(C, 1)
    assert queue.add_rate_limited(C) == 0
    with pytest.raises(QueueShutDownError, match="queue test is shut down"):
        await queue.get()
    await asyncio.sleep(10)
    assert len(queue) == 1


async def test_a_reopened_queue_starts_empty() -> None:
    queue = make()
    queue.add(A)
    queue.add_rate_limited(B)
    with pytest.raises(RuntimeError, match="still in use"):
        queue.reopen()
    await queue.get()
    queue.shut_down()
    with pytest.raises(RuntimeError, match="still in use"):
        queue.reopen()
    queue.done(A)
    queue.reopen()
    assert (queue.snapshot(), queue.failures(B), queue.closed) == ([], 0, False)
    queue.add(C)
    assert await drain(queue) == [C]


async def test_a_getter_that_is_cancelled_passes_its_wake_up_on() -> None:
    queue = make()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add(A)
    first.cancel()
    assert await second == A
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_timeout_that_races_with_an_add_loses_no_key() -> None:
    """The fault of ``wait_for(queue.get(), t)``: the key was taken and the timeout raised (kopf's queueing notes)."""
    rng = random.Random(54)
    queue = make()
    timed_out = 0
    for number in range(3_000):
        key = Key("n", str(number))
        delay = rng.choice([0.9, 1.0, 1.0, 1.0, 1.1])
        if rng.random() < 0.5:
            asyncio.get_running_loop().call_later(delay, queue.add, key)
        else:
            queue.add_after(key, delay)
        try:
            async with asyncio.timeout(1.0):
                taken = await queue.get()
        except TimeoutError:
            timed_out += 1
            taken = await queue.get()
        assert taken == key
        queue.done(key)
    assert 600 < timed_out < 2_700
    assert not queue._waiters


async def test_a_cancellation_that_races_with_an_add_loses_no_key_and_stops_no_other_getter() -> None:
    rng = random.Random(55)
    queue = make()
    taken: list[Key] = []

    served = asyncio.Event()

    async def take_one() -> None:
        key = await queue.get()
        taken.append(key)
        queue.done(key)
        served.set()

    for number in range(10_000):
        first = asyncio.create_task(take_one())
        second = asyncio.create_task(take_one())
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)
        actions: list[Callable[[], object]] = [first.cancel, partial(queue.add, Key("n", str(number)))]
        rng.shuffle(actions)
        for action in actions:
            action()
            for _ in range(rng.choice([0, 0, 1])):
                await asyncio.sleep(0)
        await served.wait()
        served.clear()
        second.cancel()
        await asyncio.wait([first, second])
    assert [key.name for key in taken] == [str(number) for number in range(10_000)]
    assert not queue._waiters


async def test_somebody_elses_wish_to_wait_counts_up_to_the_cap() -> None:
    queue = make(backoff=Backoff(base=1, cap=60, jitter=0))
    assert queue.add_rate_limited(A, at_least=0.5) == 1
    assert queue.add_rate_limited(B, at_least=40) == 40
    assert queue.add_rate_limited(C, at_least=86_400) == 60
