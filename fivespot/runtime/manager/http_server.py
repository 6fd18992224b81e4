"""A small HTTP/1.1 server for probes, metrics and debug views, with limits on everything that a peer can do."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs

import httptools
import structlog

from fivespot.runtime.telemetry import LogLimiter

__all__ = ["HttpServer", "ServerRequest", "ServerResponse", "raise_descriptor_limit"]

MAX_CONNECTIONS: Final = 256
"""Of one port. Prometheus and kubelet hold a handful."""
HEAD_SECONDS: Final = 5.0
"""From the opening of a connection, or the first byte of a request, to the end of the request's head."""
IDLE_SECONDS: Final = 75.0
"""Between two requests of one connection: more than the usual scrape interval of a minute."""
SEND_SECONDS: Final = 30.0
"""For a peer to take a response."""
HEAD_BYTES: Final = 16 * 1024
BODY_BYTES: Final = 64 * 1024
"""Of a request: nothing here takes a body, and a small one is skipped."""
_DESCRIPTORS: Final = 65_536
_LOG_INTERVAL: Final = 60.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request, once its head is complete.

    :param peer: the address of the other side, "" where it is unknown.
    """

    method: str
    path: str
    query: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    peer: str = ""


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """A whole response."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"

    @classmethod
    def of_text(cls, text: str, status: int = 200) -> Self:
        """A response of plain text."""
        return cls(status, text.encode())


Handler = Callable[[ServerRequest], Awaitable[ServerResponse]]


class HttpServer:
    """An async context manager that listens while it is entered.

    Every connection has to send the head of a request within 5 seconds, and may be idle for 75 between two. When there
    are as many connections as are allowed, a new one takes the place of the one that has been without a request for
    longest, so that peers which only connect cannot keep others out. What a peer sends is logged once a minute at most.

    :param what: the port in logs, such as ``health``.
    :param tls: the context for TLS on the next connection; None for no TLS. The handshake has to be over within the
        time for the head of a request.
    """

    def __init__(self, handler: Handler, *, what: str, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        self._handler = handler
        self._tls = tls
        self._what = what
        self._complaints = LogLimiter(_LOG_INTERVAL)
        self._waiting: OrderedDict[_Connection | _Handshake, None] = OrderedDict()
        self._all: set[_Connection | _Handshake] = set()
        self._server: asyncio.Server | None = None
        self._tasks = asyncio.TaskGroup()

    async def listen(self, address: str, port: int) -> int:
        """Start to listen; the port in use.

        :param address: an IP address of this machine; "" for all of them, IPv6 and IPv4.
        :raises OSError: the address or the port cannot be used.
        """
        loop = asyncio.get_running_loop()
        if address:
            where: dict[str, Any] = {"host": address, "port": port}
        else:
            where = {"sock": _all_addresses(port)}
        connection = _Connection if self._tls is None else _Handshake
        self._server = await loop.create_server(lambda: connection(self), **where, backlog=MAX_CONNECTIONS)
        actual: int = self._server.sockets[0].getsockname()[1]
        return actual

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._all):
            connection.close()
        await self._tasks.__aexit__(None, None, None)
        if self._server is not None:
            await self._server.wait_closed()

    # Called by connections ---------------------------------------------------------------------------------------

    def opened(self, connection: _Connection | _Handshake) -> None:
        self._all.add(connection)
        self.waits(connection)
        if len(self._all) > MAX_CONNECTIONS:
            if self._waiting:
                oldest, _ = self._waiting.popitem(last=False)
                oldest.close()
            self.complain("too many connections", connections=MAX_CONNECTIONS)

    def waits(self, connection: _Connection | _Handshake) -> None:
        """The connection has no request under way."""
        self._waiting[connection] = None

    def lost(self, connection: _Connection | _Handshake) -> None:
        self._all.discard(connection)
        self._waiting.pop(connection, None)

    def greet(self, handshake: _Handshake, transport: asyncio.Transport) -> None:
        """Begin TLS on a new connection."""
        self._tasks.create_task(self._start_tls(handshake, transport))

    async def _start_tls(self, handshake: _Handshake, transport: asyncio.Transport) -> None:
        assert self._tls is not None
        loop = asyncio.get_running_loop()
        try:
            encrypted = await loop.start_tls(
                transport,
                handshake.connection,
                self._tls(),
                server_side=True,
                ssl_handshake_timeout=HEAD_SECONDS,
                ssl_shutdown_timeout=HEAD_SECONDS,
            )
        except (OSError, ssl.SSLError, TimeoutError):
            self.complain("a TLS handshake failed")
            transport.abort()
            return
        finally:
            self.lost(handshake)
        # None: the connection was lost as soon as it was made.
        if encrypted is not None:
            handshake.connection.begin(encrypted)

    def begin(self, connection: _Connection, request: ServerRequest) -> None:
        """Answer a request."""
        self._waiting.pop(connection, None)
        self._tasks.create_task(self._answer(connection, request))

    def complain(self, what: str, **details: Any) -> None:
        """Log something that a peer did."""
        suppressed = self._complaints.allow(what, asyncio.get_running_loop().time())
        if suppressed is not None:
            _log.warning(what, port=self._what, suppressed=suppressed, **details)

    async def _answer(self, connection: _Connection, request: ServerRequest) -> None:
        try:
            if request.method not in {"GET", "HEAD"}:
                response = ServerResponse.of_text("only GET and HEAD are answered\n", 405)
            else:
                response = await self._handler(request)
        except Exception as error:
            self.complain("a request failed", path=request.path, error=repr(error))
            response = ServerResponse.of_text("internal error\n", 500)
        connection.respond(request, response)


class _Handshake(asyncio.Protocol):
    """A connection until TLS is established: it counts from its first moment, and may be dropped like any other."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self.connection = _Connection(server)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        assert self._transport is not None
        # TLS takes over before the first byte is read.
        self._transport.pause_reading()
        self._server.opened(self)
        self._server.greet(self, self._transport)

    def close(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()


class _Connection(asyncio.Protocol):
    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._parser: Any = httptools.HttpRequestParser(self)
        self._timer: asyncio.TimerHandle | None = None
        self._peer = ""
        self._early: bytes | None = None
        self._lost = False
        self._reset()

    def _reset(self) -> None:
        self._target = b""
        self._headers: dict[str, str] = {}
        self._size = 0
        self._head_done = False
        self._busy = False
        self._pipelined = False
        self._keep = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername")
        self._peer = str(peer[0]) if peer else ""
        self._limit(HEAD_SECONDS)
        self._server.opened(self)

    def begin(self, transport: asyncio.BaseTransport) -> None:
        """Take over a connection on which TLS is established, with what the peer has sent since."""
        if self._lost:
            transport.close()
            return
        early, self._early = self._early, None
        self.connection_made(transport)
        if early:
            self.data_received(early)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        self._stop_timer()
        self._transport = self._parser = None
        self._server.lost(self)

    def close(self) -> None:
        """Drop the connection."""
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._transport is None and not self._lost:
            # TLS hands on data before the task that waits for its handshake runs. A read is bounded, and one is enough.
            self._early = (self._early or b"") + data[:HEAD_BYTES]
            return
        if self._busy or self._transport is None:
            # Reading is paused while a request is answered; what came before that is pipelined.
            self.close()
            return
        if not self._size:
            self._limit(HEAD_SECONDS)
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, "no protocol to switch to\n")
        except httptools.HttpParserError:
            self._server.complain("a request cannot be read", peer=self._peer)
            self._refuse(400, "not an HTTP request\n")
        else:
            if self._size > (BODY_BYTES if self._head_done else HEAD_BYTES) and not self._busy:
                self._refuse(413 if self._head_done else 431, "the request is too large\n")

    # llhttp ------------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        # Answered one by one: who sends several at once gets the first answer and a closed connection.
        self._pipelined = self._busy

    def on_url(self, url: bytes) -> None:
        if not self._busy:
            self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._busy:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._head_done = True

    def on_message_complete(self) -> None:
        if self._transport is None or self._busy:
            return
        self._busy = True
        # llhttp knows this only now.
        self._keep = self._parser.should_keep_alive()
        self._stop_timer()
        self._transport.pause_reading()
        path, _, query = self._target.decode("latin-1").partition("?")
        method = self._parser.get_method().decode("latin-1")
        values = parse_qs(query, keep_blank_values=True, max_num_fields=100) if query.count("&") < 100 else {}
        self._server.begin(self, ServerRequest(method, path, values, self._headers, self._peer))

    # Answers -----------------------------------------------------------------------------------------------------

    def respond(self, request: ServerRequest, response: ServerResponse) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        keep = self._keep and not self._pipelined
        self._send(response, keep=keep, with_body=request.method != "HEAD")
        if not keep:
            self._transport.close()
            self._limit(SEND_SECONDS)
            return
        self._reset()
        # A peer that does not take its response does not get another.
        self._limit(SEND_SECONDS if self._transport.get_write_buffer_size() else IDLE_SECONDS)
        self._server.waits(self)
        self._transport.resume_reading()

    def _refuse(self, status: int, text: str) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._send(ServerResponse.of_text(text, status), keep=False, with_body=True)
            self._transport.close()
            self._limit(HEAD_SECONDS)

    def _send(self, response: ServerResponse, *, keep: bool, with_body: bool) -> None:
        assert self._transport is not None
        head = (
            f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n"
            f"Content-Type: {response.content_type}\r\nContent-Length: {len(response.body)}\r\n"
            f"X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
            + ("Allow: GET, HEAD\r\n" if response.status == 405 else "")
            + ("" if keep else "Connection: close\r\n")
            + "\r\n"
        )
        self._transport.write(head.encode("latin-1") + (response.body if with_body else b""))

    def _limit(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _all_addresses(port: int) -> socket.socket:
    """One socket for both families, so that a free port is the same in both; IPv4 alone on a host without IPv6."""
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files towards the hard one: each watch, request and peer holds a descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
