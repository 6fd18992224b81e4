"""A queue of keys for controllers: each key at most once, namespaces in turn, failures with back-off."""

from fivespot.runtime.backoff import Backoff

from .core import EntryState, QueueEntry
from .queue import QueueMetrics, WorkQueue, by_namespace

__all__ = ["Backoff", "EntryState", "QueueEntry", "QueueMetrics", "WorkQueue", "by_namespace"]
