"""The order and the state of a work queue, without a loop, a timer or a clock of its own.

Every method takes the instant at which it happens, so all of it can be tested as plain data. Each known key has one
entry, which is in one or two of these states::

    delayed ──due──▶ ready ──take──▶ running ──done──▶ (forgotten)
       ▲               ▲                │
       └── delay() ────┴─── add() ──────┘   while running: remembered, ready or delayed again at done()

Invariants: a key is taken by one worker at a time; a key that is wanted now has no pending delay, because the earliest
of several requests stands for all of them.
"""

from __future__ import annotations

import enum
import heapq
import math
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

__all__ = ["EntryState", "QueueCore", "QueueEntry"]

K = TypeVar("K", bound=Hashable)

_SLACK = 16
"""Outdated heap items that are tolerated before a heap is rebuilt, beside as many as there are live ones."""


class EntryState(enum.StrEnum):
    """The position of a key in the queue."""

    READY = "ready"
    RUNNING = "running"
    RUNNING_AGAIN = "running, wanted again"
    DELAYED = "delayed"


@dataclass(frozen=True, slots=True)
class QueueEntry(Generic[K]):
    """One key of a queue, as the debug endpoint shows it.

    :param due_in: seconds until a pending delay ends; None without one.
    :param failures: consecutive failures that the back-off counts.
    :param priority: of the pending request, or of the run under way.
    :param seconds: how long the key has been running or ready; 0 while only delayed.
    """

    key: K
    state: EntryState
    due_in: float | None
    failures: int
    priority: int
    seconds: float


class _Entry(msgspec.Struct, Generic[K], gc=False, eq=False):
    # Not tracked by the cycle collector, which would traverse every entry of a large queue again and again.
    key: K
    turn: Hashable
    wanted: bool = False
    running: bool = False
    priority: int = 0
    seq: int = 0
    since: float = 0.0
    started: float = 0.0
    due: float | None = None
    delay_seq: int = 0


class _Failed(msgspec.Struct, gc=False, eq=False):
    # Misses count the failures to reach the server since it last answered.
    count: int = 0
    misses: int = 0
    until: float = -math.inf


class _Turn(Generic[K]):
    """The ready keys of one namespace: a heap of (-priority, seq, entry) that may hold outdated items."""

    __slots__ = ("heap", "live")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, _Entry[K]]] = []
        self.live = 0


class QueueCore(Generic[K]):
    """The pure part of :class:`~fivespot.runtime.workqueue.WorkQueue`. Instants are seconds of one monotonic clock.

    :param turn: the group a key belongs to; groups with ready keys are served in rotation.
    """

    def __init__(self, turn: Callable[[K], Hashable]) -> None:
        self._turn_of = turn
        self._entries: dict[K, _Entry[K]] = {}
        self._turns: dict[Hashable, _Turn[K]] = {}
        self._rotation: deque[Hashable] = deque()
        self._delayed: list[tuple[float, int, _Entry[K]]] = []
        self._delayed_live = 0
        self._failures: dict[K, _Failed] = {}
        self._seq = 0
        self.ready = 0
        self.running = 0

    def add(self, key: K, now: float, priority: int | None) -> bool:
        """Make the key wanted now. True if it was not wanted before.

        The priority of a pending request is only ever raised; None keeps it, or that of the run under way.
        """
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(key, self._turn_of(key))
            entry.priority = priority or 0
        elif entry.wanted:
            if priority is not None and priority > entry.priority:
                entry.priority = priority
                if not entry.running:
                    self._push(entry)
            return False
        else:
            self._merge_priority(entry, priority)
            if entry.due is not None:
                entry.due = None
                self._delayed_live -= 1
        self._want(entry, now)
        return True

    def delay(self, key: K, due: float, priority: int | None) -> None:
        """Make the key wanted at ``due`` unless it is wanted earlier anyway; an infinite ``due`` asks for nothing."""
        if due == math.inf:
            return
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(key, self._turn_of(key))
            entry.priority = priority or 0
        elif entry.wanted:
            self.add(key, due, priority)
            return
        else:
            self._merge_priority(entry, priority)
        if entry.due is None:
            self._delayed_live += 1
        elif entry.due <= due:
            return
        self._seq += 1
        entry.due = due
        entry.delay_seq = self._seq
        heapq.heappush(self._delayed, (due, self._seq, entry))
        if len(self._delayed) > 2 * self._delayed_live + _SLACK:
            self._delayed = [item for item in self._delayed if item[2].delay_seq == item[1] and item[2].due == item[0]]
            heapq.heapify(self._delayed)

    def next_due(self) -> float | None:
        """Return the earliest instant at which a delay ends."""
        while self._delayed:
            due, seq, entry = self._delayed[0]
            if entry.delay_seq == seq and entry.due == due:
                return due
            heapq.heappop(self._delayed)
        return None

    def promote(self, now: float, limit: int) -> int:
        """Make the keys whose delay has ended wanted, earliest first and at most ``limit``; return their number."""
        count = 0
        while count < limit and (due := self.next_due()) is not None and due <= now:
            entry = heapq.heappop(self._delayed)[2]
            entry.due = None
            self._delayed_live -= 1
            failed = self._failures.get(entry.key)
            if failed is not None and failed.until <= now:
                # Due: the next failure counts, even if the clock reads slightly less than the timer's deadline.
                failed.until = -math.inf
            self._want(entry, now)
            count += 1
        return count

    def take(self, now: float) -> tuple[K, float] | None:
        """Take the next key, which runs until :meth:`done`; return it and the seconds it has been wanted, or None."""
        if not self.ready:
            return None
        token = self._rotation.popleft()
        turn = self._turns[token]
        while True:
            item = heapq.heappop(turn.heap)
            if self._current(item):
                break
        entry = item[2]
        turn.live -= 1
        if turn.live:
            self._rotation.append(token)
        else:
            del self._turns[token]
        self.ready -= 1
        self.running += 1
        entry.wanted = False
        entry.running = True
        entry.started = now
        return entry.key, now - entry.since

    def done(self, key: K, now: float) -> float:
        """Hand back a taken key; return the seconds since it was taken. It is ready at once if it was added
        meanwhile.

        :raises ValueError: the key is not running.
        """
        entry = self._entries.get(key)
        if entry is None or not entry.running:
            raise ValueError(f"{key!s} was not taken from the queue")
        entry.running = False
        self.running -= 1
        if entry.wanted:
            self._push_ready(entry)
        elif entry.due is None:
            del self._entries[key]
        return now - entry.started

    def fail(self, key: K, now: float, wait: Callable[[int], float], *, unreached: bool = False) -> float:
        """Count a failure and return the instant until which the key backs off.

        A run that an event caused before the back-off was over changes neither count nor deadline: a stream of events
        can neither lengthen the wait of a failing key nor make it forget that it fails.

        :param wait: seconds for a number of consecutive failures of the same sort.
        :param unreached: the server was not reached. Counted apart, so that an outage does not make the next real
            failure wait as if it were one of many.
        """
        failed = self._failures.get(key)
        if failed is None:
            failed = self._failures[key] = _Failed()
        if now >= failed.until:
            if unreached:
                failed.misses += 1
            else:
                failed.count += 1
                failed.misses = 0
            failed.until = now + wait(failed.misses if unreached else failed.count)
        return failed.until

    def forget(self, key: K) -> None:
        """Forget failures of the key. A pending delay stays."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Return the number of consecutive failures of the key, of either sort."""
        failed = self._failures.get(key)
        return failed.count + failed.misses if failed else 0

    def ready_keys(self) -> list[K]:
        """Keys that are ready, in no particular order."""
        return [entry.key for entry in self._entries.values() if entry.wanted and not entry.running]

    def unfinished(self, now: float) -> list[float]:
        """Return for each running key the seconds since it was taken."""
        return [now - entry.started for entry in self._entries.values() if entry.running]

    def snapshot(self, now: float) -> list[QueueEntry[K]]:
        """Return all keys: running ones first, then ready ones, then by the end of their delay."""
        entries = []
        for entry in self._entries.values():
            if entry.running:
                state = EntryState.RUNNING_AGAIN if entry.wanted else EntryState.RUNNING
                seconds = now - entry.started
            elif entry.wanted:
                state, seconds = EntryState.READY, now - entry.since
            else:
                state, seconds = EntryState.DELAYED, 0.0
            due_in = None if entry.due is None else max(0.0, entry.due - now)
            failures = self.failures(entry.key)
            entries.append(QueueEntry(entry.key, state, due_in, failures, entry.priority, seconds))
        rank = {EntryState.RUNNING: 0, EntryState.RUNNING_AGAIN: 0, EntryState.READY: 1, EntryState.DELAYED: 2}
        entries.sort(key=lambda shown: (rank[shown.state], shown.due_in or 0.0, -shown.seconds))
        return entries

    @staticmethod
    def _merge_priority(entry: _Entry[K], priority: int | None) -> None:
        # With nothing else pending, the entry still shows the priority of the run under way, which a new request
        # replaces; together with a pending delay the higher one counts.
        if priority is not None and (entry.due is None or priority > entry.priority):
            entry.priority = priority

    def _want(self, entry: _Entry[K], now: float) -> None:
        self._seq += 1
        entry.seq = self._seq
        entry.since = now
        entry.wanted = True
        if not entry.running:
            self._push_ready(entry)

    def _push_ready(self, entry: _Entry[K]) -> None:
        turn = self._turns.get(entry.turn)
        if turn is None:
            turn = self._turns[entry.turn] = _Turn()
            self._rotation.append(entry.turn)
        turn.live += 1
        self.ready += 1
        heapq.heappush(turn.heap, (-entry.priority, entry.seq, entry))

    def _push(self, entry: _Entry[K]) -> None:
        """Put a ready entry in its new place; the old item is outdated and is skipped when it surfaces."""
        turn = self._turns[entry.turn]
        heapq.heappush(turn.heap, (-entry.priority, entry.seq, entry))
        if len(turn.heap) > 2 * turn.live + _SLACK:
            turn.heap = [item for item in turn.heap if self._current(item)]
            heapq.heapify(turn.heap)

    @staticmethod
    def _current(item: tuple[int, int, _Entry[K]]) -> bool:
        negative, seq, entry = item
        return entry.seq == seq and entry.priority == -negative and entry.wanted and not entry.running
