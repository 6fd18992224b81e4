"""Other objects that decisions depend on: what a provider may read, and which of its objects to decide again.

A provider declares what it reads; its decisions read through a :class:`Context`, from caches and without waiting. Every
read is recorded, so that a change of an object has exactly those decided again whose decision read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from fivespot.api.names import PROVIDER_GROUP
from fivespot.contract import SCHEDULE_PROJECTION, UNREADABLE_PATIENCE, Reference, Resolution, resolve_schedule
from fivespot.runtime import Cache, Change, ChangeType, GroupKind, Informer, Key, Resource
from fivespot.runtime.cache.dynamic_informers import DynamicInformers

from .verdict import NoVerdict

__all__ = [
    "SCHEDULES",
    "UNREADABLE",
    "Context",
    "Dependencies",
    "Dependency",
    "DependencyIndex",
    "DependencyReader",
    "NoDependencies",
    "Readable",
    "Schedules",
]

UNREADABLE: Final = "Unreadable"
"""Reason of a Ready that is Unknown because an object that a decision reads cannot be read."""


class Schedules:
    """The type of :data:`SCHEDULES`."""

    def __repr__(self) -> str:
        return "SCHEDULES"


SCHEDULES: Final = Schedules()
"""Schedules of any kind, read by the provider contract: their verdict, and nothing of their spec."""

Readable: TypeAlias = Schedules | Resource
"""Schedules, or a resource whose objects are read whole."""


class DependencyReader(Protocol):
    """The source of other objects for a context. All answers come from caches, without waiting."""

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Resolution: ...

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None: ...


class NoDependencies:
    """A reader without objects: for providers that declare none, and for tests."""

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Resolution:
        raise ValueError(f"{reference} cannot be read: declare SCHEDULES in the provider's reads")

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None:
        raise ValueError(f"{resource} cannot be read: declare it in the provider's reads")


@dataclass(frozen=True, slots=True)
class Context:
    """One object at the moment of its decision.

    :ivar active: what this provider last decided, overrides left aside; None when that is not known (the first
        decision, or the first one of this process while an override is in force).
    :ivar since: when that last changed; None when ``active`` is.
    """

    namespace: str
    name: str
    uid: str = ""
    generation: int = 0
    active: bool | None = None
    since: datetime | None = None
    reader: DependencyReader = field(default_factory=NoDependencies)

    def schedule(self, kind: str, name: str, *, field: str = "the reference") -> Resolution:
        """The verdict of another schedule of the namespace, by the rules of the provider contract.

        :param field: the field that names the schedule, for messages, such as ``spec.base``.
        :returns: resolved; unresolved, for a reason that lies with the other schedule; or unreadable, which says
            nothing about it.
        :raises ValueError: the provider does not declare that it reads schedules.
        """
        return self.reader.schedule(self.namespace, Reference(kind, name), field)

    def get(self, resource: Resource, name: str) -> Mapping[str, Any] | None:
        """An object of the namespace, None when there is none. Treat it as read-only.

        :raises NoVerdict: objects of that resource cannot be read at present; do not catch it.
        :raises ValueError: the provider does not declare that it reads them.
        """
        return self.reader.get(resource, Key(self.namespace, name))


class Dependency(NamedTuple):
    """An object that a decision read, whether it exists or not."""

    group_kind: GroupKind
    key: Key


class DependencyIndex:
    """Objects and what they depend on, in both directions.

    A dependency counts from the moment it is recorded, so that no later change is missed; those of the decision before
    are dropped when the new one is complete.
    """

    def __init__(self) -> None:
        self._dependencies: dict[Key, set[Dependency]] = {}
        self._current: dict[Key, set[Dependency]] = {}
        self._dependents: dict[Dependency, set[Key]] = {}
        self._kinds: dict[GroupKind, int] = {}

    def begin(self, dependent: Key) -> None:
        """Begin a decision."""
        self._current[dependent] = set()

    def add(self, dependent: Key, dependency: Dependency) -> None:
        """Record a read of the current decision."""
        self._current.setdefault(dependent, set()).add(dependency)
        known = self._dependencies.setdefault(dependent, set())
        if dependency not in known:
            known.add(dependency)
            self._dependents.setdefault(dependency, set()).add(dependent)
            self._kinds[dependency.group_kind] = self._kinds.get(dependency.group_kind, 0) + 1

    def end(self, dependent: Key) -> None:
        """Complete a decision and drop what only an earlier one read."""
        current = self._current.pop(dependent, set())
        for dependency in self._dependencies.get(dependent, set()) - current:
            self._drop(dependent, dependency)

    def forget(self, dependent: Key) -> None:
        """Drop all of an object that is gone."""
        self._current.pop(dependent, None)
        for dependency in tuple(self._dependencies.get(dependent, ())):
            self._drop(dependent, dependency)

    def dependents(self, dependency: Dependency) -> Iterable[Key]:
        """The objects whose decision read it."""
        return tuple(self._dependents.get(dependency, ()))

    def dependents_of_kind(self, group_kind: GroupKind) -> Iterable[Key]:
        """The objects whose decision read any object of that kind."""
        if group_kind not in self._kinds:
            return ()
        found: set[Key] = set()
        for dependency, dependents in self._dependents.items():
            if dependency.group_kind == group_kind:
                found |= dependents
        return found

    def kinds(self) -> frozenset[GroupKind]:
        """The kinds that any decision read."""
        return frozenset(self._kinds)

    def _drop(self, dependent: Key, dependency: Dependency) -> None:
        dependencies = self._dependencies[dependent]
        dependencies.discard(dependency)
        if not dependencies:
            del self._dependencies[dependent]
        dependents = self._dependents[dependency]
        dependents.discard(dependent)
        if not dependents:
            del self._dependents[dependency]
        left = self._kinds[dependency.group_kind] - 1
        if left:
            self._kinds[dependency.group_kind] = left
        else:
            del self._kinds[dependency.group_kind]


class Dependencies:
    """Everything that the objects of one provider depend on.

    :param changed: called with each object whose decision read something that changed.
    """

    def __init__(self, cache: Cache, reads: Iterable[Readable], changed: Callable[[Key], None]) -> None:
        self._cache = cache
        self._changed = changed
        self._index = DependencyIndex()
        self._informers: dict[Resource, Informer] = {}
        self._schedules: DynamicInformers | None = None
        for read in reads:
            if isinstance(read, Resource):
                self._open(read)
        if SCHEDULES in reads:
            self._schedules = DynamicInformers(cache, SCHEDULE_PROJECTION, self._schedule_changed, self._kind_changed)
            cache.kinds.watch_group(PROVIDER_GROUP)
            cache.kinds.subscribe(self._group_changed)

    def begin(self, dependent: Key) -> DependencyReader:
        """A reader for one decision, to be followed by :meth:`end`."""
        self._index.begin(dependent)
        return _RecordingReader(self, dependent)

    def end(self, dependent: Key) -> None:
        """Complete a decision: what it did not read no longer concerns it."""
        self._index.end(dependent)
        self._close_unread()

    def forget(self, dependent: Key) -> None:
        """Drop all of an object that is gone."""
        self._index.forget(dependent)
        self._close_unread()

    # Reading -----------------------------------------------------------------------------------------------------

    def schedule(self, dependent: Key, namespace: str, reference: Reference, field: str) -> Resolution:
        """The verdict of a schedule, or why there is none (A7, A15)."""
        if self._schedules is None:
            return NoDependencies().schedule(namespace, reference, field)
        dependency = Dependency(GroupKind(PROVIDER_GROUP, reference.kind), Key(namespace, reference.name))
        self._index.add(dependent, dependency)
        return resolve_schedule(
            reference,
            group=PROVIDER_GROUP,
            namespace=namespace,
            field=field,
            lookup=self._cache.kinds.lookup,
            open_kind=self._schedules.open,
        )

    def get(self, dependent: Key, resource: Resource, key: Key) -> Mapping[str, Any] | None:
        """An object, read whole."""
        informer = self._informers.get(resource)
        if informer is None:
            return NoDependencies().get(resource, key)
        self._index.add(dependent, Dependency(resource.group_kind, key))
        status = informer.status
        if not status.synced or status.error_since is not None:
            why = f"{resource.qualified} cannot be read: {status.last_error or 'not listed yet'}"
            raise NoVerdict(UNREADABLE, why, ready="Unknown", patience=UNREADABLE_PATIENCE)
        found = informer.get(key)
        return found.decode() if found is not None else None

    # Changes -----------------------------------------------------------------------------------------------------

    def _open(self, resource: Resource) -> None:
        informer = self._informers[resource] = self._cache.informer(resource)

        def changed(change: Change) -> None:
            self._object_changed(resource.group_kind, change)

        def all_changed(*_: object) -> None:
            self._kind_changed(resource.group_kind)

        informer.on_status(all_changed)
        informer.subscribe(changed, on_synced=all_changed)

    def _object_changed(self, group_kind: GroupKind, change: Change) -> None:
        for dependent in self._index.dependents(Dependency(group_kind, change.key)):
            self._changed(dependent)

    def _schedule_changed(self, group_kind: GroupKind, change: Change) -> None:
        old = change.old
        # Whoever wrote it: a schedule of this process is another one's base like any other.
        if change.type is not ChangeType.MODIFIED or old is None or old.raw != change.object.raw:
            self._object_changed(group_kind, change)

    def _kind_changed(self, group_kind: GroupKind) -> None:
        for dependent in self._index.dependents_of_kind(group_kind):
            self._changed(dependent)

    def _group_changed(self, group: str) -> None:
        if group != PROVIDER_GROUP or self._schedules is None:
            return
        self._schedules.refresh(group)
        for group_kind in self._index.kinds():
            if group_kind.group == group:
                self._kind_changed(group_kind)

    def _close_unread(self) -> None:
        if self._schedules is not None and len(self._schedules):
            read = self._index.kinds()
            for group_kind in self._schedules.kinds():
                if group_kind not in read:
                    self._schedules.close(group_kind)


class _RecordingReader:
    """Reads for one decision, and records what it read."""

    def __init__(self, dependencies: Dependencies, dependent: Key) -> None:
        self._dependencies = dependencies
        self._dependent = dependent

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Resolution:
        return self._dependencies.schedule(self._dependent, namespace, reference, field)

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None:
        return self._dependencies.get(self._dependent, resource, key)
