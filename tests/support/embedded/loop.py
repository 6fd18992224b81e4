"""Virtual time that can go as fast as the real one for a while, and contexts that are held from outside their loop."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Generic, TypeVar

from fivespot.testing.virtual_time import VirtualTimeLoop

__all__ = ["EnteredContext", "PacedLoop"]

T = TypeVar("T")

_LOOK_SECONDS = 0.02
"""Longest wait of a paced loop for input, in seconds: the process at the other end may have exited."""


class PacedLoop(VirtualTimeLoop):
    """Virtual time, except inside :meth:`paced`: then processes of their own can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._pacing = False
        selector: Any = self._jumping
        self._jump = selector.select
        selector.select = self._select

    @contextmanager
    def paced(self) -> Iterator[None]:
        """Time passes as it does outside."""
        self._pacing = True
        try:
            yield
        finally:
            self._pacing = False

    def _select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._pacing:
            return self._jump(timeout)  # type: ignore[no-any-return]
        begun = time.monotonic()
        limit = _LOOK_SECONDS if timeout is None else min(timeout, _LOOK_SECONDS)
        ready = selectors.DefaultSelector.select(self._jumping, limit)
        self._jumping.now += time.monotonic() - begun
        return ready


class EnteredContext(Generic[T]):
    """An async context manager that is entered and left from outside its loop, by a task of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, context: AbstractAsyncContextManager[T]) -> None:
        self._loop = loop
        self._stop = asyncio.Event()
        self._entered: asyncio.Future[T] = loop.create_future()
        self._task = loop.create_task(self._hold(context))
        self.value: T = loop.run_until_complete(self._entered)

    async def _hold(self, context: AbstractAsyncContextManager[T]) -> None:
        try:
            async with context as value:
                self._entered.set_result(value)
                await self._stop.wait()
        except BaseException as error:
            if self._entered.done():
                raise
            self._entered.set_exception(error)

    def close(self) -> None:
        self._stop.set()
        self._loop.run_until_complete(self._task)
