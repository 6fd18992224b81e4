"""What a front does to a client instead of answering it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import parse_qsl, unquote

import msgspec

__all__ = ["ApiRequest", "ApiResponse", "Body", "DisconnectedError", "Stream", "json_response", "text_response"]


class DisconnectedError(Exception):
    """The connection ends here, without an answer or in the middle of one.

    Raised by a middleware or by a stream's ``read``; a front then drops the client's connection.

    :param refused: as if the connection had never been made, so that the client knows that nothing was done.
    """

    def __init__(self, *, refused: bool = False) -> None:
        super().__init__("connection refused" if refused else "connection reset by peer")
        self.refused = refused


JSON = "application/json"


class Stream(Protocol):
    """An answer that arrives in blocks; whoever reads it closes it."""

    async def read(self) -> bytes:
        """The next block, waiting for it; b"" once the answer has ended."""
        ...

    def close(self) -> None:
        """Stop; a reader that waits gets b"". Safe to call twice."""
        ...


Body = bytes | Stream


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request.

    :param path: as it was sent, still percent-encoded, without the query.
    :param query: decoded names and values in their order.
    :param headers: names in lower case.
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
        """A request from a target such as ``/api/v1/pods?limit=5``; a body that is not bytes is sent as JSON."""
        path, _, query = target.partition("?")
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        if body is None:
            raw = b""
        else:
            raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
            sent.setdefault("content-type", JSON)
        return cls(method, path, parse_query(query), sent, raw)

    def parameter(self, name: str) -> str:
        """The first value of a query parameter, "" when there is none."""
        return next((value for key, value in self.query if key == name), "")

    def header(self, name: str) -> str:
        """A header by its name in lower case, "" when it was not sent."""
        return self.headers.get(name, "")


def parse_query(query: str) -> Sequence[tuple[str, str]]:
    """The parameters of a query string; whatever cannot be parsed is left out."""
    if not query:
        return ()
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        return ()


def decode_segment(segment: str) -> str:
    """One percent-encoded segment of a path."""
    return unquote(segment, errors="replace")


@dataclass(slots=True)
class ApiResponse:
    """An answer. Header names may repeat (``Warning``)."""

    status: int
    headers: list[tuple[str, str]]
    body: Body

    def header(self, name: str) -> str:
        """The first header of that name in any case, "" when there is none."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")

    def json(self) -> object:
        """The decoded body of a whole answer."""
        assert isinstance(self.body, bytes)
        return msgspec.json.decode(self.body)


def json_response(status: int, body: bytes, extra: Iterable[tuple[str, str]] = ()) -> ApiResponse:
    """An answer of encoded JSON, ended by a newline as Go's encoder does."""
    return ApiResponse(status, [("Content-Type", JSON), *extra], body if body.endswith(b"\n") else body + b"\n")


def text_response(status: int, text: str) -> ApiResponse:
    """A plain text answer, such as those of health checks and of paths that nothing serves."""
    return ApiResponse(status, [("Content-Type", "text/plain; charset=utf-8")], text.encode())
