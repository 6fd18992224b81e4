"""The transport over HTTP/1.1: pooled connections, explicit limits, credentials kept current."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final
from urllib.parse import urlencode, urlsplit

from fivespot.runtime.errors import (
    BrokenStreamError,
    ConfigError,
    ConnectError,
    DeadlineError,
    NotLeaderError,
    TransportError,
)

from .auth import Access, Credentials
from .http1 import Http1Connection
from .lines import LineStream
from .pool import Pool, Route, proxy_authorization, route_of
from .transport import ByteStream, Limits, Request, Response

__all__ = ["HttpTransport"]

_READS: Final = frozenset({"GET", "HEAD"})
_PATIENCE: Final = 4.0
"""Seconds that a read waits on a connection that may have died while it was idle, before the server is asked on a new
one whether it is there."""
_SLOW_SECONDS: Final = 300.0
"""Seconds for which a read that took longer is remembered."""
_DOUBT: Final = 1.0
"""Seconds without an answer after which a request that its caller gave up says something about the connection."""
_PROBE: Final = Request("GET", "/version", Limits(connect=10, read=35, total=60), description="GET /version")

_TARGET: Final = re.compile(r"[!-~]+")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


class HttpTransport:
    """Requests to one API server over pooled HTTP/1.1 connections.

    Redirects are not followed and cookies not kept. A request that is answered 401 is sent once more if the
    credentials have changed in the meantime: an unauthenticated request is refused before anything is done.

    A connection that died while it was idle looks like a slow server. When a read gets no answer within 4 seconds on a
    connection that was idle, the server is asked for its version on a new one. If that is answered first, the read is
    sent once more, with its whole limit, and all idle connections are dropped. If the read is answered first, the
    server is slow, and later reads wait longer before they ask.

    A request whose caller is cancelled, or whose limit passes, takes its connection with it, and what the kernel has
    not taken of it by then is never sent.

    :param user_agent: names this program to the server; API priority and audit logs show it.
    :param compress: let the server compress large answers: worth its CPU time over slow links only.
    """

    def __init__(self, credentials: Credentials, *, user_agent: str, compress: bool = False) -> None:
        self._credentials = credentials
        encoding = "gzip" if compress else "identity"
        self._common = f"User-Agent: {_checked(user_agent)}\r\nAccept-Encoding: {encoding}\r\n"
        self._pool = Pool()
        self._closed = False
        self._patience = _PATIENCE
        self._patient_until = 0.0
        self._asking = asyncio.Lock()
        self._prepared: tuple[Access, Route, str, str] | None = None

    async def request(self, request: Request) -> Response:
        if request.permit is None:
            return await self._request(request)
        try:
            return await self._request(request)
        except TransportError:
            # The reason why nothing was sent, or why the connection was closed, where that is the permit.
            request.permit.check()
            raise

    async def _request(self, request: Request) -> Response:
        access = await self._access()
        response = await self._whole(request, access)
        if response.status == 401 and await self._credentials.refused(access):
            response = await self._whole(request, await self._access())
        return response

    async def stream(self, request: Request) -> ByteStream:
        access = await self._access()
        stream = await self._stream(request, access)
        if stream.status == 401 and await self._renewed(stream, access):
            stream = await self._stream(request, await self._access())
        return stream

    async def close(self) -> None:
        self._closed = True
        await self._credentials.close()
        await self._pool.close()

    async def _access(self) -> Access:
        try:
            return await self._credentials.current()
        except ConfigError as error:
            raise ConnectError(str(error)) from error

    async def _renewed(self, stream: _HttpStream, access: Access) -> bool:
        renewed = False
        try:
            renewed = await self._credentials.refused(access)
        except BaseException:
            await stream.close()
            raise
        if renewed:
            await stream.close()
        return renewed

    async def _whole(self, request: Request, access: Access) -> Response:
        route, connection = await self._send(request, access)
        try:
            status, headers, body = await connection.whole()
        except BaseException as error:
            self._gave_up(connection, error)
            raise
        if connection.answered_after > self._patience and request.method in _READS:
            self._learn(connection.answered_after)
        self._pool.give_back(route, connection)
        return Response(status, headers, body)

    async def _stream(self, request: Request, access: Access) -> _HttpStream:
        route, connection = await self._send(request, access)
        try:
            status, headers = await connection.opened()
        except BaseException as error:
            self._gave_up(connection, error)
            raise
        return _HttpStream(status, headers, access.server, route, connection, self._pool, request.limits.size)

    def _gave_up(self, connection: Http1Connection, error: BaseException) -> None:
        """A request ended without its whole answer."""
        silent = connection.silent_for
        connection.abort()
        if isinstance(error, DeadlineError) or (not isinstance(error, TransportError) and silent >= _DOUBT):
            self._pool.doubt(connection)

    async def _send(self, request: Request, access: Access) -> tuple[Route, Http1Connection]:
        """Send a request by an idle connection or a new one. A read on an idle one has its answer on the way then."""
        route, head = self._head(request, access)
        limits = request.limits
        connection = self._pool.take(route)
        if connection is not None:
            _hand_over(connection, head, request)
            if request.method not in _READS or await self._answers(connection, route, access):
                return route, connection
            # The one that the server was asked over is idle now.
            connection = self._pool.take(route)
        if connection is None:
            connection = await self._opened(route, limits)
        _hand_over(connection, head, request)
        return route, connection

    async def _opened(self, route: Route, limits: Limits) -> Http1Connection:
        connection = await self._pool.open(route, limits.connect)
        try:
            self._check_open()
        except ConnectError:
            connection.abort()
            raise
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise ConnectError("the transport is closed")

    def _head(self, request: Request, access: Access) -> tuple[Route, bytes]:
        self._check_open()
        prepared = self._prepared
        if prepared is None or prepared[0] is not access:
            prepared = self._prepared = self._prepare(access)
        _, route, prefix, fixed = prepared
        if request.permit is not None:
            route = replace(route, permit=request.permit)
        target = prefix + request.path
        if request.query:
            target += _encoded(tuple(request.query.items()))
        if not _TARGET.fullmatch(target):
            raise ConnectError(f"{request.description or request.method}: the path cannot be sent: {target[:200]!r}")
        parts = [f"{request.method} {target} HTTP/1.1\r\n{fixed}"]
        parts += [f"{name}: {_checked(value)}\r\n" for name, value in request.headers.items()]
        body = request.body
        if body is not None:
            parts.append(f"Content-Length: {len(body)}\r\n")
        elif request.method not in _READS:
            parts.append("Content-Length: 0\r\n")
        parts.append("\r\n")
        return route, "".join(parts).encode("utf-8", "surrogateescape")

    def _prepare(self, access: Access) -> tuple[Access, Route, str, str]:
        """All that requests of one access have in common."""
        url = urlsplit(access.server)
        prefix = url.path.rstrip("/")
        fixed = f"Host: {url.netloc.rpartition('@')[2]}\r\n{self._common}"
        if access.proxy and url.scheme == "http":
            prefix = f"http://{url.netloc.rpartition('@')[2]}{prefix}"
            fixed += proxy_authorization(urlsplit(access.proxy))
        if access.authorization:
            fixed += f"Authorization: {_checked(access.authorization)}\r\n"
        fixed += "".join(f"{name}: {_checked(value)}\r\n" for name, value in access.impersonation)
        return access, route_of(access), prefix, fixed

    # Connections that may be dead --------------------------------------------------------------------------------

    async def _answers(self, connection: Http1Connection, route: Route, access: Access) -> bool:
        """Wait for the answer on a connection that was idle; False: it is dead, and has been dropped."""
        if self._patience > _PATIENCE and asyncio.get_running_loop().time() > self._patient_until:
            self._patience = _PATIENCE
        try:
            if await connection.opened_within(self._patience):
                return True
            async with self._asking:
                # Somebody else may have found out in the meantime.
                if not self._pool.trusts(connection):
                    connection.abort()
                    return False
                if await connection.opened_within(max(0.0, self._patience - connection.silent_for)):
                    return True
                return await self._asked(connection, route, access)
        except TransportError:
            # The caller meets it again, and decides what it means.
            return True
        except BaseException as error:
            self._gave_up(connection, error)
            raise

    async def _asked(self, connection: Http1Connection, route: Route, access: Access) -> bool:
        async with asyncio.TaskGroup() as tasks:
            probe = tasks.create_task(self._probe(route, access))
            answer = tasks.create_task(_head_of(connection))
            await asyncio.wait({probe, answer}, return_when=asyncio.FIRST_COMPLETED)
            alive = probe.result() if probe.done() else None
            probe.cancel()
            answer.cancel()
        dead = alive is not None and not connection.has_head
        if dead:
            self._pool.doubt(connection)
            connection.abort()
        if alive is not None:
            self._pool.give_back(route, alive, proven=True)
        return not dead

    def _learn(self, seconds: float) -> None:
        """A read took so long, so a later one may as well: ask later whether the server is there, for some time."""
        self._patience = 2 * seconds
        self._patient_until = asyncio.get_running_loop().time() + _SLOW_SECONDS

    async def _probe(self, route: Route, access: Access) -> Http1Connection | None:
        """A new connection over which the server has answered something."""
        try:
            connection = await self._opened(route, _PROBE.limits)
        except TransportError:
            return None
        try:
            _, head = self._head(_PROBE, access)
            connection.send(head, None, _PROBE.limits, head_only=False)
            await connection.whole()
        except BaseException as error:
            connection.abort()
            if isinstance(error, TransportError):
                return None
            raise
        return connection


def _hand_over(connection: Http1Connection, head: bytes, request: Request) -> None:
    """Write a request whose permit, if it has one, is valid in this very step."""
    if request.permit is not None:
        try:
            request.permit.check()
        except NotLeaderError:
            connection.abort()
            raise
    connection.send(head, request.body, request.limits, head_only=request.method == "HEAD")


async def _head_of(connection: Http1Connection) -> None:
    with contextlib.suppress(TransportError):
        await connection.opened_within(None)


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    # All writes of a client have the same.
    return "?" + urlencode(query)


def _checked(value: str) -> str:
    """A header value that cannot end its line (RFC 9110 5.5)."""
    if not _VALUE.fullmatch(value):
        raise ConnectError("a header value holds a control character")
    return value


class _HttpStream(LineStream):
    """The answer of one request."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        server: str,
        route: Route,
        connection: Http1Connection,
        pool: Pool,
        longest: int,
    ) -> None:
        super().__init__(server, measured=connection.measured, longest=longest)
        self.status = status
        self.headers = headers
        self._route = route
        self._connection = connection
        self._pool = pool
        self._closed = self._returned = False

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            if not self._returned:
                self._connection.abort()

    async def _read(self) -> bytes:
        if self._closed:
            raise BrokenStreamError(f"{self._server}: the stream was closed by its reader")
        try:
            data = await self._connection.read()
        except DeadlineError:
            self._pool.doubt(self._connection)
            raise
        if not data and not self._returned:
            self._returned = True
            self._pool.give_back(self._route, self._connection)
        return data
