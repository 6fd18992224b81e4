"""One watch: a stream of events with a typed end."""

from __future__ import annotations

import enum
from types import TracebackType
from typing import Literal, NoReturn, Self, get_args

import msgspec

from fivespot.runtime.errors import (
    ApiError,
    DeadlineError,
    FivespotError,
    GoneError,
    ThrottledError,
    TransportError,
)
from fivespot.runtime.objects import Head, WireMeta, decode_meta, head_of

from .responses import decode_status, one_line, status_error
from .transport import ByteStream

__all__ = ["Watch", "WatchEnd", "WatchEnded", "WatchEvent", "refused"]

_OPENING_BRACE = ord("{")
_PREFIX = 160
"""Bytes at the start of an event in which the kind of its object stands if that object is a Status."""


class WatchEnd(enum.Enum):
    """Why a watch ended, or could not be opened.

    =========  ==================================================================================================
    CLEAN      the server closed it as agreed; watch on from the last version
    EXPIRED    410 in whatever shape: the version is too old; list again
    BROKEN     the connection failed or was cut; watch on from the last version
    IDLE       nothing came within the idle limit, so the connection counts as half-open; watch on
    THROTTLED  429: wait as long as ``error.retry_after`` says
    REFUSED    any other failing status (``error`` says which: 403, 404, 422, 5xx)
    GARBAGE    a line that is no event, so something may have been missed; list again
    =========  ==================================================================================================
    """

    CLEAN = "clean"
    EXPIRED = "expired"
    BROKEN = "broken"
    IDLE = "idle"
    THROTTLED = "throttled"
    REFUSED = "refused"
    GARBAGE = "garbage"


class WatchEnded(FivespotError):
    """The one way in which a watch ends.

    :param reason: what it means for the next step.
    :param error: what the server said, where it said something.
    """

    def __init__(self, reason: WatchEnd, message: str, error: ApiError | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.error = error


EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]


class WatchEvent:
    """One event.

    :ivar object: the JSON of an object as it came.
    :ivar meta: its metadata, once it was decoded.
    """

    __slots__ = ("meta", "object", "type")

    def __init__(self, type_: EventType, object_: bytes, meta: WireMeta | None = None) -> None:
        self.type = type_
        self.object = object_
        self.meta = meta

    def head(self, annotations: frozenset[str] | None = None) -> Head:
        """The head of the object; see :func:`~fivespot.runtime.objects.decode_head`."""
        if self.meta is None:
            self.meta = decode_meta(self.object)
        return head_of(self.meta, annotations)


class _Object(msgspec.Struct, gc=False):
    metadata: WireMeta
    kind: str = ""


class _Usual(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An event of an object, read in one pass; ``type`` and ``object`` are all that there is."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: _Object


class _Any(msgspec.Struct, gc=False):
    """Any event."""

    type: EventType
    object: msgspec.Raw


_usual_decoder = msgspec.json.Decoder(_Usual)
_any_decoder = msgspec.json.Decoder(_Any)
_STARTS = {type_: f'{{"type":"{type_}","object":{{'.encode() for type_ in get_args(EventType)}


def _read_usual(line: bytes) -> WatchEvent | None:
    """The event in a line of the form that servers write, in one pass; None if it has to be looked at more closely."""
    try:
        found = _usual_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    start = _STARTS[found.type]
    if found.object.kind == "Status" or not line.startswith(start) or not line.endswith(b"}"):
        return None
    # There are no other fields, so what lies between this start and the last brace is the object.
    return WatchEvent(found.type, line[len(start) - 1 : -1], found.object.metadata)


class Watch:
    """Events of one open watch, read one at a time; not a generator, so it may be used inside timeouts.

    Whoever holds it closes it. Lines that are already here are returned without suspending, so a reader of bursts
    must yield to other tasks itself.
    """

    def __init__(self, stream: ByteStream, what: str) -> None:
        self._stream = stream
        self._what = what
        self._ended: WatchEnded | None = None

    async def next(self) -> WatchEvent:
        """The next event: ADDED, MODIFIED, DELETED or BOOKMARK.

        :raises WatchEnded: there will be no more; the same again on every later call.
        """
        if self._ended is not None:
            raise self._ended
        try:
            line = await self._stream.readline()
        except DeadlineError as error:
            await self._end(WatchEnd.IDLE, f"no sign of life: {error}", cause=error)
        except TransportError as error:
            await self._end(WatchEnd.BROKEN, str(error), cause=error)
        if not line:
            await self._end(WatchEnd.CLEAN, "closed by the server")
        return _read_usual(line) or await self._look_closely(line)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        """Like :meth:`next`; the end of the loop is :class:`WatchEnded`, so nobody can overlook its reason."""
        return await self.next()

    async def close(self) -> None:
        """Let go of the connection; safe to call twice."""
        if self._ended is None:
            self._ended = WatchEnded(WatchEnd.CLEAN, f"{self._what}: closed by the reader")
        await self._stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _look_closely(self, line: bytes) -> WatchEvent:
        try:
            found = _any_decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            await self._not_an_event(line, error)
        event = WatchEvent(found.type, bytes(found.object))
        if event.type == "ERROR" or b'"Status"' in line[:_PREFIX]:
            await self._error_event(event)
        if event.object[0] != _OPENING_BRACE:
            await self._end(WatchEnd.GARBAGE, f"{event.type} event without an object")
        return event

    async def _error_event(self, event: WatchEvent) -> None:
        """Ends the watch when the event carries a Status; a Status must never pass for an object."""
        status = decode_status(event.object)
        if status is not None:
            error = status_error(status, self._what)
            await self._end(_meaning(error), "the server sent an error", error)
        if event.type == "ERROR":
            await self._end(WatchEnd.GARBAGE, "ERROR event without a Status")

    async def _not_an_event(self, line: bytes, cause: Exception) -> NoReturn:
        """A server or proxy that does not stream answers 200 with a lone Status; anything else is garbage."""
        status = decode_status(line)
        if status is not None and (status.code or 0) >= 400:
            error = status_error(status, self._what)
            await self._end(_meaning(error), "answered with a Status instead of events", error)
        await self._end(WatchEnd.GARBAGE, f"a line of {len(line)} bytes is no event: {one_line(str(cause), 200)}")

    async def _end(
        self, reason: WatchEnd, message: str, error: ApiError | None = None, cause: Exception | None = None
    ) -> NoReturn:
        text = f"{self._what}: {message}" + (f": {error.status} {error.reason}: {error.message}" if error else "")
        self._ended = WatchEnded(reason, text, error)
        await self._stream.close()
        raise self._ended from cause or error


def refused(error: ApiError) -> WatchEnded:
    """The end of a watch that the server refused to open."""
    return WatchEnded(_meaning(error), str(error), error)


def _meaning(error: ApiError) -> WatchEnd:
    if isinstance(error, GoneError):
        return WatchEnd.EXPIRED
    if isinstance(error, ThrottledError):
        return WatchEnd.THROTTLED
    return WatchEnd.REFUSED
