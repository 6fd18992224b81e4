"""Event correlation: series, a spam filter per object, and a bounded list of pending writes.

Pure: instants are arguments. The rules are those of client-go's correlator: repeats of an event become a series
(events.k8s.io/v1 ``series``), many events that differ in their message only become one series, and an object may cause
25 new events at once and one more every five minutes.
"""

from __future__ import annotations

import enum
import hashlib
import heapq
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from fivespot.runtime.objects import Head, Object, Resource, rfc3339_micro

__all__ = [
    "Correlation",
    "Correlator",
    "EventLimits",
    "EventNote",
    "EventRecord",
    "EventType",
    "Fresh",
    "ObjectRef",
]

EventType = Literal["Normal", "Warning"]

_NOTE_BYTES = 1024
_WORD = 128
"""Longest note, and longest reason, action and instance, that the API server accepts (validation of events.k8s.io)."""

_COMBINED = "(combined from similar events): "
"""The prefix that client-go uses."""

_NAME = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """Reference to the object an event is about. ``namespace`` is "" for a cluster-scoped object."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, resource: Resource, obj: Object | Head) -> ObjectRef:
        """The reference to an object of a resource."""
        head = obj.head if isinstance(obj, Object) else obj
        return cls(resource.api_version, resource.kind, head.namespace, head.name, head.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventNote:
    """The content of an event, as a value: decided in one place, recorded in another.

    :param reason: one CamelCase word, from a small fixed set.
    :param message: a sentence for people.
    :param warning: whether the event is a Warning, or Normal.
    :param once: a token; of all events about one object with this token at most one is written, also across restarts.
        "" for an event that may repeat.
    """

    reason: str
    message: str
    warning: bool
    once: str = ""


@dataclass(frozen=True, slots=True)
class EventLimits:
    """Limits on writes and memory.

    :param burst: events that one object may cause at once.
    :param refill: seconds until one object may cause another.
    :param settle: seconds between the first repeat of an event and the write that says so, so that a burst of
        repeats is one write.
    :param heartbeat: seconds between two later writes of one series.
    :param series: seconds without a repeat after which the next one starts a new event.
    :param similar: events of one object, type, reason and action with different messages that are written one by one;
        further ones count in one series, whose note is the message of the first of them.
    :param similar_window: seconds without such an event after which they are written one by one again.
    :param pending: records that may wait for a write; more are dropped.
    :param remembered: series, objects and tokens remembered, each; the least recently seen are dropped first.
    :param attempts: how often one write is tried.
    """

    burst: int = 25
    refill: float = 300.0
    settle: float = 1.0
    heartbeat: float = 300.0
    series: float = 360.0
    similar: int = 10
    similar_window: float = 600.0
    pending: int = 10_000
    remembered: int = 4096
    attempts: int = 5


class Correlation(enum.Enum):
    """The outcome of one event. The values that drop it are the ``reason`` label of the drop counter."""

    QUEUED = "queued"
    COUNTED = "counted"
    REPEATED = "repeated"
    SPAM = "spam"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Fresh:
    """One call of the recorder."""

    regarding: ObjectRef
    type: EventType
    reason: str
    message: str
    action: str
    once: str = ""
    controller: str = ""
    """In place of the recorder's own name."""


@dataclass(slots=True, eq=False)
class EventRecord:
    """One Event object, existing or to be created, and the state of it that is written.

    :ivar key: of the series it is; None for an event with a token, which is no series.
    :ivar count: times the event happened; ``written`` is the count that the server has, 0 before the create.
    """

    event: Fresh
    key: Hashable
    name: str
    created: datetime
    last: datetime
    last_at: float
    count: int = 1
    written: int = 0
    written_at: float = 0.0
    attempts: int = 0
    waiting: bool = False
    in_flight: bool = False

    @property
    def namespace(self) -> str:
        """Events about cluster-scoped objects live in ``default``, as the API server demands."""
        return self.event.regarding.namespace or "default"

    def body(self, controller: str, instance: str) -> dict[str, Any]:
        """The whole object, for a create."""
        event, regarding = self.event, self.event.regarding
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "eventTime": rfc3339_micro(self.created),
            "reportingController": event.controller or controller,
            "reportingInstance": _cut(instance, _WORD),
            "type": event.type,
            "reason": _cut(event.reason, _WORD),
            "action": _cut(event.action, _WORD),
            "note": _cut(event.message, _NOTE_BYTES),
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "name": regarding.name,
                "uid": regarding.uid,
            },
        }
        if regarding.namespace:
            body["regarding"]["namespace"] = regarding.namespace
        if self.count > 1:
            body["series"] = self.series()
        return body

    def series(self) -> dict[str, Any]:
        """The fields that a patch sets once the object exists; the others of an Event are immutable."""
        return {"count": self.count, "lastObservedTime": rfc3339_micro(self.last)}


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class _Similar:
    written: int
    at: float


@dataclass(slots=True)
class Correlator:
    """Takes events and yields the records to write, within the limits."""

    limits: EventLimits = field(default_factory=EventLimits)
    _series: OrderedDict[Hashable, EventRecord] = field(default_factory=OrderedDict)
    _similar: OrderedDict[Hashable, _Similar] = field(default_factory=OrderedDict)
    _buckets: OrderedDict[ObjectRef, _Bucket] = field(default_factory=OrderedDict)
    _once: OrderedDict[tuple[str, str], None] = field(default_factory=OrderedDict)
    _heap: list[tuple[float, int, EventRecord]] = field(default_factory=list)
    _sequence: int = 0
    _unwritten: int = 0

    @property
    def unwritten(self) -> int:
        """Number of events that have not been written at all."""
        return self._unwritten

    @property
    def waiting(self) -> int:
        """Number of records waiting for their write; at most ``limits.pending``."""
        return len(self._heap)

    def seen(self, event: Fresh, at: float, now: datetime, unique: Callable[[], str]) -> Correlation:
        """Take one event.

        :param at: monotonic seconds. :param now: wall clock, for the object.
        :param unique: returns a suffix that makes the name of a new Event unique for its object.
        """
        if event.once:
            token = (event.regarding.uid or str(event.regarding), event.once)
            if token in self._once:
                self._once.move_to_end(token)
                return Correlation.REPEATED
            outcome = self._queue(event, None, event_name(event.regarding.name, _digest(*token)), at, now)
            if outcome is Correlation.QUEUED:
                _remember(self._once, token, None, self.limits.remembered)
            return outcome
        if self._repeats(event, at, now):
            return Correlation.COUNTED
        kind = (event.regarding, event.type, event.reason, event.action)
        similar = self._similar_to(kind, at)
        name = event_name(event.regarding.name, unique())
        if similar.written >= self.limits.similar:
            if self._repeats(kind, at, now):
                return Correlation.COUNTED
            return self._queue(replace(event, message=_COMBINED + event.message), kind, name, at, now)
        outcome = self._queue(event, event, name, at, now)
        similar.written += outcome is Correlation.QUEUED
        return outcome

    def next_due(self) -> float | None:
        """The instant of the earliest write, or None when nothing waits."""
        return self._heap[0][0] if self._heap else None

    def take(self, at: float) -> EventRecord | None:
        """A record whose write is due. Answer with :meth:`written`, :meth:`refused`, :meth:`vanished` or
        :meth:`failed`."""
        while self._heap and self._heap[0][0] <= at:
            record = heapq.heappop(self._heap)[2]
            record.waiting = False
            if record.written and not self._spend(record.event.regarding, at):
                # A series is kept: its count is written when the object's budget allows.
                self._push(record, at + self._until_token(record.event.regarding))
                continue
            record.in_flight = True
            return record
        return None

    def written(self, record: EventRecord, count: int, at: float) -> None:
        """The server has the record with that count."""
        if not record.written:
            self._unwritten -= 1
        record.in_flight = False
        record.written, record.written_at, record.attempts = count, at, 0
        if record.count > count and not record.event.once:
            self._schedule_repeat(record, at)

    def failed(self, record: EventRecord, at: float, delay: float) -> bool:
        """Schedule another try after a transient failure. False: no tries are left and the record is dropped."""
        record.attempts += 1
        if record.attempts >= self.limits.attempts:
            self.refused(record)
            return False
        record.in_flight = False
        self._push(record, at + delay)
        return True

    def refused(self, record: EventRecord) -> None:
        """Forget a record that the server rejects, so that a later event starts a new one."""
        record.in_flight = False
        if not record.written:
            self._unwritten -= 1
        if record.event.once:
            self._once.pop((record.event.regarding.uid or str(record.event.regarding), record.event.once), None)
        elif self._series.get(record.key) is record:
            del self._series[record.key]

    def vanished(self, record: EventRecord, at: float, unique: str) -> None:
        """Continue the series in a new object: the Event has expired (the server keeps events for an hour)."""
        record.in_flight = False
        record.name = event_name(record.event.regarding.name, unique)
        record.created, record.written = record.last, 0
        self._unwritten += 1
        self._push(record, at)

    def _repeats(self, key: Hashable, at: float, now: datetime) -> bool:
        """Count one more event of a live series."""
        record = self._series.get(key)
        if record is None or at - record.last_at > self.limits.series:
            return False
        self._series.move_to_end(key)
        record.count += 1
        record.last, record.last_at = now, at
        self._schedule_repeat(record, at)
        return True

    def _similar_to(self, kind: Hashable, at: float) -> _Similar:
        found = self._similar.get(kind)
        if found is None or at - found.at > self.limits.similar_window:
            found = _Similar(0, at)
            _remember(self._similar, kind, found, self.limits.remembered)
        else:
            self._similar.move_to_end(kind)
            found.at = at
        return found

    def _queue(self, event: Fresh, key: Hashable, name: str, at: float, now: datetime) -> Correlation:
        if len(self._heap) >= self.limits.pending:
            return Correlation.FULL
        if not self._spend(event.regarding, at):
            return Correlation.SPAM
        record = EventRecord(event, key, name, now, now, at)
        self._unwritten += 1
        if key is not None:
            _remember(self._series, key, record, self.limits.remembered)
        self._push(record, at)
        return Correlation.QUEUED

    def _schedule_repeat(self, record: EventRecord, at: float) -> None:
        if record.waiting or record.in_flight or not record.written or len(self._heap) >= self.limits.pending:
            return
        wait = self.limits.settle if record.written == 1 else max(0.0, record.written_at + self.limits.heartbeat - at)
        self._push(record, at + wait)

    def _push(self, record: EventRecord, due: float) -> None:
        self._sequence += 1
        record.waiting = True
        heapq.heappush(self._heap, (due, self._sequence, record))

    def _bucket(self, regarding: ObjectRef, at: float) -> _Bucket:
        bucket = self._buckets.get(regarding)
        if bucket is None:
            bucket = _Bucket(self.limits.burst, at)
            _remember(self._buckets, regarding, bucket, self.limits.remembered)
        else:
            self._buckets.move_to_end(regarding)
            bucket.tokens = min(self.limits.burst, bucket.tokens + (at - bucket.at) / self.limits.refill)
            bucket.at = at
        return bucket

    def _spend(self, regarding: ObjectRef, at: float) -> bool:
        bucket = self._bucket(regarding, at)
        # A hair less than one, so that waiting exactly as long as told is enough in floating point.
        if bucket.tokens < 1 - 1e-9:
            return False
        bucket.tokens = max(0.0, bucket.tokens - 1)
        return True

    def _until_token(self, regarding: ObjectRef) -> float:
        return max(0.0, 1 - self._buckets[regarding].tokens) * self.limits.refill


def event_name(regarding: str, unique: str) -> str:
    """A name for an Event: the name of its object, truncated as needed, and a unique suffix."""
    stem = regarding if _SUBDOMAIN.fullmatch(regarding) else "object"
    return f"{stem[: _NAME - 1 - len(unique)].rstrip('.-')}.{unique}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]


def _cut(text: str, limit: int) -> str:
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode()
    return raw[: limit - 3].decode("utf-8", "ignore") + "..."


def _remember(memory: OrderedDict[Any, Any], key: Hashable, value: object, limit: int) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > limit:
        memory.popitem(last=False)
