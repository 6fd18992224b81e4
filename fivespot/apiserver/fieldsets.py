"""Field sets (structured-merge-diff), the content of ``managedFields``, as sets of paths.

A path is a tuple of elements as FieldsV1 writes them: ``f:name`` for a member, ``k:{"name":"x"}`` for an item of a
list with keys, ``v:"x"`` for an item of a set.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final

from .json_codec import decode_json, encode_json, json_equal
from .metadata import NODE as METADATA
from .schema import Node
from .schema.validation import format_value

__all__ = [
    "LEVELS",
    "Changes",
    "FieldSet",
    "Path",
    "applied_set",
    "compare",
    "decode_fields",
    "element",
    "encode_fields",
    "items_by_element",
]

Path = tuple[str, ...]
FieldSet = AbstractSet[Path]

_REMEMBERED: Final = 2048
"""Field sets that are cached in both forms: objects that the same clients write mostly share a few sets."""
LEVELS: Final = 100
"""Levels of an object whose parts are owned individually. A set of paths grows with the square of the depth."""
_OPEN: Final = Node(raw={}, preserve=True)
_ABSENT: Final = object()


class Changes:
    """The fields that differ between two states."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.added: set[Path] = set()
        self.modified: set[Path] = set()
        self.removed: set[Path] = set()

    @property
    def any(self) -> bool:
        return bool(self.added or self.modified or self.removed)


def decode_fields(raw: Any) -> FieldSet:
    """The paths in a FieldsV1 value.

    :raises ValueError: it is not one.
    """
    return _decoded(encode_json(raw))


@lru_cache(maxsize=_REMEMBERED)
def _decoded(raw: bytes) -> FieldSet:
    found: set[Path] = set()
    _decode(decode_json(raw), (), found)
    return frozenset(found)


def _decode(raw: Any, path: Path, found: set[Path]) -> None:
    if not isinstance(raw, dict):
        raise ValueError("fieldsV1 must consist of objects")
    if path and (not raw or len(path) >= LEVELS):
        found.add(path)
        return
    for name, inner in raw.items():
        if name == ".":
            found.add(path)
        elif name[:2] in {"f:", "k:", "v:", "i:"}:
            _decode(inner, (*path, name), found)
        else:
            raise ValueError(f"missing prefix in path element {name!r}")


def encode_fields(paths: FieldSet) -> dict[str, Any]:
    """The FieldsV1 value of a set of paths; cached, so callers must not change it."""
    return _encoded(frozenset(paths))


@lru_cache(maxsize=_REMEMBERED)
def _encoded(paths: frozenset[Path]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path in sorted(paths):
        level = root
        for name in path:
            level = level.setdefault(name, {})
        level["."] = {}
    _trim(root)
    return root


def _trim(level: dict[str, Any]) -> None:
    """Write paths with nothing below them without their dot."""
    for inner in level.values():
        if len(inner) == 1 and "." in inner:
            inner.clear()
        else:
            _trim(inner)


def child(node: Node, name: str) -> Node:
    """The schema of a member; an open one for members that the schema does not describe."""
    if node.embedded and name == "metadata":
        return METADATA
    return node.child(name) or _OPEN


def is_granular(value: Any, node: Node) -> bool:
    """Whether members or items of a value are owned individually."""
    if isinstance(value, dict):
        return node.map_type != "atomic"
    return isinstance(value, list) and node.list_type in {"map", "set"}


def element(item: Any, node: Node) -> str:
    """The path element of an item of an associative list.

    :param node: of the list.
    """
    if node.list_type == "set":
        return f"v:{format_value(item)}"
    if len(node.list_keys) == 1 and isinstance(item, dict):
        named = item.get(node.list_keys[0])
        if type(named) is str:
            return _keyed(node.list_keys[0], named)
    keys = {}
    for key in sorted(node.list_keys):
        value = item.get(key) if isinstance(item, dict) else None
        if value is None and node.items is not None and (inner := node.items.properties.get(key)) is not None:
            value = decode_json(inner.default) if inner.default is not None else None
        keys[key] = value
    return f"k:{format_value(keys)}"


@lru_cache(maxsize=_REMEMBERED)
def _keyed(key: str, value: str) -> str:
    return f"k:{format_value({key: value})}"


def items_by_element(value: Any, node: Node) -> dict[str, Any]:
    """The items of an associative list by path element, in order."""
    return {element(item, node): item for item in value} if isinstance(value, list) else {}


def parts(value: Any, node: Node) -> Iterator[tuple[str, Any, Node]]:
    """Members or items of a granular value: path element, value, schema."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield f"f:{name}", member, child(node, name)
    else:
        for item in value:
            yield element(item, node), item, node.items or _OPEN


def applied_set(value: Any, node: Node) -> FieldSet:
    """The fields of an applied configuration: its leaves, and the items of associative lists."""
    found: set[Path] = set()
    _leaves(value, node, (), found)
    return found


def _leaves(value: Any, node: Node, path: Path, found: set[Path], *, dynamic: bool = False) -> None:
    if not is_granular(value, node) or (value == {} and path) or len(path) >= LEVELS:
        # An empty map is a field of its own; an empty associative list is not.
        found.add(path)
        return
    if path and (path[-1].startswith("k:") or dynamic):
        # Items of lists with keys are fields themselves, and so are members that a schema does not name.
        found.add(path)
    for name, inner, below in parts(value, node):
        unnamed = isinstance(value, dict) and name[2:] not in node.properties
        _leaves(inner, below, (*path, name), found, dynamic=unnamed and below is not METADATA)


def everything(value: Any, node: Node, path: Path, found: set[Path]) -> None:
    """All paths of a value, containers included."""
    if path:
        found.add(path)
    if not is_granular(value, node) or len(path) >= LEVELS:
        return
    if isinstance(value, list):
        for item in value:
            everything(item, node.items or _OPEN, (*path, element(item, node)), found)
        return
    for name, member in value.items():
        inner = (*path, f"f:{name}")
        if isinstance(member, dict | list):
            everything(member, child(node, name), inner, found)
        else:
            found.add(inner)


def compare(old: Any, new: Any, node: Node) -> Changes:
    """Compare two states of an object."""
    changes = Changes()
    _compare(old, new, node, (), changes)
    return changes


def _compare(old: Any, new: Any, node: Node, path: Path, changes: Changes) -> None:
    if old is new:
        return
    if type(old) is not type(new) or not is_granular(new, node) or len(path) >= LEVELS:
        if not json_equal(old, new):
            _replaced(old, new, node, path, changes)
        return
    if isinstance(new, dict):
        _compare_members(old, new, node, path, changes)
        return
    before = {name: (inner, below) for name, inner, below in parts(old, node)}
    for name, inner, below in parts(new, node):
        known = before.pop(name, None)
        if known is None:
            everything(inner, below, (*path, name), changes.added)
        elif not json_equal(known[0], inner):
            _compare(known[0], inner, below, (*path, name), changes)
    for name, (inner, below) in before.items():
        everything(inner, below, (*path, name), changes.removed)


def _compare_members(old: dict[str, Any], new: dict[str, Any], node: Node, path: Path, changes: Changes) -> None:
    for name, inner in new.items():
        known = old.get(name, _ABSENT)
        if known is inner:
            continue
        if known is _ABSENT:
            everything(inner, child(node, name), (*path, f"f:{name}"), changes.added)
        elif json_equal(known, inner):
            continue
        elif not isinstance(known, dict | list) and not isinstance(inner, dict | list):
            changes.modified.add((*path, f"f:{name}"))
        else:
            _compare(known, inner, child(node, name), (*path, f"f:{name}"), changes)
    for name, inner in old.items():
        if name not in new:
            everything(inner, child(node, name), (*path, f"f:{name}"), changes.removed)


def _replaced(old: Any, new: Any, node: Node, path: Path, changes: Changes) -> None:
    gone: set[Path] = set()
    come: set[Path] = set()
    everything(old, node, path, gone)
    everything(new, node, path, come)
    changes.modified |= gone & come
    changes.added |= come - gone
    changes.removed |= gone - come
