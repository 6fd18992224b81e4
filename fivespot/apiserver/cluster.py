"""The state of one server: store, kinds, clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from .clock import IdGenerator, ServerClock, timestamp
from .jsonpath import JsonPathError, find
from .kinds import Registry, Served, ServedKind
from .schema import apply_defaults, drop_nulls, prune
from .status import internal, not_found
from .store import Collection, Entry, ObjectStore, encode_tail

__all__ = ["Cluster", "Object"]

Object = dict[str, Any]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_OBJECT_LIMIT: Final = 1536 * 1024
"""Bytes of an object that etcd accepts."""
_MESSAGE_LIMIT: Final = 2 * 1024 * 1024
"""Bytes of an object that the client of etcd sends."""


class Cluster:
    """The store, registry, clock and identifiers that all parts of the server share."""

    def __init__(self, clock: ServerClock, ids: IdGenerator, window: int, bookmarks: float) -> None:
        self.bookmarks = bookmarks
        self.clock = clock
        self._formatted: tuple[datetime | None, str] = (None, "")
        self.ids = ids
        self.store = ObjectStore(window)
        self.registry = Registry()

    def now(self) -> str:
        """The current time as a ``metav1.Time``."""
        moment = self.clock.now()
        if moment != self._formatted[0]:
            # In virtual time many writes happen at the same instant.
            self._formatted = moment, timestamp(moment)
        return self._formatted[1]

    def moment(self) -> datetime:
        """The current time."""
        return self.clock.now()

    def collection(self, kind: ServedKind) -> Collection:
        """The stored objects of a kind."""
        return self.store.collection(*kind.place)

    def find(self, kind: ServedKind, namespace: str, name: str) -> Entry | None:
        """A stored object."""
        return self.collection(kind).entries.get(kind.key(namespace, name))

    def get(self, kind: ServedKind, namespace: str, name: str) -> Entry:
        """A stored object.

        :raises StatusError: 404.
        """
        entry = self.find(kind, namespace, name)
        if entry is None:
            raise not_found(kind.group, kind.plural, name)
        return entry

    # -- between stored and served -------------------------------------------------------------------------------

    def decode(self, entry: Entry, kind: ServedKind, served: Served) -> Object:
        """Decode a stored object in a served version."""
        body = kind.from_storage(entry.decode())
        if entry.epoch != kind.epoch:
            self._bring_up_to_date(body, kind)
        if served.name != kind.storage:
            prune(body, served.whole)
        return {"apiVersion": kind.api_version(served.name), "kind": kind.kind, **body}

    @staticmethod
    def _bring_up_to_date(body: Object, kind: ServedKind) -> None:
        """Prune and default an object that was stored under an earlier schema."""
        stored = kind.versions.get(kind.storage)
        if stored is not None and kind.custom:
            prune(body, stored.whole)
            drop_nulls(body, stored.node)
            apply_defaults(body, stored.node)

    def entry(self, kind: ServedKind, served: Served, body: Object, version: int) -> Entry:
        """The stored form of an object."""
        stored = kind.to_storage(body)
        if served.name != kind.storage:
            target = kind.versions.get(kind.storage)
            if target is not None:
                prune(stored, target.whole)
                apply_defaults({name: stored[name] for name in stored if name != "metadata"}, target.node)
        metadata = body["metadata"]
        owners = metadata.get("ownerReferences")
        return Entry(
            key=kind.key(metadata.get("namespace", ""), metadata["name"]),
            uid=metadata["uid"],
            version=version,
            tail=encode_tail(stored),
            labels=metadata.get("labels") or _NOTHING,
            owners=tuple(owner.get("uid", "") for owner in owners) if owners else (),
            deleting="deletionTimestamp" in metadata,
            fields=_selectable(kind, stored) if kind.strategy.selectable else _NOTHING,
            epoch=kind.epoch,
        )

    def put(self, kind: ServedKind, served: Served, body: Object) -> Entry:
        """Store an object under the next version and set its resourceVersion.

        :raises StatusError: 500, the object is larger than etcd accepts.
        """
        version = self.store.next_version()
        entry = self.entry(kind, served, body, version)
        _check_stored_size(len(entry.tail))
        self.store.put(*kind.place, entry)
        body["metadata"]["resourceVersion"] = str(version)
        return entry

    def remove(self, kind: ServedKind, key: str) -> Entry:
        """Remove a stored object; returns its last state."""
        return self.store.remove(*kind.place, key)


def _check_stored_size(size: int) -> None:
    """Refuse objects that etcd refuses, with the words of etcd and of its client."""
    if size > _MESSAGE_LIMIT:
        words = f"trying to send message larger than max ({size} vs. {_MESSAGE_LIMIT})"
        raise internal(f"rpc error: code = ResourceExhausted desc = {words}")
    if size > _OBJECT_LIMIT:
        raise internal("etcdserver: request is too large")


def _selectable(kind: ServedKind, body: Object) -> Mapping[str, str]:
    if not kind.custom:
        return kind.strategy.fields(body)
    found = {}
    for path in kind.strategy.selectable:
        try:
            value = find(body, path)
        except JsonPathError:
            continue
        if value is not None:
            found[path] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
