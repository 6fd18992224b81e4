"""Faults of watch events: lost, duplicate and stale events, missing bookmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from fivespot.apiserver import ApiRequest, ApiResponse, Handler

from .answers import Fail
from .streams import EditedStream

__all__ = ["Duplicate", "EndMarker", "LoseEvents", "NoBookmarks", "Stale"]

_INITIAL_END = "k8s.io/initial-events-end"


def _event(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(line)
    return found


async def _edit(request: ApiRequest, handler: Handler, edit: Callable[[bytes], bytes]) -> ApiResponse:
    response = await handler(request)
    if isinstance(response.body, bytes):
        return response
    return ApiResponse(response.status, response.headers, EditedStream(response.body, edit))


@dataclass(frozen=True)
class NoBookmarks:
    """A watch without bookmarks, also the one that ends a streaming list."""

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        return await _edit(request, handler, lambda line: b"" if _event(line)["type"] == "BOOKMARK" else line)


@dataclass(frozen=True)
class LoseEvents:
    """Events that are never sent, as by a broken watch cache.

    :param type: ADDED, MODIFIED or DELETED; "" for all of them.
    :param name: name of the object; "" for all.
    """

    type: str = "DELETED"
    name: str = ""

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        return await _edit(request, handler, self._keep)

    def _keep(self, line: bytes) -> bytes:
        event = _event(line)
        if event["type"] in {"BOOKMARK", "ERROR"} or self.type not in {"", event["type"]}:
            return line
        return line if self.name not in {"", event["object"]["metadata"]["name"]} else b""


@dataclass(frozen=True)
class Duplicate:
    """Every event is sent twice."""

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        return await _edit(request, handler, lambda line: line if _event(line)["type"] == "BOOKMARK" else line * 2)


@dataclass(frozen=True)
class Stale:
    """After each event the previous event of the object is sent again."""

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        before: dict[str, bytes] = {}

        def edit(line: bytes) -> bytes:
            event = _event(line)
            if event["type"] in {"BOOKMARK", "ERROR"}:
                return line
            uid = event["object"]["metadata"]["uid"]
            older = before.get(uid, b"")
            before[uid] = line.replace(b'"type":"ADDED"', b'"type":"MODIFIED"', 1)
            return line + older

        return await _edit(request, handler, edit)


@dataclass(frozen=True)
class EndMarker:
    """A server or proxy without support for streaming lists.

    :param how: ``refused``: 422 for the parameters; ``absent``: the objects come, the bookmark that ends them never
        does; ``bare``: the bookmark comes without the annotation that makes it the end.
    """

    how: Literal["refused", "absent", "bare"] = "absent"

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if request.parameter("sendInitialEvents") != "true":
            return await handler(request)
        if self.how == "refused":
            fail = Fail(422, message="sendInitialEvents is forbidden for watch unless the WatchList feature is enabled")
            return await fail.apply(request, handler)
        return await _edit(request, handler, self._without)

    def _without(self, line: bytes) -> bytes:
        event = _event(line)
        if event["type"] != "BOOKMARK" or _INITIAL_END not in event["object"]["metadata"].get("annotations", {}):
            return line
        if self.how == "absent":
            return b""
        event["object"]["metadata"].pop("annotations")
        return msgspec.json.encode(event) + b"\n"
