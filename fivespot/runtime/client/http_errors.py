"""What aiohttp says, in our words."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Final

import aiohttp

from fivespot.runtime.errors import BrokenStreamError, ConnectDeadlineError, ConnectError, DeadlineError, TransportError

from .transport import Limits

__all__ = ["FAILURES", "answer_headers", "client_timeout", "translated"]

FAILURES: Final = (aiohttp.ClientError, TimeoutError, OSError)
"""What a request or the reading of an answer raises."""


def translated(error: Exception, server: str, *, sent: bool) -> TransportError:
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


@lru_cache(maxsize=64)
def client_timeout(limits: Limits) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=limits.total,
        connect=limits.connect,
        sock_connect=limits.connect,
        sock_read=limits.read,
        # aiohttp rounds longer limits up to whole seconds unless told not to.
        ceil_threshold=float("inf"),
    )


def answer_headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers
