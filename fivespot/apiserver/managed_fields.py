"""``managedFields``: tracking of field owners for all writes except apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from .fieldsets import FieldSet, compare, decode_fields, encode_fields
from .metadata import NODE as METADATA
from .schema import Node

__all__ = [
    "FieldManager",
    "FieldManagers",
    "Owner",
    "read_managers",
    "strip",
    "track_update",
    "with_metadata",
    "without_managed_fields",
    "write_managers",
]

_STRIPPED: Final = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields",
            "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
        )
    }
)  # fmt: skip
"""Fields that are never owned."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The identity under which fields are owned."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass(slots=True)
class FieldManager:
    """The fields of one manager, and the time of their last change."""

    fields: FieldSet
    time: str


FieldManagers = dict[Owner, FieldManager]


@lru_cache(maxsize=256)
def with_metadata(node: Node) -> Node:
    """The schema of whole objects."""
    return Node(raw=node.raw, preserve=node.preserve, properties={**node.properties, "metadata": METADATA})


def strip(fields: FieldSet) -> FieldSet:
    """Remove fields that are never owned."""
    return {path for path in fields if path[:2] not in _STRIPPED}


def read_managers(metadata: Mapping[str, Any]) -> FieldManagers:
    """Decode the ``managedFields`` of an object; invalid entries are dropped."""
    managers: FieldManagers = {}
    for entry in metadata.get("managedFields") or ():
        try:
            fields = decode_fields(entry.get("fieldsV1") or {})
        except ValueError:
            continue
        owner = Owner(
            entry.get("manager", ""),
            entry.get("operation", "Update"),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        if fields:
            managers[owner] = FieldManager(fields, entry.get("time") or "")
    return managers


def write_managers(metadata: dict[str, Any], managers: FieldManagers) -> None:
    """Encode the field managers into ``managedFields``."""
    entries = []
    order = sorted(managers.items(), key=lambda item: (item[0].operation, item[1].time, item[0].manager))
    for owner, manager in order:
        if not manager.fields:
            continue
        entry: dict[str, Any] = {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": owner.api_version,
            "time": manager.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": encode_fields(manager.fields),
        }
        if owner.subresource:
            entry["subresource"] = owner.subresource
        entries.append(entry)
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)


def track_update(old: Mapping[str, Any], new: dict[str, Any], node: Node, owner: Owner, now: str) -> None:
    """Update ``managedFields`` after a write that is not an apply.

    :param old: the state before, {} when there was none.
    :param node: of whole objects (:func:`with_metadata`).
    """
    metadata = new["metadata"]
    given = metadata.get("managedFields")
    known = old.get("metadata", {})
    managers = read_managers(metadata if given is not None else known)
    if known and not managers:
        # As in kube-apiserver, an object without managedFields stays without until its first apply.
        metadata.pop("managedFields", None)
        return
    changes = compare(without_managed_fields(old), without_managed_fields(new), node)
    touched = strip(changes.added | changes.modified)
    held = managers.get(owner)
    own = ((held.fields if held else frozenset()) | touched) - changes.removed
    lost = touched | changes.removed
    losing = [
        manager
        for other, manager in managers.items()
        if lost and other != owner and not manager.fields.isdisjoint(lost)
    ]
    records = known.get("managedFields")
    if own == (held.fields if held else frozenset()) and not losing and records and given in (None, records):
        # No owner changes, so the entries stay as they are.
        metadata["managedFields"] = records
        return
    for manager in losing:
        manager.fields = manager.fields - lost
    if own:
        if held is None or own != held.fields:
            managers[owner] = FieldManager(own, now)
    else:
        managers.pop(owner, None)
    write_managers(metadata, managers)


def without_managed_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object without managedFields and type."""
    if not body:
        return {}
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return {**{name: value for name, value in body.items() if name not in {"apiVersion", "kind"}}, "metadata": metadata}
