"""Pure functions that build the request of each verb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from fivespot.runtime.objects import UNDECODABLE, Key, Resource, Selector

from .responses import Propagation
from .transport import Limits, Request

__all__ = [
    "delete_request",
    "demanded_version",
    "encode_body",
    "get_request",
    "json_headers",
    "page_request",
    "watch_request",
]

_JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PAGE_SIZE: Final = 1024 * 1024 * 1024
"""Bytes of the largest page: 500 objects at etcd's limit of 1.5 MB each, and more."""
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class _BodyMeta(msgspec.Struct, gc=False, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    resource_version: str | None = None


class _Body(msgspec.Struct, gc=False):
    metadata: _BodyMeta


class _Operation(msgspec.Struct, gc=False):
    op: str
    path: str
    value: Any = None


_body_decoder = msgspec.json.Decoder(_Body)
_operations_decoder = msgspec.json.Decoder(list[_Operation])


def json_headers(accept: str = "", *, content_type: str = "") -> dict[str, str]:
    """Headers that accept JSON, preferably as the media type ``accept``."""
    headers = {"Accept": f"{accept},{_JSON};q=0.9" if accept else _JSON}
    if content_type:
        headers["Content-Type"] = content_type
    return headers


def encode_body(body: Mapping[str, Any] | bytes) -> tuple[bytes, Key]:
    """Encode a body as JSON and read the key from its metadata (missing parts are "").

    :raises ValueError: the body has no metadata.
    """
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    try:
        metadata = _body_decoder.decode(raw).metadata
    except UNDECODABLE as error:
        raise ValueError(f"a body to write needs metadata: {error}") from error
    return raw, Key(metadata.namespace or "", metadata.name or "")


def demanded_version(request: Request) -> int | None:
    """Read the resourceVersion that an update demands of the object; None if it applies to any."""
    try:
        if request.headers.get("Content-Type") == JSON_PATCH:
            tests = [each for each in _operations_decoder.decode(request.body or b"") if each.op == "test"]
            found = [each.value for each in tests if each.path == "/metadata/resourceVersion"]
            version = found[0] if found else None
        else:
            version = _body_decoder.decode(request.body or b"").metadata.resource_version
        return int(version) if isinstance(version, str) else None
    except UNDECODABLE:
        return None


def get_request(resource: Resource, key: Key, limits: Limits, *, metadata_only: bool) -> Request:
    """Build the GET of one object."""
    return Request(
        "GET",
        resource.object_path(key),
        limits,
        {},
        json_headers(_METADATA if metadata_only else ""),
        description=f"get {resource.qualified} {key}",
        name=key.name,
    )


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
    """Build the GET of one page of a collection."""
    limits = replace(limits, size=_PAGE_SIZE)
    query = selector.query()
    if limit:
        query["limit"] = str(limit)
    if continue_token:
        # The token contains the version; the API rejects both together.
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
        json_headers(_METADATA_LIST if metadata_only else ""),
        description=f"list {resource.qualified}{_where(namespace)}",
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
    """Build the GET that watches a collection."""
    query = {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(max(1, round(server_timeout))),
        **selector.query(),
    }
    if version:
        query["resourceVersion"] = version
    if initial_events:
        # The API requires the match with sendInitialEvents (KEP-3157).
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    return Request(
        "GET",
        resource.collection_path(namespace),
        limits,
        query,
        json_headers(_METADATA if metadata_only else ""),
        description=f"watch {resource.qualified}{_where(namespace)}",
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
    """Build the DELETE of the object with one uid.

    :raises ValueError: the uid is empty.
    """
    description = f"delete {resource.qualified} {key}"
    if not uid:
        raise ValueError(f"{description}: no uid given")
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid} if version is None else {"uid": uid, "resourceVersion": str(version)},
        "propagationPolicy": propagation.value,
    }
    if dry_run:
        # In the body: with DeleteOptions there the server ignores dryRun in the query, and would delete.
        options["dryRun"] = ["All"]
    return Request(
        "DELETE",
        resource.object_path(key),
        limits,
        {},
        json_headers(content_type=_JSON),
        msgspec.json.encode(options),
        description,
        key.name,
    )


def _where(namespace: str | None) -> str:
    return f" in {namespace}" if namespace else ""
