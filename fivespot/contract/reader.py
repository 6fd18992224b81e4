"""Resolves references to schedules, for machines and for schedules that build on others.

Pure: kinds and objects come through protocols that the runtime's caches satisfy, and nothing here waits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

from fivespot.runtime.objects import GroupKind, Key, KindAbsent, KindState, KindUnknown, Object, Projection

from .provider import cut_provider, read_provider
from .resolution import (
    Reference,
    Resolution,
    Resolved,
    Unreadable,
    Unresolved,
    kind_missing,
    kind_unusable,
    object_missing,
)

__all__ = [
    "SCHEDULE_PROJECTION",
    "UNREADABLE_PATIENCE",
    "UNRESOLVED_RETRY",
    "UNRESOLVED_RETRY_JITTER",
    "KindInfo",
    "ScheduleCache",
    "ScheduleKind",
    "resolve_schedule",
]

SCHEDULE_PROJECTION: Final = Projection("provider", cut_provider, frozenset())
"""The parts of a schedule that are cached: the contract's fields of status. A projection has one value wherever it is
used, so that all controllers of a process share one informer per kind."""

UNRESOLVED_RETRY: Final = 60.0
UNRESOLVED_RETRY_JITTER: Final = 0.2
"""Seconds between two evaluations of a reference that is unresolved, and the share by which they vary (A8)."""

UNREADABLE_PATIENCE: Final = 30.0
"""Seconds for which a schedule must be unreadable before that is reported (A15), as caches are empty after a start.
"""

KindInfo: TypeAlias = KindState | KindAbsent | KindUnknown


class CacheStatus(Protocol):
    """The state of an informer; :class:`fivespot.runtime.cache.InformerStatus` is one."""

    @property
    def synced(self) -> bool: ...

    @property
    def last_error(self) -> Exception | None: ...

    @property
    def error_since(self) -> float | None: ...


class ScheduleCache(Protocol):
    """The schedules of one kind; :class:`fivespot.runtime.cache.Informer` is one."""

    @property
    def status(self) -> CacheStatus: ...

    def get(self, key: Key) -> Object | None: ...


class ScheduleKind(Protocol):
    """A kind whose schedules are being read."""

    @property
    def informer(self) -> ScheduleCache: ...


def resolve_schedule(
    reference: Reference,
    *,
    group: str,
    namespace: str,
    field: str,
    lookup: Callable[[GroupKind], KindInfo],
    open_kind: Callable[[GroupKind, KindState], ScheduleKind],
) -> Resolution:
    """Return the verdict of a schedule, or the reason why there is none, checked in the order of the contract (A7,
    A15).

    :param group: the API group of schedules.
    :param field: the field that holds the reference, for messages, such as ``spec.schedule``.
    :param lookup: whether a kind is defined, and how.
    :param open_kind: the schedules of a kind that can be read; called only for such a kind.
    """
    group_kind = GroupKind(group, reference.kind)
    state = lookup(group_kind)
    if isinstance(state, KindUnknown):
        return Unreadable(f"the definition of {group_kind} cannot be read: {state.why}")
    if isinstance(state, KindAbsent):
        return kind_missing(reference.kind, group=group, field=field)
    if not state.usable or not state.namespaced:
        return kind_unusable(state.crd_name, state.unusable_reason)
    informer = open_kind(group_kind, state).informer
    status = informer.status
    # A cache that synced once and cannot be read now may be stale, which is no verdict either.
    if not status.synced or status.error_since is not None:
        return Unreadable(f"{reference.kind} objects cannot be read: {status.last_error or 'not listed yet'}")
    found = informer.get(Key(namespace, reference.name))
    if found is None:
        return object_missing(reference, namespace=namespace, field=field)
    return _read(found.raw, str(reference), found.head.generation)


@lru_cache(maxsize=1024)
def _read(raw: bytes, name: str, generation: int) -> Resolved | Unresolved:
    # Thousands of machines may go by one schedule, and all of them are evaluated when it changes.
    return read_provider(raw, name=name, generation=generation)
