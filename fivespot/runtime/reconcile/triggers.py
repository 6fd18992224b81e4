"""Triggers: mappers from a change to the keys that have to run, and predicates that drop changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from fivespot.runtime.objects import Change, ChangeType, GroupKind, Head, Key, group_of

__all__ = [
    "Mapper",
    "Predicate",
    "all_of",
    "any_of",
    "by_label",
    "enqueue_self",
    "generation_or_metadata_changed",
    "not_written_by",
    "owner_of",
]

Mapper: TypeAlias = Callable[[Change], Iterable[Key]]
"""Called for every change that passed the predicate, synchronously: quick, without waiting. A key that it names twice
is queued once. It should look at ``change.old`` too: whoever an object used to point to wants to know as well."""

Predicate: TypeAlias = Callable[[Change], bool]
"""True lets the change through. Called synchronously for every change: quick, without waiting."""


def enqueue_self(change: Change) -> Iterable[Key]:
    """The object that changed."""
    return (change.key,)


def owner_of(group_kind: GroupKind, *, controller_only: bool = False, namespaced: bool = True) -> Mapper:
    """The owners of that kind, at whatever version the reference names, before and after the change.

    :param controller_only: only the owner reference with ``controller: true``.
    :param namespaced: whether the owner lives in the namespace of what it owns; otherwise it is cluster-scoped.
    """

    def owners(head: Head) -> Iterable[Key]:
        for owner in head.owners:
            if owner.kind != group_kind.kind or group_of(owner.api_version) != group_kind.group or not owner.name:
                continue
            if owner.controller or not controller_only:
                yield Key(head.namespace if namespaced else "", owner.name)

    return _before_and_after(owners)


def by_label(name: str) -> Mapper:
    """The object in the same namespace that the value of a label names, before and after the change."""

    def labelled(head: Head) -> Iterable[Key]:
        value = head.labels.get(name)
        if value:
            yield Key(head.namespace, value)

    return _before_and_after(labelled)


def _before_and_after(keys_of: Callable[[Head], Iterable[Key]]) -> Mapper:
    def mapper(change: Change) -> Iterable[Key]:
        keys = list(keys_of(change.head))
        if change.old is not None and change.old is not change.object:
            keys += [key for key in keys_of(change.old.head) if key not in keys]
        return keys

    return mapper


def generation_or_metadata_changed(change: Change) -> bool:
    """Drop changes of nothing but the status (and of managed fields).

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


def not_written_by(controller: str) -> Predicate:
    """Drop the changes that runs of one controller made themselves, and nothing else.

    Dropped is only the answer to a write that demanded the state before it: a create, or an update with the
    resourceVersion that the informer held (``merge_patch(change, head)``, ``finalizer_patch``). Such an answer cannot
    carry a change of anybody else. Writes of other controllers of the process pass, and so does the answer to a write
    without resourceVersion, which may be the first sight of somebody else's change.

    :param controller: the name of the controller.
    """
    return lambda change: change.writer != controller


def any_of(*predicates: Predicate) -> Predicate:
    """Lets through what at least one of them does; of none, nothing."""
    return lambda change: any(predicate(change) for predicate in predicates)


def all_of(*predicates: Predicate) -> Predicate:
    """Lets through what each of them does; of none, everything."""
    return lambda change: all(predicate(change) for predicate in predicates)
