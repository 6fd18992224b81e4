"""Metrics that remember, for queue tests."""

from __future__ import annotations

from fivespot.runtime.workqueue.queue import ObservableQueue


class RecordingMetrics:
    def __init__(self) -> None:
        self.adds = 0
        self.retries = 0
        self.waits: list[float] = []
        self.works: list[float] = []
        self.queue: ObservableQueue | None = None

    def added(self) -> None:
        self.adds += 1

    def picked(self, wait_seconds: float, /) -> None:
        self.waits.append(wait_seconds)

    def finished(self, work_seconds: float, /) -> None:
        self.works.append(work_seconds)

    def retried(self) -> None:
        self.retries += 1

    def bind(self, queue: ObservableQueue, /) -> None:
        self.queue = queue
