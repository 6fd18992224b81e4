"""JSON of any depth that kube-apiserver accepts.

msgspec is bounded by Python's recursion limit. Values that are nested more deeply are encoded and decoded by slower
loops here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import msgspec

__all__ = ["DepthError", "decode_json", "duplicate_members", "encode_json", "go_numbers", "json_equal"]

_EXPONENT_FROM: Final = 1e21
"""From here on Go writes numbers with an exponent."""
DEPTH_LIMIT: Final = 10_000
"""Levels of a JSON text that Go's decoder accepts."""
_TOKEN: Final = re.compile(rb'[\[\]{}]|"(?:[^"\\]|\\.)*"', re.DOTALL)
_TEXT_TOKEN: Final = re.compile(r'\s*([\[\]{},:]|"(?:[^"\\]|\\.)*"|[^\s\[\]{},:"]+)', re.DOTALL)
_END: Final[dict[type[Any], str]] = {list: "]", dict: "}"}


class DepthError(ValueError):
    """The text is nested too deeply."""


def depth_of(text: bytes | str) -> int:
    """The levels of a JSON text, counted up to one above the limit."""
    depth = deepest = 0
    for found in _TOKEN.finditer(text.encode() if isinstance(text, str) else text):
        first = found.group()[:1]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
            if depth > DEPTH_LIMIT:
                break
        elif first in b"]}":
            depth -= 1
    return deepest


def decode_json(text: bytes | str) -> Any:
    """Decode a JSON text.

    :raises DepthError: it has more than :data:`DEPTH_LIMIT` levels.
    :raises ValueError: it is not valid JSON.
    """
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        if depth_of(text) > DEPTH_LIMIT:
            raise DepthError("exceeded max depth") from None
    return _Decoder(text.decode() if isinstance(text, bytes) else text).decode()


class _Decoder:
    """A decoder with a stack of its own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._outer: list[tuple[Any, str]] = []
        """The containers around a value, each with the key of the value in it."""

    def decode(self) -> Any:
        while True:
            value = self._value()
            while self._outer:
                container, key = self._outer.pop()
                if isinstance(container, list):
                    container.append(value)
                else:
                    container[key] = value
                after = self._next()
                if after == ",":
                    self._outer.append((container, self._key() if isinstance(container, dict) else ""))
                    break
                if after != _END[type(container)]:
                    raise ValueError("JSON is malformed: expected a comma or the end of an array or object")
                value = container
            else:
                if self._peek():
                    raise ValueError("JSON is malformed: trailing characters")
                return value

    def _value(self) -> Any:
        """The next scalar or empty container; containers around it are opened."""
        while True:
            word = self._next()
            if word not in {"[", "{"}:
                return _scalar(word)
            container: Any = [] if word == "[" else {}
            if self._peek() == _END[type(container)]:
                self._next()
                return container
            self._outer.append((container, self._key() if word == "{" else ""))

    def _next(self) -> str:
        found = _TEXT_TOKEN.match(self._text, self._position)
        if found is None:
            return ""
        self._position = found.end()
        return found.group(1)

    def _peek(self) -> str:
        found = _TEXT_TOKEN.match(self._text, self._position)
        return "" if found is None else found.group(1)

    def _key(self) -> str:
        name = _scalar(self._next())
        if not isinstance(name, str) or self._next() != ":":
            raise ValueError("JSON is malformed: expected a member of an object")
        return name


def _scalar(word: str) -> Any:
    return msgspec.json.decode(word.encode())


def encode_json(value: Any, *, ordered: bool = False) -> bytes:
    """Encode a value.

    :param ordered: with sorted keys.
    """
    try:
        return msgspec.json.encode(value, order="sorted" if ordered else None)
    except RecursionError:
        return b"".join(_pieces(value, ordered=ordered))


def _pieces(value: Any, *, ordered: bool) -> Iterator[bytes]:
    stack: list[Any] = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, _Piece):
            yield each.text
        elif isinstance(each, dict):
            stack.append(_Piece(b"}"))
            items = list(each.items())
            if ordered:
                items.sort()
            for number, (name, member) in reversed(list(enumerate(items))):
                stack += [member, _Piece(b"%b%b:" % (b"," if number else b"", msgspec.json.encode(name)))]
            yield b"{"
        elif isinstance(each, list):
            stack.append(_Piece(b"]"))
            for number, member in reversed(list(enumerate(each))):
                stack.append(member)
                if number:
                    stack.append(_Piece(b","))
            yield b"["
        else:
            yield msgspec.json.encode(each)


class _Piece:
    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


def json_equal(old: Any, new: Any) -> bool:
    """Whether two values are the same JSON; in Python True equals 1, and 1 equals 1.0."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    try:
        if old != new:
            return False
    except RecursionError:
        pass
    return not isinstance(new, dict | list) or encode_json(old, ordered=True) == encode_json(new, ordered=True)


def go_numbers(value: Any) -> Any:
    """Convert numbers as decoding and encoding them in Go does, in place where possible.

    Integral numbers are written without a fraction, and integers beyond 64 bits lose precision.
    """
    whole = [value]
    left: list[Any] = [whole]
    while left:
        container = left.pop()
        for key, member in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(member, dict | list):
                left.append(member)
            elif type(member) is float or (type(member) is int and not -(2**63) <= member < 2**63):
                container[key] = _go_number(member)
    return whole[0]


def _go_number(number: float) -> float:
    as_float = float(number)
    return int(Decimal(repr(as_float))) if as_float.is_integer() and abs(as_float) < _EXPONENT_FROM else as_float


OPERATION_FIELDS: Final = frozenset({"op", "path", "from", "value"})
"""Fields of an operation of a JSON patch."""


def duplicate_members(text: str) -> list[str]:
    """The paths of members that an object has more than once."""
    try:
        return _duplicates(text)
    except RecursionError:
        return []


def _duplicates(text: str) -> list[str]:
    seen_twice = False

    def remember(pairs: list[tuple[str, Any]]) -> Any:
        nonlocal seen_twice
        made = dict(pairs)
        seen_twice = seen_twice or len(made) != len(pairs)
        return made

    # The first pass is cheap and nearly always finds none.
    json.loads(text, object_pairs_hook=remember)
    if not seen_twice:
        return []
    found: list[str] = []
    _walk_pairs(json.loads(text, object_pairs_hook=_Pairs), "", found)
    return list(dict.fromkeys(found))


def operation_complaints(text: str) -> tuple[list[str], list[str]]:
    """Complaints about the operations of a JSON patch, and the paths of duplicate members in what they write."""
    try:
        operations = json.loads(text, object_pairs_hook=_Pairs)
        complaints: list[str] = []
        written: list[str] = []
        for number, operation in enumerate(operations):
            if isinstance(operation, _Pairs):
                _check_operation(operation, f"[{number}]", complaints, written)
    except RecursionError:
        return [], []
    return complaints, written


def _check_operation(operation: _Pairs, path: str, complaints: list[str], written: list[str]) -> None:
    names: set[str] = set()
    for name, member in operation:
        at = f"{path}.{name}"
        if name in names:
            complaints.append(f'json patch duplicate field "{at}"')
        elif name not in OPERATION_FIELDS:
            complaints.append(f'json patch unknown field "{at}"')
        names.add(name)
        inner: list[str] = []
        _walk_pairs(member, at, inner)
        complaints += [f'json patch duplicate field "{each}"' for each in inner]
    fields = dict(operation)
    if fields.get("op") in {"add", "replace"} and isinstance(fields.get("path"), str):
        steps = (step.replace("~1", "/").replace("~0", "~") for step in fields["path"].split("/")[1:])
        shown = "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in steps)
        _walk_pairs(fields.get("value"), shown.lstrip("."), written)


class _Pairs(list[tuple[str, Any]]):
    """The members of an object in the order of the text."""


def _walk_pairs(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        names: set[str] = set()
        for name, member in value:
            inner = f"{path}.{name}" if path else name
            if name in names:
                found.append(inner)
            names.add(name)
            _walk_pairs(member, inner, found)
    elif isinstance(value, list):
        for number, member in enumerate(value):
            _walk_pairs(member, f"{path}[{number}]", found)
