"""Who looked at what in its last decision, so that a change of it reaches them and nobody else. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fivespot.runtime.objects import GroupKind, Key

__all__ = ["Readers", "Target"]


class Target(NamedTuple):
    """An object that somebody looked at, existing or not."""

    group_kind: GroupKind
    key: Key


class Readers:
    """Remembers looks in both directions.

    A look counts from the moment it is made, so that no change after it is missed; those of the decision before are
    dropped when the new one is complete.
    """

    def __init__(self) -> None:
        self._looks: dict[Key, set[Target]] = {}
        self._current: dict[Key, set[Target]] = {}
        self._readers: dict[Target, set[Key]] = {}
        self._kinds: dict[GroupKind, int] = {}

    def begin(self, reader: Key) -> None:
        """A decision begins."""
        self._current[reader] = set()

    def looked(self, reader: Key, target: Target) -> None:
        self._current.setdefault(reader, set()).add(target)
        looks = self._looks.setdefault(reader, set())
        if target not in looks:
            looks.add(target)
            self._readers.setdefault(target, set()).add(reader)
            self._kinds[target.group_kind] = self._kinds.get(target.group_kind, 0) + 1

    def end(self, reader: Key) -> None:
        """The decision is complete: what only an earlier one looked at concerns it no more."""
        current = self._current.pop(reader, set())
        for target in self._looks.get(reader, set()) - current:
            self._drop(reader, target)

    def forget(self, reader: Key) -> None:
        """The reader is gone."""
        self._current.pop(reader, None)
        for target in tuple(self._looks.get(reader, ())):
            self._drop(reader, target)

    def of(self, target: Target) -> Iterable[Key]:
        return tuple(self._readers.get(target, ()))

    def of_kind(self, group_kind: GroupKind) -> Iterable[Key]:
        """All who looked at an object of that kind."""
        if group_kind not in self._kinds:
            return ()
        found: set[Key] = set()
        for target, readers in self._readers.items():
            if target.group_kind == group_kind:
                found |= readers
        return found

    def kinds(self) -> frozenset[GroupKind]:
        """Kinds that somebody looks at."""
        return frozenset(self._kinds)

    def _drop(self, reader: Key, target: Target) -> None:
        looks = self._looks[reader]
        looks.discard(target)
        if not looks:
            del self._looks[reader]
        readers = self._readers[target]
        readers.discard(reader)
        if not readers:
            del self._readers[target]
        left = self._kinds[target.group_kind] - 1
        if left:
            self._kinds[target.group_kind] = left
        else:
            del self._kinds[target.group_kind]
