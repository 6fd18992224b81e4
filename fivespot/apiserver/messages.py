"""Requests and responses, independent of a transport."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import parse_qsl, unquote

from .json_codec import decode_json, encode_json

__all__ = ["ApiRequest", "ApiResponse", "Body", "DisconnectedError", "Stream", "json_response", "text_response"]


class DisconnectedError(Exception):
    """The connection is closed without a complete response.

    Raised by a middleware or by a stream's ``read``; the listener then closes the client's connection.

    :param refused: the connection is refused, so the client knows that the request was not processed.
    """

    def __init__(self, *, refused: bool = False) -> None:
        super().__init__("connection refused" if refused else "connection reset by peer")
        self.refused = refused


JSON = "application/json"


class Stream(Protocol):
    """A response body that arrives in blocks; the reader closes it."""

    async def read(self) -> bytes:
        """The next block, waiting for it; b"" once the answer has ended."""
        ...

    def close(self) -> None:
        """End the stream: a waiting reader gets b"". May be called twice."""
        ...


Body = bytes | Stream


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request.

    :param path: as received: percent-encoded, without the query.
    :param query: decoded pairs in their order.
    :param headers: by lower-case name.
    """

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def of(
        cls,
        method: str,
        target: str,
        body: bytes | Mapping[str, object] | list[object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiRequest:
        """Build a request from a target such as ``/api/v1/pods?limit=5``; objects are encoded as JSON."""
        path, _, query = target.partition("?")
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        if body is None:
            raw = b""
        else:
            raw = body if isinstance(body, bytes) else encode_json(body)
            sent.setdefault("content-type", JSON)
        return cls(method, path, parse_query(query), sent, raw)

    def parameter(self, name: str) -> str:
        """The first value of a query parameter, "" when there is none."""
        return next((value for key, value in self.query if key == name), "")

    def header(self, name: str) -> str:
        """A header by its name in lower case, "" when it was not sent."""
        return self.headers.get(name, "")


def parse_query(query: str) -> Sequence[tuple[str, str]]:
    """The parameters of a query string; invalid ones are dropped."""
    if not query:
        return ()
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        return ()


def decode_segment(segment: str) -> str:
    """Decode a percent-encoded path segment."""
    return unquote(segment, errors="replace")


@dataclass(slots=True)
class ApiResponse:
    """A response. Header names may repeat (``Warning``)."""

    status: int
    headers: list[tuple[str, str]]
    body: Body

    def header(self, name: str) -> str:
        """The first header of that name in any case, "" when there is none."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")

    def json(self) -> object:
        """Decode the body of a response that is not a stream."""
        assert isinstance(self.body, bytes)
        return decode_json(self.body)


def json_response(status: int, body: bytes, extra: Iterable[tuple[str, str]] = ()) -> ApiResponse:
    """A JSON response, ended by a newline as Go's encoder does."""
    return ApiResponse(status, [("Content-Type", JSON), *extra], body if body.endswith(b"\n") else body + b"\n")


def text_response(status: int, text: str) -> ApiResponse:
    """A plain text response, as for health checks and unknown paths."""
    return ApiResponse(status, [("Content-Type", "text/plain; charset=utf-8")], text.encode())
