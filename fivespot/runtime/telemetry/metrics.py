"""Metrics of one manager under controller-runtime's names, in a registry of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from fivespot.runtime.clock import Offload
from fivespot.runtime.objects import Resource
from fivespot.runtime.workqueue.queue import ObservableQueue

from .families import CounterFamily, GaugeFamily, HistogramFamily, MetricFamily, Reading, ReadingFamily

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

__all__ = ["CONTENT_TYPE", "InformerFacts", "Metrics", "PrometheusControllerMetrics", "PrometheusQueueMetrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The text format that :meth:`Metrics.render` writes (Prometheus exposition formats)."""

_QUEUE_BUCKETS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""One bucket per decade: waits range from microseconds to the longest back-off, and each bucket is a line per queue."""

_RECONCILE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""controller-runtime's range, up to a minute, with fewer steps."""


_RESULTS = ("success", "error", "requeue_after", "requeue")

F = TypeVar("F", CounterFamily, GaugeFamily, HistogramFamily, ReadingFamily)


class InformerFacts(Protocol):
    """The part of an informer's status that is exported; the cache's ``InformerStatus`` has it."""

    @property
    def resource(self) -> Resource: ...
    @property
    def synced(self) -> bool: ...
    @property
    def objects(self) -> int: ...
    @property
    def relists(self) -> int: ...
    @property
    def undecodable(self) -> int: ...


class PrometheusQueueMetrics:
    """Metrics of one work queue, written by the queue as plain attributes."""

    __slots__ = ("_adds", "_queue", "_retries", "_waits", "_works")

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._adds = metrics.queue_adds.child(name, name)
        self._retries = metrics.queue_retries.child(name, name)
        self._waits = metrics.queue_waits.child(name, name)
        self._works = metrics.queue_works.child(name, name)
        self._queue: ObservableQueue | None = None

    def bind(self, queue: ObservableQueue, /) -> None:
        """Set the queue whose depth and unfinished work are exported; a later one replaces an earlier one."""
        self._queue = queue

    def added(self) -> None:
        """A key was added that was not queued."""
        self._adds.value += 1

    def picked(self, wait_seconds: float, /) -> None:
        """A worker took a key that had been ready for so many seconds."""
        self._waits.observe(wait_seconds)

    def finished(self, work_seconds: float, /) -> None:
        """A worker finished a key after so many seconds."""
        self._works.observe(work_seconds)

    def retried(self) -> None:
        """A key was added after a failure."""
        self._retries.value += 1

    @property
    def depth(self) -> float:
        return len(self._queue) if self._queue is not None else 0

    @property
    def unfinished(self) -> float:
        """Seconds of work in progress that no histogram includes yet, summed over the workers."""
        return sum(self._queue.unfinished()) if self._queue is not None else 0

    @property
    def longest(self) -> float:
        """Seconds since the oldest run in progress began."""
        return max(self._queue.unfinished(), default=0) if self._queue is not None else 0


class PrometheusControllerMetrics:
    """Metrics of one controller's runs."""

    __slots__ = ("_active", "_errors", "_results", "_seconds", "_terminal", "_workers")

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._results = {result: metrics.reconciles.child(name, result) for result in _RESULTS}
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
        """Set the maximum number of concurrent runs."""
        self._workers.value = count


class Metrics:
    """The metrics of one manager, in a registry that is not global.

    :ivar leading: whether this process is the leader. Families that are ``leader_only`` are exported only then, so that
        samples of two replicas are never summed. Always true without leader election.
    """

    def __init__(self, *, process: bool = True) -> None:
        self._process = process
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
        self.reading(
            "workqueue_depth", "Keys that are ready.", queue, lambda: self._per_queue("depth"), leader_only=True
        )
        self.reading(
            "workqueue_unfinished_work_seconds",
            "Seconds of work under way that no histogram has seen yet.",
            queue,
            lambda: self._per_queue("unfinished"),
            leader_only=True,
        )
        self.reading(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the longest run under way has taken so far.",
            queue,
            lambda: self._per_queue("longest"),
            leader_only=True,
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

    @cached_property
    def registry(self) -> CollectorRegistry:
        """The registry, which accepts further collectors of ``prometheus_client``.

        Imports that library, 4 MB of memory that a process without scrapes does not need.
        """
        from .exposition import registry_of  # noqa: PLC0415

        return registry_of(self, process=self._process)

    # Application metrics --------------------------------------------------------------------------------------

    def counter(self, name: str, documentation: str, labels: Sequence[str] = ()) -> CounterFamily:
        """The family of counters of that name, created on first use.

        :raises ValueError: the name exists with another type or other labels, or does not end in ``_total``.
        """
        if not name.endswith("_total"):
            raise ValueError(f"counter {name} must end in _total")
        return self._family(CounterFamily(name, documentation, labels))

    def gauge(
        self, name: str, documentation: str, labels: Sequence[str] = (), *, leader_only: bool = False
    ) -> GaugeFamily:
        """The family of gauges of that name; see :meth:`counter`."""
        return self._family(GaugeFamily(name, documentation, labels, leader_only=leader_only))

    def histogram(
        self, name: str, documentation: str, labels: Sequence[str], bounds: Sequence[float]
    ) -> HistogramFamily:
        """The family of histograms of that name; see :meth:`counter`."""
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
        """Register samples computed at each scrape; registering the name again replaces the function."""
        self._families.pop(name, None)
        self._family(ReadingFamily(name, documentation, labels, read, leader_only=leader_only, counter=counter))

    def info(self, name: str, documentation: str, **labels: str) -> None:
        """Export a gauge that is always 1 and carries information in its labels."""
        self.gauge(name, documentation, tuple(labels)).child(*labels.values()).set(1)

    # Runtime metrics ------------------------------------------------------------------------------------------

    def queue(self, name: str) -> PrometheusQueueMetrics:
        """The metrics of the work queue of that name."""
        if name not in self._queues:
            self._queues[name] = PrometheusQueueMetrics(self, name)
        return self._queues[name]

    def controller(self, name: str) -> PrometheusControllerMetrics:
        """The metrics of the controller of that name."""
        if name not in self._controllers:
            self._controllers[name] = PrometheusControllerMetrics(self, name)
        return self._controllers[name]

    def remove_controller(self, name: str) -> None:
        """Remove all samples of a controller and its queue, for one that will not run again."""
        self._queues.pop(name, None)
        self._controllers.pop(name, None)
        self.queue_adds.remove(name, name)
        self.queue_retries.remove(name, name)
        self.queue_waits.remove(name, name)
        self.queue_works.remove(name, name)
        self.reconcile_errors.remove(name)
        self.terminal_errors.remove(name)
        self.reconcile_seconds.remove(name)
        self.active_workers.remove(name)
        self.max_workers.remove(name)
        for result in _RESULTS:
            self.reconciles.remove(name, result)

    def requests(self, verb: str, status: int) -> None:
        """Count one request; status 0 means that there was no response."""
        count = self._requests.get((verb, status))
        if count is None:
            cell = self.rest_requests.child(str(status) if status else "<error>", verb.upper())
            count = self._requests[verb, status] = cell.inc
        count()

    def informers(self, read: Callable[[], Iterable[InformerFacts]]) -> None:
        """Export the running informers, one sample per resource, which is synced if all informers of it are."""

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
            "fivespot_informer_undecodable_objects",
            "Objects that exist and cannot be decoded.",
            labels,
            lambda: fold("undecodable", _add),
        )
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
        """Collect all samples. Must be called on the event loop."""
        return list(self.registry.collect())

    def render(self) -> bytes:
        """Render the text format synchronously."""
        from .exposition import text  # noqa: PLC0415

        return text(self.collect())

    async def render_with(self, offload: Offload) -> bytes:
        """Render the text format: samples are collected on the loop at one instant, formatting is offloaded."""
        from .exposition import text  # noqa: PLC0415

        return await offload.run(text, self.collect())

    def _per_queue(self, field: str) -> Iterable[Reading]:
        return [((name, name), getattr(queue, field)) for name, queue in self._queues.items()]

    def _family(self, family: F) -> F:
        known = self._families.setdefault(family.name, family)
        if known is family:
            return family
        if type(known) is not type(family) or known.labels != family.labels:
            raise ValueError(f"metric {family.name} exists with another type or other labels")
        return known


def _add(a: float, b: float) -> float:
    return a + b
