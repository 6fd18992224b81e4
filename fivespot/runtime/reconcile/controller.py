"""The controller: turns changes of its sources into runs of a reconciler."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.errors import (
    ApiError,
    ConflictError,
    ConnectError,
    FivespotError,
    NotLeaderError,
    QueueShutDownError,
    StaleReadError,
    TerminalError,
)
from fivespot.runtime.objects import Change, GroupKind, Key, KindState, Resource, current_writer
from fivespot.runtime.telemetry import NULL_TRACER, Tracer
from fivespot.runtime.telemetry.logs import traceback_text
from fivespot.runtime.workqueue import Backoff, QueueMetrics, WorkQueue

from .reconciler import Reconciler, Result, new_reconcile_id, reconcile_id
from .sources import InformerSource, KindSource, Source, SourceInformer, SourceKinds
from .triggers import Mapper, Predicate, enqueue_self

__all__ = ["Controller", "ControllerMetrics"]


class ControllerMetrics(Protocol):
    """Receives the events of one controller, with the meaning of controller-runtime's metrics.

    All methods are called on the loop, must not block and must not raise.
    """

    def result(self, result: str, seconds: float, /) -> None:
        """A run ended after so many seconds (``controller_runtime_reconcile_total``, ``_time_seconds``).

        ``success``, ``requeue_after``, ``requeue``, ``error`` or ``terminal`` (an error that is not retried). A run
        that is cancelled because the controller stops has no result.
        """
        ...

    def active(self, change: int, /) -> None:
        """A worker became busy (+1) or free (-1) (``controller_runtime_active_workers``)."""
        ...

    def workers(self, count: int, /) -> None:
        """Return the limit of concurrent runs (``controller_runtime_max_concurrent_reconciles``)."""
        ...


_log = structlog.get_logger(__name__)

_REASONS_SHOWN = 5

INITIAL_PRIORITY: Final = -100
"""Priority of keys that are wanted because of objects that existed before the start, as in controller-runtime: a new
object does not wait behind thousands of old ones. A priority from the controller's own function takes its place."""


def leaf_errors(error: BaseException) -> list[BaseException]:
    """The errors inside nested exception groups; the error itself if it is no group."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaf_errors(inner)]
    return [error]


class Controller:
    """Runs a reconciler for every key from its sources: one run per key at a time, up to ``workers`` runs at once.

    Gating sources (the default) hold back the start until each has delivered all its objects, so that a start costs one
    run per key regardless of the number of sources. After that every change leads to a run, a failed run is retried
    after a back-off, and a result with ``requeue_after`` schedules another run.

    Guaranteed: a change that becomes visible while a key runs leads to another run of it; a key is retried after a
    time-out, a cancellation from outside the controller, and any exception but TerminalError; and no run is in progress
    when :meth:`run` has returned.

    Not guaranteed: a run per change (several changes may share one) or a run for an object that was created and deleted
    between two lists; that a run sees the newest state of the server; an order between keys; and that a run which
    swallows its cancellation ends within ``timeout``: it occupies its worker until it returns.

    :param name: label of logs and metrics.
    :param workers: runs at the same time.
    :param timeout: seconds after which a run is cancelled and counts as failed.
    :param backoff: between retries of a failing key; its ``connect_cap`` applies after ConnectError, so that work
        resumes within seconds of an outage.
    :param priority: priority of an enqueued key; higher runs first within its namespace. Called at every enqueue.
    :param order: a manager starts it once controllers of lower orders have made their first pass.
    :param start_within: seconds after which it starts though gating sources cannot be read, for a reconciler that can
        tell what is not read yet from what does not exist; by default it waits for ever.
    :param metrics: receives the results of runs.
    :param queue_metrics: receives the events of the queue.
    :param tracer: opens a span for every run.
    """

    def __init__(
        self,
        name: str,
        reconciler: Reconciler,
        *,
        clock: Clock,
        rng: Random,
        workers: int = 8,
        timeout: float = 120.0,
        backoff: Backoff | None = None,
        priority: Callable[[Key], int] | None = None,
        order: int = 0,
        start_within: float = math.inf,
        metrics: ControllerMetrics | None = None,
        queue_metrics: QueueMetrics | None = None,
        tracer: Tracer = NULL_TRACER,
    ) -> None:
        if workers < 1 or not timeout > 0:
            raise ValueError(f"controller {name} needs at least one worker and a time limit above zero")
        self.name = name
        self.workers = workers
        self.order = order
        self.queue: WorkQueue[Key] = WorkQueue(name, clock=clock, rng=rng, backoff=backoff, metrics=queue_metrics)
        self._reconciler = reconciler
        self._clock = clock
        self._rng = rng
        self._timeout = timeout
        self._start_within = start_within
        self._priority = priority
        self._metrics = metrics
        self._tracer = tracer
        self._sources: list[Source] = []
        self._attached = False
        self._running = False
        self._at_start: list[Callable[[], None]] = []
        self._busy = 0
        self._first_pass: set[Key] | None = None
        self._first_pass_over = False
        self._source_changed = asyncio.Event()
        if metrics is not None:
            metrics.workers(workers)

    def at_start(self, fn: Callable[[], None]) -> None:
        """Call ``fn`` at the beginning of every :meth:`run`, before any key runs; it may enqueue keys."""
        self._at_start.append(fn)

    # Sources

    def watches(
        self,
        informer: SourceInformer,
        mapper: Mapper = enqueue_self,
        *,
        predicate: Predicate | None = None,
        gate: bool = True,
    ) -> InformerSource:
        """Enqueue the keys that ``mapper`` returns for each change of the informer that passes ``predicate``.

        May be called at any time. The caller owns the informer and closes the source before releasing it.

        :param gate: whether start and readiness wait for it; False for kinds that are named in users' objects.
        """
        source = InformerSource(
            informer, self._deliver_to(mapper, predicate), self._source_changed.set, self._drop, gate=gate
        )
        self._adopt(source)
        return source

    def watches_kind(
        self,
        kinds: SourceKinds,
        gk: GroupKind,
        open_: Callable[[Resource], SourceInformer],
        mapper: Mapper = enqueue_self,
        predicate: Predicate | None = None,
        *,
        gate: bool = True,
        required: bool = False,
        on_change: Callable[[], None] | None = None,
        version: Callable[[KindState], str] | None = None,
    ) -> KindSource:
        """Watch a kind whose CustomResourceDefinition may be absent, installed and removed at any time.

        :param open_: opens the informer of the resource, usually from the cache; the source releases it.
        :param required: wait until the kind is installed instead of treating it as empty.
        :param on_change: called when the set of objects changes as a whole: the kind was installed and listed, or
            removed.
        """
        source = KindSource(
            kinds,
            gk,
            open_,
            self._deliver_to(mapper, predicate),
            self._source_changed.set,
            self._drop,
            gate=gate,
            required=required,
            on_change=on_change,
            version=version,
        )
        self._adopt(source)
        return source

    def enqueue(self, key: Key, *, after: float = 0.0, priority: int | None = None) -> None:
        """Enqueue a key, now or after a delay in seconds. Does nothing between two runs of the controller.

        :param priority: None calls the controller's priority function.
        :raises ValueError: ``after`` is not a number.
        """
        self.queue.add_after(key, after, priority=self._priority_of(key) if priority is None else priority)

    def close_sources(self) -> None:
        """Close all sources of a controller that does not run any more."""
        for source in list(self._sources):
            source.close()

    @property
    def ready(self) -> bool:
        """Whether every gating source is synced; may be true of a standby that does not run."""
        return not any(source.gate and source.not_ready_reason for source in self._sources)

    @property
    def not_ready_reason(self) -> str:
        """The sources that are waited for, and why; "" when ready."""
        reasons = [reason for source in self._sources if source.gate and (reason := source.not_ready_reason)]
        more = len(reasons) - _REASONS_SHOWN
        return "; ".join(reasons[:_REASONS_SHOWN]) + (f"; and {more} more" if more > 0 else "")

    @property
    def first_pass_done(self) -> bool:
        """Whether, since :meth:`run` began, every key present at the start has run and nothing was left to do once.

        Also true while a kind that it requires is not installed, because then there are no objects to run for.
        """
        return self._first_pass_over or any(source.gate and source.kind_missing for source in self._sources)

    def stale_reason(self, limit: float) -> str:
        """Gating sources that have been unreadable for more than ``limit`` seconds, and why; "" when none."""
        now = self._clock.monotonic()
        stale = [
            f"{status.resource} has been unreadable for {now - status.error_since:.0f} s: {status.last_error}"
            for source in self._sources
            if source.gate and (status := source.status) is not None
            if status.error_since is not None and now - status.error_since > limit
        ]
        return "; ".join(stale[:_REASONS_SHOWN])

    # Running

    async def run(self) -> None:
        """Run until cancelled. Cancelling it cancels the runs in progress and waits for them to end.

        It may be run again afterwards, as after a lease was lost and regained: queue and back-offs then start empty,
        and every key runs once.

        :raises RuntimeError: it is already running.
        """
        if self._running:
            raise RuntimeError(f"controller {self.name} is already running")
        self._running = True
        if self.queue.closed:
            self.queue.reopen()
        try:
            self._attached = True
            for source in list(self._sources):
                source.attach()
            await self._wait_for_sources()
            for begin in self._at_start:
                begin()
            self._first_pass = set(self.queue.ready_keys())
            self._check_first_pass()
            _log.info("controller started", controller=self.name, workers=self.workers, keys=len(self.queue))
            async with asyncio.TaskGroup() as group:
                workers = [
                    group.create_task(self._work(), name=f"{self.name} worker {number}")
                    for number in range(self.workers)
                ]
                try:
                    await asyncio.wait(workers)
                finally:
                    # Before the group cancels the workers: a closed queue tells them a stop from a cancellation inside
                    # a run, and no key can be taken from it even by a run that swallows its cancellation.
                    self.queue.shut_down()
        finally:
            self._attached = False
            self._first_pass, self._first_pass_over = None, False
            for source in self._sources:
                source.detach()
            self.queue.shut_down()
            self._running = False

    async def _wait_for_sources(self) -> None:
        if not self._all_delivered() and self.not_ready_reason:
            _log.info("waiting for sources", controller=self.name, waiting_for=self.not_ready_reason)
        try:
            async with asyncio.timeout(None if math.isinf(self._start_within) else self._start_within) as limit:
                while not self._all_delivered():
                    self._source_changed.clear()
                    await self._source_changed.wait()
        except TimeoutError:
            if not limit.expired():
                raise
            _log.warning("starting before all sources are read", controller=self.name, missing=self.not_ready_reason)

    def _all_delivered(self) -> bool:
        return all(source.delivered for source in self._sources if source.gate)

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        structlog.contextvars.bind_contextvars(controller=self.name)
        current_writer.set(self.name)
        try:
            while True:
                key = await self.queue.get()
                self._busy += 1
                try:
                    await self._run(key)
                finally:
                    self._busy -= 1
                    self.queue.done(key)
                    self._check_first_pass(key)
                # Before Python 3.13 a task group that failed in a run may leave a cancellation counted on this task,
                # and every later task group in it would raise CancelledError instead of its errors.
                while task.cancelling() and not self.queue.closed:
                    task.uncancel()
                # A run that never suspends must not starve the other tasks of the loop.
                await asyncio.sleep(0)
        except QueueShutDownError:
            return
        finally:
            # When one worker dies of a BaseException, the others stop too, as in a stop from outside.
            self.queue.shut_down()

    def _check_first_pass(self, key: Key | None = None) -> None:
        if self._first_pass is None:
            return
        if key is not None:
            self._first_pass.discard(key)
        # Runs of the first pass may enqueue others, of objects that depend on them.
        if not self._first_pass and not self._busy and not len(self.queue):
            self._first_pass, self._first_pass_over = None, True

    async def _run(self, key: Key) -> None:
        # Bound to the worker's context until its next run; tasks that the run starts inherit it.
        run_id = new_reconcile_id(self._rng)
        reconcile_id.set(run_id)
        structlog.contextvars.bind_contextvars(namespace=key.namespace, name=key.name, reconcile_id=run_id)
        metrics = self._metrics
        if metrics is None:
            await self._attempt(key, run_id)
            return
        started = self._clock.monotonic()
        metrics.active(1)
        try:
            outcome = await self._attempt(key, run_id)
            metrics.result(outcome, self._clock.monotonic() - started)
        finally:
            metrics.active(-1)

    async def _attempt(self, key: Key, run_id: str) -> str:
        """Run the reconciler once and requeue the key as needed; return the result for the metrics."""
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                with self._tracer.span(
                    "reconcile", controller=self.name, namespace=key.namespace, name=key.name, reconcile_id=run_id
                ):
                    result = await self._reconciler.reconcile(key)
            return self._succeeded(key, result)
        except asyncio.CancelledError as error:
            if self.queue.closed:
                raise
            # This worker is not being stopped: the reconciler awaited something that was cancelled from elsewhere. If
            # the error passed, the worker would end and its task group would treat that as intended.
            return self._failed(key, run_id, error, self._cut_off(limit) or "something awaited was cancelled")
        except TimeoutError as error:
            return self._failed(key, run_id, error, self._cut_off(limit))
        except Exception as error:
            # A reconciler is user code and may raise anything. The error is logged, the key is retried and other keys
            # continue.
            if all(isinstance(leaf, TerminalError) for leaf in leaf_errors(error)):
                self.queue.forget(key)
                text = "reconcile failed, will be retried after a change"
                self._log_failure("error", text, key, run_id, error, "")
                return "terminal"
            return self._failed(key, run_id, error, "")

    def _cut_off(self, limit: asyncio.Timeout) -> str:
        return f"the run took longer than {self._timeout:g} s" if limit.expired() else ""

    def _succeeded(self, key: Key, result: Result) -> str:
        after = result.requeue_after
        self.queue.forget(key)
        if after is None or after == math.inf:
            return "success"
        self.enqueue(key, after=after)
        return "requeue_after" if after > 0 else "requeue"

    def _failed(self, key: Key, run_id: str, error: BaseException, words: str) -> str:
        leaves = leaf_errors(error)
        asked = max((leaf.retry_after or 0.0 for leaf in leaves if isinstance(leaf, ApiError)), default=0.0)
        wait = self.queue.add_rate_limited(
            key,
            priority=self._priority_of(key),
            at_least=asked,
            unreached=all(isinstance(leaf, ConnectError) for leaf in leaves),
        )
        # A lost race is routine; an error of the API is a warning; anything else is a bug.
        if all(isinstance(leaf, (ConflictError, StaleReadError, NotLeaderError)) for leaf in leaves):
            level = "info"
        elif all(isinstance(leaf, (FivespotError, TimeoutError)) for leaf in leaves):
            level = "warning"
        else:
            level = "error"
        self._log_failure(
            level,
            "reconcile failed",
            key,
            run_id,
            error,
            words,
            attempt=self.queue.failures(key),
            retry_in=round(wait, 3),
        )
        return "error"

    def _log_failure(
        self, level: str, event: str, key: Key, run_id: str, error: BaseException, words: str, **fields: object
    ) -> None:
        leaves = leaf_errors(error)
        expected = all(isinstance(leaf, (FivespotError, TimeoutError, asyncio.CancelledError)) for leaf in leaves)
        getattr(_log, level)(
            event,
            controller=self.name,
            namespace=key.namespace,
            name=key.name,
            reconcile_id=run_id,
            error=words or "; ".join(str(leaf) for leaf in leaves),
            error_type=", ".join(dict.fromkeys(type(leaf).__name__ for leaf in leaves)),
            **fields,
            **({} if expected else {"exception": traceback_text(error)}),
        )

    # Internals

    def _deliver_to(self, mapper: Mapper, predicate: Predicate | None) -> Callable[[Change], None]:
        def deliver(change: Change) -> None:
            if predicate is None or predicate(change):
                for key in mapper(change):
                    self.queue.add(key, priority=self._priority_of(key) or (INITIAL_PRIORITY if change.initial else 0))

        return deliver

    def _priority_of(self, key: Key) -> int:
        if self._priority is None:
            return 0
        try:
            return self._priority(key)
        except Exception as error:
            # User code. A key with the wrong priority is better than a lost change.
            _log.error(
                "the priority function failed",
                controller=self.name,
                namespace=key.namespace,
                name=key.name,
                exception=traceback_text(error),
            )
            return 0

    def _adopt(self, source: Source) -> None:
        self._sources.append(source)
        if self._attached:
            source.attach()

    def _drop(self, source: Source) -> None:
        if source in self._sources:
            self._sources.remove(source)
        self._source_changed.set()
