"""The work queue of a controller, and the state that metrics show of it."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from fivespot.runtime.backoff import Backoff
from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.errors import QueueShutDownError

from .core import QueueCore, QueueEntry

__all__ = ["ObservableQueue", "QueueMetrics", "WorkQueue", "by_namespace"]


class ObservableQueue(Protocol):
    """The values that are computed from a queue when metrics are scraped."""

    @property
    def name(self) -> str: ...

    def __len__(self) -> int:
        """Return the number of keys that are ready to be taken."""
        ...

    def unfinished(self) -> Sequence[float]:
        """For each key being processed, the seconds since it was taken."""
        ...


class QueueMetrics(Protocol):
    """Receives what happens in one queue, with the meaning of controller-runtime's ``workqueue_*`` metrics.

    All methods are called on the loop, must not block and must not raise.
    """

    def added(self) -> None:
        """A key became wanted that was not (``workqueue_adds_total``); a duplicate is not counted."""
        ...

    def picked(self, wait_seconds: float, /) -> None:
        """A key was taken so long after it became wanted (``workqueue_queue_duration_seconds``)."""
        ...

    def finished(self, work_seconds: float, /) -> None:
        """A key was handed back so long after it was taken (``workqueue_work_duration_seconds``)."""
        ...

    def retried(self) -> None:
        """A key was put back because its run failed (``workqueue_retries_total``)."""
        ...

    def bind(self, queue: ObservableQueue, /) -> None:
        """Called once, with the queue whose depth and unfinished work the gauges show."""
        ...


K = TypeVar("K", bound=Hashable)

_LONGEST_TIMER = 86_400.0
"""Seconds of one loop timer: a far deadline is reached in steps, as loops differ in how far ahead a timer may lie."""

_PROMOTED_AT_ONCE = 2_000
"""Delays that may end in one callback of the loop: a few milliseconds when a whole cluster flips at one instant."""


def by_namespace(key: Any) -> Hashable:
    """The turn of a :class:`~fivespot.runtime.objects.Key`: its namespace."""
    namespace: Hashable = key.namespace
    return namespace


class WorkQueue(Generic[K]):
    """Keys, not events: a key is in it once however often it is added, and is worked on by one worker at a time.

    A key added while it runs is ready again when :meth:`done` is called. Order: turns (namespaces) with ready keys are
    served in rotation; within a turn the highest priority goes first, then the key that has been wanted longest. Of
    several pending requests for a key the earliest stands for all, with the highest priority asked for.

    All methods belong to the loop's thread. Every taken key must be handed back with :meth:`done`.

    Guaranteed: a key that was added is taken after it was added last, no turn waits for more than one key of each other
    turn, and a cancelled getter loses nothing.

    Not guaranteed: how often a key is taken for how many adds; that a key of low priority is taken while its turn
    always has higher ones; or anything across a restart, for nothing is stored.

    :param name: label of metrics and logs.
    :param clock: its monotonic clock must be the running loop's, as timers are.
    :param rng: for the jitter of the back-off.
    :param turn: groups keys that share one place in the rotation.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        rng: Random,
        backoff: Backoff | None = None,
        turn: Callable[[K], Hashable] = by_namespace,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._rng = rng
        self._backoff = backoff or Backoff()
        self._turn = turn
        self._metrics = metrics
        self._core: QueueCore[K] = QueueCore(turn)
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._closed = False
        if metrics is not None:
            metrics.bind(self)

    @property
    def closed(self) -> bool:
        """Whether :meth:`shut_down` was called."""
        return self._closed

    def add(self, key: K, *, priority: int | None = 0) -> None:
        """Make the key ready now, whatever back-off or delay it is in.

        Failures are not forgotten: see :meth:`add_rate_limited`. After a shutdown this does nothing.

        :param priority: raises that of a pending request, never lowers it; None keeps it, or that of the run under way.
        """
        if self._closed:
            return
        if self._core.add(key, self._clock.monotonic(), priority):
            if self._metrics is not None:
                self._metrics.added()
            if self._waiters and self._core.ready:
                self._wake()

    def add_after(self, key: K, seconds: float, *, priority: int | None = None) -> None:
        """Make the key ready in so many seconds, or earlier if anything asks for that.

        Zero or less means now; infinity means never, so nothing is scheduled.

        :raises ValueError: ``seconds`` is not a number.
        """
        if math.isnan(seconds):
            raise ValueError(f"a delay of {seconds} s for {key!s} is not a number")
        if seconds <= 0:
            self.add(key, priority=priority)
        elif not self._closed:
            self._core.delay(key, self._clock.monotonic() + seconds, priority)
            self._arm()

    def add_rate_limited(
        self, key: K, *, priority: int | None = None, at_least: float = 0.0, unreached: bool = False
    ) -> float:
        """Put back a key whose run failed, and return the seconds until its back-off ends.

        Each failure waits longer than the one before, until :meth:`forget`. An event may run the key earlier through
        :meth:`add`; if that run fails too, the key waits for the same deadline as before and no failure is counted.

        :param at_least: seconds that somebody else asked to wait, such as a server's Retry-After; only as much of it
            counts as the cap of the back-off allows.
        :param unreached: the run failed because the server could not be reached: waits grow up to the back-off's
            ``connect_cap`` only, and such failures do not lengthen the waits after others.
        """
        if self._closed:
            return 0.0
        now = self._clock.monotonic()
        until = self._core.fail(
            key, now, lambda failures: self._wait(failures, at_least, unreached), unreached=unreached
        )
        if self._metrics is not None:
            self._metrics.retried()
        self._core.delay(key, until, priority)
        self._arm()
        return until - now

    def forget(self, key: K) -> None:
        """Forget earlier failures of a key, because a run succeeded or retrying is pointless."""
        self._core.forget(key)

    def failures(self, key: K) -> int:
        """Return the number of consecutive failures that the back-off of the key counts."""
        return self._core.failures(key)

    async def get(self) -> K:
        """Wait for the next key and take it. Does not suspend when a key is ready.

        A cancelled getter loses no key: a key is taken only in the step in which this returns.

        :raises QueueShutDownError: the queue is closed, or gets closed while waiting. Keys still in it are not taken.
        """
        while not self._closed:
            now = self._clock.monotonic()
            taken = self._core.take(now)
            if taken is not None:
                if self._metrics is not None:
                    self._metrics.picked(taken[1])
                return taken[0]
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.cancelled():
                    with contextlib.suppress(ValueError):  # a wake-up may have skipped it already
                        self._waiters.remove(waiter)
                elif self._core.ready:
                    # This getter was woken for a key that it will not take.
                    self._wake()
                raise
        raise QueueShutDownError(f"queue {self.name} is shut down")

    def done(self, key: K) -> None:
        """Hand back a taken key.

        :raises ValueError: the key was not taken.
        """
        seconds = self._core.done(key, self._clock.monotonic())
        if self._metrics is not None:
            self._metrics.finished(seconds)
        if self._waiters and self._core.ready:
            self._wake()

    def shut_down(self) -> None:
        """Close the queue: every current and later getter gets an error, and adds do nothing. May be repeated."""
        self._closed = True
        self._disarm()
        while self._waiters:
            self._wake()

    def reopen(self) -> None:
        """Reopen the queue after a shutdown, without any key, delay or failure.

        :raises RuntimeError: the queue is open, or a taken key was not handed back.
        """
        if not self._closed or self._core.running:
            raise RuntimeError(f"queue {self.name} is still in use")
        self._core = QueueCore(self._turn)
        self._closed = False

    def __len__(self) -> int:
        """Return the number of ready keys; neither delayed nor running ones count."""
        return self._core.ready

    def ready_keys(self) -> list[K]:
        """Keys that are ready, in no particular order."""
        return self._core.ready_keys()

    def unfinished(self) -> list[float]:
        """For each key being processed, the seconds since it was taken."""
        return self._core.unfinished(self._clock.monotonic())

    def snapshot(self) -> list[QueueEntry[K]]:
        """All keys with state and next run: running ones first, then ready ones, then by the end of their delay."""
        return self._core.snapshot(self._clock.monotonic())

    def _wait(self, failures: int, at_least: float, unreached: bool) -> float:
        wait = self._backoff.delay(failures, self._rng, unreached=unreached)
        return max(wait, min(at_least, self._backoff.cap))

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _arm(self) -> None:
        due = self._core.next_due()
        if due is None or due >= self._timer_at:
            # A timer that fires too early finds nothing to do and is rearmed.
            return
        self._disarm()
        now = self._clock.monotonic()
        wait = min(max(0.0, due - now), _LONGEST_TIMER)
        self._timer_at = now + wait
        self._timer = asyncio.get_running_loop().call_later(wait, self._fire)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._timer_at = math.inf

    def _fire(self) -> None:
        # A loop may call a timer early by its clock's resolution; keys due at its deadline are due now.
        now = max(self._clock.monotonic(), self._timer_at)
        self._timer = None
        self._timer_at = math.inf
        for _ in range(self._core.promote(now, _PROMOTED_AT_ONCE)):
            if self._metrics is not None:
                self._metrics.added()
            if self._waiters and self._core.ready:
                self._wake()
        self._arm()
