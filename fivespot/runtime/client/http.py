"""The transport over HTTP: one aiohttp session, explicit limits, credentials kept current."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import weakref
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from fivespot.runtime.errors import (
    BrokenStreamError,
    ConfigError,
    ConnectError,
    DeadlineError,
    TransportError,
)

from .auth import Access, Credentials
from .lines import LineSplitter
from .transport import ByteStream, Limits, Request, Response

__all__ = ["ConnectDeadlineError", "HttpTransport"]

_KEEPALIVE_SECONDS: Final = 30.0
"""How long an idle connection is kept: well below the 90 s after which kube-apiserver closes one, because a request
sent at that moment is lost, and a patch or create then must not be repeated."""
_HEADER_LIMIT: Final = 256 * 1024
"""Bytes of one header: each unknown field of an object may add a Warning."""
_DEAD_SECONDS: Final = 15
"""Seconds without an acknowledgement after which the kernel gives a connection up (TCP keep-alive and user timeout)."""

_FAREWELL_SECONDS = 1.0
"""How long closing waits for connections to end: plenty for a server that is there, and little for one that is not."""
_FAREWELL_POLL_SECONDS = 0.005

_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)


class ConnectDeadlineError(ConnectError, DeadlineError):
    """The connect limit passed, so the request was never sent."""


class HttpTransport:
    """Requests to one API server over pooled HTTP/1.1 connections.

    Redirects are not followed and cookies not kept. A request that is answered 401 is sent once more if the
    credentials have changed in the meantime: an unauthenticated request is refused before anything is done.

    :param user_agent: names this program to the server; API priority and audit logs show it.
    :param compress: let the server compress large answers: worth its CPU time over slow links only.
    """

    def __init__(self, credentials: Credentials, *, user_agent: str, compress: bool = False) -> None:
        self._credentials = credentials
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "gzip" if compress else "identity"}
        self._session: aiohttp.ClientSession | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._closed = False

    async def request(self, request: Request) -> Response:
        access = await self._access()
        response = await self._whole(request, access)
        if response.status == 401 and await self._credentials.refused(access):
            response = await self._whole(request, await self._access())
        return response

    async def stream(self, request: Request) -> ByteStream:
        access = await self._access()
        response = await self._open(request, access)
        if response.status == 401 and await self._renewed(response, access):
            access = await self._access()
            response = await self._open(request, access)
        return _HttpStream(response, access.server)

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()
            # A connection whose request was cut short still says its TLS farewell, and the loop may end after this.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL_SECONDS):
                    while self._lingering():  # noqa: ASYNC110 - a socket tells nobody that it is closed
                        await asyncio.sleep(_FAREWELL_POLL_SECONDS)

    def _lingering(self) -> bool:
        return any(made.fileno() != -1 for made in self._sockets)

    async def _access(self) -> Access:
        try:
            return await self._credentials.current()
        except ConfigError as error:
            raise ConnectError(str(error)) from error

    async def _renewed(self, response: aiohttp.ClientResponse, access: Access) -> bool:
        try:
            renewed = await self._credentials.refused(access)
        except BaseException:
            response.close()
            raise
        if renewed:
            response.close()
        return renewed

    async def _whole(self, request: Request, access: Access) -> Response:
        response = await self._open(request, access)
        try:
            body = await response.read()
        except _FAILURES as error:
            raise _translated(error, access.server, sent=True) from error
        finally:
            # Without effect once the answer was read to its end and the connection went back to the pool.
            response.close()
        return Response(response.status, _headers(response), body)

    async def _open(self, request: Request, access: Access) -> aiohttp.ClientResponse:
        headers = dict(request.headers)
        if access.authorization:
            headers["Authorization"] = access.authorization
        target = access.server + request.path
        if request.query:
            target += "?" + urlencode(request.query)
        try:
            return await self._open_session().request(
                request.method,
                URL(target, encoded=True),
                headers=headers,
                data=request.body,
                timeout=_timeout(request.limits),
                allow_redirects=False,
                ssl=access.tls if access.tls is not None else True,
                server_hostname=access.tls_server_name or None,
                proxy=access.proxy or None,
            )
        except _FAILURES as error:
            raise _translated(error, access.server, sent=False) from error

    def _socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        made = _socket(info)
        self._sockets.add(made)
        return made

    def _open_session(self) -> aiohttp.ClientSession:
        if self._closed:
            raise ConnectError("the transport is closed")
        if self._session is None:
            # No limit of connections: every watch holds one, and workers bound the rest.
            connector = aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_KEEPALIVE_SECONDS, socket_factory=self._socket, ttl_dns_cache=10
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                # Reading proxy variables and netrc on every request would block the loop; see connecting.py.
                trust_env=False,
                max_line_size=_HEADER_LIMIT,
                max_field_size=_HEADER_LIMIT,
            )
        return self._session


class _HttpStream:
    """The answer of one streaming request."""

    def __init__(self, response: aiohttp.ClientResponse, server: str) -> None:
        self._response = response
        self._server = server
        self._lines = LineSplitter()
        self._ended = False
        self._closed = False
        self.status = response.status
        self.headers: Mapping[str, str] = _headers(response)

    async def readline(self) -> bytes:
        while True:
            line = self._lines.pop()
            if line or self._ended:
                return line
            block = await self._read()
            if block:
                self._lines.feed(block)
                continue
            self._ended = True
            if self._lines.unfinished:
                # Only an answer of announced length can end properly without a newline.
                if self._response.content_length is None:
                    raise BrokenStreamError(f"{self._server}: the answer ended in the middle of a line")
                return self._lines.take_rest()

    async def read_rest(self, limit: int) -> bytes:
        blocks = [self._lines.take_rest()]
        size = len(blocks[0])
        while size < limit and not self._ended:
            block = await self._read()
            self._ended = not block
            blocks.append(block)
            size += len(block)
        return b"".join(blocks)[:limit]

    async def close(self) -> None:
        self._closed = True
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            # Dropped, because a TLS farewell waits for the other side, which may be silent or hung.
            connection.transport.abort()
        self._response.close()

    async def _read(self) -> bytes:
        if self._closed:
            raise BrokenStreamError(f"{self._server}: the stream was closed by its reader")
        try:
            return await self._response.content.readany()
        except _FAILURES as error:
            raise _translated(error, self._server, sent=True) from error
        except RuntimeError as error:
            # aiohttp's word for a connection that was closed under a waiting reader.
            raise BrokenStreamError(f"{self._server}: {error}") from error


def _translated(error: Exception, server: str, *, sent: bool) -> TransportError:
    """The error of ours for one of aiohttp's. Its texts hold host and cause; the cause chain keeps the original.

    :param sent: the answer had begun.
    """
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ConnectDeadlineError(f"cannot reach {server}: no connection within the limit")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
        return ConnectError(f"cannot reach {server}: {_reason(error)}")
    if isinstance(error, TimeoutError):
        what = "the answer came too slowly" if sent else "no answer within the limit"
        return DeadlineError(f"{server}: {what}")
    if sent:
        return BrokenStreamError(f"{server}: the connection ended in the middle of the answer: {_reason(error)}")
    return TransportError(f"{server}: the connection ended before the answer: {_reason(error)}")


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.InvalidURL):
        # Its text is the URL, which may hold a password.
        return "the URL cannot be used"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        # asyncio puts the address in place of the system's own words; those of a resolver are in no table.
        if cause.errno is not None and cause.errno > 0:
            return os.strerror(cause.errno)
        return cause.strerror or str(cause)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers {error.status} {error.message}"
    return str(error) or type(error).__name__


def _timeout(limits: Limits) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=limits.total,
        connect=limits.connect,
        sock_connect=limits.connect,
        sock_read=limits.read,
        # aiohttp rounds longer limits up to whole seconds unless told not to.
        ceil_threshold=float("inf"),
    )


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def _socket(info: aiohttp.AddrInfoType) -> socket.socket:
    """A socket whose death the kernel notices while nobody reads or writes (RFC 1122 keep-alive, RFC 5482)."""
    family, kind, protocol, _, _ = info
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": _DEAD_SECONDS, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
    for name, value in {**options, "TCP_USER_TIMEOUT": _DEAD_SECONDS * 1000}.items():
        # Not every system has each of them.
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
