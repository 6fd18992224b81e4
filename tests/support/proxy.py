"""A network between the manager and its server that can be broken in chosen ways.

The proxy ends TLS with the server's own certificate, so that it can tell requests apart; a bearer token passes through
it unchanged. Its event loop runs in a thread of its own; all methods may be called from any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from controlplane import ControlPlane
from harness import SERVICE_ACCOUNT, SYSTEM_NAMESPACE
from harness.wait import eventually

T = TypeVar("T")

_REQUEST = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (\S+) HTTP/1\.1\r\n")
_BLOCK = 64 * 1024
_LINGER_SECONDS = 5.0
"""How long a request that arrives late has, before its sender's hanging up arrives too."""


class Seen(NamedTuple):
    """A request that reached the proxy.

    :param at: on the monotonic clock.
    :param sent_on: whether it was passed on at once; not so if it was swallowed or held.
    """

    at: float
    method: str
    path: str
    sent_on: bool


@dataclass(eq=False)
class _Connection:
    """One connection of the client with its counterpart to the server."""

    raw: socket.socket
    lost: bool
    """Bytes of it were swallowed; it stays silent for ever, like one whose state a router has forgotten."""
    held: bool = False
    client: asyncio.StreamWriter | None = None
    server: asyncio.StreamWriter | None = None


class Proxy:
    """A TCP proxy that forwards everything until a fault is switched on. A context manager.

    :param plane: whose API server is behind it.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._port = 0
        self._silent = False
        self._held: bytes | None = None
        self._released = asyncio.Event()
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.seen: list[Seen] = []
        """All requests so far, those that went nowhere included."""
        self._to_client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._to_client.load_cert_chain(plane.credentials.cert_file, plane.credentials.key_file)
        self._to_server = ssl.create_default_context(cafile=str(plane.ca_file))

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig of the manager's ServiceAccount that leads through here."""
        self._plane.service_account_kubeconfig(SYSTEM_NAMESPACE, SERVICE_ACCOUNT, path)
        path.write_text(path.read_text().replace(self._plane.url, self.url))
        return path

    # Faults ------------------------------------------------------------------------------------------------------

    def blackhole(self) -> None:
        """Drop all data in both directions without closing; new connections are accepted and get no data either."""
        self._call(self._do(silent=True))

    def cut(self) -> None:
        """Reset every connection there is; new ones pass."""
        self._call(self._reset())

    def refuse(self) -> None:
        """Refuse new connections and reset those there are."""
        self._call(self._close_listener())
        self._call(self._reset())

    def heal(self) -> None:
        """New connections pass again. Those that lost bytes stay silent; those that are held stay held."""
        self._call(self._do(silent=False))
        if self._listener is None:
            self._call(self._listen())

    def hold(self, needle: bytes) -> None:
        """From now on keep what the client sends on a connection from the first block on that holds ``needle``.

        What the server sends passes, and a black hole leaves it alone. If the client hangs up meanwhile, the server
        learns of it only well after the rest.
        """
        self._call(self._do(held=needle))

    def held(self, timeout: float = 15.0) -> Seen:
        """Wait until something is held; the last request that was not passed on."""

        def check() -> Seen:
            assert any(connection.held for connection in list(self._connections)), "nothing is held"
            return next(seen for seen in reversed(list(self.seen)) if not seen.sent_on)

        return eventually(check, timeout, what="a request is held")

    def release(self) -> None:
        """Hold no more, and send on what was kept."""
        self._call(self._release())

    # Inside the loop ---------------------------------------------------------------------------------------------

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _do(self, *, silent: bool | None = None, held: bytes | None = None) -> None:
        if silent is not None:
            self._silent = silent
        if silent:
            for connection in self._connections:
                connection.lost = not connection.held
        if held is not None:
            self._held = held
            self._released.clear()

    async def _release(self) -> None:
        self._held = None
        self._released.set()

    async def _listen(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        listener.listen(128)
        listener.setblocking(False)
        self._port = listener.getsockname()[1]
        self._listener = listener
        self._accepting = self._loop.create_task(self._accept(listener))

    async def _close_listener(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
            self._accepting = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            raw, _ = await self._loop.sock_accept(listener)
            task = self._loop.create_task(self._serve(raw))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reset(self) -> None:
        for connection in list(self._connections):
            if connection.raw.fileno() >= 0:
                # Closed without waiting, which sends a reset instead of an orderly end.
                connection.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            for writer in (connection.client, connection.server):
                if writer is not None:
                    writer.transport.abort()

    async def _stop(self) -> None:
        await self._close_listener()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=10)

    async def _serve(self, raw: socket.socket) -> None:
        raw.setblocking(False)
        connection = _Connection(raw, lost=self._silent)
        self._connections.add(connection)
        # A client or a server that goes away, also in the middle of a handshake, is what this is for.
        with contextlib.suppress(OSError, EOFError):
            try:
                await (self._swallow(raw) if connection.lost else self._carry(connection))
            finally:
                self._connections.discard(connection)
                for writer in (connection.client, connection.server):
                    if writer is not None:
                        writer.transport.abort()

    async def _swallow(self, raw: socket.socket) -> None:
        with raw:
            while await self._loop.sock_recv(raw, _BLOCK):
                pass

    async def _carry(self, connection: _Connection) -> None:
        from_client = asyncio.StreamReader(_BLOCK)
        protocol = asyncio.StreamReaderProtocol(from_client)
        transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, connection.raw, ssl=self._to_client)
        client = connection.client = asyncio.StreamWriter(transport, protocol, from_client, self._loop)
        host, _, port = self._plane.url.removeprefix("https://").partition(":")
        from_server, server = await asyncio.open_connection(host, int(port), ssl=self._to_server, limit=_BLOCK)
        connection.server = server
        both = [
            self._loop.create_task(self._up(connection, from_client, server)),
            self._loop.create_task(self._down(connection, from_server, client)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            await asyncio.wait(both)

    async def _up(self, connection: _Connection, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        late = False
        with contextlib.suppress(OSError):
            while block := await reader.read(_BLOCK):
                connection.held = not connection.lost and self._held is not None and self._held in block
                self._note(block, sent_on=not (connection.held or connection.lost))
                if connection.held:
                    # The rest waits unread in the kernel, a farewell of the client's too.
                    await self._released.wait()
                    connection.held, late = False, True
                if not connection.lost:
                    server.write(block)
                    await server.drain()
        if late:
            await asyncio.sleep(_LINGER_SECONDS)

    async def _down(self, connection: _Connection, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while block := await reader.read(_BLOCK):
                if not (connection.lost or self._silent or client.transport.is_closing()):
                    client.write(block)
                    await client.drain()
        if connection.lost or connection.held:
            # The client hears nothing of the server's end, and what is held is not forgotten.
            await asyncio.Event().wait()

    def _note(self, block: bytes, *, sent_on: bool) -> None:
        now = time.monotonic()
        for method, path in _REQUEST.findall(block):
            self.seen.append(Seen(now, method.decode(), path.decode(), sent_on))
