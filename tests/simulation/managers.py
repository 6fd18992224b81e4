"""Managers that are killed and replaced."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fivespot.testing.cluster import RunningManager
from support.pausable import PROCESS

__all__ = ["Managers"]

Start = Callable[[], AbstractAsyncContextManager[RunningManager]]


class Managers:
    """Managers by name; each can be killed at any time and replaced by a new one."""

    def __init__(self) -> None:
        self._starts: dict[str, Start] = {}
        self._running: dict[str, tuple[RunningManager, AbstractAsyncContextManager[RunningManager]]] = {}

    @property
    def running(self) -> list[str]:
        return sorted(self._running)

    @property
    def dead(self) -> list[str]:
        return sorted(set(self._starts) - set(self._running))

    async def add(self, name: str, start: Start) -> None:
        """Start a manager, and keep the function that starts its replacement."""
        self._starts[name] = start
        await self.start(name)

    async def start(self, name: str) -> None:
        """Start a manager as a process of its own, so that a :class:`PausableLoop` can pause it."""
        scope = self._starts[name]()
        token = PROCESS.set(name)
        try:
            self._running[name] = (await scope.__aenter__(), scope)
        finally:
            PROCESS.reset(token)

    async def kill(self, name: str) -> None:
        """Kill a manager at an arbitrary point of its work."""
        running, scope = self._running.pop(name)
        await running.kill()
        await scope.__aexit__(None, None, None)

    async def stop(self, name: str) -> None:
        """Stop a manager gracefully; raise its error, if any."""
        _, scope = self._running.pop(name)
        await scope.__aexit__(None, None, None)

    async def stop_all(self) -> None:
        """Stop all."""
        for name in self.running:
            await self.stop(name)
