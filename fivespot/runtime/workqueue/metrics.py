"""What a queue tells about itself, as a seam for whoever exports it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["ObservableQueue", "QueueMetrics"]


class ObservableQueue(Protocol):
    """What can be computed from a queue when metrics are scraped."""

    @property
    def name(self) -> str: ...

    def __len__(self) -> int:
        """Keys that are ready to be taken now."""
        ...

    def unfinished(self) -> Sequence[float]:
        """For each key being processed, the seconds since it was taken."""
        ...


class QueueMetrics(Protocol):
    """Receives what happens in one queue, with the meaning of controller-runtime's ``workqueue_*`` metrics.

    All methods are called on the loop, must not block and must not raise.
    """

    def added(self) -> None:
        """A key became wanted that was not (``workqueue_adds_total``); a duplicate is not counted."""
        ...

    def picked(self, wait_seconds: float, /) -> None:
        """A key was taken so long after it became wanted (``workqueue_queue_duration_seconds``)."""
        ...

    def finished(self, work_seconds: float, /) -> None:
        """A key was handed back so long after it was taken (``workqueue_work_duration_seconds``)."""
        ...

    def retried(self) -> None:
        """A key was put back because its run failed (``workqueue_retries_total``)."""
        ...

    def bind(self, queue: ObservableQueue, /) -> None:
        """Called once, with the queue whose depth and unfinished work the gauges show."""
        ...
