"""Embedded resources: objects inside custom resources that have a type and metadata of their own."""

from __future__ import annotations

import re
from typing import Any, Final

from .metadata import decode_metadata, metadata_problems
from .names import label1035_problem
from .schema import Node
from .schema.validation import format_value
from .status import FieldCause, StatusError, bad_request

__all__ = ["decode_embedded", "embedded_problems"]

_GROUP_VERSION: Final = re.compile("[^/]*(/[^/]*)?")


def decode_embedded(value: Any, node: Node, path: str, unknown: list[str]) -> None:
    """Convert the metadata of embedded resources in place.

    :param unknown: receives the paths of unknown fields.
    :raises StatusError: 400, a member has the wrong type; the message lacks the kind of the object.
    """
    if not node.embeds:
        return
    if isinstance(value, dict):
        if node.embedded:
            _decode(value, path, unknown)
        for name, member in value.items():
            if (inner := node.child(name)) is not None:
                decode_embedded(member, inner, _join(path, name), unknown)
    elif isinstance(value, list) and node.items is not None:
        for number, member in enumerate(value):
            decode_embedded(member, node.items, f"{path}[{number}]", unknown)


def _decode(resource: dict[str, Any], path: str, unknown: list[str]) -> None:
    for name in ("apiVersion", "kind"):
        if not isinstance(resource.get(name, ""), str):
            raise bad_request(f"{path}.{name}: Invalid value: {format_value(resource[name])}: must be a string")
    if "metadata" not in resource:
        return
    given = resource["metadata"]
    found: list[str] = []
    try:
        decode_metadata(resource, "", "", found)
    except StatusError as fault:
        words = fault.message.rpartition("cannot be handled as a : ")[2]
        raise bad_request(f"{path}.metadata: Invalid value: {format_value(given)}: {words}") from None
    unknown += [f"{path}.{each}" for each in found]


def embedded_problems(value: Any, node: Node, path: str) -> list[FieldCause]:
    """Validate the type and metadata of embedded resources."""
    if not node.embeds:
        return []
    causes: list[FieldCause] = []
    if isinstance(value, dict):
        if node.embedded:
            causes += _problems(value, path)
        for name, member in value.items():
            if (inner := node.child(name)) is not None:
                causes += embedded_problems(member, inner, _join(path, name))
    elif isinstance(value, list) and node.items is not None:
        for number, member in enumerate(value):
            causes += embedded_problems(member, node.items, f"{path}[{number}]")
    return causes


def _problems(resource: dict[str, Any], path: str) -> list[FieldCause]:
    causes = []
    for name in ("apiVersion", "kind"):
        if name not in resource:
            causes.append(FieldCause(f"{path}.{name}", "FieldValueRequired", "Required value"))
        elif problem := _type_problem(name, resource[name]):
            words = f"Invalid value: {format_value(resource[name])}: {problem}"
            causes.append(FieldCause(f"{path}.{name}", "FieldValueInvalid", words))
    metadata = resource.get("metadata")
    if isinstance(metadata, dict):
        named = {"name": "name", **metadata}
        found = metadata_problems(named, namespaced=bool(metadata.get("namespace")), path_names=True)
        causes += [FieldCause(f"{path}.{each.field}", each.reason, each.message) for each in found]
    return causes


def _type_problem(name: str, value: str) -> str:
    if not value:
        return "must not be empty"
    if name == "apiVersion":
        return "" if _GROUP_VERSION.fullmatch(value) else f"unexpected GroupVersion string: {value}"
    problem = label1035_problem(value.lower())
    return f"may have mixed case, but should otherwise match: {problem}" if problem else ""


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
