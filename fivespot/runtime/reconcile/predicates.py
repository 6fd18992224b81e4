"""Predicates: which changes are worth a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fivespot.runtime.objects import Change, ChangeType

__all__ = ["Predicate", "all_of", "any_of", "generation_or_metadata_changed", "not_own"]

Predicate: TypeAlias = Callable[[Change], bool]
"""True lets the change through. Called synchronously for every change: quick, without waiting."""


def generation_or_metadata_changed(change: Change) -> bool:
    """Drops changes of nothing but the status (and of managed fields).

    The API server raises ``metadata.generation`` with every change of the spec where the resource has a status
    subresource (API conventions, "Metadata"). Of kinds without generations every change is let through, because it
    cannot be told what changed. Creation, deletion and another object under the name always pass.
    """
    if change.type is not ChangeType.MODIFIED or change.old is None:
        return True
    old, new = change.old.head, change.head
    return (
        new.generation == 0
        or new.generation != old.generation
        or new.uid != old.uid
        or new.deletion_timestamp != old.deletion_timestamp
        or new.finalizers != old.finalizers
        or new.labels != old.labels
        or new.annotations != old.annotations
        or new.owners != old.owners
    )


def not_own(change: Change) -> bool:
    """Drops what this process wrote itself.

    The answer to a write may also be the first sight of somebody else's change, when the write did not demand a
    resourceVersion. ``any_of(not_own, generation_or_metadata_changed)`` is the safe combination for an object whose
    status alone is written: it drops an own change only if neither spec nor metadata moved with it.
    """
    return not change.own


def any_of(*predicates: Predicate) -> Predicate:
    """Lets through what at least one of them does; of none, nothing."""
    return lambda change: any(predicate(change) for predicate in predicates)


def all_of(*predicates: Predicate) -> Predicate:
    """Lets through what each of them does; of none, everything."""
    return lambda change: all(predicate(change) for predicate in predicates)
