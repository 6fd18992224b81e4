"""Connections to one server that are trusted and given up together."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from collections.abc import Mapping
from typing import Final, TypeAlias

import aiohttp

__all__ = ["Pool", "Pools"]

_KEEPALIVE_SECONDS: Final = 30.0
"""How long an idle connection is kept: well below the 90 s after which kube-apiserver closes one, because a request
sent at that moment is lost, and a patch or create then must not be repeated."""
_HEADER_LIMIT: Final = 256 * 1024
"""Bytes of one header: each unknown field of an object may add a Warning."""
_DEAD_SECONDS: Final = 15
"""Seconds without an acknowledgement after which the kernel gives a connection up (TCP keep-alive and user timeout)."""
_FAREWELL_SECONDS: Final = 1.0
"""How long closing waits for connections to end: plenty for a server that is there, and little for one that is not."""
_FAREWELL_POLL_SECONDS: Final = 0.005


_Sockets: TypeAlias = "weakref.WeakSet[socket.socket]"


class Pool:
    """One generation of connections.

    A connection may die without a word: something on the way swallows what is sent and acknowledges it. What killed one
    has mostly killed its neighbours, so when one is found dead, all idle ones go with it. Those that are in use are
    left to their users.

    :ivar proven: an answer has come over one of its connections, so that some may be idle now.
    :ivar users: requests and streams under way.
    """

    def __init__(self, headers: Mapping[str, str], every_socket: _Sockets) -> None:
        self._sockets: _Sockets = weakref.WeakSet()
        self._every_socket = every_socket
        self.session = self._open_session(headers)
        self.proven = False
        self.users = 0

    @property
    def spare(self) -> bool:
        """Whether the user who asks may get a connection that was idle: there are as many as users, itself included."""
        return sum(1 for made in self._sockets if made.fileno() != -1) >= self.users

    def _open_session(self, headers: Mapping[str, str]) -> aiohttp.ClientSession:
        # No limit of connections: every watch holds one, and workers bound the rest.
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=_KEEPALIVE_SECONDS, socket_factory=self._socket, ttl_dns_cache=10
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            # Reading proxy variables and netrc on every request would block the loop; see connection.py.
            trust_env=False,
            max_line_size=_HEADER_LIMIT,
            max_field_size=_HEADER_LIMIT,
        )

    def _socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        made = _socket(info)
        self._sockets.add(made)
        self._every_socket.add(made)
        return made


class Pools:
    """The pool in use, and older ones that still have users.

    :param headers: sent with every request.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._current: Pool | None = None
        self._retired: list[Pool] = []
        self._sockets: _Sockets = weakref.WeakSet()

    async def acquire(self) -> Pool:
        """The pool to use; to be given back by :meth:`release`."""
        if self._retired:
            await self._sweep()
        if self._current is None:
            self._current = Pool(self._headers, self._sockets)
        self._current.users += 1
        return self._current

    def release(self, pool: Pool) -> None:
        """Its user is done."""
        pool.users -= 1

    def doubt(self, pool: Pool) -> None:
        """A connection of it seems to be dead: nobody gets an idle one of it any more."""
        # One that never answered has none, and the next would be no better.
        if pool is self._current and pool.proven:
            self._current = None
            self._retired.append(pool)

    async def close(self) -> None:
        """Close all connections, those in use too."""
        pools = [*self._retired, *([self._current] if self._current is not None else [])]
        self._retired, self._current = [], None
        for pool in pools:
            await pool.session.close()
        sockets = list(self._sockets)
        # A connection whose request was cut short still says its TLS farewell, and the loop may end after this. Where
        # nobody answers, asyncio would wait for half a minute.
        if not await _gone(sockets):
            for made in sockets:
                with contextlib.suppress(OSError):
                    made.shutdown(socket.SHUT_RDWR)
            await _gone(sockets)

    async def _sweep(self) -> None:
        unused = [pool for pool in self._retired if not pool.users]
        self._retired = [pool for pool in self._retired if pool.users]
        for pool in unused:
            await pool.session.close()


async def _gone(sockets: list[socket.socket]) -> bool:
    """Wait a moment for all of them to be closed."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_FAREWELL_SECONDS):
            while any(made.fileno() != -1 for made in sockets):  # noqa: ASYNC110 - a socket tells nobody
                await asyncio.sleep(_FAREWELL_POLL_SECONDS)
            return True
    return False


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
