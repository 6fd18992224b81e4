"""Server address and credentials of a connection, and their renewal.

Both are loaded by one blocking function off the event loop: at the start, when one of its files changes (checked once a
minute, on use), shortly before they expire, and once when the server answers 401.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from fivespot.runtime.clock import Clock, Offload
from fivespot.runtime.errors import ConfigError

__all__ = ["Access", "Credentials", "Load", "digest_files"]

CHECK_SECONDS: Final = 60.0
"""Interval between checks of the files: kubelet replaces a token long before it expires, CAs overlap for hours."""
FORCED_SECONDS: Final = 10.0
"""Minimum interval between reloads because of a 401: each may run a plugin, which may return the same token again."""
_EARLY: Final = timedelta(seconds=60)

_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """Address of the server and credentials for it. Secrets are left out of its repr.

    :param authorization: value of the ``Authorization`` header, "" for none.
    :param tls: None for a server without TLS.
    :param tls_server_name: the name to expect in the server's certificate, "" for the one in the URL.
    :param proxy: URL of an HTTP proxy, "" for none.
    :param impersonation: ``Impersonate-*`` headers; a name may occur several times.
    :param expires: end of the authorization, if known.
    :param files: files it was read from, checked for changes.
    :param files_digest: digest of their contents when they were read.
    :param tls_identity: digest of everything ``tls`` was made from; equal digests mean equivalent contexts.
    :param source: origin of the configuration, for messages.
    """

    server: str
    authorization: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    tls_server_name: str = ""
    proxy: str = field(default="", repr=False)
    impersonation: tuple[tuple[str, str], ...] = ()
    expires: datetime | None = None
    files: tuple[Path, ...] = ()
    files_digest: bytes = field(default=b"", repr=False)
    tls_identity: bytes = field(default=b"", repr=False)
    namespace: str = ""
    source: str = ""
    anonymous: bool = False

    def same(self, other: Access) -> bool:
        """Whether requests and connections would be the same."""
        return self._visible() == other._visible()

    def _visible(self) -> tuple[object, ...]:
        return (
            self.server,
            self.authorization,
            self.proxy,
            self.impersonation,
            self.tls_server_name,
            self.tls_identity,
        )


Load = Callable[[datetime, threading.Event], Access]
"""Loads an access at the given time; blocking. Ends soon, by whatever exception, once the event is set.

:raises ConfigError: the access cannot be loaded.
"""


def digest_files(files: Iterable[Path]) -> bytes:
    """Digest of the contents of files; an unreadable file has a digest of its own. Blocking."""
    digest = hashlib.sha256()
    for path in files:
        try:
            content = path.read_bytes()
        except OSError:
            content = b"unreadable"
        digest.update(hashlib.sha256(content).digest())
    return digest.digest()


class Credentials:
    """The current :class:`Access`, shared by all requests of a transport.

    A load that has begun goes on when the request that began it is cancelled, so that requests with short limits do not
    keep a slow plugin from ever finishing; :meth:`close` ends it.
    """

    def __init__(self, load: Load, *, clock: Clock, offload: Offload) -> None:
        self._load = load
        self._clock = clock
        self._offload = offload
        self._lock = asyncio.Lock()
        self._access: Access | None = None
        self._renew_at: datetime | None = None
        self._next_check = 0.0
        self._last_forced: float | None = None
        self._reloading: asyncio.Task[bool] | None = None
        self._closed = False

    async def current(self) -> Access:
        """Return the access to use for a request.

        A check that is due is made by the request that finds it due; meanwhile others use the present access.

        :raises ConfigError: nothing could be loaded yet. Later failures are logged, and the present access is kept.
        """
        access = self._access
        if access is None:
            async with self._lock:
                if self._access is None:
                    await self._reload()
                assert self._access is not None
                return self._access
        if self._closed or self._clock.monotonic() < self._next_check or self._lock.locked():
            return access
        async with self._lock:
            self._schedule_check()
            expiring = self._renew_at is not None and self._clock.now() >= self._renew_at
            if expiring or await self._changed(access):
                await self._try_reload()
        return self._access or access

    async def refused(self, access: Access) -> bool:
        """Report that the server answered 401 to ``access``; returns whether a retry may succeed.

        However many requests are refused at once, only one of them reloads.
        """
        async with self._lock:
            if self._access is not access:
                return True
            now = self._clock.monotonic()
            if self._last_forced is not None and now - self._last_forced < FORCED_SECONDS:
                return False
            self._last_forced = now
            return await self._try_reload()

    async def close(self) -> None:
        """End a load that is under way, without waiting for a plugin or identity provider."""
        self._closed = True
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.wait({self._reloading})

    async def _changed(self, access: Access) -> bool:
        return bool(access.files) and await self._offload.run(digest_files, access.files) != access.files_digest

    async def _try_reload(self) -> bool:
        try:
            return await self._reload()
        except ConfigError as error:
            if not self._closed:
                _logger.error("credentials cannot be reloaded, the present ones stay in use", error=str(error))
            return False

    async def _reload(self) -> bool:
        """Load again, or join the load that is under way; returns whether anything has changed."""
        if self._closed:
            raise ConfigError("the connection is closed")
        if self._reloading is None:
            self._reloading = asyncio.get_running_loop().create_task(self._load_access())
            self._reloading.add_done_callback(self._reloaded)
        task = self._reloading
        await asyncio.wait({task})
        if task.cancelled():
            raise ConfigError("the connection is closed")
        return task.result()

    def _reloaded(self, task: asyncio.Task[bool]) -> None:
        self._reloading = None
        if not task.cancelled():
            # Without this, an error that nobody waits for any more would be logged by the loop.
            task.exception()

    async def _load_access(self) -> bool:
        old = self._access
        interrupt = threading.Event()
        try:
            new = await self._offload.run(self._load, self._clock.now(), interrupt)
        except asyncio.CancelledError:
            interrupt.set()
            raise
        same = old is not None and old.same(new)
        if old is not None and old.tls_identity == new.tls_identity:
            # The same TLS context keeps the pooled connections in use.
            new = replace(new, tls=old.tls)
        if old is not None and not same:
            _logger.info("credentials have changed", source=new.source)
        self._access = new
        self._renew_at = None
        if new.expires is not None:
            # A minute early, or a tenth of its lifetime for a short-lived one.
            left = new.expires - self._clock.now()
            self._renew_at = new.expires - min(_EARLY, max(timedelta(0), left / 10))
        self._schedule_check()
        return not same

    def _schedule_check(self) -> None:
        wait = CHECK_SECONDS
        if self._renew_at is not None:
            wait = min(wait, max(FORCED_SECONDS, (self._renew_at - self._clock.now()).total_seconds()))
        self._next_check = self._clock.monotonic() + wait
