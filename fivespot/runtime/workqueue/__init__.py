"""A queue of keys for controllers: each key at most once, namespaces in turn, failures with back-off."""

from .backoff import Backoff
from .core import EntryState, QueueEntry
from .metrics import QueueMetrics
from .queue import WorkQueue, by_namespace

__all__ = ["Backoff", "EntryState", "QueueEntry", "QueueMetrics", "WorkQueue", "by_namespace"]
