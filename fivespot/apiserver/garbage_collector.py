"""The garbage collector: deletion of objects whose owners do not exist, orphaning, foreground deletion."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from .cluster import Cluster
from .delete import FOREGROUND, ORPHAN, Deleter
from .kinds import Served, ServedKind
from .store import Entry, Event

__all__ = ["GarbageCollector", "any_version"]

_Found = tuple[ServedKind, Served, Entry]


class _Owner(enum.Enum):
    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"
    """The kind is not served, or the reference cannot be resolved: the dependant is kept."""


def any_version(kind: ServedKind) -> Served:
    """A served version of a kind, preferably the storage version."""
    return kind.versions.get(kind.storage) or next(iter(kind.versions.values()))


class GarbageCollector:
    """Follows owner references.

    :param later: queues a job.
    """

    def __init__(self, cluster: Cluster, later: Callable[[Callable[[], None]], None]) -> None:
        self._cluster = cluster
        self._deleter = Deleter(cluster)
        self._later = later
        self._dependants: dict[str, set[str]] = {}
        self._deleted: set[str] = set()
        """Owners that were deleted while they had dependants."""
        self._unresolved: set[str] = set()
        """Dependants with an owner that could not be resolved."""

    def changed(self, event: Event) -> None:
        """Follow a change of an object."""
        new = event.new
        self._index(event)
        if event.deleted:
            if new.uid in self._dependants:
                self._deleted.add(new.uid)
                self._later(lambda: self._owner_deleted(new.uid))
            for owner in new.owners:
                self._later(lambda uid=owner: self._foreground(uid))  # type: ignore[misc]
        elif new.deleting:
            self._later(lambda: self._propagate(new.uid))
        elif new.owners and (event.old is None or event.old.owners != new.owners):
            self._later(lambda: self._check_owners(new.uid))

    def kinds_changed(self) -> None:
        """Check the objects again whose owners were of unknown kinds."""
        for uid in sorted(self._unresolved):
            self._later(lambda each=uid: self._check_owners(each))  # type: ignore[misc]
        self._unresolved.clear()

    def _index(self, event: Event) -> None:
        before = set(event.old.owners) if event.old is not None else set()
        after = set() if event.deleted else set(event.new.owners)
        uid = event.new.uid
        for owner in before - after:
            held = self._dependants.get(owner)
            if held is not None:
                held.discard(uid)
                if not held:
                    del self._dependants[owner]
                    self._deleted.discard(owner)
        for owner in after - before:
            self._dependants.setdefault(owner, set()).add(uid)

    def _owner_deleted(self, uid: str) -> None:
        for dependant in sorted(self._dependants.get(uid, ())):
            self._later(lambda each=dependant: self._check_owners(each))  # type: ignore[misc]

    def _check_owners(self, uid: str) -> None:
        """Delete an object without an existing owner; otherwise remove references to owners that do not exist."""
        found = self._find(uid)
        if found is None or found[2].deleting or not found[2].owners:
            return
        kind, served, entry = found
        owners = self._owners(found)
        if _Owner.UNKNOWN in owners.values():
            self._unresolved.add(uid)
        elif _Owner.PRESENT not in owners.values():
            body = self._cluster.decode(entry, kind, served)
            finalizers = body["metadata"].get("finalizers", [])
            policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
            self._deleter.mark(kind, served, entry, policy)
        elif _Owner.ABSENT in owners.values():
            self._drop_owners(found, {owner for owner, state in owners.items() if state is _Owner.PRESENT})

    def _owners(self, dependant: _Found) -> dict[str, _Owner]:
        """The owners of an object by uid."""
        kind, served, entry = dependant
        body = self._cluster.decode(entry, kind, served)
        references = body["metadata"].get("ownerReferences", [])
        return {each.get("uid", ""): self._state(each, entry) for each in references}

    def _state(self, reference: Mapping[str, Any], dependant: Entry) -> _Owner:
        uid = reference.get("uid", "")
        if uid in self._deleted:
            return _Owner.ABSENT
        group, _, version = reference.get("apiVersion", "").rpartition("/")
        kind = self._cluster.registry.by_kind(group, reference.get("kind", ""))
        if kind is None or version not in kind.versions or (kind.namespaced and not dependant.namespace):
            return _Owner.UNKNOWN
        # Owners in another namespace do not count.
        owner = self._cluster.find(kind, dependant.namespace, reference.get("name", ""))
        return _Owner.PRESENT if owner is not None and owner.uid == uid else _Owner.ABSENT

    def _drop_owners(self, dependant: _Found, kept: set[str]) -> None:
        kind, served, entry = dependant
        body = self._cluster.decode(entry, kind, served)
        owners = [owner for owner in body["metadata"].get("ownerReferences", []) if owner.get("uid") in kept]
        body["metadata"]["ownerReferences"] = owners
        if not owners:
            del body["metadata"]["ownerReferences"]
        self._cluster.put(kind, served, body)

    def _propagate(self, uid: str) -> None:
        """Process the garbage collector's finalizers of a deleting object."""
        found = self._find(uid)
        if found is None:
            return
        kind, served, entry = found
        finalizers = self._cluster.decode(entry, kind, served)["metadata"].get("finalizers", [])
        if ORPHAN in finalizers:
            for dependant in sorted(self._dependants.get(uid, ())):
                held = self._find(dependant)
                if held is not None:
                    self._drop_owners(held, set(held[2].owners) - {uid})
            self._finish(uid, ORPHAN)
        elif FOREGROUND in finalizers:
            self._foreground(uid)

    def _foreground(self, uid: str) -> None:
        found = self._find(uid)
        if found is None or not found[2].deleting:
            return
        kind, served, entry = found
        if FOREGROUND not in self._cluster.decode(entry, kind, served)["metadata"].get("finalizers", []):
            return
        waiting = False
        for dependant in sorted(self._dependants.get(uid, ())):
            held = self._find(dependant)
            if held is None:
                continue
            body = self._cluster.decode(held[2], held[0], held[1])
            blocks = any(
                owner.get("uid") == uid and owner.get("blockOwnerDeletion")
                for owner in body["metadata"]["ownerReferences"]
            )
            waiting = waiting or blocks
            others = {owner: state for owner, state in self._owners(held).items() if owner != uid}
            if _Owner.UNKNOWN in others.values():
                continue
            if _Owner.PRESENT in others.values():
                self._drop_owners(held, {owner for owner, state in others.items() if state is _Owner.PRESENT})
            elif not held[2].deleting:
                self._deleter.mark(*held, "Foreground" if blocks else "Background")
        if not waiting or not self._dependants.get(uid):
            self._finish(uid, FOREGROUND)

    def _finish(self, uid: str, finalizer: str) -> None:
        found = self._find(uid)
        if found is None:
            return
        kind, served, entry = found
        body = self._cluster.decode(entry, kind, served)
        finalizers = [each for each in body["metadata"].get("finalizers", []) if each != finalizer]
        if finalizers:
            body["metadata"]["finalizers"] = finalizers
            self._cluster.put(kind, served, body)
        else:
            self._cluster.remove(kind, entry.key)

    def _find(self, uid: str) -> _Found | None:
        found = self._cluster.store.find(uid)
        if found is None:
            return None
        group, plural, entry = found
        kind = self._cluster.registry.find(group, plural)
        return None if kind is None else (kind, any_version(kind), entry)
