"""GET of one object and of a collection."""

from __future__ import annotations

import asyncio
import base64
import binascii
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from .cluster import Cluster
from .json_codec import decode_json, encode_json
from .kinds import Served, ServedKind
from .messages import ApiRequest, ApiResponse, json_response
from .negotiation import Form, form_of
from .options import ListOptions, parse_version
from .selectors import ObjectSelector, parse_fields, parse_labels
from .status import StatusError, bad_request, expired, version_too_large
from .store import Entry
from .views import ObjectView

T = TypeVar("T")

__all__ = ["get_object", "list_objects", "selector_of", "view_of"]

_SLICE: Final = 500
"""Entries between two turns of the event loop when each is only copied."""
_INCLUDED: Final = ("", "Metadata", "Object", "None")
_ROWS: Final = 100
"""Entries between two turns of the event loop when each has to be decoded."""

_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def view_of(cluster: Cluster, request: ApiRequest, kind: ServedKind, served: Served, *, single: bool) -> ObjectView:
    """The representation that the client accepts."""
    form = form_of(request.header("accept"), single=single)
    include = request.parameter("includeObject")
    if form is Form.TABLE and include not in _INCLUDED:
        words = f"includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {words}")
    return ObjectView(cluster, kind, served, form, include or "Metadata")


def selector_of(kind: ServedKind, options: ListOptions) -> ObjectSelector:
    """Parse the label and field selectors of a request."""
    known = kind.strategy.selectable
    if kind.custom:
        # Definitions have a leading dot in their paths, selectors have none.
        terms = parse_fields(options.fields, [path.lstrip(".") for path in known], custom=True)
        dotted = tuple(
            (name if name.startswith("metadata.") else f".{name}", equal, value) for name, equal, value in terms
        )
        return ObjectSelector(parse_labels(options.labels), dotted)
    stored = kind.strategy.stored_fields
    terms = parse_fields(options.fields, known)
    renamed = tuple((stored.get(name, name), equal, value) for name, equal, value in terms)
    return ObjectSelector(parse_labels(options.labels), renamed)


def get_object(
    cluster: Cluster, request: ApiRequest, kind: ServedKind, served: Served, namespace: str, name: str
) -> ApiResponse:
    """The answer to a GET of one object.

    :raises StatusError: 400, 404, 406, 504.
    """
    view = view_of(cluster, request, kind, served, single=True)
    asked = _version(request.parameter("resourceVersion"))
    if asked > cluster.store.version:
        raise version_too_large(asked, cluster.store.version)
    return json_response(200, view.one(cluster.get(kind, namespace, name)))


def _version(text: str) -> int:
    try:
        return parse_version(text)
    except ValueError as error:
        raise bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": {error}') from None


async def list_objects(
    cluster: Cluster, request: ApiRequest, kind: ServedKind, served: Served, namespace: str, options: ListOptions
) -> ApiResponse:
    """The answer to a GET of a collection.

    :raises StatusError: 400, 406, 410, 422, 504.
    """
    view = view_of(cluster, request, kind, served, single=False)
    selector = selector_of(kind, options)
    version, start, entries = _snapshot(cluster, kind, namespace, options)
    first = bisect_left(entries, start, key=lambda entry: entry.key) if start else 0
    # As from kube-apiserver's watch cache, which has no pages.
    limit = 0 if options.version == "0" and not options.token else options.limit
    picked, following = await _pick(entries, first, selector, limit)
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if following is not None:
        metadata["continue"] = _token(version, entries[following - 1].key, namespace)
        if selector.empty:
            metadata["remainingItemCount"] = len(entries) - following
    if view.form is Form.TABLE:
        table = view.table([], columns=True, metadata=metadata)
        del table["rows"]
        rows = await _sliced(picked, lambda entry: encode_json(view.row(entry)), _ROWS)
        head = encode_json(table)
        return json_response(200, b"".join((head[:-1], b',"rows":[', b",".join(rows), b"]}")))
    if kind.custom and view.form is Form.WHOLE:
        # Lists of custom resources always have the member.
        metadata.setdefault("continue", "")
    items = await _sliced(picked, view.item)
    return json_response(200, _list_body(kind, served, view.form, metadata, items))


def _list_body(kind: ServedKind, served: Served, form: Form, metadata: dict[str, Any], items: Sequence[bytes]) -> bytes:
    if form is Form.METADATA:
        type_ = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
    else:
        type_ = {"kind": kind.lists, "apiVersion": kind.api_version(served.name)}
    head = encode_json({**type_, "metadata": metadata})
    return b"".join((head[:-1], b',"items":[', b",".join(items), b"]}\n"))


def _snapshot(cluster: Cluster, kind: ServedKind, namespace: str, options: ListOptions) -> tuple[int, str, list[Entry]]:
    """The version of the list, the key to start at, and the entries at that version."""
    collection = cluster.collection(kind)
    current = cluster.store.version
    if options.token:
        version, start = _read_token(options.token, namespace)
        if version < 0:
            return current, start, collection.snapshot(namespace)
        if version > current:
            raise version_too_large(version, current)
        entries = collection.snapshot_at(version, namespace)
        if entries is None:
            fault = expired(_TOO_OLD)
            fault.metadata = {"continue": _token(-1, start.rstrip("\0"), namespace)}
            raise fault
        return version, start, entries
    asked = _version(options.version)
    if asked > current:
        raise version_too_large(asked, current)
    if options.match == "Exact":
        found = collection.snapshot_at(asked, namespace)
        if found is None:
            raise StatusError(410, "Expired", "The resourceVersion for the provided list is too old.")
        return asked, "", found
    return current, "", collection.snapshot(namespace)


async def _pick(
    entries: list[Entry], first: int, selector: ObjectSelector, limit: int
) -> tuple[list[Entry], int | None]:
    """The selected entries of one page, and the index of the first one that was not looked at."""
    if selector.empty:
        last = min(len(entries), first + limit) if limit else len(entries)
        return entries[first:last], last if last < len(entries) else None
    picked: list[Entry] = []
    for index in range(first, len(entries)):
        if index % (4 * _SLICE) == 0:
            await asyncio.sleep(0)
        if selector.matches(entries[index]):
            if limit and len(picked) == limit:
                return picked, index
            picked.append(entries[index])
    return picked, None


async def _sliced(entries: list[Entry], encode: Callable[[Entry], T], size: int = _SLICE) -> list[T]:
    shown: list[T] = []
    for start in range(0, len(entries), size):
        if start:
            await asyncio.sleep(0)
        shown += [encode(entry) for entry in entries[start : start + size]]
    return shown


def _token(version: int, key: str, namespace: str) -> str:
    """A continue token, in the form of the real server: it starts behind the last key of the page."""
    start = key.removeprefix(f"{namespace}/") if namespace else key
    raw = encode_json({"v": "meta.k8s.io/v1", "rv": version, "start": f"/{start}\0"})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read_token(token: str, namespace: str) -> tuple[int, str]:
    try:
        raw = decode_json(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, start = int(raw["rv"]), raw["start"]
        if raw["v"] != "meta.k8s.io/v1" or not start.startswith("/"):
            raise ValueError("incorrect encoded start key")
    except (
        binascii.Error,
        msgspec.DecodeError,
        UnicodeError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    return version, f"{namespace}/{start[1:]}" if namespace else start[1:]
