"""Records Kubernetes Events (events.k8s.io/v1) without ever making a reconcile wait."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Protocol, cast

import structlog
from prometheus_async.aio import track_inprogress

from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ProtocolError,
    ServerError,
    ThrottledError,
    TransportError,
)
from fivespot.runtime.objects import Key, Object, Patch, Resource, merge_patch

from .correlation import Correlation, Correlator, EventLimits, EventRecord, EventType, Fresh, ObjectRef
from .logs import LogLimiter
from .metrics import Metrics

if TYPE_CHECKING:
    from prometheus_client import Gauge

__all__ = ["EVENTS", "EventRecorder", "EventWriter"]

EVENTS = Resource("events.k8s.io", "v1", "events", "Event")

_WRITERS = 4
"""Writes under way at once: enough that a fleet that flips together is told about within seconds at 20 ms a write."""

_FIRST_RETRY = 1.0
"""Seconds before the second try of a write; doubles from there."""

_COMPLAINT_INTERVAL = 600.0
"""Seconds between two log lines about the same refusal."""

_log = structlog.get_logger(__name__)


class EventWriter(Protocol):
    """The two verbs that the recorder needs of the client."""

    async def create(self, resource: Resource, body: dict[str, Any], *, namespace: str | None = None) -> Object: ...

    async def patch(self, resource: Resource, key: Key, patch: Patch) -> Object: ...


class EventRecorder:
    """Takes events at once and writes them in the background.

    Memory and writes are bounded by :class:`EventLimits`; what does not fit is dropped and counted in
    ``fivespot_events_dropped_total{reason}``. :meth:`event` belongs to the loop's thread.

    Guaranteed: :meth:`event` never waits and never fails for the server's sake, and a ``once`` token is written at most
    once, whatever restarts, for as long as the server keeps the Event (an hour by default).

    Not guaranteed: that an event is written. Events are for people; nothing may be decided by them.

    :param client: writes; None for a dry run, in which events appear in the log only.
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
        self._complaints = LogLimiter(_COMPLAINT_INTERVAL, size=64)
        self._dropped = metrics.counter("fivespot_events_dropped_total", "Events that were not written.", ("reason",))
        in_progress = metrics.gauge("fivespot_event_writes_in_progress", "Writes of events under way.").child()
        # Ours is no Gauge by type, but it counts like one, which is all that is asked of it.
        self._in_progress = cast("Gauge", in_progress)
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
    ) -> None:
        """Record that something happened to an object. Returns at once and never raises for the server's sake.

        :param reason: why, in CamelCase; at most 128 characters, from a small fixed set.
        :param message: for people, cut at 1024 bytes. Repeats with the same words become one series.
        :param once: a token; of all events about this object with this token at most one is written, also across
            restarts of the process, because the Event's name follows from it.
        """
        now = self._clock.now()
        fresh = Fresh(regarding, type, reason, message, action, once)
        outcome = self._correlator.seen(fresh, self._clock.monotonic(), now, self._unique)
        if self._client is None:
            self._log_only(fresh, outcome)
        elif outcome in {Correlation.SPAM, Correlation.FULL}:
            self._drop(outcome.value, fresh)
        else:
            self._wake.set()

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as writers:
            for number in range(_WRITERS):
                writers.create_task(self._write_all(), name=f"events/{number}")

    async def flush(self, limit: float) -> None:
        """Try to write the pending events, for at most ``limit`` seconds."""
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
            wait = None if due is None else max(0.0, due - self._clock.monotonic())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    async def _write(self, record: EventRecord) -> None:
        count = record.count
        try:
            await track_inprogress(self._in_progress, self._send(record))
        except AlreadyExistsError:
            # A create whose answer was lost, or an event that an earlier life of this process wrote.
            self._correlator.written(record, count, self._clock.monotonic())
        except NotFoundError as error:
            if record.written:
                self._correlator.vanished(record, self._clock.monotonic(), self._unique())
            else:
                self._refuse(record, "namespace_gone", error, quiet=True)
        except ForbiddenError as error:
            terminating = any(cause.reason == "NamespaceTerminating" for cause in error.causes)
            self._refuse(record, "namespace_terminating" if terminating else "forbidden", error, quiet=terminating)
        except (ThrottledError, ServerError, ConflictError, TransportError) as error:
            self._retry(record, error)
        except ProtocolError:
            # The server acted; only its answer cannot be read.
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
        delay = max(_FIRST_RETRY * 2**record.attempts * (1 + self._rng.random()), asked or 0.0)
        if not self._correlator.failed(record, self._clock.monotonic(), delay):
            self._drop("failed", record.event, error)

    def _refuse(self, record: EventRecord, why: str, error: ApiError, *, quiet: bool = False) -> None:
        self._correlator.refused(record)
        self._drop(why, record.event, None if quiet else error)

    def _drop(self, why: str, event: Fresh, error: Exception | None = None) -> None:
        self._dropped.child(why).inc()
        if error is None:
            return
        held_back = self._complaints.allow((why, str(type(error))), self._clock.monotonic())
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
        """Wall-clock microseconds and 32 random bits: two processes that write about one object do not meet."""
        micros = int(self._clock.now().timestamp() * 1_000_000)
        return f"{micros:x}{int(self._rng.random() * 2**32):08x}"
