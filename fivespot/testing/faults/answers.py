"""Faults of whole responses: errors, lost connections, stale lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from fivespot.apiserver import ApiRequest, ApiResponse, DisconnectedError, Handler, StatusError

from .streams import BlockStream, close

__all__ = ["Fail", "Gone", "Refuse", "Reset", "StaleList", "Throttle"]

_JSON = "application/json"
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

Shape = Literal["json", "text", "html"]


@dataclass(frozen=True)
class Fail:
    """An error response; the request is not processed.

    :param shape: form of the body; proxies answer in HTML, some filters of the API server in plain text.
    """

    code: int = 500
    shape: Shape = "json"
    message: str = "injected fault"

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if self.shape == "json":
            return StatusError(self.code, _REASONS.get(self.code, ""), self.message).response()
        if self.shape == "text":
            return ApiResponse(self.code, [("Content-Type", "text/plain; charset=utf-8")], self.message.encode())
        page = f"<html><body><h1>{self.code}</h1>{self.message}</body></html>"
        return ApiResponse(self.code, [("Content-Type", "text/html")], page.encode())


@dataclass(frozen=True)
class Throttle:
    """429 as API priority and fairness answers: a ``Retry-After`` header and a plain text body.

    :param retry_after: value of the header in seconds.
    """

    retry_after: int = 1

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Retry-After", str(self.retry_after))]
        return ApiResponse(429, headers, b"Too many requests, please try again later.\n")


@dataclass(frozen=True)
class Gone:
    """A resource version that is too old.

    :param shape: ``event``: HTTP 200 and one ERROR event, as the API server answers a watch; ``http``: status 410;
        ``body``: HTTP 200 and a Status as the whole body, as seen behind proxies.
    """

    shape: Literal["event", "http", "body"] = "event"

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        fault = StatusError(410, _REASONS[410], "too old resource version: 1 (2)")
        if self.shape == "http":
            return fault.response()
        status = msgspec.json.encode(fault.status())
        if self.shape == "body":
            return ApiResponse(200, [("Content-Type", _JSON)], status)
        line = b'{"type":"ERROR","object":%b}\n' % status
        return ApiResponse(200, [("Content-Type", _JSON)], BlockStream([line]))


@dataclass(frozen=True)
class Refuse:
    """A refused connection; the request is not processed."""

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        raise DisconnectedError(refused=True)


@dataclass(frozen=True)
class Reset:
    """A connection that is reset before the response.

    :param after: reset after the request was processed.
    """

    after: bool = False

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if self.after:
            close(await handler(request))
        raise DisconnectedError


@dataclass
class StaleList:
    """Lists that are one request behind, as from an API server with a stale cache; the first is current."""

    _last: dict[tuple[str, tuple[tuple[str, str], ...]], ApiResponse] = field(default_factory=dict)

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        response = await handler(request)
        if not isinstance(response.body, bytes) or response.status != 200:
            return response
        asked = (request.path, tuple(sorted(pair for pair in request.query if pair[0] != "continue")))
        stale = self._last.get(asked, response)
        self._last[asked] = response
        return stale
