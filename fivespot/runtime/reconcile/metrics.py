"""What a controller tells about its runs, as a seam for whoever exports it."""

from __future__ import annotations

from typing import Protocol

__all__ = ["ControllerMetrics"]


class ControllerMetrics(Protocol):
    """Receives what happens in one controller, with the meaning of controller-runtime's metrics.

    All methods are called on the loop, must not block and must not raise.
    """

    def result(self, result: str, seconds: float, /) -> None:
        """A run ended after so many seconds (``controller_runtime_reconcile_total``, ``_time_seconds``).

        ``success``, ``requeue_after``, ``requeue``, ``error`` or ``terminal`` (an error that is not retried). A run
        that is cancelled because the controller stops has no result.
        """
        ...

    def active(self, change: int, /) -> None:
        """A worker became busy (+1) or free (-1) (``controller_runtime_active_workers``)."""
        ...

    def workers(self, count: int, /) -> None:
        """How many runs there may be at a time (``controller_runtime_max_concurrent_reconciles``)."""
        ...
