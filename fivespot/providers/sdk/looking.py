"""The other objects that a provider's decisions look at: informers, opened when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fivespot.api.names import PROVIDER_GROUP
from fivespot.contract import (
    Reading,
    Reference,
    Unreadable,
    cut_provider,
    kind_missing,
    kind_unusable,
    object_missing,
    read_provider,
)
from fivespot.runtime.cache import Cache, Informer, KindAbsent, KindUnknown
from fivespot.runtime.cache.dynamic import DynamicKinds
from fivespot.runtime.objects import Change, ChangeType, GroupKind, Key, Projection, Resource

from .readers import Readers, Target
from .reads import SCHEDULES, Readable
from .verdict import NoVerdict

__all__ = ["UNREADABLE", "UNREADABLE_PATIENCE", "Looking"]

UNREADABLE: Final = "Unreadable"
"""Reason of a Ready that is Unknown because something that a decision reads cannot be read."""
UNREADABLE_PATIENCE: Final = 30.0
"""Seconds for which that is not told (contract, A15): after a restart nothing is read yet."""

_PROVIDER: Final = Projection("provider", cut_provider, frozenset())
"""Of schedules the contract's fields of status alone. A named projection is one value wherever it is used, so that the
machine controller of the same process shares the informers."""


class Looking:
    """What one kind of provider may read, and who of its objects did.

    :param changed: called with each object whose decision looked at something that changed.
    """

    def __init__(self, cache: Cache, reads: Iterable[Readable], changed: Callable[[Key], None]) -> None:
        self._cache = cache
        self._changed = changed
        self._readers = Readers()
        self._informers: dict[Resource, Informer] = {}
        self._schedules: DynamicKinds | None = None
        for read in reads:
            if isinstance(read, Resource):
                self._open(read)
        if SCHEDULES in reads:
            self._schedules = DynamicKinds(cache, _PROVIDER, self._schedule_changed, self._kind_changed)
            cache.kinds.watch_group(PROVIDER_GROUP)
            cache.kinds.subscribe(self._group_changed)

    def at(self, reader: Key) -> Look:
        """A view for one decision, to be followed by :meth:`done`."""
        self._readers.begin(reader)
        return Look(self, reader)

    def done(self, reader: Key) -> None:
        """The decision is made: what it did not look at any more concerns it no longer."""
        self._readers.end(reader)
        self._close_unread()

    def forget(self, reader: Key) -> None:
        self._readers.forget(reader)
        self._close_unread()

    # Reading -----------------------------------------------------------------------------------------------------

    def schedule(self, reader: Key, namespace: str, reference: Reference, field: str) -> Reading:
        """A7, A15: the verdict of a schedule, or why there is none, in the order of the contract."""
        if self._schedules is None:
            raise ValueError(f"{reference} cannot be read: declare SCHEDULES in the provider's reads")
        group_kind = GroupKind(PROVIDER_GROUP, reference.kind)
        key = Key(namespace, reference.name)
        self._readers.looked(reader, Target(group_kind, key))
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
        self._readers.looked(reader, Target(resource.group_kind, key))
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
        for reader in self._readers.of(Target(group_kind, change.key)):
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


class Look:
    """What one decision sees."""

    def __init__(self, looking: Looking, reader: Key) -> None:
        self._looking = looking
        self._reader = reader

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Reading:
        return self._looking.schedule(self._reader, namespace, reference, field)

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None:
        return self._looking.get(self._reader, resource, key)
