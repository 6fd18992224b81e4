"""Exposition of metric families with prometheus_client; the only module that imports it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Protocol

import prometheus_client
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from .families import CounterFamily, GaugeFamily, HistogramFamily, MetricFamily

__all__ = ["registry_of", "text"]


class MetricSource(Protocol):
    """The families to expose; ``Metrics`` is one."""

    @property
    def leading(self) -> bool: ...

    def families(self) -> Iterable[MetricFamily]: ...


def registry_of(source: MetricSource, *, process: bool) -> CollectorRegistry:
    """Make a registry that collects the families of ``source``.

    :param process: export CPU, memory and file descriptors of the process as well.
    """
    # The *_created samples double the size of a scrape, and common dashboards do not use them.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    registry.register(_Families(source))
    if process:
        ProcessCollector(registry=registry)
    return registry


def text(metrics: list[Metric]) -> bytes:
    """Render collected metrics in the text format."""
    return prometheus_client.generate_latest(_Frozen(metrics))


def _metric(family: MetricFamily) -> Metric:
    name, documentation, labels = family.name, family.documentation, family.labels
    if isinstance(family, HistogramFamily):
        histogram = HistogramMetricFamily(name, documentation, labels=labels)
        bounds = [*(str(float(bound)) for bound in family.bounds), "+Inf"]
        for values, child in family.children():
            histogram.add_metric(values, list(zip(bounds, accumulate(child.counts), strict=True)), child.total)
        return histogram
    if isinstance(family, (CounterFamily, GaugeFamily)):
        counts = isinstance(family, CounterFamily)
        readings: Iterable[tuple[tuple[str, ...], float]] = ((v, cell.value) for v, cell in family.children())
    else:
        counts, readings = family.counter, family.read()
    metric = (CounterMetricFamily if counts else GaugeMetricFamily)(name, documentation, labels=labels)
    for values, value in readings:
        metric.add_metric(values, value)
    return metric


class _Families(Collector):
    def __init__(self, source: MetricSource) -> None:
        self._source = source

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering the collector does not collect all samples."""
        return ()

    def collect(self) -> Iterable[Metric]:
        leading = self._source.leading
        for family in self._source.families():
            if leading or not family.leader_only:
                metric = _metric(family)
                if metric.samples:
                    yield metric


class _Frozen(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._collected = metrics

    def collect(self) -> Iterable[Metric]:
        return self._collected
