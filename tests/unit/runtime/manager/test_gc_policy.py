"""Tuning of the cycle collector."""

from __future__ import annotations

from collections.abc import Callable

from fivespot.runtime.manager.gc_policy import CollectorPolicy
from fivespot.runtime.telemetry import Metrics


class FakeCollector:
    def __init__(self) -> None:
        self.callbacks: list[Callable[[str, dict[str, int]], object]] = []
        self.threshold = (700, 10, 10)
        self.calls: list[str] = []

    def get_threshold(self) -> tuple[int, int, int]:
        return self.threshold

    def set_threshold(self, threshold0: int, threshold1: int = 10, threshold2: int = 10, /) -> None:
        self.threshold = (threshold0, threshold1, threshold2)

    def collect(self) -> int:
        for callback in self.callbacks:
            callback("start", {"generation": 2})
            callback("stop", {"generation": 2})
        self.calls.append("collect")
        return 0

    def freeze(self) -> None:
        self.calls.append("freeze")

    def unfreeze(self) -> None:
        self.calls.append("unfreeze")


def test_collector_settings_are_raised_measured_and_put_back() -> None:
    collector, metrics = FakeCollector(), Metrics(process=False)
    ticks = iter([1.0, 1.25])
    policy = CollectorPolicy(metrics, lambda: next(ticks), collector)
    policy.start()
    assert collector.threshold == (50_000, 20, 100)
    policy.settle()
    assert collector.calls == ["collect", "freeze"]
    policy.stop()
    policy.stop()
    assert collector.threshold == (700, 10, 10)
    assert collector.calls == ["collect", "freeze", "unfreeze"]
    assert not collector.callbacks
    assert 'fivespot_gc_pause_seconds_sum{generation="2"} 0.25' in metrics.render().decode()
