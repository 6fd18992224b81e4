"""The leader gate: sends writes of leader-only work only while the Lease is provably held.

An election cancels the work of a leader that lost its Lease. That is not enough for a process that was paused
(SIGSTOP, CPU starvation, a suspended or migrated virtual machine): when it resumes, overdue timers and socket events
run before anything notices. So every write is checked when it is sent, and again whenever its bytes are handed to the
kernel:

- against the instant until which no other process can take the Lease, on a clock that continues in suspend;
- against gaps in the time of the event loop. After a gap the caches may be stale although the Lease is held, so nothing
  is written until the Lease has been renewed by a request sent after the gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import structlog

from fivespot.runtime.client.transport import ByteStream, Request, Response, Transport
from fivespot.runtime.clock import Clock
from fivespot.runtime.errors import NotLeaderError
from fivespot.runtime.telemetry.logs import LogLimiter

__all__ = ["HEARTBEAT", "LeaderGate", "Term"]

HEARTBEAT: Final = 0.25
"""Seconds between two calls of :meth:`Term.beat`."""

_GAP: Final = 1.0
"""Seconds without a heartbeat after which the loop counts as paused. Longer than any turn of a healthy loop."""

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LOG_INTERVAL: Final = 60.0

_log = structlog.get_logger(__name__)


class Term:
    """One term of leadership, and the permission to write in it. Instants are :meth:`Clock.boottime`.

    :param held_until: until when no other process can take the Lease.
    :param on_gap: called when a gap is detected, so that the Lease is renewed at once.
    """

    def __init__(self, clock: Clock, *, held_until: float, on_gap: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._held_until = held_until
        self._on_gap = on_gap
        self._last_beat = clock.boottime()
        self._gap_seen_at: float | None = None
        self._ended = False
        self._end_callbacks: list[Callable[[], None]] = []

    @property
    def ended(self) -> bool:
        return self._ended

    def check(self) -> None:
        """Return if a write may be sent now.

        :raises NotLeaderError: the Lease is not provably held, or the loop was paused and the Lease not renewed since.
        """
        now = self._clock.boottime()
        if self._ended:
            raise NotLeaderError("the term of this leader has ended")
        if now >= self._held_until:
            raise NotLeaderError(
                f"the Lease was not renewed in time, its hold ended {now - self._held_until:.3f} s ago"
            )
        self._look_for_gap(now)
        if self._gap_seen_at is not None:
            raise NotLeaderError("the process was paused; the Lease has to be renewed before anything is written")

    def beat(self) -> bool:
        """Note that the loop runs; return whether the Lease is still held."""
        now = self._clock.boottime()
        self._look_for_gap(now)
        self._last_beat = now
        return not self._ended and now < self._held_until

    def renewed(self, held_until: float, sent_at: float) -> None:
        """The Lease was renewed by a request sent at ``sent_at``. Has no effect once the term has ended."""
        self._held_until = max(self._held_until, held_until)
        if self._gap_seen_at is not None and sent_at >= self._gap_seen_at:
            self._gap_seen_at = None

    def add_end_callback(self, callback: Callable[[], None]) -> None:
        """Have a function called once when the term ends; at once if it has ended."""
        if self._ended:
            callback()
        else:
            self._end_callbacks.append(callback)

    def end(self) -> None:
        """End the term: every later check fails, and connections with unsent bytes are closed."""
        self._ended = True
        callbacks, self._end_callbacks = self._end_callbacks, []
        for callback in callbacks:
            callback()

    def _look_for_gap(self, now: float) -> None:
        if now - self._last_beat <= _GAP:
            return
        _log.warning("the process was paused", seconds=round(now - self._last_beat, 3))
        self._last_beat = now
        self._gap_seen_at = now
        self._on_gap()


class LeaderGate:
    """A transport that passes reads, and passes other requests only during a term of leadership.

    Every request other than a read carries the term as its permit, which an
    :class:`~fivespot.runtime.client.HttpTransport` checks again whenever it hands bytes of the request to the kernel.

    :param transport: sends the requests. Writes that are not leader-only, such as those of the Lease itself and of
        Events, use it directly.
    :ivar term: set by the election while this process leads.
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._log_limiter = LogLimiter(_LOG_INTERVAL, size=64)
        self.term: Term | None = None

    async def request(self, request: Request) -> Response:
        """Send a request.

        :raises NotLeaderError: it is not a read, and the Lease is not provably held.
        """
        if request.method.upper() in _READS:
            return await self._transport.request(request)
        try:
            if self.term is None:
                raise NotLeaderError("this process is not the leader")
            self.term.check()
            return await self._transport.request(replace(request, permit=self.term))
        except NotLeaderError as error:
            what = request.description or f"{request.method} {request.path}"
            suppressed = self._log_limiter.allow(str(error), self._clock.monotonic())
            if suppressed is not None:
                _log.warning("write not sent", request=what, reason=str(error), suppressed=suppressed)
            raise NotLeaderError(f"{what}: {error}") from error

    async def stream(self, request: Request) -> ByteStream:
        return await self._transport.stream(request)

    async def close(self) -> None:
        await self._transport.close()
