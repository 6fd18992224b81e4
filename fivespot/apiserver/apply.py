"""Server-side apply: merging, conflicts, removal of fields that a configuration no longer has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .cluster import Object
from .fieldsets import (
    LEVELS,
    Changes,
    FieldSet,
    Path,
    applied_set,
    child,
    compare,
    element,
    is_granular,
    items_by_element,
)
from .json_codec import decode_json, encode_json
from .managed_fields import (
    FieldManager,
    FieldManagers,
    Owner,
    read_managers,
    strip,
    without_managed_fields,
    write_managers,
)
from .schema import Node
from .schema.validation import format_value, json_type
from .status import StatusError, internal

__all__ = ["apply_configuration", "check_typed"]


def check_typed(config: Mapping[str, Any], node: Node, name: str) -> None:
    """Check a configuration against the schema.

    :param node: of whole objects.
    :raises StatusError: 500, as in kube-apiserver.
    """
    where = f"({config['metadata'].get('namespace', '')}/{name}; {config.get('apiVersion')}, Kind={config.get('kind')})"
    rest = {key: value for key, value in config.items() if key not in {"apiVersion", "kind"}}
    problem = _misfit(rest, node, "")
    if problem:
        raise internal(f"failed to create typed patch object {where}: {problem}")


def _misfit(value: Any, node: Node, path: str) -> str:
    if value is None:
        return ""
    found = json_type(value)
    if node.type and found != node.type and not (found == "integer" and node.type == "number"):
        return f"{path}: expected {node.type.replace('object', 'map').replace('array', 'list')}, got {found}"
    if isinstance(value, dict):
        for name, member in value.items():
            inner = node.child(name)
            if inner is None:
                if not (node.preserve or node.open or node.embedded or node.int_or_string):
                    return f"{path}.{name}: field not declared in schema"
                continue
            if problem := _misfit(member, inner, f"{path}.{name}"):
                return problem
    elif isinstance(value, list) and node.items is not None:
        seen: set[str] = set()
        for number, item in enumerate(value):
            if problem := _misfit(item, node.items, f"{path}[{number}]"):
                return problem
            if node.list_type in {"map", "set"}:
                if node.list_type == "map" and _keyless(item, node):
                    keys = format_value(list(node.list_keys))
                    return (
                        f"{path}: element {number}: associative list with keys has an element that omits all key "
                        f"fields {keys} (and doesn't have default values for any key fields)"
                    )
                key = element(item, node)
                if key in seen:
                    return f"{path}: duplicate entries for key [{key[2:]}]"
                seen.add(key)
    return ""


def _keyless(item: Any, node: Node) -> bool:
    if not isinstance(item, dict) or node.items is None:
        return False
    known = node.items.properties
    return all(item.get(key) is None and (key not in known or known[key].default is None) for key in node.list_keys)


def apply_configuration(
    live: Object, config: Mapping[str, Any], node: Node, owner: Owner, now: str, *, force: bool
) -> Object:
    """Apply a configuration to an object and update its managedFields.

    :param live: the current object; for a new one only its type and metadata.
    :param node: of whole objects.
    :raises StatusError: 409, another manager owns a field and ``force`` is not set.
    """
    managers = read_managers(live["metadata"])
    stated = without_managed_fields(config)
    current = without_managed_fields(live)
    if not managers and "uid" in live["metadata"]:
        unrecorded = strip(compare({}, current, node).added)
        if unrecorded:
            managers[Owner("before-first-apply", "Update", owner.api_version)] = FieldManager(unrecorded, now)
    mine = strip(applied_set(stated, node))
    before = managers.get(owner)
    merged = merge_typed(current, stated, node)
    others: FieldSet = set().union(*(held.fields for other, held in managers.items() if other != owner))
    if before is not None:
        dropped = before.fields - mine - others
        merged = decode_json(encode_json(merged))
        _remove(merged, dropped, mine, others, node)
    changes = compare(current, merged, node)
    _settle(managers, owner, changes, force=force)
    if before is None or before.fields != mine:
        managers[owner] = FieldManager(mine, now)
    write_managers(merged["metadata"], managers)
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], **merged}


def merge_typed(current: Any, stated: Any, node: Node, level: int = 0) -> Any:
    """Merge an applied value into the current one, member by member where they are owned individually."""
    if type(current) is not type(stated) or not is_granular(stated, node) or level >= LEVELS:
        return stated
    if isinstance(stated, dict):
        merged = dict(current)
        for name, value in stated.items():
            inner = child(node, name)
            merged[name] = merge_typed(current[name], value, inner, level + 1) if name in current else value
        return merged
    return _merge_lists(items_by_element(current, node), items_by_element(stated, node), node.items or node, level + 1)


def _merge_lists(current: Mapping[str, Any], stated: Mapping[str, Any], node: Node, level: int) -> list[Any]:
    """Items of both lists: the applied ones in their order, the others between them in their places."""
    left, right = list(current), list(stated)
    shared = [name for name in right if name in current]
    merged: dict[str, Any] = {}
    while left or right:
        if left and left[0] in merged:
            left.pop(0)
        elif left and left[0] not in stated:
            name = left.pop(0)
            merged[name] = current[name]
        elif left and right and left[0] != right[0] and shared and left[0] != shared[0]:
            # In both lists, but another shared item is applied before it.
            left.pop(0)
        elif right:
            name = right.pop(0)
            merged[name] = merge_typed(current[name], stated[name], node, level) if name in current else stated[name]
            if shared and name == shared[0]:
                shared.pop(0)
        else:
            left.pop(0)
    return list(merged.values())


def _remove(value: Any, dropped: FieldSet, mine: FieldSet, others: FieldSet, node: Node) -> None:
    """Remove fields that the last configuration had and this one does not.

    Containers that become empty are removed too, even if this configuration has them: so does kube-apiserver.
    """
    kept = mine | others
    # Containers first: an item of a list cannot be found without its keys.
    for path in sorted(dropped, key=len):
        if _held(path, kept) or not _remove_part(value, path, node):
            continue
        above = path[:-1]
        while len(above) > 1 or above[:1] not in {(), ("f:metadata",)}:
            if _held(above, others) or _at(value, above, node):
                break
            _remove_part(value, above, node)
            above = above[:-1]


def _held(path: Path, kept: FieldSet) -> bool:
    return path in kept or any(len(other) > len(path) and other[: len(path)] == path for other in kept)


def _part(value: Any, name: str, node: Node) -> tuple[Any, Node]:
    """The member or item at a path element; None when it is missing."""
    if isinstance(value, dict) and name.startswith("f:"):
        return value.get(name[2:]), child(node, name[2:])
    if isinstance(value, list):
        return items_by_element(value, node).get(name), node.items or node
    return None, node


def _at(value: Any, path: Path, node: Node) -> Any:
    for name in path:
        value, node = _part(value, name, node)
    return value


def _remove_part(value: Any, path: Path, node: Node) -> bool:
    for name in path[:-1]:
        value, node = _part(value, name, node)
    last = path[-1]
    if isinstance(value, dict) and last.startswith("f:"):
        return value.pop(last[2:], _at) is not _at
    if isinstance(value, list):
        for number, item in enumerate(value):
            if element(item, node) == last:
                del value[number]
                return True
    return False


def _settle(managers: FieldManagers, owner: Owner, changes: Changes, *, force: bool) -> None:
    """Take changed fields from their owners with force, or report conflicts."""
    touched = changes.modified | changes.added
    conflicts = []
    for other, held in sorted(managers.items(), key=lambda item: item[0].manager):
        if other == owner:
            continue
        contested = held.fields & touched
        if contested:
            conflicts += [(other, path) for path in sorted(contested)]
            if force:
                held.fields = held.fields - contested
        held.fields = held.fields - changes.removed
    if conflicts and not force:
        raise _conflict(conflicts)


def _conflict(conflicts: list[tuple[Owner, Path]]) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": _holder(other), "field": shown(path)} for other, path in conflicts
    ]
    count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
    grouped: dict[str, list[str]] = {}
    for cause in causes:
        grouped.setdefault(cause["message"], []).append(cause["field"])
    if len(conflicts) == 1:
        words = f"{causes[0]['message']}: {causes[0]['field']}"
    elif len(grouped) == 1:
        holder = next(iter(grouped)).replace("conflict with", "conflicts with", 1)
        words = f"{holder}:\n" + "\n".join(f"- {field}" for field in grouped[causes[0]["message"]])
    else:
        parts = []
        for holder, fields in grouped.items():
            parts.append(
                f"{holder.replace('conflict with', 'conflicts with', 1)}:\n" + "\n".join(f"- {each}" for each in fields)
            )
        words = "\n".join(parts)
    return StatusError(409, "Conflict", f"Apply failed with {count}: {words}", {"causes": causes})


def _holder(owner: Owner) -> str:
    words = f'conflict with "{owner.manager}"'
    if owner.subresource:
        words += f' with subresource "{owner.subresource}"'
    return words + (f" using {owner.api_version}" if owner.operation == "Update" else "")


def shown(path: Path) -> str:
    """Format a path for conflict messages."""
    words = ""
    for name in path:
        if name.startswith("f:"):
            words += f".{name[2:]}"
        elif name.startswith("k:"):
            keys = decode_json(name[2:])
            words += f"[{','.join(f'{key}={format_value(value)}' for key, value in keys.items())}]"
        else:
            words += f"[={name[2:]}]"
    return words
