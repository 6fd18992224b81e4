"""A recorder of Kubernetes Events (events.k8s.io/v1) that never blocks a reconcile."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final, Protocol

import structlog

from fivespot.runtime.backoff import Backoff
from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    NotServedError,
    ProtocolError,
    ServerError,
    ThrottledError,
    TransportError,
)
from fivespot.runtime.objects import Key, Object, Patch, Resource, merge_patch

from .correlation import Correlation, Correlator, EventLimits, EventNote, EventRecord, EventType, Fresh, ObjectRef
from .logs import LogLimiter
from .metrics import Metrics

__all__ = ["EVENTS", "EventRecorder", "EventWriter"]

EVENTS = Resource("events.k8s.io", "v1", "events", "Event")

_LEAST_WAIT: Final = 0.001
"""Seconds. A clock that stands still during a shorter wait would have the writers ask for ever."""
_WRITERS = 4
"""Concurrent writes, so that the events of a fleet that flips together are written in seconds at 20 ms a write."""

_RETRY = Backoff(base=2.0, cap=60.0, jitter=0.5)
"""Between tries of one write."""

_LOG_INTERVAL = 600.0
"""Seconds between two log lines about the same error."""

_log = structlog.get_logger(__name__)


class EventWriter(Protocol):
    """The two client verbs that the recorder uses."""

    async def create(self, resource: Resource, body: dict[str, Any], *, namespace: str | None = None) -> Object: ...

    async def patch(self, resource: Resource, key: Key, patch: Patch) -> Object: ...


class EventRecorder:
    """Accepts events immediately and writes them in the background.

    Memory and writes are bounded by :class:`EventLimits`; further events are dropped and counted in
    ``fivespot_events_dropped_total{reason}``. :meth:`event` must be called on the loop's thread.

    Guaranteed: :meth:`event` never blocks and never raises because of the server, and a ``once`` token is written at
    most once, across restarts, as long as the server keeps the Event (an hour by default).

    Not guaranteed: that an event is written. Events are for people; no decision may depend on them.

    :param client: writes the events; None for a dry run, in which they are logged instead.
    :param controller: ``reportingController``, a qualified name.
    :param instance: ``reportingInstance``, such as the pod's name.
    """

    def __init__(
        self,
        client: EventWriter | None,
        *,
        controller: str,
        instance: str,
        clock: Clock,
        rng: Random,
        metrics: Metrics,
        limits: EventLimits | None = None,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance or "unknown"
        self._clock = clock
        self._rng = rng
        self._correlator = Correlator(limits or EventLimits())
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._log_limiter = LogLimiter(_LOG_INTERVAL, size=64)
        self._dropped = metrics.counter("fivespot_events_dropped_total", "Events that were not written.", ("reason",))
        self._in_progress = metrics.gauge("fivespot_event_writes_in_progress", "Writes of events under way.").child()
        self._writes = metrics.counter("fivespot_events_written_total", "Writes of events.").child()

    def event(
        self,
        regarding: ObjectRef,
        *,
        type: EventType,
        reason: str,
        message: str,
        action: str = "Reconcile",
        once: str = "",
        controller: str = "",
    ) -> None:
        """Record an event about an object. Returns immediately and never raises because of the server.

        :param reason: CamelCase, at most 128 characters, from a small fixed set.
        :param message: for people, truncated to 1024 bytes. Repeats with the same message become one series.
        :param once: a token; at most one event about this object with this token is written, even across restarts of
            the process, because the name of the Event is derived from it.
        :param controller: ``reportingController``, in place of the recorder's own.
        """
        now = self._clock.now()
        fresh = Fresh(regarding, type, reason, message, action, once, controller)
        outcome = self._correlator.seen(fresh, self._clock.monotonic(), now, self._unique)
        if self._client is None:
            self._log_only(fresh, outcome)
        elif outcome in {Correlation.SPAM, Correlation.FULL}:
            self._drop(outcome.value, fresh)
        else:
            self._wake.set()

    def note(self, regarding: ObjectRef, note: EventNote, *, controller: str = "") -> None:
        """Record an event whose content was decided elsewhere; as :meth:`event`."""
        type_: EventType = "Warning" if note.warning else "Normal"
        self.event(
            regarding, type=type_, reason=note.reason, message=note.message, once=note.once, controller=controller
        )

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as writers:
            for number in range(_WRITERS):
                writers.create_task(self._write_all(), name=f"events/{number}")

    async def flush(self, limit: float) -> None:
        """Wait up to ``limit`` seconds until every pending event has been written once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while self._client is not None and self._correlator.unwritten:
                    self._settled.clear()
                    await self._settled.wait()

    async def _write_all(self) -> None:
        while True:
            self._wake.clear()
            record = self._correlator.take(self._clock.monotonic())
            if record is not None:
                await self._write(record)
                if not self._correlator.unwritten:
                    self._settled.set()
                continue
            due = self._correlator.next_due()
            wait = None if due is None else max(_LEAST_WAIT, due - self._clock.monotonic())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    async def _write(self, record: EventRecord) -> None:
        count = record.count
        try:
            self._in_progress.inc()
            try:
                await self._send(record)
            finally:
                self._in_progress.dec()
        except AlreadyExistsError:
            # A create whose answer was lost, or an event that was written before a restart of this process.
            self._correlator.written(record, count, self._clock.monotonic())
        except NotFoundError as error:
            if record.written:
                self._correlator.vanished(record, self._clock.monotonic(), self._unique())
            else:
                self._refuse(record, "namespace_gone", error, quiet=True)
        except ForbiddenError as error:
            terminating = any(cause.reason == "NamespaceTerminating" for cause in error.causes)
            self._refuse(record, "namespace_terminating" if terminating else "forbidden", error, quiet=terminating)
        except (ThrottledError, ServerError, ConflictError, NotServedError, TransportError) as error:
            self._retry(record, error)
        except ProtocolError:
            # The server has written it; only its answer cannot be read.
            self._correlator.written(record, count, self._clock.monotonic())
        except ApiError as error:
            self._refuse(record, "rejected", error)
        else:
            self._writes.inc()
            self._correlator.written(record, count, self._clock.monotonic())

    async def _send(self, record: EventRecord) -> None:
        if self._client is None:
            return
        if record.written:
            patch = merge_patch({"series": record.series()})
            await self._client.patch(EVENTS, Key(record.namespace, record.name), patch)
        else:
            body = record.body(self._controller, self._instance)
            await self._client.create(EVENTS, body, namespace=record.namespace)

    def _log_only(self, event: Fresh, outcome: Correlation) -> None:
        at = self._clock.monotonic()
        while (record := self._correlator.take(at)) is not None:
            self._correlator.written(record, record.count, at)
        if outcome is Correlation.QUEUED:
            where = f"{event.regarding.namespace}/{event.regarding.name}"
            _log.info(
                "event, not written in a dry run",
                kind=event.regarding.kind,
                object=where,
                type=event.type,
                reason=event.reason,
                note=event.message,
            )

    def _retry(self, record: EventRecord, error: ApiError | TransportError) -> None:
        asked = getattr(error, "retry_after", None)
        delay = max(_RETRY.delay(record.attempts + 1, self._rng), asked or 0.0)
        if not self._correlator.failed(record, self._clock.monotonic(), delay):
            self._drop("failed", record.event, error)

    def _refuse(self, record: EventRecord, why: str, error: ApiError, *, quiet: bool = False) -> None:
        self._correlator.refused(record)
        self._drop(why, record.event, None if quiet else error)

    def _drop(self, why: str, event: Fresh, error: Exception | None = None) -> None:
        self._dropped.child(why).inc()
        if error is None:
            return
        held_back = self._log_limiter.allow((why, str(type(error))), self._clock.monotonic())
        if held_back is not None:
            regarding = event.regarding
            _log.warning(
                "event not written",
                reason=event.reason,
                kind=regarding.kind,
                object=f"{regarding.namespace}/{regarding.name}",
                error=str(error),
                held_back=held_back,
            )

    def _unique(self) -> str:
        """Wall-clock microseconds and 32 random bits, so that two processes never choose the same name."""
        micros = int(self._clock.now().timestamp() * 1_000_000)
        return f"{micros:x}{int(self._rng.random() * 2**32):08x}"
