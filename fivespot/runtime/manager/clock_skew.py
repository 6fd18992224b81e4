"""The difference between this process's wall clock and the API server's, from the Date header of responses."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import structlog

from fivespot.runtime.client import ByteStream, Request, Response, Transport
from fivespot.runtime.clock import Clock

__all__ = ["SKEW_LIMIT", "ClockSkew", "DatedTransport"]

SKEW_LIMIT: Final = 2.0
"""Seconds from which on a difference is reported."""
_RESOLUTION: Final = 1.0
"""Seconds that a Date header leaves open."""
_WINDOW: Final = 300.0
"""Seconds for which a response counts."""
_DATE_LENGTH: Final = 64
_INTERVAL: Final = 1.0
"""Seconds between two responses that are looked at."""

_log = structlog.get_logger(__name__)


class ClockSkew:
    """Estimates how far the wall clock is ahead of the server's.

    A response was dated between the moments at which its request was sent and its head arrived, and its date is cut to
    the second. Each therefore bounds the difference from both sides, and several together bound it closely. The
    estimate is the value nearest to zero within the bounds: slow answers never look like a wrong clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bounds: deque[tuple[float, float, float]] = deque()
        self._reported = 0.0

    def due(self) -> bool:
        """Whether another response is to be looked at."""
        return not self._bounds or self._clock.monotonic() - self._bounds[-1][0] >= _INTERVAL

    def observe(self, sent: datetime, headers: Mapping[str, str]) -> None:
        """Take the head of a response that has just arrived.

        :param sent: wall clock of this process when the request was sent.
        """
        dated = _date(headers)
        if dated is None:
            return
        moment = self._clock.monotonic()
        lower = (sent - dated).total_seconds() - _RESOLUTION
        upper = (self._clock.now() - dated).total_seconds()
        if lower > upper:
            # The clock was set back meanwhile.
            return
        self._bounds.append((moment, lower, upper))
        while moment - self._bounds[0][0] > _WINDOW:
            self._bounds.popleft()
        while self._lower() > self._upper():
            # One of the clocks was set: what was seen before no longer holds.
            self._bounds.popleft()
        self._report()

    @property
    def seconds(self) -> float | None:
        """Seconds by which this clock is ahead of the server's, behind if negative; None when not known."""
        if not self._bounds:
            return None
        return min(max(0.0, self._lower()), self._upper()) if self._upper() >= 0 else self._upper()

    @property
    def note(self) -> str:
        """A remark for people once the difference exceeds the limit; "" otherwise."""
        seconds = self.seconds or 0.0
        if abs(seconds) <= SKEW_LIMIT:
            return ""
        return f"the clock is {abs(seconds):.1f} s {_direction(seconds)} that of the API server; set one of them right"

    def reading(self) -> list[tuple[tuple[str, ...], float]]:
        """The sample of the gauge; none while nothing is known."""
        return [] if self.seconds is None else [((), self.seconds)]

    def _lower(self) -> float:
        return max(lower for _, lower, _ in self._bounds)

    def _upper(self) -> float:
        return min(upper for _, _, upper in self._bounds)

    def _report(self) -> None:
        seconds = self.seconds or 0.0
        beyond = abs(seconds) > SKEW_LIMIT
        if beyond and abs(seconds - self._reported) > SKEW_LIMIT:
            self._reported = seconds
            _log.warning("the clock differs from the API server's", seconds=round(seconds, 1))
        elif not beyond and self._reported:
            self._reported = 0.0
            _log.info("the clock agrees with the API server's", seconds=round(seconds, 1))


class DatedTransport:
    """Forwards requests, and has the heads of responses compared with the wall clock."""

    def __init__(self, inner: Transport, clock: Clock, skew: ClockSkew) -> None:
        self._inner = inner
        self._clock = clock
        self._skew = skew

    async def request(self, request: Request) -> Response:
        if not self._skew.due():
            return await self._inner.request(request)
        sent = self._clock.now()
        response = await self._inner.request(request)
        self._skew.observe(sent, response.headers)
        return response

    async def stream(self, request: Request) -> ByteStream:
        if not self._skew.due():
            return await self._inner.stream(request)
        sent = self._clock.now()
        stream = await self._inner.stream(request)
        self._skew.observe(sent, stream.headers)
        return stream

    async def close(self) -> None:
        await self._inner.close()


def _date(headers: Mapping[str, str]) -> datetime | None:
    text = headers.get("date", "")
    if not text or len(text) > _DATE_LENGTH:
        return None
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _direction(seconds: float) -> str:
    return "ahead of" if seconds > 0 else "behind"
