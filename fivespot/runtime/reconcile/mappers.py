"""Mappers: which keys a change concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from fivespot.runtime.objects import Change, GroupKind, Head, Key, group_of

__all__ = ["Mapper", "by_label", "itself", "owner_of"]

Mapper: TypeAlias = Callable[[Change], Iterable[Key]]
"""Called for every change that passed the predicate, synchronously: quick, without waiting. A key that it names twice
is queued once. It should look at ``change.old`` too: whoever an object used to point to wants to know as well."""


def itself(change: Change) -> Iterable[Key]:
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
