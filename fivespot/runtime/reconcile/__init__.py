"""Controllers: from changes to keys, from keys to runs of a reconciler."""

from .context import reconcile_id
from .controller import Controller
from .finalizers import ensure_finalizer, remove_finalizer
from .mappers import Mapper, by_label, itself, owner_of
from .metrics import ControllerMetrics
from .predicates import Predicate, all_of, any_of, generation_or_metadata_changed, not_own
from .result import DONE, Reconciler, Result
from .sources import InformerSource, KindSource, Source

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
    "ensure_finalizer",
    "generation_or_metadata_changed",
    "itself",
    "not_own",
    "owner_of",
    "reconcile_id",
    "remove_finalizer",
]
