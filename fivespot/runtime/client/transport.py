"""The seam between the runtime and the network: two methods, values in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["ByteStream", "Limits", "Request", "Response", "Transport"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a network call may take, in seconds.

    :param connect: to reach the server, TLS included.
    :param read: between two reads of an answer; for a watch, the idle limit after which the connection counts as
        half-open.
    :param total: the whole call; None for a watch, which has no natural end.
    """

    connect: float
    read: float
    total: float | None


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, without host and credentials, which are the transport's.

    :param what: words for errors and metrics, such as ``list deployments.apps``.
    """

    method: str
    path: str
    limits: Limits
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    what: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ByteStream(Protocol):
    """An answer that arrives line by line. Owned by the caller, who closes it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def readline(self) -> bytes:
        """The next line without its newline, of any length; b"" at a clean end of the stream.

        A line that was cut by the end of the connection is never returned as if it were whole.

        :raises BrokenStreamError: the connection ended in the middle of a line or of the answer.
        :raises DeadlineError: nothing arrived within the idle limit.
        """
        ...

    async def read_rest(self, limit: int) -> bytes:
        """The rest of the answer, at most ``limit`` bytes: for the body of a failure."""
        ...

    async def close(self) -> None:
        """Let go of the connection at once; safe to call twice."""
        ...


class Transport(Protocol):
    """Carries requests to an API server. Implementations raise only :class:`TransportError` and subclasses."""

    async def request(self, request: Request) -> Response:
        """Send a request and read the whole answer, whatever its status."""
        ...

    async def stream(self, request: Request) -> ByteStream:
        """Send a request and return once the headers of the answer are there."""
        ...

    async def close(self) -> None:
        """Close all connections. The transport cannot be used afterwards."""
        ...
