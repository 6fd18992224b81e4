"""The metrics of one manager: controller-runtime's names, in a registry of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import prometheus_client
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from fivespot.runtime.clock import Offload
from fivespot.runtime.objects import Resource
from fivespot.runtime.workqueue.queue import ObservableQueue

from .families import CounterFamily, GaugeFamily, HistogramFamily, MetricFamily, Reading, ReadingFamily

__all__ = ["CONTENT_TYPE", "InformerFacts", "Metrics", "PrometheusControllerMetrics", "PrometheusQueueMetrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The text format that :meth:`Metrics.render` writes (Prometheus exposition formats)."""

_QUEUE_BUCKETS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""A decade each: waits span from microseconds to the longest back-off, and every bucket costs a line per queue."""

_RECONCILE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Up to a minute, as controller-runtime has them, but without the fine steps that nobody alerts on."""


F = TypeVar("F", CounterFamily, GaugeFamily, HistogramFamily, ReadingFamily)


class InformerFacts(Protocol):
    """What of an informer's status is shown; the cache's ``InformerStatus`` is one."""

    @property
    def resource(self) -> Resource: ...
    @property
    def synced(self) -> bool: ...
    @property
    def objects(self) -> int: ...
    @property
    def relists(self) -> int: ...


class PrometheusQueueMetrics:
    """Counts of one work queue, written by the queue as plain attributes."""

    __slots__ = ("_adds", "_queue", "_retries", "_waits", "_works")

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._adds = metrics.queue_adds.child(name, name)
        self._retries = metrics.queue_retries.child(name, name)
        self._waits = metrics.queue_waits.child(name, name)
        self._works = metrics.queue_works.child(name, name)
        self._queue: ObservableQueue | None = None

    def bind(self, queue: ObservableQueue, /) -> None:
        """The queue whose depth and unfinished work a scrape shows; a later one takes the place of an earlier."""
        self._queue = queue

    def added(self) -> None:
        """A key became wanted that was not."""
        self._adds.value += 1

    def picked(self, wait_seconds: float, /) -> None:
        """A worker took a key that had been ready for that long."""
        self._waits.observe(wait_seconds)

    def finished(self, work_seconds: float, /) -> None:
        """A worker gave a key back after that long."""
        self._works.observe(work_seconds)

    def retried(self) -> None:
        """A key was added after a failure."""
        self._retries.value += 1

    @property
    def depth(self) -> float:
        return len(self._queue) if self._queue is not None else 0

    @property
    def unfinished(self) -> float:
        """Seconds of work under way that no histogram has seen yet, summed over the workers."""
        return sum(self._queue.unfinished()) if self._queue is not None else 0

    @property
    def longest(self) -> float:
        """Seconds since the oldest run that is under way began."""
        return max(self._queue.unfinished(), default=0) if self._queue is not None else 0


class PrometheusControllerMetrics:
    """Counts of one controller's runs."""

    __slots__ = ("_active", "_errors", "_results", "_seconds", "_terminal", "_workers")

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._results = {
            result: metrics.reconciles.child(name, result)
            for result in ("success", "error", "requeue_after", "requeue")
        }
        self._errors = metrics.reconcile_errors.child(name)
        self._terminal = metrics.terminal_errors.child(name)
        self._seconds = metrics.reconcile_seconds.child(name)
        self._active = metrics.active_workers.child(name)
        self._workers = metrics.max_workers.child(name)

    def result(self, result: str, seconds: float) -> None:
        """A run ended.

        :param result: ``success``, ``error``, ``requeue_after``, ``requeue`` or ``terminal``. A terminal error is
            an error too, as controller-runtime counts it.
        """
        if result == "terminal":
            self._terminal.value += 1
            result = "error"
        if result == "error":
            self._errors.value += 1
        self._results[result].value += 1
        self._seconds.observe(seconds)

    def active(self, change: int) -> None:
        """A worker became busy (+1) or idle (-1)."""
        self._active.value += change

    def workers(self, count: int) -> None:
        """How many runs may be under way at once."""
        self._workers.value = count


class Metrics:
    """Owns a registry; hands out children; renders it all as text.

    :ivar registry: for families of ``prometheus_client`` that somebody brings along; nothing of ours is global.
    :ivar leading: whether this process does the work. Gauges that describe the cluster are sampled only then, so
        that two replicas are never added up. True where nobody elects a leader.
    """

    def __init__(self, *, process: bool = True) -> None:
        # The *_created samples double the size of an answer, and no dashboard of the field reads them.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.leading = True
        self._families: dict[str, MetricFamily] = {}
        self._queues: dict[str, PrometheusQueueMetrics] = {}
        self._controllers: dict[str, PrometheusControllerMetrics] = {}
        self._requests: dict[tuple[str, int], Callable[[], None]] = {}

        queue = ("name", "controller")
        self.queue_adds = self.counter("workqueue_adds_total", "Keys added to the queue.", queue)
        self.queue_retries = self.counter("workqueue_retries_total", "Keys added after a failure.", queue)
        self.queue_waits = self.histogram(
            "workqueue_queue_duration_seconds", "Time a ready key waited for a worker.", queue, _QUEUE_BUCKETS
        )
        self.queue_works = self.histogram(
            "workqueue_work_duration_seconds", "Time a worker spent on a key.", queue, _QUEUE_BUCKETS
        )
        self.reading("workqueue_depth", "Keys that are ready.", queue, lambda: self._per_queue("depth"))
        self.reading(
            "workqueue_unfinished_work_seconds",
            "Seconds of work under way that no histogram has seen yet.",
            queue,
            lambda: self._per_queue("unfinished"),
        )
        self.reading(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the longest run under way has taken so far.",
            queue,
            lambda: self._per_queue("longest"),
        )

        controller = ("controller",)
        self.reconciles = self.counter(
            "controller_runtime_reconcile_total", "Runs by result.", ("controller", "result")
        )
        self.reconcile_errors = self.counter("controller_runtime_reconcile_errors_total", "Failed runs.", controller)
        self.terminal_errors = self.counter(
            "controller_runtime_terminal_reconcile_errors_total", "Failed runs that retrying cannot help.", controller
        )
        self.reconcile_seconds = self.histogram(
            "controller_runtime_reconcile_time_seconds", "Length of a run.", controller, _RECONCILE_BUCKETS
        )
        self.active_workers = self.gauge("controller_runtime_active_workers", "Runs under way.", controller)
        self.max_workers = self.gauge(
            "controller_runtime_max_concurrent_reconciles", "Runs that may be under way at once.", controller
        )
        self.rest_requests = self.counter(
            "rest_client_requests_total", "Requests to the API server by answer.", ("code", "method")
        )
        self.registry.register(_Families(self))
        if process:
            ProcessCollector(registry=self.registry)

    # Families of one's own -------------------------------------------------------------------------------------

    def counter(self, name: str, documentation: str, labels: Sequence[str] = ()) -> CounterFamily:
        """A family of counters; asked for twice, the same one.

        :raises ValueError: the name is taken by another kind of family or other labels, or lacks ``_total``.
        """
        if not name.endswith("_total"):
            raise ValueError(f"counter {name} must end in _total")
        return self._family(CounterFamily(name, documentation, labels))

    def gauge(
        self, name: str, documentation: str, labels: Sequence[str] = (), *, leader_only: bool = False
    ) -> GaugeFamily:
        """A family of gauges that are set; see :meth:`counter`."""
        return self._family(GaugeFamily(name, documentation, labels, leader_only=leader_only))

    def histogram(
        self, name: str, documentation: str, labels: Sequence[str], bounds: Sequence[float]
    ) -> HistogramFamily:
        """A family of histograms; see :meth:`counter`."""
        return self._family(HistogramFamily(name, documentation, labels, bounds))

    def reading(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        read: Callable[[], Iterable[Reading]],
        *,
        leader_only: bool = False,
        counter: bool = False,
    ) -> None:
        """Samples computed at each scrape; registering the name again replaces the function."""
        self._families.pop(name, None)
        self._family(ReadingFamily(name, documentation, labels, read, leader_only=leader_only, counter=counter))

    def info(self, name: str, documentation: str, **labels: str) -> None:
        """A gauge that is always 1 and says something by its labels."""
        self.gauge(name, documentation, tuple(labels)).child(*labels.values()).set(1)

    # The runtime's own -----------------------------------------------------------------------------------------

    def queue(self, name: str) -> PrometheusQueueMetrics:
        """The counts of the work queue of that name."""
        if name not in self._queues:
            self._queues[name] = PrometheusQueueMetrics(self, name)
        return self._queues[name]

    def controller(self, name: str) -> PrometheusControllerMetrics:
        """The counts of the controller of that name."""
        if name not in self._controllers:
            self._controllers[name] = PrometheusControllerMetrics(self, name)
        return self._controllers[name]

    def requests(self, verb: str, status: int) -> None:
        """Count one request; status 0 says that no answer came."""
        count = self._requests.get((verb, status))
        if count is None:
            cell = self.rest_requests.child(str(status) if status else "<error>", verb.upper())
            count = self._requests[verb, status] = cell.inc
        count()

    def informers(self, read: Callable[[], Iterable[InformerFacts]]) -> None:
        """Show the informers that run, one sample per resource: synced only if all of a resource's are."""

        def fold(field: str, join: Callable[[float, float], float]) -> Iterable[Reading]:
            values: dict[str, float] = {}
            for status in read():
                name, value = status.resource.qualified, float(getattr(status, field))
                values[name] = join(values[name], value) if name in values else value
            return [((name,), value) for name, value in values.items()]

        labels = ("resource",)
        self.reading(
            "fivespot_informer_synced", "Whether the first list is complete.", labels, lambda: fold("synced", min)
        )
        self.reading("fivespot_informer_objects", "Objects held.", labels, lambda: fold("objects", _add))
        self.reading(
            "fivespot_informer_relists_total",
            "Lists read from the start, the first included.",
            labels,
            lambda: fold("relists", _add),
            counter=True,
        )

    # Reading ---------------------------------------------------------------------------------------------------

    def families(self) -> Iterable[MetricFamily]:
        return tuple(self._families.values())

    def collect(self) -> list[Metric]:
        """All samples as they are now. Call it on the event loop, whose data it reads."""
        return list(self.registry.collect())

    def render(self) -> bytes:
        """The text format, made in one go."""
        return _text(self.collect())

    async def render_with(self, offload: Offload) -> bytes:
        """The text format. Samples are read on the loop, at one instant; formatting, the long part, is offloaded."""
        return await offload.run(_text, self.collect())

    def _per_queue(self, field: str) -> Iterable[Reading]:
        return [((name, name), getattr(queue, field)) for name, queue in self._queues.items()]

    def _family(self, family: F) -> F:
        known = self._families.setdefault(family.name, family)
        if known is family:
            return family
        if type(known) is not type(family) or known.labels != family.labels:
            raise ValueError(f"metric {family.name} exists with another type or other labels")
        return known


class _Families(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Nothing: it keeps the registry from reading everything when the collector is registered."""
        return ()

    def collect(self) -> Iterable[Metric]:
        leading = self._metrics.leading
        for family in self._metrics.families():
            if leading or not family.leader_only:
                metric = family.collect()
                if metric.samples:
                    yield metric


class _Frozen(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._collected = metrics

    def collect(self) -> Iterable[Metric]:
        return self._collected


def _text(metrics: list[Metric]) -> bytes:
    return prometheus_client.generate_latest(_Frozen(metrics))


def _add(a: float, b: float) -> float:
    return a + b
