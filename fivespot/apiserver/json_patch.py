"""JSON patches (RFC 6902), with the extensions of the Go library that kube-apiserver uses.

Replacing a missing member adds it, a test of a missing member against null holds, negative indices count from the end,
and an operation without a value has the value null.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from .json_codec import decode_json, encode_json, json_equal

__all__ = ["JsonPatchError", "apply_operations"]

_INDEX: Final = re.compile(r"[+-]?[0-9]+")


class JsonPatchError(ValueError):
    """An operation cannot be applied."""


def apply_operations(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Apply operations in their order; containers of the document are copied before they change.

    :raises JsonPatchError: one of them cannot be applied.
    """
    for operation in operations:
        apply = _OPERATIONS.get(operation.get("op") or "")
        if apply is None:
            raise JsonPatchError(f"unexpected kind: {operation.get('op')}")
        document = apply(document, operation)
    return document


def _pointer(operation: dict[str, Any], name: str) -> str:
    pointer = operation.get(name)
    if not isinstance(pointer, str):
        raise JsonPatchError(f"operation has no {name}")
    return pointer


def _opened(document: Any, pointer: str) -> tuple[Any, Any, str]:
    """A copy of the document, its container that a pointer is about (copied too), and the key in it."""
    _, *steps = pointer.split("/")
    if not steps:
        raise JsonPatchError(f"document is missing path {pointer!r}")
    *outer, key = (step.replace("~1", "/").replace("~0", "~") for step in steps)
    document = container = _copied(document)
    for step in outer:
        if isinstance(container, list):
            position: Any = _position(container, step)
        elif step in container:
            position = step
        else:
            raise JsonPatchError(f"document is missing path {pointer!r}")
        container[position] = container = _copied(container[position])
    return document, container, key


def _copied(container: Any) -> Any:
    if isinstance(container, dict):
        return dict(container)
    if isinstance(container, list):
        return list(container)
    raise JsonPatchError("path leads through a scalar")


def _position(items: list[Any], key: str, size: int | None = None) -> int:
    """An index of a list.

    :param size: the number of valid indices, by default those of items.
    """
    size = len(items) if size is None else size
    if not _INDEX.fullmatch(key):
        raise JsonPatchError(f"invalid index {key!r}")
    index = int(key)
    if not -size <= index < size:
        raise JsonPatchError(f"invalid index {index}")
    return index + size if index < 0 else index


def _get(container: Any, key: str) -> Any:
    return container[_position(container, key)] if isinstance(container, list) else container.get(key)


def _insert(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_position(container, key, len(container) + 1), value)


def _delete(container: Any, key: str) -> None:
    if isinstance(container, list):
        del container[_position(container, key)]
    elif key in container:
        del container[key]
    else:
        raise JsonPatchError(f"unable to remove missing key {key!r}")


def _add(document: Any, operation: dict[str, Any]) -> Any:
    document, container, key = _opened(document, _pointer(operation, "path"))
    _insert(container, key, operation.get("value"))
    return document


def _remove(document: Any, operation: dict[str, Any]) -> Any:
    document, container, key = _opened(document, _pointer(operation, "path"))
    _delete(container, key)
    return document


def _replace(document: Any, operation: dict[str, Any]) -> Any:
    if not (pointer := _pointer(operation, "path")):
        return _copied(operation.get("value"))
    document, container, key = _opened(document, pointer)
    container[_position(container, key) if isinstance(container, list) else key] = operation.get("value")
    return document


def _test(document: Any, operation: dict[str, Any]) -> Any:
    value = operation.get("value")
    if not (pointer := _pointer(operation, "path")):
        found = document
    else:
        _, container, key = _opened(document, pointer)
        found = _get(container, key)
    if not json_equal(found, value):
        raise JsonPatchError(f"testing value {pointer} failed")
    return document


def _move(document: Any, operation: dict[str, Any]) -> Any:
    document, container, key = _opened(document, _pointer(operation, "from"))
    value = _get(container, key)
    _delete(container, key)
    document, container, key = _opened(document, _pointer(operation, "path"))
    _insert(container, key, value)
    return document


def _copy(document: Any, operation: dict[str, Any]) -> Any:
    _, container, key = _opened(document, _pointer(operation, "from"))
    value = _get(container, key)
    document, container, key = _opened(document, _pointer(operation, "path"))
    # A copy, so that later operations on one of the two leave the other unchanged.
    _insert(container, key, decode_json(encode_json(value)))
    return document


_OPERATIONS: Final[dict[str, Callable[[Any, dict[str, Any]], Any]]] = {
    "add": _add,
    "copy": _copy,
    "move": _move,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
}
