"""The transport over HTTP: pooled connections, explicit limits, credentials kept current."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlencode

import aiohttp
from aiohttp.typedefs import LooseHeaders
from yarl import URL

from fivespot.runtime.errors import BrokenStreamError, ConfigError, ConnectError, DeadlineError, TransportError

from .auth import Access, Credentials
from .http_errors import FAILURES, answer_headers, client_timeout, translated
from .lines import LineStream
from .pool import Pool, Pools
from .transport import ByteStream, Request, Response

__all__ = ["HttpTransport"]

_READS: Final = frozenset({"GET", "HEAD"})
_PATIENCE: Final = 4.0
"""Seconds that a read waits on a connection that may have died while it was idle, before it is sent on a new one."""
_DOUBT: Final = 1.0
"""Seconds without an answer after which a request that its caller gave up says something about the connection."""


class HttpTransport:
    """Requests to one API server over pooled HTTP/1.1 connections.

    Redirects are not followed and cookies not kept. A request that is answered 401 is sent once more if the
    credentials have changed in the meantime: an unauthenticated request is refused before anything is done.

    A connection that died while it was idle looks like a slow server. A read that gets no answer within 4 seconds is
    therefore sent once more, on a new connection and with its whole limit, and whoever waited in vain takes the idle
    connections with it, so that no other request has to find out by itself.

    :param user_agent: names this program to the server; API priority and audit logs show it.
    :param compress: let the server compress large answers: worth its CPU time over slow links only.
    """

    def __init__(self, credentials: Credentials, *, user_agent: str, compress: bool = False) -> None:
        self._credentials = credentials
        self._pools = Pools({"User-Agent": user_agent, "Accept-Encoding": "gzip" if compress else "identity"})
        self._closed = False

    async def request(self, request: Request) -> Response:
        access = await self._access()
        response = await self._whole(request, access)
        if response.status == 401 and await self._credentials.refused(access):
            response = await self._whole(request, await self._access())
        return response

    async def stream(self, request: Request) -> ByteStream:
        access = await self._access()
        stream = await self._open(request, access)
        if stream.status == 401 and await self._renewed(stream, access):
            stream = await self._open(request, await self._access())
        return stream

    async def close(self) -> None:
        self._closed = True
        await self._pools.close()

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
        stream = await self._open(request, access)
        return await stream.read_all()

    async def _open(self, request: Request, access: Access) -> _HttpStream:
        """Send a request and wait for the head of its answer."""
        pool = await self._pool()
        if request.method in _READS and pool.spare:
            try:
                async with asyncio.timeout(_PATIENCE) as patience:
                    return await self._send(request, access, pool)
            except TimeoutError:
                if not patience.expired():
                    raise
            pool = await self._pool()
        return await self._send(request, access, pool)

    async def _send(self, request: Request, access: Access, pool: Pool) -> _HttpStream:
        target = access.server + request.path
        if request.query:
            target += _encoded(tuple(request.query.items()))
        loop = asyncio.get_running_loop()
        began = loop.time()
        answered = False
        try:
            response = await pool.session.request(
                request.method,
                URL(target, encoded=True),
                headers=_headers(request, access),
                data=request.body,
                timeout=client_timeout(request.limits),
                allow_redirects=False,
                ssl=access.tls if access.tls is not None else True,
                server_hostname=access.tls_server_name or None,
                proxy=access.proxy or None,
            )
            answered = pool.proven = True
        except FAILURES as error:
            raise translated(error, access.server, sent=False) from error
        finally:
            if not answered:
                if loop.time() - began >= _DOUBT:
                    self._pools.doubt(pool)
                self._pools.release(pool)
        return _HttpStream(response, access.server, pool, self._pools)

    async def _pool(self) -> Pool:
        if self._closed:
            raise ConnectError("the transport is closed")
        return await self._pools.acquire()


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    # All writes of a client have the same.
    return "?" + urlencode(query)


def _headers(request: Request, access: Access) -> LooseHeaders:
    headers = dict(request.headers)
    if access.authorization:
        headers["Authorization"] = access.authorization
    return [*headers.items(), *access.impersonation] if access.impersonation else headers


class _HttpStream(LineStream):
    """The answer of one request."""

    def __init__(self, response: aiohttp.ClientResponse, server: str, pool: Pool, pools: Pools) -> None:
        super().__init__(server, measured=response.content_length is not None)
        self._response = response
        self._pool = pool
        self._pools = pools
        self._closed = False
        self.status = response.status
        self.headers: Mapping[str, str] = answer_headers(response)

    async def read_all(self) -> Response:
        """The whole answer; the connection is given back, or closed if that fails."""
        try:
            body = await self._response.read()
        except FAILURES as error:
            raise self._failed(error) from error
        finally:
            # Without effect once the answer was read to its end and the connection went back to the pool.
            self._response.close()
            self._let_go()
        return Response(self.status, self.headers, body)

    async def close(self) -> None:
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            # Dropped, because a TLS farewell waits for the other side, which may be silent or hung.
            connection.transport.abort()
        self._response.close()
        self._let_go()

    async def _read(self) -> bytes:
        if self._closed:
            raise BrokenStreamError(f"{self._server}: the stream was closed by its reader")
        try:
            return await self._response.content.readany()
        except FAILURES as error:
            raise self._failed(error) from error
        except RuntimeError as error:
            # aiohttp's word for a connection that was closed under a waiting reader.
            raise BrokenStreamError(f"{self._server}: {error}") from error

    def _failed(self, error: Exception) -> TransportError:
        failure = translated(error, self._server, sent=True)
        if isinstance(failure, DeadlineError):
            self._pools.doubt(self._pool)
        return failure

    def _let_go(self) -> None:
        if not self._closed:
            self._closed = True
            self._pools.release(self._pool)
