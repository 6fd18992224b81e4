"""Pure functions that decode API server responses into objects, pages and typed errors.

A failure response is not always a Status object: an unserved path answers in plain text, an overloaded server in text
with ``Retry-After``, and a proxy in HTML. Each becomes an :class:`~fivespot.runtime.errors.ApiError`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol

import msgspec

from fivespot.runtime.errors import ApiError, ProtocolError, StatusCause, api_error
from fivespot.runtime.objects import Key, Object, Resource, Write, decode, decode_head, elements, members

__all__ = [
    "Page",
    "Propagation",
    "Status",
    "WriteObserver",
    "decode_object",
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

_MESSAGE_LIMIT: Final = 1000
"""Characters of a server's message that are kept: enough for every field error, too few to flood a log."""
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')


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
    """The ``Status`` kind of ``meta/v1``, returned for failures and for deletions without a body."""

    kind: str
    status: str | None = None
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None

    @property
    def object_name(self) -> str:
        """Name of the object the Status is about; "" when it is about a resource or names nothing."""
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

    :param items: one JSON object each; views into the page's buffer, so copy the ones to keep.
    :param continue_token: requests the next page; "" on the last one.
    :param version: the resourceVersion of the whole list, as the server wrote it.
    :param remaining: number of objects after this page, if the server reports it.
    """

    items: list[msgspec.Raw]
    continue_token: str
    version: str
    remaining: int | None = None


_status_decoder = msgspec.json.Decoder(Status)
_list_decoder = msgspec.json.Decoder(_List)
_list_meta_decoder = msgspec.json.Decoder(_ListMeta)


def decode_status(body: bytes | msgspec.Raw) -> Status | None:
    """Decode a body as a Status; None when it is anything else."""
    try:
        status = decode(_status_decoder, body)
    except ProtocolError:
        return None
    return status if status.kind == "Status" else None


def decode_object(body: bytes, request: str, *, dry_run: bool = False) -> Object:
    """Decode the object in a successful response.

    :param dry_run: accept an object that was never stored, which has no resourceVersion and may have no uid.
    :raises ProtocolError: the body is not an object with usable metadata.
    """
    try:
        return Object.parse(body)
    except ProtocolError as error:
        if dry_run:
            return _dry_run_object(body, request)
        raise ProtocolError(f"{request}: the response is {error}") from error


def decode_page(body: bytes, request: str) -> Page:
    """Decode one page of a list.

    The items are not decoded, and one that cannot be does not keep the others from being read.

    :raises ProtocolError: the body is not a list.
    """
    try:
        page = decode(_list_decoder, body)
    except ProtocolError as error:
        try:
            page = _split_list(body)
        except ProtocolError:
            raise ProtocolError(f"{request}: the response is not a list: {error}") from error
    meta = page.metadata
    return Page(page.items or [], meta.continue_ or "", meta.resource_version or "", meta.remaining_item_count)


def _split_list(body: bytes) -> _List:
    """Split a list that holds an item which no decoder can take, without looking into the items."""
    parts = members(body)
    meta = decode(_list_meta_decoder, parts.get("metadata", b""))
    items = parts.get("items", b"null")
    return _List(meta, None if items == b"null" else [msgspec.Raw(item) for item in elements(items)])


def failure(
    status: int, headers: Mapping[str, str], body: bytes, request: str, now: datetime, *, name: str = ""
) -> ApiError:
    """Build the error for a failure response, whatever its body holds.

    :param name: the object that the request was for; a 404 that names another says nothing about it.
    """
    wait = parse_retry_after(headers.get("retry-after"), now)
    decoded = decode_status(body)
    if decoded is not None:
        return status_error(decoded, request, name=name, status_code=status, retry_after=wait)
    return api_error(status, "", _plain_message(body), request=request, retry_after=wait)


def status_error(
    status: Status, request: str, *, name: str = "", status_code: int | None = None, retry_after: float | None = None
) -> ApiError:
    """Build the error that a Status object describes.

    :param name: the object that the request was for, "" for a collection.
    :param status_code: the HTTP status; without one (an ERROR event of a watch) the code in the Status is used.
    :param retry_after: the value of the header, which takes precedence over the one in the Status.
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
        # The server leaves the name out where it does not serve the resource.
        names_object=bool(status.object_name) and name in {"", status.object_name},
    )


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Parse a ``Retry-After`` header (RFC 9110, 10.2.3: seconds or an HTTP date) into seconds, or None."""
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
    """Extract the texts of ``Warning`` headers (RFC 7234, 5.5): deprecations, unknown fields."""
    if not header:
        return []
    return [re.sub(r"\\(.)", r"\1", text) for text in _QUOTED.findall(header)]


def one_line(text: str, limit: int = _MESSAGE_LIMIT) -> str:
    """Collapse whitespace and truncate to ``limit`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _plain_message(body: bytes) -> str:
    text = body[: 4 * _MESSAGE_LIMIT].decode(errors="replace")
    title = _TITLE.search(text)
    if title:
        return one_line(title.group(1))
    return one_line(text) or "no message"


class _DryRun(msgspec.Struct, gc=False):
    metadata: dict[str, Any]


_dry_run_decoder = msgspec.json.Decoder(_DryRun)


def _dry_run_object(body: bytes, request: str) -> Object:
    try:
        metadata = {**decode(_dry_run_decoder, body).metadata}
    except ProtocolError as error:
        raise ProtocolError(f"{request}: the response is not an object: {error}") from error
    metadata["uid"] = metadata.get("uid") or "dry-run"
    metadata["resourceVersion"] = metadata.get("resourceVersion") or "0"
    try:
        return Object(body, decode_head(msgspec.json.encode({"metadata": metadata})))
    except ProtocolError as error:
        raise ProtocolError(f"{request}: the response is {error}") from error


class Propagation(enum.Enum):
    """``propagationPolicy`` of DeleteOptions: the fate of a deleted object's dependents."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class WriteObserver(Protocol):
    """Receives every successful write before the writer's ``await`` returns, so that caches see own writes first.

    Called synchronously; must not raise. Not called for dry runs.
    """

    def known_version(self, resource: Resource, key: Key | None) -> int:
        """Return the latest known resourceVersion of the object, or (None) of the whole resource; 0 if none is known.

        Called before a write is sent.
        """
        ...

    def wrote(self, resource: Resource, obj: Object, write: Write) -> None:
        """The server returned this state for a write; the object may be terminating."""
        ...

    def removed(self, resource: Resource, key: Key, uid: str, write: Write) -> None:
        """The object with that uid no longer exists."""
        ...

    def rewound(self, version: int) -> None:
        """The server answered a write with this version, below one that was known before the write was sent.

        Its history begins anew, as after etcd was restored from a backup.
        """
        ...


_grace_decoder = msgspec.json.Decoder(int | None)
_kind_decoder = msgspec.json.Decoder(str)
_finalizers_decoder = msgspec.json.Decoder(list[str] | None)


def is_removed(obj: Object) -> bool:
    """Whether the response to an update shows an object that the update itself removed.

    A terminating object is removed with its last finalizer, unless a grace period is still running (API concepts,
    "Resource deletion"); the response then carries the previous version. A Namespace has finalizers in its spec as
    well, and exists until its contents are deleted.
    """
    if not obj.head.deleting or obj.head.finalizers:
        return False
    # Member by member, because the answer may hold something that cannot be decoded.
    parts = members(obj.raw)
    if decode(_grace_decoder, members(parts["metadata"]).get("deletionGracePeriodSeconds", b"null")):
        return False
    if parts.get("kind") == b'"Namespace"' and parts.get("apiVersion") == b'"v1"' and "spec" in parts:
        return not decode(_finalizers_decoder, members(parts["spec"]).get("finalizers", b"null"))
    return True


def is_kind(obj: Object, resource: Resource) -> bool:
    """Whether a response is an object of the resource; some subresources (``scale``) return another kind."""
    return decode(_kind_decoder, members(obj.raw).get("kind", b'""')) == resource.kind
