"""A list on its way into a store: read aside, swapped in at once, told to handlers piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fivespot.runtime.objects import Change, ChangeType, Head, Key, Object

from .index import Index

__all__ = ["Staging", "Swap"]


class Staging:
    """The objects of a list that is still being read.

    Nothing of it is visible before the swap. Objects that the store already holds in the same state are shared
    with it, so a relist of unchanged objects costs neither memory nor projections.

    :param epoch: the store's count of lists begun; tells what was written before this one from what came later.
    :param current: the objects of the store, live.
    :param indexes: the store's indexes; the new ones are built object by object while pages arrive.
    """

    def __init__(self, epoch: int, current: Mapping[Key, Object], indexes: Mapping[str, Index]) -> None:
        self.epoch = epoch
        self.objects: dict[Key, Object] = {}
        self.indexes = {name: index.fork() for name, index in indexes.items()}
        self.gone: dict[Key, str] = {}
        """uids that this process saw deleted since the list began; the list may still show them."""
        self.behind: list[Key] = []
        """Keys whose listed state is older than the store's: no honest list has any."""
        self._current = current
        self._live = indexes

    def reuse(self, head: Head) -> bool:
        """Stage the store's own copy if it is in the state that ``head`` shows; False when it is not."""
        key = Key(head.namespace, head.name)
        current = self._current.get(key)
        if current is None or current.head.uid != head.uid:
            return False
        if current.head.version != head.version:
            if current.head.version > head.version:
                self.behind.append(key)
            return False
        self.objects[key] = current
        for name, index in self.indexes.items():
            live = self._live.get(name)
            if live is None:
                index.put(key, Change(ChangeType.ADDED, current))
            else:
                index.adopt(key, current, live)
        return True

    def put(self, key: Key, obj: Object) -> None:
        """Stage an object, unless a later state of it is staged already."""
        staged = self.objects.get(key)
        if staged is not None and staged.head.version >= obj.head.version:
            return
        self.force(key, obj)

    def force(self, key: Key, obj: Object) -> None:
        self.objects[key] = obj
        if self.indexes:
            change = Change(ChangeType.ADDED, obj)
            for index in self.indexes.values():
                index.put(key, change)

    def drop(self, key: Key) -> None:
        """Unstage what a DELETED during a streaming list, or our own knowledge, says is gone."""
        if self.objects.pop(key, None) is not None:
            for index in self.indexes.values():
                index.drop(key)


class Swap:
    """The difference that a swap made, told once per key and in any number of slices.

    The store already shows the new state when the first change is told. Whoever changes a key before its turn has
    to :meth:`settle` it first, so that handlers see the changes of one key in the order in which they happened.
    """

    def __init__(self, old: dict[Key, Object], now: Mapping[Key, Object]) -> None:
        self._old = old
        self._now = now
        self._fresh = dict.fromkeys(key for key in now if key not in old)

    def settle(self, key: Key) -> tuple[Change, ...]:
        """The changes of one key, if they have not been told yet."""
        was = self._old.pop(key, None)
        if was is not None:
            return _difference(was, self._now.get(key))
        if key in self._fresh:
            del self._fresh[key]
            return (Change(ChangeType.ADDED, self._now[key]),)
        return ()

    def __iter__(self) -> Iterator[tuple[Change, ...]]:
        """The changes of one key after the other: first what was there before, then what is new."""
        for keys in (list(self._old), list(self._fresh)):
            for key in keys:
                if changes := self.settle(key):
                    yield changes


def _difference(was: Object, now: Object | None) -> tuple[Change, ...]:
    if now is was:
        return ()
    if now is None:
        return (Change(ChangeType.DELETED, was, was, final_state_unknown=True),)
    if now.head.uid != was.head.uid:
        return (
            Change(ChangeType.DELETED, was, was, final_state_unknown=True),
            Change(ChangeType.ADDED, now),
        )
    if now.head.version == was.head.version:
        return ()
    return (Change(ChangeType.MODIFIED, now, was),)
