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
from .delete import Deleter
from .garbage_collector import GarbageCollector, any_version
from .kinds import Served, ServedKind
from .store import Event, Notifier

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
        self._collector = GarbageCollector(cluster, self._later)
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
        if (group, plural) == DEFINITIONS:
            self._definition(event)
        elif (group, plural) == ("", "namespaces"):
            if new.deleting and not event.deleted:
                self._later(lambda: self._empty_namespace(new.name))
        elif new.key != new.name and event.deleted:
            holder = self._cluster.store.collection("", "namespaces").entries.get(new.namespace)
            if holder is not None and holder.deleting:
                self._later(lambda: self._empty_namespace(new.namespace))
        self._collector.changed(event)
        if event.deleted:
            self._maybe_last_of_kind(group, plural)

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
        self._collector.kinds_changed()

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
        served = any_version(kind)
        for entry in self._cluster.collection(kind).snapshot(namespace):
            if not entry.deleting:
                self._deleter.mark(kind, served, entry, "Background")
        return len(self._cluster.collection(kind).keys(namespace))

    # -- lookups -------------------------------------------------------------------------------------------------

    def _kind(self, group: str, plural: str) -> tuple[ServedKind, Served]:
        kind = self._cluster.registry.find(group, plural)
        assert kind is not None, "built-in kinds are always served"
        return kind, any_version(kind)


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
