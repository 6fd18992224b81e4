"""Controllers: sources, work queue, and runs of a reconciler."""

from .controller import Controller, ControllerMetrics
from .finalizers import ensure_finalizer, remove_finalizer
from .reconciler import DONE, Reconciler, Result, reconcile_id
from .sources import InformerSource, KindSource, Source
from .triggers import (
    Mapper,
    Predicate,
    all_of,
    any_of,
    by_label,
    enqueue_self,
    generation_or_metadata_changed,
    not_written_by,
    owner_of,
)

__all__ = [
    "DONE",
    "Controller",
    "ControllerMetrics",
    "InformerSource",
    "KindSource",
    "Mapper",
    "Predicate",
    "Reconciler",
    "Result",
    "Source",
    "all_of",
    "any_of",
    "by_label",
    "enqueue_self",
    "ensure_finalizer",
    "generation_or_metadata_changed",
    "not_written_by",
    "owner_of",
    "reconcile_id",
    "remove_finalizer",
]
