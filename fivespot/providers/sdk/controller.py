"""The controller of one kind of schedule: the runtime's, and a watch on the wall clock."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog

from fivespot.runtime import Change, ChangeType, Controller, Informer, Key, ManagerContext
from fivespot.runtime.clock import LoopClock
from fivespot.runtime.workqueue import Backoff

from .definition import Provider
from .dependencies import Dependencies
from .reconciler import ProviderReconciler

__all__ = ["build_controller"]

RETRIES: Final = Backoff(base=0.1, cap=30.0)
"""Between retries after transient errors. While the API server cannot be reached, the waits stay at 3 seconds; the cap
is how late a boundary may be while the server answers with errors."""
CLOCK_INTERVAL: Final = 15.0
"""Seconds between two checks of the wall clock."""
CLOCK_STEP: Final = 0.25
"""Change of the wall clock, in seconds, from which on it is noticed."""

_log = structlog.get_logger("fivespot.provider")


def build_controller(provider: Provider[Any], context: ManagerContext) -> Controller:
    """The controller of one kind of schedule. Its CRD may be installed later; it is waited for."""
    return _ProviderController(provider, context)


class _ProviderController(Controller):
    """Runs timers on the loop's clock for instants on the wall clock, and all objects again when the wall clock is set.

    One check of the clock for all of them is cheap, where a wake-up of each would not be.
    """

    def __init__(self, provider: Provider[Any], context: ManagerContext) -> None:
        self._informer: Informer = context.cache.informer(provider.resource)
        dependencies = Dependencies(context.cache, provider.reads, self._dependency_changed) if provider.reads else None
        reconciler = ProviderReconciler(provider, self._informer, context, dependencies)
        super().__init__(
            provider.name,
            reconciler,
            clock=context.clock,
            rng=context.rng,
            workers=provider.workers,
            timeout=120.0 + provider.timeout,
            backoff=RETRIES,
            metrics=context.metrics.controller(provider.name),
            queue_metrics=context.metrics.queue(provider.name),
        )
        self._wall = context.clock
        self._is_echo = reconciler.is_echo
        self.at_start(reconciler.begin_term)
        self.watches(self._informer, predicate=self._needs_a_run)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            # A clock that follows the loop's own cannot be set apart from it.
            follows = type(self._wall) is LoopClock
            watch = None if follows else group.create_task(self._watch_clock(), name=f"{self.name} wall clock")
            try:
                await super().run()
            finally:
                if watch is not None:
                    watch.cancel()

    async def _watch_clock(self) -> None:
        offset = self._offset()
        while True:
            await asyncio.sleep(CLOCK_INTERVAL)
            now = self._offset()
            if now is None:
                # The next check compares, so that no change of the clock is missed.
                continue
            if offset is None:
                offset = now
            elif abs(now - offset) >= CLOCK_STEP:
                _log.warning("the wall clock was set", controller=self.name, seconds=round(now - offset, 3))
                offset = now
                for key in self._informer.keys():  # noqa: SIM118 - not a mapping
                    self.enqueue(key)

    def _offset(self) -> float | None:
        """The difference of the two clocks; None when the process was suspended while they were read."""
        before = self._wall.monotonic()
        wall = self._wall.now().timestamp()
        taken = self._wall.monotonic() - before
        return wall - before if taken < CLOCK_STEP / 4 else None

    def _dependency_changed(self, key: Key) -> None:
        self.enqueue(key)

    def _needs_a_run(self, change: Change) -> bool:
        """Whether a change calls for a run: any but the controller's own status write. Others' writes are corrected."""
        own = change.writer == self.name and change.type is ChangeType.MODIFIED
        return not own and not self._is_echo(change)
