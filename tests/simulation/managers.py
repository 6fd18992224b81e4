"""Managers that are killed and followed by others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fivespot.testing.cluster import RunningManager

__all__ = ["Managers"]

Start = Callable[[], AbstractAsyncContextManager[RunningManager]]


class Managers:
    """Managers by name; each can die at any time, and its place be taken by a new one."""

    def __init__(self) -> None:
        self._starts: dict[str, Start] = {}
        self._running: dict[str, tuple[RunningManager, AbstractAsyncContextManager[RunningManager]]] = {}

    @property
    def running(self) -> list[str]:
        return sorted(self._running)

    @property
    def dead(self) -> list[str]:
        return sorted(set(self._starts) - set(self._running))

    async def hire(self, name: str, start: Start) -> None:
        """Start a manager, and know how to start another in its place."""
        self._starts[name] = start
        await self.start(name)

    async def start(self, name: str) -> None:
        scope = self._starts[name]()
        self._running[name] = (await scope.__aenter__(), scope)

    async def kill(self, name: str) -> None:
        """In the middle of whatever it does."""
        running, scope = self._running.pop(name)
        await running.kill()
        await scope.__aexit__(None, None, None)

    async def stop(self, name: str) -> None:
        """In order; raises what went wrong in it before."""
        _, scope = self._running.pop(name)
        await scope.__aexit__(None, None, None)

    async def dismiss(self) -> None:
        """Stop all."""
        for name in self.running:
            await self.stop(name)
