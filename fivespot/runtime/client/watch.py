"""A watch: a stream of events that ends with a typed reason."""

from __future__ import annotations

import enum
from types import TracebackType
from typing import Final, Literal, NoReturn, Self, get_args

import msgspec

from fivespot.runtime.errors import (
    ApiError,
    DeadlineError,
    FivespotError,
    GoneError,
    ProtocolError,
    ThrottledError,
    TransportError,
)
from fivespot.runtime.objects import UNDECODABLE, Head, WireMeta, decode, decode_meta, head_of, members

from .responses import decode_status, one_line, status_error
from .transport import ByteStream

__all__ = ["Watch", "WatchEnd", "WatchEnded", "WatchEvent", "refused_watch"]

_OPENING_BRACE: Final = ord("{")
_STATUS_PREFIX: Final = 160
"""Bytes at the start of an event that contain ``"Status"`` if its object is one."""


class WatchEnd(enum.Enum):
    """Reason why a watch ended or could not be opened.

    =========  ==================================================================================================
    CLEAN      closed by the server after its timeout; resume from the last version
    EXPIRED    410 in any form: the version is too old; list again
    BROKEN     the connection failed or was cut; resume from the last version
    IDLE       nothing arrived within the idle limit, so the connection counts as half-open; resume
    THROTTLED  429; wait for ``error.retry_after``
    REFUSED    any other failure status (see ``error``: 403, 404, 422, 5xx)
    GARBAGE    a line that is not an event, so events may have been missed; list again
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
    """Raised when a watch ends, for whatever reason.

    :param reason: decides the next step; see :class:`WatchEnd`.
    :param error: the failure that the server reported, if any.
    """

    def __init__(self, reason: WatchEnd, message: str, error: ApiError | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.error = error


EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]


class WatchEvent:
    """One watch event.

    :ivar object: the JSON of the object as received.
    :ivar meta: its metadata, once decoded.
    """

    __slots__ = ("meta", "object", "type")

    def __init__(self, type_: EventType, object_: bytes, meta: WireMeta | None = None) -> None:
        self.type = type_
        self.object = object_
        self.meta = meta

    def head(self, annotations: frozenset[str] | None = None) -> Head:
        """Decode the head of the object; see :func:`~fivespot.runtime.objects.decode_head`."""
        if self.meta is None:
            self.meta = decode_meta(self.object)
        return head_of(self.meta, annotations)


class _Object(msgspec.Struct, gc=False):
    metadata: WireMeta
    kind: str = ""


class _ObjectEvent(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An event with an object and no field but ``type`` and ``object``, decoded in one pass."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: _Object


class _AnyEvent(msgspec.Struct, gc=False):
    """An event of any type, its object undecoded."""

    type: EventType
    object: msgspec.Raw


_object_event_decoder = msgspec.json.Decoder(_ObjectEvent)
_any_event_decoder = msgspec.json.Decoder(_AnyEvent)
_type_decoder: msgspec.json.Decoder[EventType] = msgspec.json.Decoder(EventType)
_LINE_STARTS = {type_: f'{{"type":"{type_}","object":{{'.encode() for type_ in get_args(EventType)}


def _decode_fast(line: bytes) -> WatchEvent | None:
    """Decode a line of the form that servers write in one pass; None if it needs the slow path."""
    try:
        found = _object_event_decoder.decode(line)
    except UNDECODABLE:
        return None
    start = _LINE_STARTS[found.type]
    if found.object.kind == "Status" or not line.startswith(start) or not line.endswith(b"}"):
        return None
    # Unknown fields are forbidden, so everything between this start and the last brace is the object.
    return WatchEvent(found.type, line[len(start) - 1 : -1], found.object.metadata)


def _split_event(line: bytes) -> WatchEvent:
    """Split a line into type and object without looking into the object, which may be impossible to decode."""
    try:
        found = decode(_any_event_decoder, line)
    except ProtocolError:
        parts = members(line)
        return WatchEvent(decode(_type_decoder, parts.get("type", b"")), parts.get("object", b"null"))
    return WatchEvent(found.type, bytes(found.object))


class Watch:
    """Events of one open watch, read one at a time; not a generator, so it may be used inside timeouts.

    The holder closes it. Buffered lines are returned without suspending, so a reader of bursts must yield to other
    tasks itself.

    :param request: description of the request, for messages.
    """

    def __init__(self, stream: ByteStream, request: str) -> None:
        self._stream = stream
        self._request = request
        self._ended: WatchEnded | None = None

    async def next(self) -> WatchEvent:
        """Read the next event: ADDED, MODIFIED, DELETED or BOOKMARK.

        :raises WatchEnded: the watch is over; every later call raises the same error.
        """
        if self._ended is not None:
            raise self._ended
        try:
            line = await self._stream.readline()
        except DeadlineError as error:
            await self._end(WatchEnd.IDLE, f"idle: {error}", cause=error)
        except TransportError as error:
            await self._end(WatchEnd.BROKEN, str(error), cause=error)
        except ProtocolError as error:
            await self._end(WatchEnd.GARBAGE, str(error), cause=error)
        if not line:
            await self._end(WatchEnd.CLEAN, "closed by the server")
        return _decode_fast(line) or await self._decode_slow(line)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        """Like :meth:`next`; the loop ends by :class:`WatchEnded`, so that its reason cannot be overlooked."""
        return await self.next()

    async def close(self) -> None:
        """Release the connection; idempotent."""
        if self._ended is None:
            self._ended = WatchEnded(WatchEnd.CLEAN, f"{self._request}: closed by the reader")
        await self._stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _decode_slow(self, line: bytes) -> WatchEvent:
        try:
            event = _split_event(line)
        except ProtocolError as error:
            await self._end_without_event(line, error)
        if event.type == "ERROR" or b'"Status"' in line[:_STATUS_PREFIX]:
            await self._end_on_status(event)
        if event.object[0] != _OPENING_BRACE:
            await self._end(WatchEnd.GARBAGE, f"{event.type} event without an object")
        return event

    async def _end_on_status(self, event: WatchEvent) -> None:
        """End the watch when the event carries a Status, which must never pass for an object."""
        status = decode_status(event.object)
        if status is not None:
            error = status_error(status, self._request)
            await self._end(_end_reason(error), "the server sent an error", error)
        if event.type == "ERROR":
            await self._end(WatchEnd.GARBAGE, "ERROR event without a Status")

    async def _end_without_event(self, line: bytes, cause: Exception) -> NoReturn:
        """End the watch on a line that is not an event.

        A server or proxy that does not stream may answer 200 with a lone Status; anything else is garbage.
        """
        status = decode_status(line)
        if status is not None and (status.code or 0) >= 400:
            error = status_error(status, self._request)
            await self._end(_end_reason(error), "the response is a Status instead of events", error)
        await self._end(WatchEnd.GARBAGE, f"a line of {len(line)} bytes is not an event: {one_line(str(cause), 200)}")

    async def _end(
        self, reason: WatchEnd, message: str, error: ApiError | None = None, cause: Exception | None = None
    ) -> NoReturn:
        text = f"{self._request}: {message}" + (f": {error.status} {error.reason}: {error.message}" if error else "")
        self._ended = WatchEnded(reason, text, error)
        await self._stream.close()
        raise self._ended from cause or error


def refused_watch(error: ApiError) -> WatchEnded:
    """Build the error for a watch that the server refused to open."""
    return WatchEnded(_end_reason(error), str(error), error)


def _end_reason(error: ApiError) -> WatchEnd:
    if isinstance(error, GoneError):
        return WatchEnd.EXPIRED
    if isinstance(error, ThrottledError):
        return WatchEnd.THROTTLED
    return WatchEnd.REFUSED
