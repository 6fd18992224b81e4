"""Named views of a store: objects by a value computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fivespot.runtime.objects import Change, ChangeType, Key, Object

__all__ = ["Index", "IndexFunction", "Report"]

IndexFunction = Callable[[Change], Iterable[str] | None]
"""Computes the values under which an object is found. Pure; given a change so that a decoded body is shared.

None says that they are those of ``change.old``, which spares a look at what did not change; where there is no old state
that is never asked for.
"""

Report = Callable[[str, Exception], None]
"""Called with what failed, and the error, when code of a user of the cache raises."""


class Index:
    """One index over one set of objects.

    An index added to a store that already holds objects starts with all their keys *to do*: they are worked off in
    slices by :meth:`fill`, and a reader who comes earlier makes :meth:`keys` finish the rest, so an answer is
    always complete.

    Keys are kept in insertion order, never in hash order, so that a run repeats exactly.
    """

    __slots__ = ("_keys", "_report", "_todo", "_values", "fn", "name")

    def __init__(self, name: str, fn: IndexFunction, report: Report, todo: Iterable[Key] = ()) -> None:
        self.name = name
        self.fn = fn
        self._report = report
        self._keys: dict[str, dict[Key, None]] = {}
        self._values: dict[Key, tuple[str, ...]] = {}
        self._todo = list(todo)
        self._todo.reverse()

    @property
    def complete(self) -> bool:
        """Whether every object has been indexed."""
        return not self._todo

    def fork(self) -> Index:
        """Make an empty index of the same function, for the objects of a list that is being read."""
        return Index(self.name, self.fn, self._report)

    def put(self, key: Key, change: Change) -> None:
        """Take in the new state of an object."""
        try:
            found = self.fn(change)
            if found is None and key in self._values:
                return
            if found is None:
                # The old state was never looked at: the index is still being filled.
                found = self.fn(Change(ChangeType.ADDED, change.object))
            values = tuple(dict.fromkeys(found or ()))
        except Exception as error:
            # An index function is code of the cache's users. An error in it is reported, and must neither stop the
            # reflector nor leave the store and its other indexes in different states.
            self._report(f"index {self.name}", error)
            values = ()
        self._set(key, values)

    def adopt(self, key: Key, obj: Object, other: Index) -> None:
        """Take in an object that ``other``, an index of the same function, may have seen in the very same state."""
        values = other._values.get(key)
        if values is None:
            self.put(key, Change(ChangeType.ADDED, obj))
        else:
            self._set(key, values)

    def drop(self, key: Key) -> None:
        """Remove an object."""
        values = self._values.pop(key, None)
        if values:
            self._unlink(key, values)

    def fill(self, objects: Mapping[Key, Object], limit: int | None = None) -> bool:
        """Index up to ``limit`` of the objects still to do; True when none is left."""
        todo = self._todo
        for _ in range(len(todo) if limit is None else min(limit, len(todo))):
            key = todo.pop()
            obj = objects.get(key)
            if obj is not None and key not in self._values:
                self.put(key, Change(ChangeType.ADDED, obj))
        return not todo

    def keys(self, value: str, objects: Mapping[Key, Object]) -> list[Key]:
        """Return the keys found under a value."""
        if self._todo:
            self.fill(objects)
        return list(self._keys.get(value, ()))

    def _set(self, key: Key, values: tuple[str, ...]) -> None:
        before = self._values.get(key)
        if before == values:
            return
        if before:
            self._unlink(key, before)
        self._values[key] = values
        for value in values:
            self._keys.setdefault(value, {})[key] = None

    def _unlink(self, key: Key, values: tuple[str, ...]) -> None:
        for value in values:
            keys = self._keys[value]
            del keys[key]
            if not keys:
                del self._keys[value]
