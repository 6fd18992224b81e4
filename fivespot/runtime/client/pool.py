"""Connections to one API server: opened through proxies, kept while idle, and given up together."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

import aiohappyeyeballs

from fivespot.runtime.errors import ConnectDeadlineError, ConnectError, NotLeaderError, TransportError

from .auth import Access
from .http1 import Http1Connection, ReceiveBuffer
from .transport import SendPermit

__all__ = ["Pool", "Route", "proxy_authorization", "route_of", "watched_socket"]

_KEEPALIVE_SECONDS: Final = 30.0
"""Seconds for which an idle connection is kept: well below the 90 s after which kube-apiserver closes one, because a
request sent at that moment is lost, and a patch or create then must not be repeated."""
_DEAD_SECONDS: Final = 15
"""Seconds without an acknowledgement after which the kernel gives a connection up (TCP keep-alive and user timeout)."""
_NEXT_ADDRESS_SECONDS: Final = 0.25
"""Before the next address of a name is tried beside the first one (RFC 8305, Connection Attempt Delay)."""
_CLOSE_SECONDS: Final = 1.0
"""Seconds for which closing waits for connections to end; a server that has gone must not delay it."""


@dataclass(frozen=True, slots=True)
class Route:
    """The way to a server. Connections are shared by requests of an equal route.

    :param permit: checked before everything that is sent; its connections are dropped when it ends.
    """

    server: str
    tls: ssl.SSLContext | None = field(repr=False)
    tls_server_name: str
    proxy: str = field(repr=False)
    permit: SendPermit | None = field(default=None, repr=False)


def route_of(access: Access) -> Route:
    """The route that an access asks for."""
    tls = access.tls
    if tls is None and access.server.startswith("https:"):
        tls = _system_trust()
    return Route(access.server, tls, access.tls_server_name, access.proxy)


@lru_cache(maxsize=1)
def _system_trust() -> ssl.SSLContext:
    return ssl.create_default_context()


class Pool:
    """Connections to one server.

    A connection may die silently: something on the way swallows what is sent and acknowledges it. What killed one has
    mostly killed its neighbours, so :meth:`doubt` drops all idle ones and keeps those in use from becoming idle again.
    """

    def __init__(self) -> None:
        self._buffer = ReceiveBuffer()
        self._idle: list[tuple[Route, Http1Connection]] = []
        self._all: set[Http1Connection] = set()
        self._trusted: set[Http1Connection] = set()
        self._permitted: dict[SendPermit, set[Http1Connection]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._all_lost: asyncio.Event | None = None

    @property
    def connections(self) -> int:
        """Connections that are open, idle or not."""
        return len(self._all)

    def take(self, route: Route) -> Http1Connection | None:
        """An idle connection, the one used last, or None."""
        oldest = asyncio.get_running_loop().time() - _KEEPALIVE_SECONDS
        for position in range(len(self._idle) - 1, -1, -1):
            known, connection = self._idle[position]
            if known is route or known == route:
                del self._idle[position]
                if connection.reusable and connection.idle_since > oldest:
                    return connection
                connection.farewell()
        return None

    def give_back(self, route: Route, connection: Http1Connection, *, proven: bool = False) -> None:
        """Keep a connection for the next request if it can serve one, else close it.

        :param proven: it has answered when others seemed dead.
        """
        if proven and connection in self._all:
            self._trusted.add(connection)
        if connection.reusable and connection in self._trusted:
            loop = asyncio.get_running_loop()
            connection.idle_since = loop.time()
            self._idle.append((route, connection))
            if self._sweeper is None:
                self._sweeper = loop.call_later(_KEEPALIVE_SECONDS, self._sweep)
        else:
            connection.farewell()

    def trusts(self, connection: Http1Connection) -> bool:
        """Whether no connection of its time was found dead."""
        return connection in self._trusted

    def doubt(self, connection: Http1Connection) -> None:
        """A connection seems to be dead: nobody gets an idle one of its time any more."""
        # One that never answered says nothing about others, and the next would be no better.
        if connection.answered and connection in self._trusted:
            self._trusted.clear()
            self._drop_idle()

    async def open(self, route: Route, limit: float) -> Http1Connection:
        """A new connection, TLS included.

        :param limit: seconds.
        :raises ConnectError: says why.
        """
        try:
            async with asyncio.timeout(limit):
                return await self._open(route, limit)
        except TimeoutError as error:
            raise ConnectDeadlineError(f"cannot reach {route.server}: no connection within the limit") from error

    async def close(self) -> None:
        """Close all connections, those in use too."""
        self._drop_idle()
        self._trusted.clear()
        for connection in self._all:
            connection.farewell()
        if await self._wait_lost():
            return
        # Nobody takes the farewell.
        for connection in list(self._all):
            connection.abort()
        await self._wait_lost()

    async def _wait_lost(self) -> bool:
        if not self._all:
            return True
        self._all_lost = asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._all_lost.wait()
        return not self._all

    async def _open(self, route: Route, limit: float) -> Http1Connection:
        target, proxy = urlsplit(route.server), urlsplit(route.proxy) if route.proxy else None
        first = proxy or target
        try:
            made = await _connected(first, route.permit)
        except OSError as error:
            raise ConnectError(f"cannot reach {route.server}: {_reason(error)}") from error
        loop = asyncio.get_running_loop()
        connection = Http1Connection(route.server, self._buffer, self._lost, loop.time)
        try:
            await loop.create_connection(lambda: connection, sock=made)
            self._all.add(connection)
            self._trusted.add(connection)
            if route.permit is not None:
                self._watch(route.permit, connection)
            if proxy is not None:
                await _through(connection, proxy, target, route, limit)
            if route.tls is not None:
                await connection.start_tls(route.tls, route.tls_server_name or target.hostname or "")
        except OSError as error:
            connection.abort()
            made.close()
            raise ConnectError(f"cannot reach {route.server}: {_reason(error)}") from error
        except BaseException:
            connection.abort()
            if connection not in self._all:
                made.close()
            raise
        return connection

    def _watch(self, permit: SendPermit, connection: Http1Connection) -> None:
        """Drop the connection, with what the kernel has not taken yet, when the permit ends."""
        if permit in self._permitted:
            self._permitted[permit].add(connection)
        else:
            self._permitted[permit] = {connection}
            permit.add_end_callback(partial(self._drop_permitted, permit))

    def _drop_permitted(self, permit: SendPermit) -> None:
        for connection in self._permitted.pop(permit, set()):
            connection.abort()

    def _lost(self, connection: Http1Connection) -> None:
        self._all.discard(connection)
        for connections in self._permitted.values():
            connections.discard(connection)
        self._trusted.discard(connection)
        if self._all_lost is not None and not self._all:
            self._all_lost.set()

    def _drop_idle(self) -> None:
        for _, connection in self._idle:
            connection.farewell()
        self._idle.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - _KEEPALIVE_SECONDS
        kept = [(route, connection) for route, connection in self._idle if connection.idle_since > oldest]
        for entry in self._idle:
            if entry not in kept:
                entry[1].farewell()
        self._idle = kept
        self._sweeper = None
        if kept:
            due = min(connection.idle_since for _, connection in kept) + _KEEPALIVE_SECONDS
            self._sweeper = loop.call_at(due, self._sweep)


async def _through(
    connection: Http1Connection, proxy: SplitResult, target: SplitResult, route: Route, limit: float
) -> None:
    """Reach the server through a proxy that the connection leads to."""
    if proxy.scheme == "https":
        await connection.start_tls(_system_trust(), proxy.hostname or "")
    if route.tls is None:
        # Requests to a server without TLS name it in full; no tunnel is needed.
        return
    host = (
        f"{target.hostname}:{target.port or 443}"
        if ":" not in (target.hostname or "")
        else (f"[{target.hostname}]:{target.port or 443}")
    )
    head = f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n{proxy_authorization(proxy)}\r\n"
    try:
        status = await connection.tunnel(head.encode("latin-1"), read=limit)
    except ConnectError:
        raise
    except TransportError as error:
        raise ConnectError(f"cannot reach {route.server}: the proxy gives no answer: {error}") from error
    if not 200 <= status < 300:
        raise ConnectError(f"cannot reach {route.server}: the proxy answers {status}")


def proxy_authorization(proxy: SplitResult) -> str:
    """The header line that a proxy's URL asks for, "" for none (RFC 7617)."""
    if proxy.username is None:
        return ""
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"


async def _connected(first: SplitResult, permit: SendPermit | None) -> socket.socket:
    loop = asyncio.get_running_loop()
    port = first.port or (443 if first.scheme == "https" else 80)
    found = await loop.getaddrinfo(first.hostname, port, type=socket.SOCK_STREAM)
    if not found:
        raise OSError("the name has no address")
    return await aiohappyeyeballs.start_connection(
        found,
        happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS,
        interleave=1,
        loop=loop,
        socket_factory=partial(watched_socket, permit=permit),
    )


class _PermitSocket(socket.socket):
    """A socket that checks a permit before every send, so that nothing reaches the kernel after it has ended.

    asyncio's transports send through these methods. uvloop's use the file descriptor at the end of the loop's turn;
    there, the check before the request is written applies, and the connection is dropped when the permit ends.
    """

    permit: SendPermit

    def send(self, data: Any, flags: int = 0, /) -> int:
        self._check()
        return super().send(data, flags)

    def sendmsg(self, buffers: Iterable[Any], /, *args: Any) -> int:
        self._check()
        return super().sendmsg(buffers, *args)

    def _check(self) -> None:
        try:
            self.permit.check()
        except NotLeaderError as error:
            # An OSError: asyncio then drops its buffer and closes the connection without reporting a bug.
            raise ConnectionAbortedError(str(error)) from error


def watched_socket(info: tuple[object, ...], permit: SendPermit | None = None) -> socket.socket:
    """A socket whose death the kernel notices while nobody reads or writes (RFC 1122 keep-alive, RFC 5482)."""
    family, kind, protocol = info[:3]
    made: socket.socket
    if permit is None:
        made = socket.socket(family, kind, protocol)  # type: ignore[arg-type]
    else:
        made = _PermitSocket(family, kind, protocol)  # type: ignore[arg-type]
        made.permit = permit
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_NODELAY": 1, "TCP_KEEPIDLE": _DEAD_SECONDS, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
    for name, value in {**options, "TCP_USER_TIMEOUT": _DEAD_SECONDS * 1000}.items():
        # Not every system has each of them.
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    # asyncio puts the address in place of the system's own words; those of a resolver are in no table.
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
