"""Answers of the API server turned into values and typed errors, as pure functions.

A failure is not always a Status object: a path that is not served answers plain text, overload answers text with
``Retry-After``, and proxies answer HTML. All of them become an :class:`~fivespot.runtime.errors.ApiError`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol

import msgspec

from fivespot.runtime.errors import ApiError, ProtocolError, StatusCause, api_error
from fivespot.runtime.objects import Key, Object, Resource, decode_head

__all__ = [
    "Page",
    "Propagation",
    "Status",
    "WriteObserver",
    "decode_answer",
    "decode_page",
    "decode_status",
    "failure",
    "is_kind",
    "is_removed",
    "one_line",
    "parse_retry_after",
    "status_error",
    "warning_texts",
]

_MESSAGE_LIMIT = 1000

"""Characters of a server's message that are kept: enough for every field error, too few to flood a log."""


class _Cause(msgspec.Struct, gc=False):
    reason: str | None = None
    message: str | None = None
    field: str | None = None


class _Details(msgspec.Struct, gc=False, rename="camel"):
    name: str | None = None
    uid: str | None = None
    causes: list[_Cause] | None = None
    retry_after_seconds: float | None = None


class Status(msgspec.Struct, gc=False):
    """The ``Status`` kind of ``meta/v1``: the answer that carries no object."""

    kind: str
    status: str | None = None
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None

    @property
    def object_name(self) -> str:
        """The object that the Status speaks of; "" when it speaks of a resource or of nothing."""
        return (self.details and self.details.name) or ""


class _ListMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class Page(msgspec.Struct, frozen=True, gc=False):
    """One page of a list.

    :param items: one JSON object each; views into the page's buffer, so copy what is to be kept.
    :param continue_token: asks for the next page; "" on the last one.
    :param version: the resourceVersion of the whole list, as the server wrote it.
    :param remaining: how many objects come after this page, where the server says so.
    """

    items: list[msgspec.Raw]
    continue_token: str
    version: str
    remaining: int | None = None


_status_decoder = msgspec.json.Decoder(Status)

_list_decoder = msgspec.json.Decoder(_List)

_title = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)

_quoted = re.compile(r'"((?:[^"\\]|\\.)*)"')


def decode_status(body: bytes | msgspec.Raw) -> Status | None:
    """The Status in a body, or None when it holds anything else."""
    try:
        status = _status_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return status if status.kind == "Status" else None


def decode_answer(body: bytes, request: str, *, dry_run: bool = False) -> Object:
    """The object in a successful answer.

    :param dry_run: accept an object that was never stored, which has no resourceVersion and may have no uid.
    :raises ProtocolError: the body is no object with usable metadata.
    """
    try:
        return Object.parse(body)
    except ProtocolError as error:
        if dry_run:
            return _unstored(body, request)
        raise ProtocolError(f"{request}: the answer is {error}") from error


def decode_page(body: bytes, request: str) -> Page:
    """One page of a list.

    :raises ProtocolError: the body is no list.
    """
    try:
        page = _list_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"{request}: the answer is no list: {error}") from error
    meta = page.metadata
    return Page(page.items or [], meta.continue_ or "", meta.resource_version or "", meta.remaining_item_count)


def failure(status: int, headers: Mapping[str, str], body: bytes, request: str, now: datetime) -> ApiError:
    """The error for a failing answer, whatever its body is."""
    wait = parse_retry_after(headers.get("retry-after"), now)
    decoded = decode_status(body)
    if decoded is not None:
        return status_error(decoded, request, status_code=status, retry_after=wait)
    return api_error(status, "", _text(body), request=request, retry_after=wait)


def status_error(
    status: Status, request: str, *, status_code: int | None = None, retry_after: float | None = None
) -> ApiError:
    """The error that a Status object describes.

    :param status_code: the HTTP status; without one (an ERROR event of a watch) the code in the Status counts.
    :param retry_after: the header's value, which goes before the one in the Status.
    """
    details = status.details
    causes = tuple(
        StatusCause(cause.reason or "", one_line(cause.message or ""), cause.field or "")
        for cause in (details.causes if details and details.causes else ())
    )
    if retry_after is None and details and details.retry_after_seconds:
        retry_after = max(0.0, details.retry_after_seconds)
    return api_error(
        status_code or status.code or 500,
        status.reason or "",
        one_line(status.message or ""),
        request=request,
        causes=causes,
        retry_after=retry_after,
    )


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait by a ``Retry-After`` header (RFC 9110, 10.2.3: seconds or an HTTP date), or None."""
    if not value:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())


def warning_texts(header: str | None) -> list[str]:
    """The texts of ``Warning`` headers (RFC 7234, 5.5), which Kubernetes uses for deprecations and unknown fields."""
    if not header:
        return []
    return [re.sub(r"\\(.)", r"\1", text) for text in _quoted.findall(header)]


def one_line(text: str, limit: int = _MESSAGE_LIMIT) -> str:
    """The text without line breaks and of bounded length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _text(body: bytes) -> str:
    text = body[: 4 * _MESSAGE_LIMIT].decode(errors="replace")
    title = _title.search(text)
    if title:
        return one_line(title.group(1))
    return one_line(text) or "no message"


def _unstored(body: bytes, request: str) -> Object:
    try:
        value = msgspec.json.decode(body)
        metadata = {**value["metadata"]}
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError) as error:
        raise ProtocolError(f"{request}: the answer is no object: {error}") from error
    metadata["uid"] = metadata.get("uid") or "dry-run"
    metadata["resourceVersion"] = metadata.get("resourceVersion") or "0"
    try:
        return Object(body, decode_head(msgspec.json.encode({"metadata": metadata})))
    except ProtocolError as error:
        raise ProtocolError(f"{request}: the answer is {error}") from error


class Propagation(enum.Enum):
    """What happens to the dependents of a deleted object (``propagationPolicy`` of DeleteOptions)."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class WriteObserver(Protocol):
    """Told of every answered write before its caller is, so that caches know what this process did.

    Called synchronously; must not raise. Never called for dry runs.
    """

    def wrote(self, resource: Resource, obj: Object) -> None:
        """The server answered a write with this state, which may be a deleting one."""
        ...

    def removed(self, resource: Resource, key: Key, uid: str) -> None:
        """The object of that uid does not exist any more."""
        ...


class _Fields(msgspec.Struct, gc=False, rename="camel"):
    deletion_grace_period_seconds: int | None = None


class _Shape(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: _Fields = msgspec.field(default_factory=_Fields)


_decoder = msgspec.json.Decoder(_Shape)


def is_removed(obj: Object) -> bool:
    """Whether the answer to an update shows an object that the update itself removed.

    A deleting object goes with its last finalizer, unless a grace period is still running (API concepts,
    "Resource deletion"); the answer then carries the version before.
    """
    if not obj.head.deleting or obj.head.finalizers:
        return False
    return not obj.decode_as(_decoder).metadata.deletion_grace_period_seconds


def is_kind(obj: Object, resource: Resource) -> bool:
    """Whether an answer is an object of the resource; some subresources (``scale``) answer with another kind."""
    return obj.decode_as(_decoder).kind == resource.kind
