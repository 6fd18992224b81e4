"""Tuning of Python's cycle collector for a process that holds many long-lived objects.

While a cache fills, the collector traverses all of it repeatedly (a third of the time, measured), and a full collection
of a filled cache stops the loop for tens of milliseconds. Thresholds are therefore raised at the start, and once the
caches are synced their contents are frozen.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Protocol, cast

from fivespot.runtime.telemetry.metrics import Metrics

__all__ = ["CollectorPolicy"]

_THRESHOLDS = (50_000, 20, 100)
_BOUNDS = (0.0001, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0)


class _Collector(Protocol):
    """The functions of the :mod:`gc` module that are used; a seam for tests."""

    callbacks: list[Callable[[str, dict[str, int]], object]]

    def get_threshold(self) -> tuple[int, int, int]: ...
    def set_threshold(self, threshold0: int, threshold1: int = ..., threshold2: int = ..., /) -> None: ...
    def collect(self) -> int: ...
    def freeze(self) -> None: ...
    def unfreeze(self) -> None: ...


class CollectorPolicy:
    """Raises the thresholds between :meth:`start` and :meth:`stop`, and measures the pauses.

    :param time: monotonic seconds; called in the collecting thread, so not a clock of the loop.
    """

    def __init__(self, metrics: Metrics, time: Callable[[], float], collector: _Collector | None = None) -> None:
        self._gc = collector or cast("_Collector", gc)
        self._time = time
        self._before: tuple[int, int, int] | None = None
        self._begun = 0.0
        family = metrics.histogram(
            "fivespot_gc_pause_seconds", "Pauses of the cycle collector.", ("generation",), _BOUNDS
        )
        self._pauses = [family.child(str(generation)) for generation in range(3)]

    def start(self) -> None:
        self._before = self._gc.get_threshold()
        self._gc.set_threshold(*_THRESHOLDS)
        self._gc.callbacks.append(self._observe)

    def settle(self) -> None:
        """Freeze all objects alive now; called once the caches are synced."""
        self._gc.collect()
        self._gc.freeze()

    def stop(self) -> None:
        """Restore the previous settings."""
        if self._before is not None:
            self._gc.callbacks.remove(self._observe)
            self._gc.set_threshold(*self._before)
            self._gc.unfreeze()
            self._before = None

    def _observe(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._begun = self._time()
        else:
            self._pauses[min(info["generation"], 2)].observe(self._time() - self._begun)
