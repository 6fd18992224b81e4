"""The inputs of an evaluation as protocols, so that ``fivespot why`` can evaluate objects that it fetched itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fivespot.contract.reader import CacheStatus
from fivespot.runtime import GroupKind, Key, KindAbsent, KindUnknown, Object, Resource
from fivespot.runtime.objects import KindState

from .snapshot import Slot

__all__ = ["Inputs", "NamedKind", "ObjectReader", "OpenKind"]


@dataclass(frozen=True, slots=True)
class NamedKind:
    """A kind that a child of one ScheduledMachine can have.

    :param version: the version that the template names; "" where only a reference names the kind.
    """

    slot: Slot
    group_kind: GroupKind
    version: str = ""


class ObjectReader(Protocol):
    """Objects of one kind, read without waiting; an :class:`~fivespot.runtime.cache.Informer` is one."""

    @property
    def synced(self) -> bool: ...

    @property
    def status(self) -> CacheStatus: ...

    def get(self, key: Key) -> Object | None: ...

    def list(self) -> Sequence[Object]: ...


class OpenKind(Protocol):
    """A kind that is being read."""

    @property
    def resource(self) -> Resource: ...

    @property
    def informer(self) -> ObjectReader: ...


class Inputs(Protocol):
    """Everything that an evaluation reads. Only :meth:`require` and :meth:`complete` have effects."""

    @property
    def machines(self) -> ObjectReader | None:
        """Machines; None while they are not read."""
        ...

    @property
    def clusters(self) -> ObjectReader | None:
        """Clusters; None while they are not read."""
        ...

    def lookup(self, gk: GroupKind, /) -> KindState | KindAbsent | KindUnknown:
        """Return the known facts of a kind's definition."""
        ...

    def in_group(self, group: str, /) -> tuple[KindState, ...] | KindUnknown:
        """All kinds of a group."""
        ...

    def schedules(self, gk: GroupKind, /) -> OpenKind | None:
        """The schedules of a kind; None while they are not read."""
        ...

    def children(self, gk: GroupKind, /) -> OpenKind | None:
        """The bootstrap or infrastructure objects of a kind; None while they are not read."""
        ...

    def require(self, schedule: GroupKind, children: Iterable[NamedKind], /) -> None:
        """Read these kinds from now on."""
        ...

    async def complete(self) -> bool:
        """Fetch what was required and not available; return whether another attempt can see more."""
        ...
