"""The JSONPath of printer columns, selectable fields and scale paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

__all__ = ["JsonPathError", "find", "put"]

Step = Callable[[Any], Iterable[Any]]

_STEP: Final = re.compile(
    r"""\.\.?(?P<name>[A-Za-z_$][\w$-]*(?:\\.[\w$-]*)*|\*)"""
    r"""|\[(?P<quote>['"])(?P<quoted>(?:\\.|(?!(?P=quote)).)*)(?P=quote)\]"""
    r"""|\[(?P<index>-?\d+)\]|(?P<star>\[\*\])|\[\?\((?P<filter>.*?)\)\]"""
)
_FILTER: Final = re.compile(r"""\s*@(?P<path>[^=!<>]*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+?)\s*)?""")


class JsonPathError(ValueError):
    """The path is invalid."""


def find(value: Any, path: str) -> Any:
    """The first value at a path; None when there is none.

    :raises JsonPathError: the path is invalid.
    """
    level: list[Any] = [value]
    for step in _steps(path):
        level = [inner for outer in level for inner in step(outer)]
    return level[0] if level else None


def put(value: dict[str, Any], path: str, new: Any) -> None:
    """Set the value at a path of plain names, creating missing objects."""
    names = path.strip(".").split(".")
    for name in names[:-1]:
        value = value.setdefault(name, {})
    value[names[-1]] = new


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[Step, ...]:
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps: list[Step] = []
    position = 0
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            raise JsonPathError(f"unrecognized character in path {path!r} at {position}")
        steps.append(_step(found))
        position = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["star"] or found["name"] == "*":
        return _all
    if found["index"] is not None:
        index = int(found["index"])
        return lambda value: value[index : index + 1 or None] if isinstance(value, list) else ()
    if found["filter"] is not None:
        return _selecting(found["filter"])
    name = re.sub(r"\\(.)", r"\1", found["name"] if found["name"] is not None else found["quoted"])
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _all(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, dict) else ()


def _selecting(condition: str) -> Step:
    found = _FILTER.fullmatch(condition)
    if found is None:
        raise JsonPathError(f"unrecognized filter {condition!r}")
    path, operator, wanted = found["path"], found["operator"], _literal(found["value"])

    def holds(item: Any) -> bool:
        held = find(item, path) if path else item
        if operator is None:
            return held is not None
        if operator in {"==", "!="}:
            return (held == wanted) is (operator == "==")
        try:
            return bool({"<": held < wanted, "<=": held <= wanted, ">": held > wanted, ">=": held >= wanted}[operator])
        except TypeError:
            return False

    return lambda value: [item for item in value if holds(item)] if isinstance(value, list) else ()


def _literal(text: str | None) -> Any:
    if text is None:
        return None
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in {"true", "false"}:
        return text == "true"
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text
