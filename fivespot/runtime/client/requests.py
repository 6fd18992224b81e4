"""Requests of the verbs as pure values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fivespot.runtime.objects import Key, Resource, Selector

from .responses import Propagation, decode_status
from .transport import Limits, Request

__all__ = ["accepting", "delete_request", "encode_body", "get_request", "names", "page_request", "watch_request"]

_JSON: Final = "application/json"
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class _WrittenMeta(msgspec.Struct, gc=False):
    name: str | None = None
    namespace: str | None = None


class _Written(msgspec.Struct, gc=False):
    metadata: _WrittenMeta


_written_decoder = msgspec.json.Decoder(_Written)


def accepting(special: str = "", *, content_type: str = "") -> dict[str, str]:
    """Headers that ask for JSON, in a special form if the server has it."""
    headers = {"Accept": f"{special},{_JSON};q=0.9" if special else _JSON}
    if content_type:
        headers["Content-Type"] = content_type
    return headers


def encode_body(body: Mapping[str, Any] | bytes) -> tuple[bytes, Key]:
    """The JSON of a body, and the key in its metadata ("" for what it does not say).

    :raises ValueError: it has no metadata.
    """
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    try:
        metadata = _written_decoder.decode(raw).metadata
    except msgspec.DecodeError as error:
        raise ValueError(f"a body to write needs metadata: {error}") from error
    return raw, Key(metadata.namespace or "", metadata.name or "")


def names(body: bytes, name: str) -> bool:
    """Whether the Status in a body is about this object, and not about a resource that is not served (yet)."""
    status = decode_status(body)
    return status is not None and status.object_name == name


def get_request(resource: Resource, key: Key, limits: Limits, *, metadata_only: bool) -> Request:
    """GET of one object."""
    headers = accepting(_METADATA if metadata_only else "")
    return Request("GET", resource.object_path(key), limits, {}, headers, what=f"get {resource.qualified} {key}")


def page_request(
    resource: Resource,
    namespace: str | None,
    limits: Limits,
    *,
    selector: Selector,
    metadata_only: bool,
    limit: int,
    continue_token: str = "",
    version: str | None = None,
    match: str | None = None,
) -> Request:
    """GET of one page of a collection."""
    query = selector.query()
    if limit:
        query["limit"] = str(limit)
    if continue_token:
        # The token carries the version; the API refuses both together.
        query["continue"] = continue_token
    else:
        if version is not None:
            query["resourceVersion"] = version
        if match is not None:
            query["resourceVersionMatch"] = match
    return Request(
        "GET",
        resource.collection_path(namespace),
        limits,
        query,
        accepting(_METADATA_LIST if metadata_only else ""),
        what=f"list {resource.qualified}{_where(namespace)}",
    )


def watch_request(
    resource: Resource,
    namespace: str | None,
    limits: Limits,
    *,
    selector: Selector,
    metadata_only: bool,
    version: str,
    initial_events: bool,
    server_timeout: float,
) -> Request:
    """GET of the events of a collection."""
    query = {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(max(1, round(server_timeout))),
        **selector.query(),
    }
    if version:
        query["resourceVersion"] = version
    if initial_events:
        # Without the match the API refuses sendInitialEvents (KEP-3157).
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    return Request(
        "GET",
        resource.collection_path(namespace),
        limits,
        query,
        accepting(_METADATA if metadata_only else ""),
        what=f"watch {resource.qualified}{_where(namespace)}",
    )


def delete_request(
    resource: Resource,
    key: Key,
    limits: Limits,
    *,
    uid: str,
    version: int | None,
    propagation: Propagation,
    dry_run: bool,
) -> Request:
    """DELETE of the object of one uid.

    :raises ValueError: no uid.
    """
    what = f"delete {resource.qualified} {key}"
    if not uid:
        raise ValueError(f"{what}: no uid given")
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid} if version is None else {"uid": uid, "resourceVersion": str(version)},
        "propagationPolicy": propagation.value,
    }
    if dry_run:
        # In the body: a server that gets options there does not look at those in the query, and deletes.
        options["dryRun"] = ["All"]
    return Request(
        "DELETE",
        resource.object_path(key),
        limits,
        {},
        accepting(content_type=_JSON),
        msgspec.json.encode(options),
        what,
    )


def _where(namespace: str | None) -> str:
    return f" in {namespace}" if namespace else ""
