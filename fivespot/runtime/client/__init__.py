"""Client of the Kubernetes API: transport, verbs, watches, discovery, connecting.

The HTTP parser and kubernetes_asyncio (:class:`HttpTransport`, :func:`connect`) are imported when first used, so that
a program with another transport pays for neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .client import Client, Getter, WriteResult
from .discovery import Discovery, GroupServed
from .dry_run import DryRunTransport
from .reader import REQUEST_LIMITS, WATCH_LIMITS
from .responses import Page, Propagation, WriteObserver
from .retry import NO_RETRY, Repeat, RetryPolicy
from .transport import ByteStream, Limits, Request, Response, SendPermit, Transport
from .watch import Watch, WatchEnd, WatchEnded, WatchEvent

if TYPE_CHECKING:
    from .connection import Connection, connect
    from .http import HttpTransport

__all__ = [
    "NO_RETRY",
    "REQUEST_LIMITS",
    "WATCH_LIMITS",
    "ByteStream",
    "Client",
    "Connection",
    "Discovery",
    "DryRunTransport",
    "Getter",
    "GroupServed",
    "HttpTransport",
    "Limits",
    "Page",
    "Propagation",
    "Repeat",
    "Request",
    "Response",
    "RetryPolicy",
    "SendPermit",
    "Transport",
    "Watch",
    "WatchEnd",
    "WatchEnded",
    "WatchEvent",
    "WriteObserver",
    "WriteResult",
    "connect",
]

_LAZY = {"Connection": ".connection", "HttpTransport": ".http", "connect": ".connection"}


if not TYPE_CHECKING:  # or type checkers would take every misspelt name for Any

    def __getattr__(name: str) -> Any:
        module = _LAZY.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(module, __name__), name)
