"""The objects of one informer: monotone, indexed, and fed by the watch and by the writes of this process alike.

Pure and synchronous; nothing here waits, logs or reads a clock. The rules:

1. A key never moves back in time. Versions of one key grow with every change of whatever object bears the name, so
   a state at or below the known version is outdated and dropped; so is a state of an object that is not held, from
   before the version that the watch has reached, since a watch reports changes in their order.
2. The answer to a write of this process enters at once. If the store does not hold the object, the answer enters only
   when its version lies above what the watch has reached: at or below, the watch has already reported its deletion.
3. An object held here that this process has deleted is hidden by its uid until the watch confirms it (a DELETED may
   also mean that an object left the selector; the two cannot be told apart), another object takes the name, or a list
   begun later arrives, which is asked for when bookmarks come instead of the confirmation. One that a write of this
   process moved out of the selector is hidden up to the version of that write.
4. A list replaces everything, except writes of this process above its version.
5. Index entries change in the same step as the objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fivespot.runtime.objects import Change, ChangeType, Head, Key, Object, Write, same_function

from .index import Index, IndexFunction, Report

__all__ = ["Changes", "Keys", "Objects", "Staging", "Store", "Swap"]

Changes = tuple[Change, ...]
# Named here because a method called `list` hides the type inside a class.
Keys = list[Key]
Objects = list[Object]
_NAMESPACE_INDEX = "/namespace"
_ANY_WRITE = Write()


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
        self._share(key, current)
        return True

    def keep(self, key: Key) -> None:
        """Stage the store's own copy, if it has one, of an object that the list shows but that cannot be decoded."""
        current = self._current.get(key)
        if current is not None and key not in self.objects:
            self._share(key, current)

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
        """Unstage an object that a DELETED during a streaming list, or a write of this process, shows to be deleted."""
        if self.objects.pop(key, None) is not None:
            for index in self.indexes.values():
                index.drop(key)

    def _share(self, key: Key, current: Object) -> None:
        self.objects[key] = current
        for name, index in self.indexes.items():
            live = self._live.get(name)
            if live is None:
                index.put(key, Change(ChangeType.ADDED, current))
            else:
                index.adopt(key, current, live)


class Swap:
    """The differences that a swap made, delivered once per key and in any number of slices.

    The store already shows the new state when the first change is delivered. Before a key changes again, it has to be
    settled by :meth:`settle`, so that handlers see the changes of one key in the order in which they happened.
    """

    def __init__(self, old: dict[Key, Object], now: Mapping[Key, Object]) -> None:
        self._old = old
        self._now = now
        self._fresh = dict.fromkeys(key for key in now if key not in old)

    def settle(self, key: Key) -> tuple[Change, ...]:
        """Return the changes of one key, if they have not been delivered yet."""
        was = self._old.pop(key, None)
        if was is not None:
            return _difference(was, self._now.get(key))
        if key in self._fresh:
            del self._fresh[key]
            return (Change(ChangeType.ADDED, self._now[key]),)
        return ()

    def __iter__(self) -> Iterator[tuple[Change, ...]]:
        """Yield the changes of one key after the other: first of objects that were held before, then new ones."""
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


class _Hidden(NamedTuple):
    """The reason why reads, and older events of the watch, skip a key.

    :param uid: the object meant.
    :param version: events of the key at or below it are outdated.
    :param gone: deleted for certain, so every event of the uid but DELETED is outdated; otherwise it only left the
        selector.
    :param epoch: the lists begun when it was laid.
    :param bookmarks: those that the watch has brought since.
    """

    uid: str
    version: int
    gone: bool
    epoch: int
    bookmarks: int = 0


def _writer(write: Write, current: Object | None) -> str:
    """The writer, if the write was made to the very state that is held, so that no other change hides in its answer."""
    return write.writer if write.demanded == (current.head.version if current is not None else 0) else ""


class _Own(NamedTuple):
    """A write of this process that the watch has not confirmed yet."""

    version: int
    epoch: int


class Store:
    """Objects by key, with their indexes.

    :ivar version: the resourceVersion that the watch has reached; 0 before the first list.
    :ivar rewound: set when the server is known to have begun its history anew, so that the next list replaces
        everything, whatever its version is.
    """

    def __init__(self, report: Report) -> None:
        self.version = 0
        self._report = report
        self._objects: dict[Key, Object] = {}
        self._indexes: dict[str, Index] = {}
        self._hidden: dict[Key, _Hidden] = {}
        self._own: dict[Key, _Own] = {}
        self._epoch = 0
        self._staging: Staging | None = None
        self.rewound = False

    # Reads

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def objects(self) -> Mapping[Key, Object]:
        """The live objects; to be read within one step, or copied."""
        return self._objects

    def get(self, key: Key) -> Object | None:
        return self._objects.get(key)

    def list(self, namespace: str | None = None) -> list[Object]:
        if namespace is None:
            return list(self._objects.values())
        if _NAMESPACE_INDEX not in self._indexes:
            # Few informers are ever asked by namespace, so the view is built for those only.
            self.add_index(_NAMESPACE_INDEX, _namespace)
        return self.by_index(_NAMESPACE_INDEX, namespace)

    # Indexes

    def add_index(self, name: str, fn: IndexFunction) -> Index | None:
        """Add an index and return it if it has objects to fill in; None when nothing is left to do.

        :raises ValueError: the name is taken by another function.
        """
        known = self._indexes.get(name)
        if known is not None:
            if not same_function(known.fn, fn):
                raise ValueError(f"an index named {name!r} with another function exists")
            return None
        if self._staging is not None:
            # Made before the live one is known to the staging, and filled by whoever asks first after the swap.
            self._staging.indexes[name] = Index(name, fn, self._report, self._staging.objects)
        index = self._indexes[name] = Index(name, fn, self._report, self._objects)
        return None if index.complete else index

    def fill_indexes(self, limit: int) -> bool:
        """Work off up to ``limit`` objects of one unfinished index; True when all are complete."""
        for index in self._indexes.values():
            if not index.complete:
                index.fill(self._objects, limit)
                return False
        return True

    def keys_by_index(self, name: str, value: str) -> Keys:
        """:raises KeyError: no index of that name was added."""
        return self._indexes[name].keys(value, self._objects)

    def by_index(self, name: str, value: str) -> Objects:
        """:raises KeyError: no index of that name was added."""
        objects = self._objects
        return [objects[key] for key in self._indexes[name].keys(value, objects)]

    # The watch

    def admit(self, head: Head) -> Key | None:
        """Return the key of an ADDED or MODIFIED event if its state is new, for :meth:`put`; None if it is outdated.

        To be called before the object is projected, so that outdated events cost no projection.
        """
        version, reached = head.version, self.version
        self.version = max(reached, version)
        key = Key(head.namespace, head.name)
        if self._own:
            mark = self._own.get(key)
            if mark is not None and version >= mark.version:
                del self._own[key]
        if self._hidden:
            hidden = self._hidden.get(key)
            if hidden is not None:
                if version <= hidden.version or (hidden.gone and hidden.uid == head.uid):
                    return None
                del self._hidden[key]
        current = self._objects.get(key)
        # Of an object that is not held, what happened before the version reached ended with its deletion.
        if version < reached if current is None else version <= current.head.version:
            return None
        return key

    def put(self, key: Key, obj: Object) -> Changes:
        """Store an admitted object."""
        return self._set(key, obj)

    def remove(self, obj: Object) -> Changes:
        """Take in a DELETED event: the object is gone, or no longer selected."""
        head = obj.head
        version = head.version
        self.version = max(self.version, version)
        key = obj.key
        hidden = self._hidden.get(key)
        if hidden is not None:
            if version >= hidden.version:
                del self._hidden[key]
            return ()
        current = self._objects.get(key)
        if current is None or version < current.head.version:
            return ()
        self._forget(key)
        if current.head.uid != head.uid:
            # The name was used again and deleted again, and only the last deletion was seen.
            return (Change(ChangeType.DELETED, current, current, final_state_unknown=True),)
        return (Change(ChangeType.DELETED, obj, current),)

    def reach(self, version: int) -> bool:
        """Take in a bookmark: every event up to ``version`` has been delivered.

        Return False if a deletion by this process is still not confirmed, so that only a list can tell whether the
        object exists: its 404 was not the server's, for example. The first bookmark may have been on its way already.
        """
        self.version = max(self.version, version)
        confirmed = True
        for key, hidden in list(self._hidden.items()):
            if hidden.gone:
                self._hidden[key] = hidden._replace(bookmarks=hidden.bookmarks + 1)
                confirmed = confirmed and hidden.bookmarks == 0
            elif hidden.version <= version:
                del self._hidden[key]
        for key in [key for key, mark in self._own.items() if mark.version <= version]:
            del self._own[key]
        return confirmed

    # Writes of this process

    def wrote(
        self, obj: Object, write: Write = _ANY_WRITE, *, selected: bool = True, may_enter: bool = True
    ) -> Changes:
        """Take in the answer to a write of this process.

        :param selected: whether the informer's selector matches the answer.
        :param may_enter: False where it cannot be told whether the server would select an object not held yet.
        """
        head = obj.head
        key = obj.key
        hidden = self._hidden.get(key)
        if hidden is not None:
            if head.version <= hidden.version or (hidden.gone and hidden.uid == head.uid):
                return ()
            if selected and may_enter and head.version > self.version:
                del self._hidden[key]
        current = self._objects.get(key)
        if current is None:
            if head.version <= self.version or not may_enter:
                return ()
            if not selected:
                self._hidden[key] = _Hidden(head.uid, head.version, gone=False, epoch=self._epoch)
                return ()
        elif head.version <= current.head.version:
            return ()
        elif not selected:
            self._forget(key)
            if head.version > self.version:
                self._hidden[key] = _Hidden(head.uid, head.version, gone=False, epoch=self._epoch)
            return (Change(ChangeType.DELETED, current, current, own=True, writer=_writer(write, current)),)
        self._own[key] = _Own(head.version, self._epoch)
        return self._set(key, obj, own=True, writer=_writer(write, current))

    def removed(self, key: Key, uid: str, write: Write = _ANY_WRITE) -> Changes:
        """Take in that the object with that uid is deleted, as this process knows from the answer to its own write."""
        if self._staging is not None:
            self._staging.gone[key] = uid
        current = self._objects.get(key)
        if current is None or current.head.uid != uid:
            # The watch was faster, or it was never held. Hiding it would last for ever, as no further event of that
            # uid may come.
            return ()
        self._forget(key)
        self._hidden[key] = _Hidden(uid, current.head.version, gone=True, epoch=self._epoch)
        return (Change(ChangeType.DELETED, current, current, own=True, writer=_writer(write, current)),)

    # Lists

    def begin(self) -> Staging:
        """Begin to take in a list; one begun earlier is forgotten."""
        self._epoch += 1
        self._staging = Staging(self._epoch, self._objects, self._indexes)
        return self._staging

    @property
    def staging(self) -> Staging:
        """The list that is being taken in."""
        assert self._staging is not None, "no list was begun"
        return self._staging

    def abandon(self) -> None:
        """The list will not be completed."""
        self._staging = None

    def commit(self, version: int) -> Swap:
        """Show the list, complete at ``version``, in place of all before it.

        A version below what the watch had reached means that the server's history was rewritten (etcd restored
        from a backup): then nothing that was known before the list began can be compared with it.
        """
        staging = self.staging
        self._staging = None
        rewritten = self.rewound or version < self.version
        self.rewound = False
        old = self._objects
        if not rewritten:
            for key in staging.behind:
                listed, known = staging.objects.get(key), old.get(key)
                if listed and known and listed.head.version < known.head.version:
                    staging.force(key, known)
        hidden = self._still_hidden(staging, version)
        own: dict[Key, _Own] = {}
        for key, mark in self._own.items():
            if mark.version > version and not (rewritten and mark.epoch < staging.epoch):
                staging.put(key, old[key])
                hidden.pop(key, None)
                own[key] = mark
        self._own = own
        self._hidden = hidden
        self._objects = staging.objects
        self._indexes = staging.indexes
        self.version = version
        return Swap(old, self._objects)

    def _still_hidden(self, staging: Staging, version: int) -> dict[Key, _Hidden]:
        still: dict[Key, _Hidden] = {}
        for key, uid in staging.gone.items():
            listed = staging.objects.get(key)
            if listed is not None and listed.head.uid == uid:
                # The list is older than the deletion, so the watch will still report it.
                staging.drop(key)
                known = self._hidden.get(key)
                last = max(listed.head.version, known.version if known and known.uid == uid else 0)
                still[key] = _Hidden(uid, last, gone=True, epoch=self._epoch)
        for key, hidden in self._hidden.items():
            if key not in still and hidden.epoch >= staging.epoch and hidden.version > version:
                staging.drop(key)
                still[key] = hidden
        return still

    # Internals

    def _set(self, key: Key, obj: Object, *, own: bool = False, writer: str = "") -> Changes:
        current = self._objects.get(key)
        changes: Changes
        if current is None:
            change = Change(ChangeType.ADDED, obj, own=own, writer=writer)
            changes = (change,)
        elif current.head.uid == obj.head.uid:
            change = Change(ChangeType.MODIFIED, obj, current, own=own, writer=writer)
            changes = (change,)
        else:
            change = Change(ChangeType.ADDED, obj, own=own)
            changes = (Change(ChangeType.DELETED, current, current, final_state_unknown=True, own=own), change)
        self._objects[key] = obj
        for index in self._indexes.values():
            index.put(key, change)
        return changes

    def _forget(self, key: Key) -> None:
        del self._objects[key]
        self._own.pop(key, None)
        for index in self._indexes.values():
            index.drop(key)


def _namespace(change: Change) -> tuple[str]:
    return (change.head.namespace,)
