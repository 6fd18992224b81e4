"""What observing needs of the caches, so that the same reading also works on objects that were fetched one by one."""

from __future__ import annotations

from typing import Protocol

from fivespot.runtime.objects import GroupKind, Key, KindAbsent, KindState, KindUnknown, Object, Resource

__all__ = ["KindFacts", "KindReaders", "ObjectReader", "OpenKind", "ReadState"]


class ReadState(Protocol):
    """How reading goes; see :class:`fivespot.runtime.cache.InformerStatus`."""

    @property
    def synced(self) -> bool: ...

    @property
    def last_error(self) -> str: ...

    @property
    def error_since(self) -> float | None: ...


class ObjectReader(Protocol):
    """Objects of one kind, read without waiting; an :class:`~fivespot.runtime.cache.Informer` is one."""

    @property
    def synced(self) -> bool: ...

    @property
    def status(self) -> ReadState: ...

    def get(self, key: Key) -> Object | None: ...


class OpenKind(Protocol):
    """A kind that is being read."""

    @property
    def resource(self) -> Resource: ...

    @property
    def informer(self) -> ObjectReader: ...


class KindReaders(Protocol):
    """Readers of kinds that users' objects name."""

    def open(self, group_kind: GroupKind, state: KindState, version: str | None = None) -> OpenKind: ...


class KindFacts(Protocol):
    """Which kinds are defined; :class:`~fivespot.runtime.cache.Kinds` is one."""

    def watch_group(self, group: str) -> None: ...

    def lookup(self, gk: GroupKind) -> KindState | KindAbsent | KindUnknown: ...

    def in_group(self, group: str) -> tuple[KindState, ...] | KindUnknown: ...
