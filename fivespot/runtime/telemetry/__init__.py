"""Observability: metrics, Kubernetes events, logs and traces."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .logs import LogFormat, LogLimiter, configure_logging
from .tracing import NULL_TRACER, Span, Tracer, tracer_from

if TYPE_CHECKING:
    from .correlation import EventLimits, EventNote, ObjectRef
    from .events import EventRecorder
    from .families import Buckets, Cell, CounterFamily, GaugeFamily, HistogramFamily, Reading
    from .metrics import CONTENT_TYPE, Metrics, PrometheusControllerMetrics, PrometheusQueueMetrics

__all__ = [
    "CONTENT_TYPE",
    "NULL_TRACER",
    "Buckets",
    "Cell",
    "CounterFamily",
    "EventLimits",
    "EventNote",
    "EventRecorder",
    "GaugeFamily",
    "HistogramFamily",
    "LogFormat",
    "LogLimiter",
    "Metrics",
    "ObjectRef",
    "PrometheusControllerMetrics",
    "PrometheusQueueMetrics",
    "Reading",
    "Span",
    "Tracer",
    "configure_logging",
    "tracer_from",
]

_HOME = {
    "CONTENT_TYPE": "metrics",
    "Buckets": "families",
    "Cell": "families",
    "PrometheusControllerMetrics": "metrics",
    "CounterFamily": "families",
    "EventLimits": "correlation",
    "EventNote": "correlation",
    "EventRecorder": "events",
    "GaugeFamily": "families",
    "HistogramFamily": "families",
    "Metrics": "metrics",
    "ObjectRef": "correlation",
    "PrometheusQueueMetrics": "metrics",
    "Reading": "families",
}


if not TYPE_CHECKING:  # or type checkers would take every misspelt name for Any

    def __getattr__(name: str) -> Any:
        # prometheus_client is loaded when metrics are used; cache and client import the log helpers only.
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
