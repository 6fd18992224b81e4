"""The controller in virtual time: start, runs, repeats, failures, stop."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest
import structlog

from fivespot.runtime.clock import SystemClock
from fivespot.runtime.errors import (
    ConflictError,
    ConnectError,
    ForbiddenError,
    NotLeaderError,
    StaleReadError,
    TerminalError,
    ThrottledError,
    TransportError,
)
from fivespot.runtime.objects import Change, ChangeType, Key, KindAbsent, KindUnknown, current_writer
from fivespot.runtime.reconcile import DONE, Controller, Result, reconcile_id
from fivespot.runtime.workqueue import Backoff

from .fakes import WIDGET, FakeInformer, FakeKinds, RecordingMetrics, Runs, make_object

pytestmark = pytest.mark.looptime

BACKOFF = Backoff(base=1, factor=2, cap=1000, jitter=0)
A = Key("ns", "a")


def make(runs: Any, **changed: Any) -> Controller:
    settings: dict[str, Any] = {"workers": 2, "backoff": BACKOFF} | changed
    return Controller("widgets", runs, clock=SystemClock(), rng=random.Random(3), **settings)


@contextlib.asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(0.001)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Script:
    """Raises or returns the given outcomes in order, then succeeds."""

    def __init__(self, *outcomes: BaseException | Result) -> None:
        self.outcomes = list(outcomes)

    async def __call__(self, key: Key) -> Result:
        outcome = self.outcomes.pop(0) if self.outcomes else DONE
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


# Start


async def test_a_start_costs_one_run_per_key_however_many_sources_name_it() -> None:
    """kube-rs/kube#318, #1247: N watches at start caused N runs per object."""
    runs = Runs()
    controller = make(runs, workers=8)
    informers = [FakeInformer(synced=False) for _ in range(5)]
    for informer in informers:
        controller.watches(informer)
    async with running(controller):
        for informer in informers:
            for number in range(1000):
                informer.put(make_object(str(number)))
                informer.put(make_object(str(number), version=2))
            await asyncio.sleep(1)
            assert not runs.keys
            informer.sync()
        await asyncio.sleep(1)
    assert len(runs.keys) == len(set(runs.keys)) == 1000


async def test_objects_that_were_there_before_the_start_run_once() -> None:
    runs = Runs()
    controller = make(runs)
    controller.watches(FakeInformer(make_object("a"), make_object("b")))
    async with running(controller):
        await asyncio.sleep(100)
    assert runs.keys == [A, Key("ns", "b")]


async def test_a_source_that_does_not_gate_holds_back_neither_start_nor_readiness() -> None:
    runs = Runs()
    controller = make(runs)
    controller.watches(FakeInformer(make_object("a")))
    dynamic = FakeInformer(synced=False)
    controller.watches(dynamic, gate=False)
    async with running(controller):
        assert controller.ready
        assert runs.keys == [A]
        dynamic.put(make_object("late"))
        await asyncio.sleep(1)
    assert runs.keys == [A, Key("ns", "late")]


async def test_a_source_may_be_added_and_closed_while_the_controller_runs() -> None:
    runs = Runs()
    controller = make(runs)
    async with running(controller):
        informer = FakeInformer(make_object("a"))
        source = controller.watches(informer, gate=False)
        await asyncio.sleep(1)
        source.close()
        informer.put(make_object("b"))
        await asyncio.sleep(1)
    assert runs.keys == [A]
    assert (informer.subscribers, informer.listeners, informer.released) == ([], [], False)


async def test_closing_the_source_that_everybody_waits_for_lets_the_controller_start() -> None:
    runs = Runs()
    controller = make(runs)
    controller.watches(FakeInformer(make_object("a")))
    source = controller.watches(FakeInformer(synced=False))
    async with running(controller):
        assert not runs.keys
        source.close()
        await asyncio.sleep(1)
    assert runs.keys == [A]


async def test_readiness_names_what_is_not_synced_and_why_also_on_a_standby() -> None:
    controller = make(Runs())
    informers = [FakeInformer(synced=False) for _ in range(7)]
    for informer in informers:
        controller.watches(informer)
    assert not controller.ready
    informers[0].last_error = Exception("403 Forbidden")
    assert controller.not_ready_reason.startswith("widgets.example.com/v1 is not synced: 403 Forbidden; widgets.")
    assert controller.not_ready_reason.endswith("; and 2 more")
    for informer in informers:
        informer.sync()
    assert (controller.ready, controller.not_ready_reason) == (True, "")


async def test_a_gating_source_that_cannot_be_read_for_long_is_stale_while_a_dynamic_one_is_not() -> None:
    controller = make(Runs())
    gating, dynamic = FakeInformer(), FakeInformer()
    controller.watches(gating)
    controller.watches(dynamic, gate=False)
    dynamic.error_since = gating.error_since = asyncio.get_running_loop().time()
    gating.last_error = Exception("403 Forbidden")
    await asyncio.sleep(60)
    assert controller.stale_reason(60) == ""
    await asyncio.sleep(1)
    assert controller.stale_reason(60) == "widgets.example.com/v1 has been unreadable for 61 s: 403 Forbidden"
    gating.error_since = None
    assert controller.stale_reason(60) == ""


async def test_predicates_and_mappers_decide_which_keys_a_change_runs() -> None:
    runs = Runs()
    controller = make(runs)
    informer = FakeInformer()
    controller.watches(
        informer,
        lambda change: [Key("ns", "a"), Key("other", change.head.name)],
        predicate=lambda change: change.head.version > 1,
    )
    async with running(controller):
        informer.put(make_object("x"))
        await asyncio.sleep(1)
        assert not runs.keys
        informer.put(make_object("x", version=2))
        await asyncio.sleep(1)
    assert set(runs.keys) == {A, Key("other", "x")}


# Runs


async def test_one_run_per_key_at_a_time_and_no_more_runs_than_workers() -> None:
    async def work(key: Key) -> Result:
        await asyncio.sleep(random.Random(str(key)).random())
        return DONE

    runs = Runs(work)
    controller = make(runs, workers=3)
    informer = FakeInformer()
    controller.watches(informer)
    async with running(controller):
        for version in range(1, 60):
            for name in "abcdef":
                informer.put(make_object(name, version=version))
            await asyncio.sleep(0.05)
        await asyncio.sleep(10)
    assert runs.most == 3
    assert set(runs.keys) == {Key("ns", name) for name in "abcdef"}


async def test_a_change_during_a_run_leads_to_another_run_afterwards() -> None:
    async def work(key: Key) -> Result:
        await asyncio.sleep(5)
        return DONE

    runs = Runs(work)
    controller = make(runs)
    informer = FakeInformer(make_object("a"))
    controller.watches(informer)
    async with running(controller):
        started = runs.at[0]
        for version in range(2, 5):
            informer.put(make_object("a", version=version))
            await asyncio.sleep(1)
        await asyncio.sleep(20)
    assert [round(at - started, 2) for at in runs.at] == [0, 5]


async def test_a_run_that_never_waits_leaves_the_loop_to_others() -> None:
    runs = Runs(Script(*[Result(requeue_after=0)] * 1000))
    controller = make(runs, workers=1)
    async with running(controller):
        controller.enqueue(A)
        for _ in range(50):
            await asyncio.sleep(0)
        assert 5 < len(runs.keys) < 60


async def test_ten_thousand_keys_that_all_ask_to_be_repeated_keep_going() -> None:
    """kube-rs/kube#925, #932: a bounded channel between worker and queue hung the controller."""

    async def work(key: Key) -> Result:
        return Result(requeue_after=10)

    runs = Runs(work)
    controller = make(runs, workers=100)
    async with running(controller):
        for number in range(10_000):
            controller.enqueue(Key(f"n{number % 9}", str(number)))
        await asyncio.sleep(25)
    assert len(runs.keys) == 30_000
    assert len(set(runs.keys)) == 10_000


async def test_a_result_repeats_the_key_in_time_unless_something_changes_earlier() -> None:
    runs = Runs(Script(Result(requeue_after=60), Result(requeue_after=60), DONE))
    controller = make(runs)
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(10)
        controller.enqueue(A)
        await asyncio.sleep(1000)
    assert [round(at - runs.at[0]) for at in runs.at] == [0, 10, 70]


@pytest.mark.parametrize(("after", "count"), [(0, 2), (-5, 2), (-math.inf, 2), (math.inf, 1), (None, 1)])
async def test_odd_repeat_times_mean_at_once_or_never(after: float | None, count: int) -> None:
    """kube-rs/kube#1772, #1489."""
    runs = Runs(Script(Result(requeue_after=after)))
    controller = make(runs)
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(0.01)
        assert len(runs.keys) == count
        await asyncio.sleep(86_400)
    assert len(runs.keys) == count


async def test_a_repeat_in_ten_years_is_kept_and_visible() -> None:
    runs = Runs(Script(Result(requeue_after=10 * 365 * 86_400)))
    controller = make(runs)
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(86_400)
        assert controller.queue.snapshot()[0].due_in == pytest.approx(3649 * 86_400)
    assert len(runs.keys) == 1


async def test_a_repeat_time_that_is_no_number_is_an_error_of_the_run(logged: list[MutableMapping[str, Any]]) -> None:
    async def work(key: Key) -> Result:
        return Result(requeue_after=math.nan) if len(runs.keys) == 1 else DONE

    runs = Runs(work)
    controller = make(runs)
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(10)
    assert len(runs.keys) == 2
    assert [line["error"] for line in logged if "error" in line] == ["requeue_after is not a number"]


async def test_the_priority_function_orders_keys_and_may_fail(logged: list[MutableMapping[str, Any]]) -> None:
    def priority(key: Key) -> int:
        return {"low": 1, "high": 9}[key.name]

    runs = Runs()
    controller = make(runs, priority=priority, workers=1)
    for name in ("unknown", "low", "high"):
        controller.enqueue(Key("ns", name))
    async with running(controller):
        await asyncio.sleep(1)
    assert [key.name for key in runs.keys] == ["high", "low", "unknown"]
    assert [line["event"] for line in logged][:1] == ["the priority function failed"]


# Failures


async def test_a_failing_key_backs_off_alone_and_success_forgets(logged: list[MutableMapping[str, Any]]) -> None:
    """controller-runtime#392: a repeat in time did not reset the failures, so one later error waited for long."""
    error = TransportError("no answer")
    runs = Runs(Script(*[error] * 5, Result(requeue_after=100), error, DONE))
    controller = make(runs)
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(500)
    waits = [round(later - earlier) for earlier, later in zip(runs.at, runs.at[1:], strict=False)]
    assert waits == [1, 2, 4, 8, 16, 100, 1]
    failures = [line for line in logged if line["event"] == "reconcile failed"]
    assert [line["attempt"] for line in failures] == [1, 2, 3, 4, 5, 1]
    assert [line["retry_in"] for line in failures] == [1, 2, 4, 8, 16, 1]


async def test_after_an_outage_work_changed_world_within_seconds_and_its_failures_are_not_held_against_a_key() -> None:
    """Tries that do not reach the server cost it nothing, so they need no long waits."""
    refused, failed = ConnectError("connection refused"), TransportError("no answer")
    runs = Runs(Script(failed, failed, *[refused] * 40, failed, DONE))
    controller = make(runs)
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(500)
    waits = [round(later - earlier) for earlier, later in zip(runs.at, runs.at[1:], strict=False)]
    assert waits == [1, 2, 1, 2, *[3] * 38, 4]


async def test_events_run_a_failing_key_at_once_and_keep_its_deadline() -> None:
    """java-operator-sdk#3525."""
    runs = Runs(Script(*[TransportError("down")] * 100))
    controller = make(runs)
    async with running(controller):
        controller.enqueue(A)
        for _ in range(20):
            await asyncio.sleep(0.1)
            controller.enqueue(A)
        await asyncio.sleep(0.01)
        assert len(runs.keys) > 20
        assert controller.queue.failures(A) == 2


async def test_a_terminal_error_is_not_repeated_until_something_changes(
    logged: list[MutableMapping[str, Any]],
) -> None:
    metrics = RecordingMetrics()
    runs = Runs(Script(TransportError("down"), TerminalError("spec makes no sense"), TransportError("down")))
    controller = make(runs, metrics=metrics)
    informer = FakeInformer(make_object("a"))
    controller.watches(informer)
    async with running(controller):
        await asyncio.sleep(86_400)
        assert metrics.results == ["error", "terminal"]
        assert controller.queue.snapshot() == []
        informer.put(make_object("a", version=2))
        await asyncio.sleep(0.01)
        assert controller.queue.failures(A) == 1
        await asyncio.sleep(10)
    assert metrics.results == ["error", "terminal", "error", "success"]
    assert [line["error"] for line in logged if line["log_level"] == "error"] == ["spec makes no sense"]


async def test_a_run_over_its_limit_is_cancelled_counted_and_repeated(
    logged: list[MutableMapping[str, Any]],
) -> None:
    async def work(key: Key) -> Result:
        if len(runs.keys) == 1:
            await asyncio.sleep(1e6)
        return DONE

    metrics = RecordingMetrics()
    runs = Runs(work)
    controller = make(runs, timeout=30, metrics=metrics)
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(100)
    assert metrics.results == ["error", "success"]
    assert metrics.seconds[0] == pytest.approx(30)
    assert [line["error"] for line in logged if "error" in line] == ["the run took longer than 30 s"]
    assert [round(at - runs.at[0]) for at in runs.at] == [0, 31]


async def test_a_server_that_asks_to_wait_is_not_called_earlier() -> None:
    error = ThrottledError(429, "TooManyRequests", "slow down", request="get widgets", retry_after=40)
    forever = ThrottledError(429, "TooManyRequests", "slow down", request="get widgets", retry_after=1e9)
    runs = Runs(Script(error, forever))
    controller = make(runs)
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(2000)
    assert [round(at - runs.at[0]) for at in runs.at] == [0, 40, 1040]


async def cancelled_inside(key: Key) -> Result:
    inner = asyncio.create_task(asyncio.sleep(1000))
    await asyncio.sleep(0)
    inner.cancel()
    await inner
    return DONE


async def times_out_inside(key: Key) -> Result:
    async with asyncio.timeout(0.1):
        await asyncio.sleep(1)
    return DONE


async def fails_in_groups(key: Key) -> Result:
    async with asyncio.TaskGroup() as group:
        group.create_task(times_out_inside(key))
        group.create_task(cancelled_inside(key))
    return DONE


async def returns_nothing(key: Key) -> Result:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    "act",
    [
        Script(ValueError("x")),
        Script(TerminalError("x")),
        Script(ConflictError(409, "Conflict", "moved on", request="patch")),
        Script(ExceptionGroup("several", [ValueError("x")])),
        Script(asyncio.CancelledError()),
        Script(TimeoutError()),
        Script(StopAsyncIteration()),
        Script(DONE),
        cancelled_inside,
        times_out_inside,
        fails_in_groups,
        returns_nothing,
    ],
    ids=lambda act: act.__name__ if callable(act) and hasattr(act, "__name__") else repr(act.outcomes[0]),
)
async def test_however_a_run_ends_its_key_is_handed_back_and_its_worker_changed_world(act: Any) -> None:
    """java-operator-sdk#3525 (an early return left the key "under processing" for ever) and its neighbours."""
    runs = Runs(act)
    controller = make(runs, workers=1)
    async with running(controller) as task:
        controller.enqueue(A)
        await asyncio.sleep(0.5)
        assert controller.queue.unfinished() == []
        runs.act = None
        controller.enqueue(A)
        controller.enqueue(Key("ns", "b"))
        await asyncio.sleep(0.5)
        assert not task.done()
    assert runs.keys[-2:] == [A, Key("ns", "b")]


async def test_a_task_group_that_fails_in_one_run_does_not_disturb_the_next(
    logged: list[MutableMapping[str, Any]],
) -> None:
    """Before Python 3.13 a failed group may leave a cancellation counted, which makes the next one raise that."""
    counted: list[int] = []

    async def work(key: Key) -> Result:
        task = asyncio.current_task()
        assert task is not None
        counted.append(task.cancelling())
        async with asyncio.TaskGroup() as group:
            group.create_task(times_out_inside(key))
            if len(runs.keys) > 1:
                await asyncio.sleep(10)
        return DONE

    runs = Runs(work)
    controller = make(runs, workers=1)
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(2)
    failures = [line for line in logged if line["event"] == "reconcile failed"]
    assert [line["error_type"] for line in failures] == ["TimeoutError"] * 2
    assert counted == [0, 0], "each run begins without a cancellation"


async def test_a_worker_that_dies_takes_the_others_with_it_and_their_runs_are_cancelled() -> None:
    async def work(key: Key) -> Result:
        if key == A:
            raise PowerCutError
        try:
            await asyncio.sleep(1e6)
        finally:
            ended.append(key)
        return DONE

    ended: list[Key] = []
    controller = make(Runs(work), workers=3)
    for name in ("b", "c", "a", "d"):
        controller.enqueue(Key("ns", name))
    with pytest.raises(BaseExceptionGroup) as caught:
        await controller.run()
    assert caught.group_contains(PowerCutError)
    assert sorted(key.name for key in ended) == ["b", "c"]


class PowerCutError(BaseException):
    """Something that must stop the process."""


async def test_what_is_no_ordinary_error_ends_the_controller_and_still_hands_back_the_key() -> None:
    runs = Runs(Script(PowerCutError()))
    controller = make(runs)
    controller.enqueue(A)
    with pytest.raises(BaseExceptionGroup) as caught:
        await controller.run()
    assert caught.group_contains(PowerCutError)
    assert controller.queue.unfinished() == []
    assert controller.queue.closed


@pytest.mark.parametrize(
    ("error", "level", "traceback"),
    [
        (ConflictError(409, "Conflict", "moved on", request="patch widgets"), "info", False),
        (StaleReadError("the cache of widgets is behind"), "info", False),
        (ForbiddenError(403, "Forbidden", "no", request="get widgets"), "warning", False),
        (TransportError("no answer"), "warning", False),
        (KeyError("missing"), "error", True),
    ],
)
async def test_a_failure_is_told_in_one_line_with_object_id_attempt_and_delay(
    error: Exception, level: str, traceback: bool, logged: list[MutableMapping[str, Any]]
) -> None:
    seen = []

    async def work(key: Key) -> Result:
        seen.append(reconcile_id.get())
        raise error

    controller = make(Runs(work))
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(0.5)
    (line,) = [line for line in logged if line["event"] == "reconcile failed"]
    assert {name: line[name] for name in ("log_level", "controller", "namespace", "name", "attempt", "retry_in")} == {
        "log_level": level,
        "controller": "widgets",
        "namespace": "ns",
        "name": "a",
        "attempt": 1,
        "retry_in": 1.0,
    }
    assert line["reconcile_id"] == seen[0]
    assert (line["error"], line["error_type"]) == (str(error), type(error).__name__)
    assert ("exception" in line) is traceback
    assert "exc_info" not in line, "a renderer that prints local variables must not get at the frames"


async def test_each_run_has_an_id_of_its_own_which_its_tasks_inherit() -> None:
    ids: list[str] = []
    contexts: list[dict[str, Any]] = []

    async def inner() -> str:
        contexts.append(structlog.contextvars.get_contextvars())
        return reconcile_id.get()

    async def work(key: Key) -> Result:
        ids.append(await asyncio.create_task(inner()))
        assert ids[-1] == reconcile_id.get()
        return DONE

    controller = make(Runs(work))
    async with running(controller):
        for name in "abc":
            controller.enqueue(Key("ns", name))
        await asyncio.sleep(1)
    assert len(set(ids)) == 3
    assert all(len(one) == 13 for one in ids)
    assert reconcile_id.get() == ""
    assert contexts[0] == {"controller": "widgets", "namespace": "ns", "name": "a", "reconcile_id": ids[0]}


async def test_metrics_get_one_result_a_run_and_know_busy_workers() -> None:
    async def work(key: Key) -> Result:
        busy.append(metrics.busy)
        return await script(key)

    busy: list[int] = []
    script = Script(DONE, Result(requeue_after=5), Result(requeue_after=0), ValueError("x"), DONE)
    metrics = RecordingMetrics()
    controller = make(Runs(work), metrics=metrics)
    assert metrics.capacity == 2
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(1)
        controller.enqueue(A)
        await asyncio.sleep(20)
    assert metrics.results == ["success", "requeue_after", "requeue", "error", "success"]
    assert busy == [1] * 5
    assert metrics.busy == 0


# Stop


async def test_a_stop_cancels_runs_waits_for_their_end_and_starts_no_other() -> None:
    ended: list[Key] = []

    async def work(key: Key) -> Result:
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(7)
            ended.append(key)
        return DONE

    metrics = RecordingMetrics()
    runs = Runs(work)
    controller = make(runs, metrics=metrics)
    task = asyncio.create_task(controller.run())
    for name in "abcd":
        controller.enqueue(Key("ns", name))
    await asyncio.sleep(1)
    started = asyncio.get_running_loop().time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.get_running_loop().time() - started == pytest.approx(7)
    assert len(ended) == len(runs.keys) == 2
    assert (metrics.results, metrics.busy) == ([], 0)
    assert controller.queue.unfinished() == []


async def test_a_run_that_swallows_the_stop_is_the_last_of_its_worker() -> None:
    """nolar/kopf#1266: something new was started in the gap between pause and stop."""

    async def work(key: Key) -> Result:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1e6)
        return Result(requeue_after=0)

    runs = Runs(work)
    controller = make(runs)
    task = asyncio.create_task(controller.run())
    for name in "abcd":
        controller.enqueue(Key("ns", name))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(runs.keys) == 2


async def test_a_stop_while_waiting_for_sources_leaves_nothing_behind() -> None:
    informer = FakeInformer(synced=False)
    runs = Runs()
    controller = make(runs)
    controller.watches(informer)
    async with running(controller):
        await asyncio.sleep(100)
    informer.put(make_object("a"))
    informer.sync()
    assert (runs.keys, informer.subscribers) == ([], [])
    assert controller.ready


async def test_a_second_term_runs_every_key_once_with_fresh_back_offs() -> None:
    runs = Runs(Script(ValueError("x"), ValueError("x")))
    controller = make(runs)
    informer = FakeInformer(make_object("a"), make_object("b"))
    controller.watches(informer)
    async with running(controller):
        assert len(runs.keys) == 2
    informer.put(make_object("c"))
    controller.enqueue(Key("ns", "d"))
    await asyncio.sleep(100)
    assert len(runs.keys) == 2
    runs.keys.clear()
    async with running(controller):
        assert controller.queue.failures(A) == 0
        await asyncio.sleep(100)
    assert sorted(key.name for key in runs.keys) == ["a", "b", "c"]


@pytest.mark.parametrize("seed", range(30))
async def test_whenever_it_is_stopped_no_run_changed_world_or_starts_afterwards(seed: int) -> None:
    rng = random.Random(seed)

    async def work(key: Key) -> Result:
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(rng.choice([0, 0, 0.3]))
        if rng.random() < 0.3:
            raise ValueError("x")
        return Result(requeue_after=rng.choice([0, 0.1, None]))

    runs = Runs(work)
    informer = FakeInformer(*[make_object(str(number)) for number in range(10)], synced=rng.random() < 0.5)
    controller = make(runs, workers=3)
    controller.watches(informer)
    for _ in range(3):
        task = asyncio.create_task(controller.run())
        for step in range(rng.randrange(40)):
            await asyncio.sleep(rng.choice([0, 0, 0, 0.1]))
            if step == 5:
                informer.sync()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not runs.active
        count = len(runs.keys)
        await asyncio.sleep(50)
        assert len(runs.keys) == count


async def test_a_controller_runs_once_at_a_time() -> None:
    controller = make(Runs())
    async with running(controller):
        with pytest.raises(RuntimeError, match="widgets is already running"):
            await controller.run()


@pytest.mark.parametrize("settings", [{"workers": 0}, {"timeout": 0}, {"timeout": -1}, {"timeout": math.nan}])
async def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="widgets needs"):
        make(Runs(), **settings)


# Initial state, and writes


async def test_a_new_object_does_not_wait_behind_the_initial_ones_of_its_namespace() -> None:
    runs = Runs(Script())
    controller = make(runs, workers=1)
    informer = FakeInformer()
    controller.watches(informer)
    async with running(controller):
        for number in range(100):
            informer.emit(Change(ChangeType.ADDED, make_object(f"old-{number}"), initial=True))
        informer.emit(Change(ChangeType.ADDED, make_object("new")))
        informer.emit(Change(ChangeType.MODIFIED, make_object("old-99"), make_object("old-99")))
        await asyncio.sleep(1)
    order = [key.name for key in runs.keys]
    assert set(order[:2]) == {"new", "old-99"}
    assert order[2:] == [f"old-{number}" for number in range(99)]


async def test_the_controllers_own_priority_counts_for_initial_objects_as_well() -> None:
    runs = Runs(Script())
    controller = make(runs, workers=1, priority=lambda key: 5 if key.name == "urgent" else 0)
    informer = FakeInformer()
    controller.watches(informer)
    async with running(controller):
        informer.emit(Change(ChangeType.ADDED, make_object("old"), initial=True))
        informer.emit(Change(ChangeType.ADDED, make_object("urgent"), initial=True))
        informer.emit(Change(ChangeType.ADDED, make_object("new")))
        await asyncio.sleep(1)
    assert [key.name for key in runs.keys] == ["urgent", "new", "old"]


async def test_a_run_bears_the_name_of_its_controller_and_so_does_what_it_starts() -> None:
    seen: list[str] = []

    async def note(_: Key = A) -> Result:
        seen.append(current_writer.get())
        if len(seen) == 1:
            async with asyncio.TaskGroup() as group:
                group.create_task(note())
        return DONE

    controller = make(Runs(note))
    async with running(controller):
        controller.enqueue(A)
        await asyncio.sleep(1)
    assert seen == ["widgets", "widgets"]
    assert current_writer.get() == ""


# Errors in exception groups


def in_group(*errors: Exception) -> ExceptionGroup[Exception]:
    """As a task group raises them, nested as by a helper with one of its own."""
    return ExceptionGroup("unhandled errors", [ExceptionGroup("inner", [error]) for error in errors])


@pytest.mark.parametrize(
    ("error", "results", "level"),
    [
        (in_group(TerminalError("x")), ["terminal"], "error"),
        (in_group(TerminalError("x"), TerminalError("y")), ["terminal"], "error"),
        (in_group(TerminalError("x"), ConflictError(409, "", "", request="r")), ["error", "success"], "warning"),
        (in_group(ConflictError(409, "", "", request="r")), ["error", "success"], "info"),
        (in_group(StaleReadError("x"), NotLeaderError("y")), ["error", "success"], "info"),
        (in_group(TransportError("x"), ConflictError(409, "", "", request="r")), ["error", "success"], "warning"),
        (in_group(ConflictError(409, "", "", request="r"), KeyError("bug")), ["error", "success"], "error"),
    ],
)
async def test_errors_inside_a_group_are_judged_as_if_they_came_alone(
    error: Exception, results: list[str], level: str, logged: list[MutableMapping[str, Any]]
) -> None:
    metrics = RecordingMetrics()
    controller = make(Runs(Script(error)), metrics=metrics)
    controller.watches(FakeInformer(make_object("a")))
    async with running(controller):
        await asyncio.sleep(100)
    assert metrics.results == results
    (failure,) = [entry for entry in logged if entry["event"].startswith("reconcile failed")]
    assert failure["log_level"] == level
    assert ("exception" in failure) == ("bug" in failure["error"]), "a traceback for bugs only"


async def test_a_group_waits_as_long_as_a_server_in_it_asks() -> None:
    throttled = ThrottledError(429, "", "", request="r", retry_after=33.0)
    runs = Runs(Script(in_group(ConflictError(409, "", "", request="r"), throttled)))
    controller = make(runs)
    controller.watches(FakeInformer(make_object("a")))
    async with running(controller):
        await asyncio.sleep(100)
    assert runs.at[1] - runs.at[0] == pytest.approx(33.0)


# The first pass


async def test_the_first_pass_is_done_when_every_initial_key_and_what_it_enqueued_has_run() -> None:
    controller = make(Runs(), workers=1)

    async def chain(key: Key) -> Result:
        await asyncio.sleep(1)
        if key == A:
            controller.enqueue(Key("ns", "dependant"))
        return DONE

    controller._reconciler = Runs(chain)
    controller.watches(FakeInformer(make_object("a"), make_object("b")))
    async with running(controller):
        for _ in range(3):
            assert not controller.first_pass_done
            await asyncio.sleep(1)
        await asyncio.sleep(0.1)
        assert controller.first_pass_done
        controller.enqueue(A)
        await asyncio.sleep(0.1)
        assert controller.first_pass_done, "later work does not undo it"
    assert not controller.first_pass_done, "a term begins with a pass of its own"


async def test_a_start_may_go_on_without_a_source_that_cannot_be_read() -> None:
    runs = Runs()
    controller = make(runs, start_within=15.0)
    controller.watches(FakeInformer(make_object("a")))
    controller.watches(FakeInformer(synced=False))
    async with running(controller):
        await asyncio.sleep(14.9)
        assert not runs.keys
        await asyncio.sleep(0.2)
        assert [key.name for key in runs.keys] == ["a"]
        assert not controller.ready


async def test_a_failing_key_does_not_hold_the_first_pass_back() -> None:
    controller = make(Runs(Script(*[TransportError("down")] * 9)))
    controller.watches(FakeInformer(make_object("a")))
    async with running(controller):
        await asyncio.sleep(0.1)
        assert controller.first_pass_done


async def test_the_first_pass_waits_for_sources_but_not_for_a_kind_that_is_not_installed() -> None:
    waiting = make(Runs())
    waiting.watches(FakeInformer(synced=False))
    missing = make(Runs())
    missing.watches_kind(FakeKinds(KindAbsent()), WIDGET, lambda resource: FakeInformer(), required=True)
    unknown = make(Runs())
    unknown.watches_kind(FakeKinds(KindUnknown("not read")), WIDGET, lambda resource: FakeInformer(), required=True)
    async with running(waiting), running(missing), running(unknown):
        await asyncio.sleep(1)
        assert not waiting.first_pass_done
        assert missing.first_pass_done
        assert not unknown.first_pass_done
