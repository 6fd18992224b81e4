"""Pruning and defaulting by a structural schema."""

from __future__ import annotations

from typing import Any, Final

from fivespot.apiserver.json_codec import decode_json

from .node import Node

__all__ = ["apply_defaults", "drop_nulls", "prune"]

_TYPE_META: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: Any, node: Node, path: str = "", unknown: list[str] | None = None) -> None:
    """Remove members that the schema does not describe, in place.

    :param unknown: receives the paths of removed members.
    """
    if isinstance(value, dict):
        _prune_object(value, node, path, unknown)
    elif isinstance(value, list) and node.items is not None:
        for number, member in enumerate(value):
            prune(member, node.items, f"{path}[{number}]" if unknown is not None else "", unknown)


def _prune_object(value: dict[str, Any], node: Node, path: str, unknown: list[str] | None) -> None:
    properties, additional = node.properties, node.additional
    kept_open = node.preserve or node.closed or node.int_or_string
    dropped = []
    for name, member in value.items():
        if node.embedded and name in _TYPE_META:
            continue
        inner = properties.get(name) or additional
        if inner is None:
            if not kept_open:
                dropped.append(name)
        elif isinstance(member, dict | list):
            prune(member, inner, _join(path, name) if unknown is not None else "", unknown)
    for name in dropped:
        del value[name]
        if unknown is not None:
            unknown.append(_join(path, name))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def drop_nulls(value: Any, node: Node) -> None:
    """Remove members that are null, although they are neither nullable nor have a default, in place."""
    if isinstance(value, dict):
        for name in list(value):
            inner = node.child(name)
            if inner is None:
                continue
            member = value[name]
            if member is None:
                if not inner.nullable and inner.default is None:
                    del value[name]
            elif isinstance(member, dict | list):
                drop_nulls(member, inner)
    elif isinstance(value, list) and node.items is not None:
        for member in value:
            drop_nulls(member, node.items)


def apply_defaults(value: Any, node: Node) -> None:
    """Set the defaults of missing members in place; a null for a non-nullable member counts as missing."""
    if not node.defaults:
        return
    if isinstance(value, dict):
        for name, inner in node.properties.items():
            if inner.default is not None and (name not in value or (value[name] is None and not inner.nullable)):
                value[name] = decode_json(inner.default)
        for name, member in value.items():
            below = node.properties.get(name) or node.additional
            if below is not None and below.defaults:
                if member is None and below.default is not None and not below.nullable:
                    value[name] = decode_json(below.default)
                apply_defaults(value[name], below)
    elif isinstance(value, list) and node.items is not None:
        for number, member in enumerate(value):
            if member is None and node.items.default is not None and not node.items.nullable:
                value[number] = decode_json(node.items.default)
            apply_defaults(value[number], node.items)
