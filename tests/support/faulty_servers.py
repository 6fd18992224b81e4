"""Servers and transports that misbehave on purpose, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fivespot.runtime import TransportError
from fivespot.runtime.client import ByteStream, Request, Response

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


class ManualClock:
    """A clock that moves only when a test advances it."""

    def __init__(self, start: datetime = NOON) -> None:
        self._start = start
        self.elapsed = 0.0

    def monotonic(self) -> float:
        return 1000.0 + self.elapsed

    def boottime(self) -> float:
        return self.monotonic()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.elapsed)

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds


class FixedRandom:
    """Always the same number."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def random(self) -> float:
        return self.value

    def uniform(self, a: float, b: float) -> float:
        return a + (b - a) * self.value


# -- a transport without a network -----------------------------------------------------------------------------------


class FakeStream:
    """A stream of given lines; an exception in place of a line is raised."""

    def __init__(
        self,
        lines: Iterable[bytes | TransportError] = (),
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        rest: bytes | TransportError = b"",
    ) -> None:
        self._lines = list(lines)
        self._rest = rest
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self.closed = 0

    async def readline(self) -> bytes:
        line = self._lines.pop(0) if self._lines else b""
        if isinstance(line, TransportError):
            raise line
        return line

    async def read_rest(self, limit: int) -> bytes:
        if isinstance(self._rest, TransportError):
            raise self._rest
        return self._rest[:limit]

    async def close(self) -> None:
        self.closed += 1


Step = Response | FakeStream | TransportError


class FakeTransport:
    """Answers requests from a script, in order, and remembers them."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.requests: list[Request] = []
        self.closed = False

    async def request(self, request: Request) -> Response:
        step = self._next(request)
        assert isinstance(step, Response), "the script has a stream where a whole answer is asked for"
        return step

    async def stream(self, request: Request) -> ByteStream:
        step = self._next(request)
        assert isinstance(step, FakeStream), "the script has a whole answer where a stream is asked for"
        return step

    async def close(self) -> None:
        self.closed = True

    def _next(self, request: Request) -> Response | FakeStream:
        self.requests.append(request)
        assert self.steps, f"unexpected request: {request.description}"
        step = self.steps.pop(0)
        if isinstance(step, TransportError):
            raise step
        return step


def answer(body: Any, status: int = 200, **headers: str) -> Response:
    """A JSON answer (or text, from a str)."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()}, raw)


def status_body(code: int, reason: str, message: str = "no", **details: Any) -> dict[str, Any]:
    """A Status object as the API server writes it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
    return {**body, "code": code, **({"details": details} if details else {})}


# -- a server of raw bytes -------------------------------------------------------------------------------------------


@dataclass
class Exchange:
    """One request as it came over the wire, and the means to answer it, properly or not."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _closed: asyncio.Event = field(default_factory=asyncio.Event)
    keep: bool = True
    fields: list[tuple[str, str]] = field(default_factory=list)
    """The headers in the order and the spelling in which they came, repeated ones too."""

    @property
    def peer_certificate(self) -> dict[str, str]:
        """The subject of the client's certificate, {} if it showed none."""
        shown = self.writer.get_extra_info("peercert") or {}
        return {name: value for part in shown.get("subject", ()) for name, value in part}

    async def send(self, data: bytes) -> None:
        """Raw bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(
        self, status: int, body: bytes = b"", *, content_type: str = "application/json", **headers: str
    ) -> None:
        """A whole, proper answer."""
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
        await self.send(head.encode() + body)

    async def start_chunks(self) -> None:
        """The head of an answer whose body comes in chunks."""
        await self.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        """One chunk of the body; an empty one ends it."""
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def cut(self) -> None:
        """Reset the connection."""
        self.keep = False
        self.writer.transport.abort()

    async def hang_up(self) -> None:
        """Close the connection in an orderly way."""
        self.keep = False
        self.writer.close()

    async def silence(self) -> None:
        """Say nothing more until the server stops: a half-open connection as the client sees it."""
        self.keep = False
        await self._closed.wait()


Responder = Callable[[Exchange], Awaitable[None]]


class WireServer:
    """An HTTP/1.1 server on loopback that hands every request to ``respond``."""

    def __init__(self, respond: Responder) -> None:
        self.respond = respond
        self.seen: list[Exchange] = []
        self.connections = 0
        self.url = ""
        self.port = 0
        self._stopped = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._handlers: set[asyncio.Task[None]] = set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._open.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            while True:
                exchange = await self._read(reader, writer, number)
                self.seen.append(exchange)
                await self.respond(exchange)
                if not exchange.keep:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            return
        finally:
            self._open.discard(writer)
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> Exchange:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        fields = [(name, value) for name, _, value in (line.partition(": ") for line in head[1:] if line)]
        headers = {name.lower(): value for name, value in fields}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Exchange(method, target, headers, body, number, reader, writer, self._stopped, fields=fields)

    async def stop(self) -> None:
        self._stopped.set()
        for writer in self._open:
            writer.transport.abort()
        if self._handlers:
            await asyncio.wait(self._handlers, timeout=5)


@contextlib.asynccontextmanager
async def serving(respond: Responder, tls: ssl.SSLContext | None = None) -> AsyncIterator[WireServer]:
    """A running :class:`WireServer`."""
    wire = WireServer(respond)
    server = await asyncio.start_server(wire.handle, "127.0.0.1", 0, ssl=tls, limit=2**24)
    wire.port = server.sockets[0].getsockname()[1]
    wire.url = f"{'https' if tls else 'http'}://127.0.0.1:{wire.port}"
    try:
        yield wire
    finally:
        server.close()
        # A turn for connections that are just being accepted to get a handler.
        await asyncio.sleep(0)
        await wire.stop()
        await server.wait_closed()
