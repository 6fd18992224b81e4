"""The transport protocol, which separates the client from the network, and its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

__all__ = ["ByteStream", "Limits", "Request", "Response", "SendPermit", "Transport"]


OBJECT_SIZE: Final = 32 * 1024 * 1024
"""Bytes of the largest response about one object: etcd's limit is 1.5 MB, other stores and discovery may need more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request; times in seconds.

    :param connect: for connecting to the server, TLS included.
    :param read: between two reads of a response; for a watch, the idle limit after which the connection counts as
        half-open.
    :param total: for the whole request; None for a watch, which is open-ended.
    :param size: bytes of a response that is read whole, decompressed, and of a line of one that is streamed.
    """

    connect: float
    read: float
    total: float | None
    size: int = OBJECT_SIZE


class SendPermit(Protocol):
    """Permission to send a request, which may end while the request is on its way to the kernel."""

    def check(self) -> None:
        """Return if the permission is valid now.

        :raises NotLeaderError: it has ended or cannot be proved.
        """
        ...

    def add_end_callback(self, callback: Callable[[], None]) -> None:
        """Have a function called once when the permission ends."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request without host and credentials, which the transport adds.

    :param description: the request in errors and logs, such as ``list deployments.apps``.
    :param name: the existing object that the request is for; "" for collections and where the object may be missing.
    :param permit: checked by the transport whenever it hands bytes of the request to the kernel; None sends always.
    """

    method: str
    path: str
    limits: Limits
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    description: str = ""
    name: str = ""
    permit: SendPermit | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ByteStream(Protocol):
    """A response that is read line by line. The caller owns it and closes it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def readline(self) -> bytes:
        """Read the next line without its newline; b"" at a clean end of the stream.

        A line that was truncated by the end of the connection is never returned.

        :raises ProtocolError: the line is longer than :attr:`Limits.size`.
        :raises BrokenStreamError: the connection ended in the middle of a line or of the response.
        :raises DeadlineError: nothing arrived within the idle limit.
        """
        ...

    async def read_rest(self, limit: int) -> bytes:
        """Read the rest of the response, at most ``limit`` bytes: for the body of a failure."""
        ...

    async def close(self) -> None:
        """Release the connection at once; idempotent."""
        ...


class Transport(Protocol):
    """Carries requests to an API server.

    Implementations raise :class:`TransportError` and subclasses, and :class:`NotLeaderError` from a request's permit.
    """

    async def request(self, request: Request) -> Response:
        """Send a request and read the whole response, whatever its status."""
        ...

    async def stream(self, request: Request) -> ByteStream:
        """Send a request and return once the response headers have arrived."""
        ...

    async def close(self) -> None:
        """Close all connections. The transport cannot be used afterwards."""
        ...
