"""What providers may declare that they read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from fivespot.api.names import PROVIDER_GROUP
from fivespot.contract import (
    Reference,
    Resolution,
    Unreadable,
    cut_provider,
    kind_missing,
    kind_unusable,
    object_missing,
    read_provider,
)
from fivespot.runtime.cache import Cache, Informer, KindAbsent, KindUnknown
from fivespot.runtime.cache.dynamic_informers import DynamicInformers
from fivespot.runtime.objects import Change, ChangeType, GroupKind, Key, Projection, Resource

from .verdict import NoVerdict

__all__ = [
    "SCHEDULES",
    "UNREADABLE",
    "UNREADABLE_PATIENCE",
    "Context",
    "Dependencies",
    "DependencyReader",
    "Nothing",
    "ReadTarget",
    "Readable",
    "Readers",
    "Schedules",
]


class Schedules:
    """The type of :data:`SCHEDULES`."""

    def __repr__(self) -> str:
        return "SCHEDULES"


SCHEDULES: Final = Schedules()

"""Schedules of whatever kind, read as the provider contract reads them: their verdict, and nothing of their spec."""

Readable: TypeAlias = Schedules | Resource

"""Schedules, or a resource whose objects are read whole."""


class ReadTarget(NamedTuple):
    """An object that somebody looked at, existing or not."""

    group_kind: GroupKind
    key: Key


class Readers:
    """Remembers looks in both directions.

    A look counts from the moment it is made, so that no change after it is missed; those of the decision before are
    dropped when the new one is complete.
    """

    def __init__(self) -> None:
        self._looks: dict[Key, set[ReadTarget]] = {}
        self._current: dict[Key, set[ReadTarget]] = {}
        self._readers: dict[ReadTarget, set[Key]] = {}
        self._kinds: dict[GroupKind, int] = {}

    def begin(self, reader: Key) -> None:
        """A decision begins."""
        self._current[reader] = set()

    def looked(self, reader: Key, target: ReadTarget) -> None:
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

    def of(self, target: ReadTarget) -> Iterable[Key]:
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

    def _drop(self, reader: Key, target: ReadTarget) -> None:
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


UNREADABLE: Final = "Unreadable"

"""Reason of a Ready that is Unknown because something that a decision reads cannot be read."""

UNREADABLE_PATIENCE: Final = 30.0

"""Seconds for which that is not told (contract, A15): after a restart nothing is read yet."""

_PROVIDER: Final = Projection("provider", cut_provider, frozenset())

"""Of schedules the contract's fields of status alone. A named projection is one value wherever it is used, so that the
machine controller of the same process shares the informers."""


class Dependencies:
    """What one kind of provider may read, and who of its objects did.

    :param changed: called with each object whose decision looked at something that changed.
    """

    def __init__(self, cache: Cache, reads: Iterable[Readable], changed: Callable[[Key], None]) -> None:
        self._cache = cache
        self._changed = changed
        self._readers = Readers()
        self._informers: dict[Resource, Informer] = {}
        self._schedules: DynamicInformers | None = None
        for read in reads:
            if isinstance(read, Resource):
                self._open(read)
        if SCHEDULES in reads:
            self._schedules = DynamicInformers(cache, _PROVIDER, self._schedule_changed, self._kind_changed)
            cache.kinds.watch_group(PROVIDER_GROUP)
            cache.kinds.subscribe(self._group_changed)

    def at(self, reader: Key) -> DependencyView:
        """A view for one decision, to be followed by :meth:`done`."""
        self._readers.begin(reader)
        return DependencyView(self, reader)

    def done(self, reader: Key) -> None:
        """The decision is made: what it did not look at any more concerns it no longer."""
        self._readers.end(reader)
        self._close_unread()

    def forget(self, reader: Key) -> None:
        self._readers.forget(reader)
        self._close_unread()

    # Reading -----------------------------------------------------------------------------------------------------

    def schedule(self, reader: Key, namespace: str, reference: Reference, field: str) -> Resolution:
        """A7, A15: the verdict of a schedule, or why there is none, in the order of the contract."""
        if self._schedules is None:
            raise ValueError(f"{reference} cannot be read: declare SCHEDULES in the provider's reads")
        group_kind = GroupKind(PROVIDER_GROUP, reference.kind)
        key = Key(namespace, reference.name)
        self._readers.looked(reader, ReadTarget(group_kind, key))
        state = self._cache.kinds.lookup(group_kind)
        if isinstance(state, KindUnknown):
            return Unreadable(f"the definition of {group_kind} cannot be read: {state.why}")
        if isinstance(state, KindAbsent):
            return kind_missing(reference.kind, group=PROVIDER_GROUP, field=field)
        if not state.usable or not state.namespaced:
            return kind_unusable(state.crd_name, state.problem)
        informer = self._schedules.open(group_kind, state).informer
        status = informer.status
        if not status.synced or status.error_since is not None:
            return Unreadable(f"{reference.kind} objects cannot be read: {status.last_error or 'not listed yet'}")
        found = informer.get(key)
        if found is None:
            return object_missing(reference, namespace=namespace, field=field)
        return read_provider(found.raw, name=str(reference), generation=found.head.generation)

    def get(self, reader: Key, resource: Resource, key: Key) -> Mapping[str, Any] | None:
        informer = self._informers.get(resource)
        if informer is None:
            raise ValueError(f"{resource} cannot be read: declare it in the provider's reads")
        self._readers.looked(reader, ReadTarget(resource.group_kind, key))
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
        for reader in self._readers.of(ReadTarget(group_kind, change.key)):
            self._changed(reader)

    def _schedule_changed(self, group_kind: GroupKind, change: Change) -> None:
        old = change.old
        # Whoever wrote it: a schedule of this process is another one's base like any other.
        if change.type is not ChangeType.MODIFIED or old is None or old.raw != change.object.raw:
            self._object_changed(group_kind, change)

    def _kind_changed(self, group_kind: GroupKind) -> None:
        for reader in self._readers.of_kind(group_kind):
            self._changed(reader)

    def _group_changed(self, group: str) -> None:
        if group != PROVIDER_GROUP or self._schedules is None:
            return
        self._schedules.refresh(group)
        for group_kind in self._readers.kinds():
            if group_kind.group == group:
                self._kind_changed(group_kind)

    def _close_unread(self) -> None:
        if self._schedules is not None and len(self._schedules):
            read = self._readers.kinds()
            for group_kind in self._schedules.kinds():
                if group_kind not in read:
                    self._schedules.close(group_kind)


class DependencyView:
    """What one decision sees."""

    def __init__(self, looking: Dependencies, reader: Key) -> None:
        self._looking = looking
        self._reader = reader

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Resolution:
        return self._looking.schedule(self._reader, namespace, reference, field)

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None:
        return self._looking.get(self._reader, resource, key)


class DependencyReader(Protocol):
    """Where a context gets other objects from. All answers come from caches, without waiting."""

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Resolution: ...

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None: ...


class Nothing:
    """No other objects: for providers that declare none, and for tests."""

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
    look: DependencyReader = field(default_factory=Nothing)

    def schedule(self, kind: str, name: str, *, field: str = "the reference") -> Resolution:
        """The verdict of another schedule of the namespace, by the rules of the provider contract.

        :param field: how messages call the field that names it, such as ``spec.base``.
        :returns: resolved; unresolved, for a reason that lies with the other; or unreadable, which says nothing of it.
        :raises ValueError: the provider does not declare that it reads schedules.
        """
        return self.look.schedule(self.namespace, Reference(kind, name), field)

    def get(self, resource: Resource, name: str) -> Mapping[str, Any] | None:
        """An object of the namespace, None when there is none. Treat it as read-only.

        :raises NoVerdict: objects of that resource cannot be read now; let it pass.
        :raises ValueError: the provider does not declare that it reads them.
        """
        return self.look.get(resource, Key(self.namespace, name))
