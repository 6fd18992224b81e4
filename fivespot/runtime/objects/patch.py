"""Patches as values, and pure functions that make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from .object import Head

__all__ = ["Patch", "finalizer_patch", "json_patch", "merge_diff", "merge_patch"]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch body with its content type (RFC 6902 or RFC 7386)."""

    content_type: str
    body: bytes


def json_patch(operations: Sequence[Mapping[str, Any]]) -> Patch:
    """Make a JSON patch (RFC 6902)."""
    return Patch(JSON_PATCH, msgspec.json.encode(list(operations)))


def merge_patch(change: Mapping[str, Any], head: Head | None = None) -> Patch:
    """Make a JSON merge patch (RFC 7386).

    :param head: when given, uid and resourceVersion are put in, so that the server answers 409 instead of
        changing another object of the name or overwriting a later state.
    """
    body: dict[str, Any] = dict(change)
    if head is not None:
        metadata = dict(body.get("metadata") or {})
        metadata["uid"] = head.uid
        metadata["resourceVersion"] = str(head.version)
        body["metadata"] = metadata
    return Patch(MERGE_PATCH, msgspec.json.encode(body))


def merge_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Make the merge patch that turns ``old`` into ``new``; empty when they are equal.

    A null value in ``new`` counts as absent, because a merge patch cannot write one.
    """
    change: dict[str, Any] = {}
    for name, value in new.items():
        before = old.get(name)
        if value is None:
            if before is not None:
                change[name] = None
        elif value == before:
            continue
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = merge_diff(before, value)
            if inner:
                change[name] = inner
        else:
            change[name] = value
    for name in old:
        if name not in new:
            change[name] = None
    return change


def finalizer_patch(head: Head, finalizer: str, *, present: bool) -> Patch | None:
    """Make the JSON patch that adds or removes one finalizer and leaves those of others alone.

    It tests uid and resourceVersion first, so it can neither lose a concurrent change of the list nor touch
    another object of the name. None when there is nothing to do.
    """
    if (finalizer in head.finalizers) == present:
        return None
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": head.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": str(head.version)},
    ]
    if present and not head.finalizers:
        operations.append({"op": "add", "path": "/metadata/finalizers", "value": [finalizer]})
    elif present:
        operations.append({"op": "add", "path": "/metadata/finalizers/-", "value": finalizer})
    else:
        index = head.finalizers.index(finalizer)
        operations.append({"op": "remove", "path": f"/metadata/finalizers/{index}"})
    return json_patch(operations)
