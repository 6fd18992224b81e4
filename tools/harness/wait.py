"""Waiting for something to become true on a real server."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

T = TypeVar("T")

_POLL_SECONDS = 0.05


def eventually(check: Callable[[], T], timeout: float = 15.0, *, what: str = "", poll: float = _POLL_SECONDS) -> T:
    """Calls ``check`` until it returns something true, and returns that.

    An AssertionError or LookupError in ``check`` means "not yet"; the last one is shown when ``timeout`` seconds pass.
    Any other exception ends the wait at once.
    """
    deadline = time.monotonic() + timeout
    while True:
        last: object = None
        try:
            found = check()
        except (AssertionError, LookupError) as error:
            last = f"{type(error).__name__}: {error}"
        else:
            if found:
                return found
            last = found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or check}; last: {last!r}")
        time.sleep(poll)


async def eventually_async(
    check: Callable[[], Awaitable[T]] | Callable[[], T],
    timeout: float = 15.0,
    *,
    what: str = "",
    poll: float = _POLL_SECONDS,
) -> T:
    """The same on an event loop; a plain function runs in a thread, so that it may use the blocking test client."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        last: object = None
        try:
            if inspect.iscoroutinefunction(check):
                found = cast("T", await check())
            else:
                found = cast("T", await asyncio.to_thread(check))
        except (AssertionError, LookupError) as error:
            last = f"{type(error).__name__}: {error}"
        else:
            if found:
                return found
            last = found
        if loop.time() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or check}; last: {last!r}")
        await asyncio.sleep(poll)
