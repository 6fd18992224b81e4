"""What a request needs to be let in, and how it is kept current.

Everything is loaded by one blocking function off the event loop: at the start, when a file it came from changes
(looked at once a minute, on use), shortly before it expires, and once when the server answers 401.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
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
"""How often files are looked at: kubelet replaces a token long before it expires, CAs overlap for hours."""
FORCED_SECONDS: Final = 10.0
"""Between two reloads that 401s force: each may run a plugin, and a refused token does not get better by asking."""
_EARLY: Final = timedelta(seconds=60)

_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """Where the server is and what it must be shown. Secrets stay out of its text.

    :param authorization: value of the ``Authorization`` header, "" for none.
    :param tls: None for a server without TLS.
    :param tls_server_name: the name to expect in the server's certificate, "" for the one in the URL.
    :param proxy: URL of an HTTP proxy, "" for none.
    :param impersonation: headers that name whom to act as; a name may occur several times.
    :param expires: when the authorization ends, where that is known.
    :param files: what it was read from, looked at for changes.
    :param files_digest: of their contents when they were read.
    :param tls_identity: digest of all that ``tls`` was made from; equal means that the contexts are alike.
    :param source: where it came from, in words for errors.
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
        """Whether the server would see no difference."""
        return self._shown() == other._shown()

    def _shown(self) -> tuple[object, ...]:
        return (
            self.server,
            self.authorization,
            self.proxy,
            self.impersonation,
            self.tls_server_name,
            self.tls_identity,
        )


Load = Callable[[datetime], Access]
"""Blocking: reads all there is to read at the given time; raises :class:`ConfigError`."""


def digest_files(files: Iterable[Path]) -> bytes:
    """A digest of the contents of files; one that cannot be read counts as such. Blocking."""
    digest = hashlib.sha256()
    for path in files:
        try:
            content = path.read_bytes()
        except OSError:
            content = b"unreadable"
        digest.update(hashlib.sha256(content).digest())
    return digest.digest()


class Credentials:
    """The current :class:`Access`, shared by all requests of a transport."""

    def __init__(self, load: Load, *, clock: Clock, offload: Offload) -> None:
        self._load = load
        self._clock = clock
        self._offload = offload
        self._lock = asyncio.Lock()
        self._access: Access | None = None
        self._renew_at: datetime | None = None
        self._next_check = 0.0
        self._last_forced: float | None = None

    async def current(self) -> Access:
        """What to show now.

        A check that is due is made by the request that finds it due; the others go on with what there is.

        :raises ConfigError: nothing could be loaded yet. Later failures are logged and leave the old in use.
        """
        access = self._access
        if access is None:
            async with self._lock:
                if self._access is None:
                    await self._reload()
                assert self._access is not None
                return self._access
        if self._clock.monotonic() < self._next_check or self._lock.locked():
            return access
        async with self._lock:
            self._schedule_check()
            expiring = self._renew_at is not None and self._clock.now() >= self._renew_at
            if expiring or await self._changed(access):
                await self._try_reload()
        return self._access or access

    async def refused(self, access: Access) -> bool:
        """Told that the server answered 401 to ``access``; whether trying once more has a rng.

        However many requests are refused at once, one of them loads anew.
        """
        async with self._lock:
            if self._access is not access:
                return True
            now = self._clock.monotonic()
            if self._last_forced is not None and now - self._last_forced < FORCED_SECONDS:
                return False
            self._last_forced = now
            return await self._try_reload()

    async def _changed(self, access: Access) -> bool:
        return bool(access.files) and await self._offload.run(digest_files, access.files) != access.files_digest

    async def _try_reload(self) -> bool:
        try:
            return await self._reload()
        except ConfigError as error:
            _logger.error("credentials cannot be loaded again, the old stay in use", error=str(error))
            return False

    async def _reload(self) -> bool:
        """Load anew; whether anything differs from before."""
        old = self._access
        new = await self._offload.run(self._load, self._clock.now())
        same = old is not None and old.same(new)
        if old is not None and old.tls_identity == new.tls_identity:
            # The same TLS context keeps the pooled connections in use.
            new = replace(new, tls=old.tls)
        if old is not None and not same:
            _logger.info("credentials have changed", source=new.source)
        self._access = new
        self._renew_at = None
        if new.expires is not None:
            # A minute early, or a tenth of its life for something short-lived.
            left = new.expires - self._clock.now()
            self._renew_at = new.expires - min(_EARLY, max(timedelta(0), left / 10))
        self._schedule_check()
        return not same

    def _schedule_check(self) -> None:
        wait = CHECK_SECONDS
        if self._renew_at is not None:
            wait = min(wait, max(FORCED_SECONDS, (self._renew_at - self._clock.now()).total_seconds()))
        self._next_check = self._clock.monotonic() + wait
