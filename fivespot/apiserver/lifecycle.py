"""Controllers inside the server: definitions, namespace deletion, garbage collection.

One task works through a queue on the server's event loop; nothing else runs in the background.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from .cluster import Cluster, Object
from .crds import CLEANUP, DEFINITIONS, kind_of, resource_of
from .delete import FOREGROUND, ORPHAN, Deleter
from .kinds import Served, ServedKind
from .store import Entry, Event, Notifier

__all__ = ["Lifecycle"]

_TURN: Final = 100
"""Jobs between two turns of the event loop."""

Job = Callable[[], None]


class Lifecycle:
    """Runs the controllers of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._deleter = Deleter(cluster)
        self._jobs: deque[Job] = deque()
        self._wake = Notifier()
        self._dependants: dict[str, set[str]] = {}
        self._epochs = 0
        self._specs: dict[tuple[str, str], Object] = {}
        cluster.store.listen(self._changed)

    async def run(self) -> None:
        """Process the queue until cancelled."""
        while True:
            for _ in range(min(len(self._jobs), _TURN)):
                self._jobs.popleft()()
            if self._jobs:
                await asyncio.sleep(0)
            else:
                await self._wake.wait()

    def settle(self) -> None:
        """Process the whole queue now, for servers that run no task."""
        while self._jobs:
            self._jobs.popleft()()

    def _later(self, job: Job) -> None:
        self._jobs.append(job)
        self._wake.fire()

    # -- what changed --------------------------------------------------------------------------------------------

    def _changed(self, group: str, plural: str, event: Event) -> None:
        new = event.new
        self._index(event)
        if (group, plural) == DEFINITIONS:
            self._definition(event)
        elif (group, plural) == ("", "namespaces"):
            if new.deleting and not event.deleted:
                self._later(lambda: self._empty_namespace(new.name))
        elif new.key != new.name and event.deleted:
            holder = self._cluster.store.collection("", "namespaces").entries.get(new.namespace)
            if holder is not None and holder.deleting:
                self._later(lambda: self._empty_namespace(new.namespace))
        if event.deleted:
            if new.uid in self._dependants:
                self._later(lambda: self._owner_gone(new.uid))
            for owner in new.owners:
                self._later(lambda uid=owner: self._foreground(uid))  # type: ignore[misc]
            self._maybe_last_of_kind(group, plural)
        elif new.deleting:
            self._later(lambda: self._propagate(new.uid))
        elif new.owners and (event.old is None or event.old.owners != new.owners):
            self._later(lambda: self._check_owners(new.uid))

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
        for owner in after - before:
            self._dependants.setdefault(owner, set()).add(uid)

    # -- definitions ---------------------------------------------------------------------------------------------

    def _definition(self, event: Event) -> None:
        if event.deleted:
            group, plural = resource_of(event.new.decode())
            if self._serves(event.new.uid, group, plural):
                self._specs.pop((group, plural), None)
                self._cluster.registry.remove(group, plural)
                self._cluster.store.drop(group, plural)
                self._retry_names(group)
            return
        name = event.new.name
        self._later(lambda: self._reconcile_definition(name))

    def _serves(self, uid: str, group: str, plural: str) -> bool:
        return self._cluster.registry.find(group, plural) is not None

    def _retry_names(self, group: str) -> None:
        """Reconcile the definitions of a group again: names that were in use may be free."""
        for entry in list(self._cluster.store.collection(*DEFINITIONS).entries.values()):
            if resource_of(entry.decode())[0] == group:
                self._later(lambda name=entry.name: self._reconcile_definition(name))  # type: ignore[misc]

    def _reconcile_definition(self, name: str) -> None:
        kind, served = self._kind(*DEFINITIONS)
        entry = self._cluster.find(kind, "", name)
        if entry is None:
            return
        body = self._cluster.decode(entry, kind, served)
        problem = self._name_conflict(body)
        known = self._cluster.registry.find(*resource_of(body))
        if problem is None or known is not None:
            self._serve(body, known)
        if "deletionTimestamp" in body["metadata"]:
            self._empty_definition(name)
            return
        status = _definition_status(
            body, problem, established=problem is None or known is not None, now=self._cluster.now()
        )
        if status != body.get("status"):
            body["status"] = status
            self._cluster.put(kind, served, body)

    def _serve(self, body: Object, known: ServedKind | None) -> None:
        place = resource_of(body)
        if known is not None and self._specs.get(place) == body["spec"]:
            known.terminating = "deletionTimestamp" in body["metadata"]
            return
        self._specs[place] = body["spec"]
        made = kind_of(body, self._epochs)
        if not made.versions:
            # Nothing is served, but stored objects stay until a version is served again.
            self._cluster.registry.remove(made.group, made.plural)
            return
        if known is not None and _alike(known, made):
            known.terminating = made.terminating
            return
        self._epochs += 1
        made.epoch = self._epochs
        self._cluster.registry.add(made)

    def _name_conflict(self, body: Object) -> tuple[str, str] | None:
        """The reason and message of a conflict with the names of another kind of the group."""
        spec = body["spec"]
        names = spec["names"]
        for other in self._cluster.registry.kinds(spec["group"]):
            if other.plural == names["plural"]:
                continue
            taken = {other.singular, *other.short_names}
            for reason, name, held in (
                ("ListKindConflict", names["listKind"], {other.lists}),
                ("KindConflict", names["kind"], {other.kind}),
                ("SingularConflict", names["singular"], taken | {other.plural}),
                *(("ShortNamesConflict", short, taken | {other.plural}) for short in names.get("shortNames") or ()),
            ):
                if name in held:
                    return reason, f'"{name}" is already in use'
        return None

    def _empty_definition(self, name: str) -> None:
        """Delete the objects of a deleting definition, then remove its finalizer."""
        kind, served = self._kind(*DEFINITIONS)
        entry = self._cluster.find(kind, "", name)
        if entry is None:
            return
        body = self._cluster.decode(entry, kind, served)
        place = resource_of(body)
        defined = self._cluster.registry.find(*place)
        if defined is not None and self._delete_all(defined, ""):
            return
        finalizers = [each for each in body["metadata"].get("finalizers", []) if each != CLEANUP]
        if len(finalizers) == len(body["metadata"].get("finalizers", [])):
            return
        if finalizers:
            body["metadata"]["finalizers"] = finalizers
            self._cluster.put(kind, served, body)
        else:
            self._cluster.remove(kind, entry.key)

    def _maybe_last_of_kind(self, group: str, plural: str) -> None:
        kind = self._cluster.registry.find(group, plural)
        if kind is not None and kind.terminating:
            self._later(lambda: self._empty_definition(f"{plural}.{group}"))

    # -- namespaces ----------------------------------------------------------------------------------------------

    def _empty_namespace(self, name: str) -> None:
        kind, served = self._kind("", "namespaces")
        entry = self._cluster.find(kind, "", name)
        if entry is None or not entry.deleting:
            return
        remaining = 0
        for each in list(self._cluster.registry.kinds()):
            if each.namespaced and each.stored_as is None:
                remaining += self._delete_all(each, name)
        if remaining:
            return
        body = self._cluster.decode(entry, kind, served)
        body["spec"] = {
            "finalizers": [each for each in body.get("spec", {}).get("finalizers", []) if each != "kubernetes"]
        }
        if body["metadata"].get("finalizers") or body["spec"]["finalizers"]:
            if body["spec"] != entry.decode().get("spec"):
                self._cluster.put(kind, served, body)
        else:
            self._cluster.remove(kind, entry.key)

    def _delete_all(self, kind: ServedKind, namespace: str) -> int:
        """Delete the objects of a kind; returns how many remain."""
        served = _any_version(kind)
        for entry in self._cluster.collection(kind).snapshot(namespace):
            if not entry.deleting:
                self._deleter.mark(kind, served, entry, "Background")
        return len(self._cluster.collection(kind).keys(namespace))

    # -- owners --------------------------------------------------------------------------------------------------

    def _owner_gone(self, uid: str) -> None:
        for dependant in list(self._dependants.get(uid, ())):
            self._later(lambda each=dependant: self._check_owners(each))  # type: ignore[misc]

    def _check_owners(self, uid: str) -> None:
        """Delete an object without an existing owner; otherwise remove references to owners that do not exist."""
        found = self._find(uid)
        if found is None:
            return
        kind, served, entry = found
        if entry.deleting or not entry.owners:
            return
        there = [owner for owner in entry.owners if self._is_owner(owner, entry)]
        if not there:
            body = self._cluster.decode(entry, kind, served)
            finalizers = body["metadata"].get("finalizers", [])
            policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
            self._deleter.mark(kind, served, entry, policy)
        elif len(there) < len(entry.owners):
            self._drop_owners(kind, served, entry, set(there))

    def _is_owner(self, uid: str, dependant: Entry) -> bool:
        found = self._find(uid)
        # Owners in another namespace do not count.
        return found is not None and (not found[0].namespaced or found[2].namespace == dependant.namespace)

    def _drop_owners(self, kind: ServedKind, served: Served, entry: Entry, kept: set[str]) -> None:
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
            for dependant in list(self._dependants.get(uid, ())):
                held = self._find(dependant)
                if held is not None:
                    self._drop_owners(*held, set(held[2].owners) - {uid})
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
        for dependant in list(self._dependants.get(uid, ())):
            held = self._find(dependant)
            if held is None:
                continue
            body = self._cluster.decode(held[2], held[0], held[1])
            blocks = any(
                owner.get("uid") == uid and owner.get("blockOwnerDeletion")
                for owner in body["metadata"]["ownerReferences"]
            )
            waiting = waiting or blocks
            others = [owner for owner in held[2].owners if owner != uid and self._is_owner(owner, held[2])]
            if others:
                self._drop_owners(*held, set(others))
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

    # -- lookups -------------------------------------------------------------------------------------------------

    def _kind(self, group: str, plural: str) -> tuple[ServedKind, Served]:
        kind = self._cluster.registry.find(group, plural)
        assert kind is not None, "built-in kinds are always served"
        return kind, _any_version(kind)

    def _find(self, uid: str) -> tuple[ServedKind, Served, Entry] | None:
        found = self._cluster.store.find(uid)
        if found is None:
            return None
        group, plural, entry = found
        kind = self._cluster.registry.find(group, plural)
        return None if kind is None else (kind, _any_version(kind), entry)


def _any_version(kind: ServedKind) -> Served:
    return kind.versions.get(kind.storage) or next(iter(kind.versions.values()))


def _alike(one: ServedKind, other: ServedKind) -> bool:
    """Whether two kinds are served identically."""
    return _facts(one) == _facts(other)


def _facts(kind: ServedKind) -> tuple[Any, ...]:
    versions = [
        (
            each.name,
            each.schema,
            each.status,
            each.scale,
            [(c.name, c.type, c.description, c.priority) for c in each.columns],
        )
        for each in kind.versions.values()
    ]
    names = (kind.kind, kind.singular, kind.lists, kind.short_names, kind.categories)
    return (versions, kind.storage, names, kind.strategy.selectable)


def _definition_status(body: Object, problem: tuple[str, str] | None, *, established: bool, now: str) -> Object:
    status = dict(body.get("status") or {})
    names = body["spec"]["names"]
    accepted = {name: value for name, value in names.items() if value}
    if problem is None:
        status["acceptedNames"] = accepted
        named = ("NamesAccepted", "True", "NoConflicts", "no conflicts found")
    else:
        status.setdefault("acceptedNames", {"plural": names["plural"], "kind": ""})
        named = ("NamesAccepted", "False", *problem)
    done = ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    if not established:
        done = ("Established", "False", "NotAccepted", "not all names are accepted")
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    for type_, value, reason, message in (named, done):
        old = conditions.get(type_, {})
        since = old.get("lastTransitionTime", now) if old.get("status") == value else now
        conditions[type_] = {
            "type": type_, "status": value, "lastTransitionTime": since, "reason": reason, "message": message,
        }  # fmt: skip
    status["conditions"] = list(conditions.values())
    return status
