"""Informers of kinds that users' objects name, opened when first named and closed when no object names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fivespot.runtime.objects import Change, GroupKind, KindState, KindUnknown, Projection, Resource

from .cache import Cache
from .informer import Informer, Subscription

__all__ = ["DynamicInformers", "Opened"]


@dataclass(slots=True)
class Opened:
    """One running informer of a named kind."""

    resource: Resource
    informer: Informer
    subscription: Subscription


class DynamicInformers:
    """The informers of all named kinds that share a projection.

    :param on_change: called for every change of every object of these kinds.
    :param on_kind: called when a kind became readable, or ceased to be: objects that name it need another run.
    """

    def __init__(
        self,
        cache: Cache,
        projection: Projection,
        on_change: Callable[[GroupKind, Change], None],
        on_kind: Callable[[GroupKind], None],
    ) -> None:
        self._cache = cache
        self._projection = projection
        self._on_change = on_change
        self._on_kind = on_kind
        self._opened: dict[GroupKind, Opened] = {}

    def __len__(self) -> int:
        return len(self._opened)

    def kinds(self) -> Sequence[GroupKind]:
        """The kinds that are open."""
        return tuple(self._opened)

    def get(self, group_kind: GroupKind) -> Opened | None:
        """The informer of a kind, if it is open."""
        return self._opened.get(group_kind)

    def open(self, group_kind: GroupKind, state: KindState, version: str | None = None) -> Opened:
        """Return the informer of a usable kind, which starts when it is first asked for.

        :param version: read at this version where it is served; only for a kind that is not open yet.
        """
        found = self._opened.get(group_kind)
        if found is not None:
            return found
        resource = state.resource(version if version in state.served else None)
        informer = self._cache.informer(resource, projection=self._projection)

        def changed(change: Change) -> None:
            self._on_change(group_kind, change)

        def readable(*_: object) -> None:
            self._on_kind(group_kind)

        informer.on_status(readable)
        subscription = informer.subscribe(changed, on_synced=readable)
        opened = Opened(resource, informer, subscription)
        self._opened[group_kind] = opened
        return opened

    def close(self, group_kind: GroupKind) -> None:
        """Stop reading a kind; harmless when it is not open."""
        opened = self._opened.pop(group_kind, None)
        if opened is not None:
            opened.subscription.close()
            opened.informer.release()

    def refresh(self, group: str) -> tuple[GroupKind, ...]:
        """Close the kinds of a group that are gone or served otherwise, after its definitions changed.

        :returns: all open kinds of the group; the next :meth:`open` of a closed one opens it anew.
        """
        affected = tuple(gk for gk in self._opened if gk.group == group)
        for group_kind in affected:
            state = self._cache.kinds.lookup(group_kind)
            if isinstance(state, KindUnknown):
                continue
            resource = self._opened[group_kind].resource
            same = (
                isinstance(state, KindState)
                and state.established
                and resource.version in state.served
                and resource.plural == state.plural
            )
            if not same:
                self.close(group_kind)
        return affected
