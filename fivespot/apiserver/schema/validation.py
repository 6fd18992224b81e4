"""Validation of values, with kube-apiserver's reasons and messages."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, Final

from fivespot.apiserver.json_codec import encode_json, json_equal
from fivespot.apiserver.status import FieldCause

from .formats import FORMATS
from .node import Node

__all__ = ["ABSENT", "BLOCKED", "is_blocking", "lists_alike", "validate"]

_JSON_TYPES: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    NoneType: "null",
}
ABSENT: Final = object()
"""Stands for the old value of a member that did not exist."""

BLOCKED: Final = FieldCause(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)
_BLOCKING: Final = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)


def is_blocking(causes: list[FieldCause]) -> bool:
    """Whether the errors keep CEL rules from being evaluated."""
    return any(cause.reason in _BLOCKING for cause in causes)


def validate(value: Any, node: Node, path: str, old: Any = ABSENT) -> list[FieldCause]:
    """Validate a value.

    :param old: the old value: unchanged parts are not checked again (ratcheting, KEP-4008), so that a stricter schema
        does not block updates of existing objects.
    """
    causes: list[FieldCause] = []
    _check(value, node, path, old, causes)
    return causes


def _check(value: Any, node: Node, path: str, old: Any, causes: list[FieldCause]) -> None:
    if old is not ABSENT and json_equal(old, value):
        return
    if value is None:
        if not node.nullable and (node.type or node.int_or_string):
            causes.append(_wrong_type(path, _wanted(node), "null"))
        return
    found = json_type(value)
    if not _fits(value, found, node):
        numeric = found in {"integer", "number"}
        wanted, shown = _wanted(node), "number" if node.type == "integer" and numeric else found
        if node.format in FORMATS or node.format in _NUMERIC_FORMATS:
            # Values are compared with the format then, by the names of their Go types.
            go_type = {"boolean": "", "object": "", "integer": "int64", "number": "float64"}.get(found)
            wanted, shown = (wanted, shown) if go_type is None else (node.format, go_type)
            if node.type == "integer" and numeric:
                shown = "float64"
        causes.append(_wrong_type(path, wanted, shown))
        if node.type == "integer" and numeric:
            causes.append(_out_of_range(node, path))
        return
    if found == "object":
        if node.enum:
            _check_plain(value, node, path, causes)
        _check_object(value, node, path, old, causes)
    else:
        if node.enum or node.limits or node.format or node.pattern is not None:
            _check_plain(value, node, path, causes)
        if found == "array":
            _check_array(value, node, path, old, causes)
    if node.all_of or node.any_of or node.one_of or node.negated is not None:
        _check_junctions(value, node, path, causes)


def json_type(value: Any) -> str:
    """The JSON type of a decoded value."""
    return _JSON_TYPES[type(value)]


def _wanted(node: Node) -> str:
    return "integer,string" if node.int_or_string else node.type


def _fits(value: Any, found: str, node: Node) -> bool:
    if node.int_or_string:
        return found == "string" or (found == "integer" and _is_int64(value))
    if not node.type or found == node.type:
        return found != "integer" or node.type != "integer" or _is_int64(value)
    return node.type == "number" and found == "integer"


def _is_int64(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _wrong_type(path: str, wanted: str, found: str) -> FieldCause:
    message = f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'
    return FieldCause(path, "FieldValueTypeInvalid", message)


def _bad(path: str, value: Any, words: str, reason: str = "FieldValueInvalid") -> FieldCause:
    return FieldCause(path, reason, f"Invalid value: {format_value(value)}: {path} in body {words}")


def format_value(value: Any) -> str:
    """Format a value as Go's field errors do."""
    return encode_json(value).decode()


def _number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _check_plain(value: Any, node: Node, path: str, causes: list[FieldCause]) -> None:
    if node.enum and not any(json_equal(choice, value) for choice in node.enum):
        supported = ", ".join(format_value(choice) for choice in node.enum)
        message = f"Unsupported value: {format_value(value)}: supported values: {supported}"
        causes.append(FieldCause(path, "FieldValueNotSupported", message))
    if isinstance(value, str):
        _check_text(value, node, path, causes)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if node.limits:
            _check_number(value, node, path, causes)
        if (node.type, node.format) in _RANGES and abs(value) > _RANGES[node.type, node.format] - (value > 0):
            causes.append(_out_of_range(node, path))


_NUMERIC_FORMATS: Final = frozenset({"int32", "int64", "float", "double"})
_RANGES: Final[Mapping[tuple[str, str], float]] = {
    ("integer", "int32"): 2**31,
    ("number", "float"): 3.40282346638528859811704183484516925440e38,
}


def _out_of_range(node: Node, path: str) -> FieldCause:
    form = f"with format {node.format}" if node.format else "(default format)"
    words = f'Invalid value: "": Checked value must be of type {node.type} {form} in {path}'
    return FieldCause("<nil>", "FieldValueInvalid", words)


def _check_text(value: str, node: Node, path: str, causes: list[FieldCause]) -> None:
    limits = node.limits
    if limits:
        size = len(value)
        if (most := limits.get("maxLength")) is not None and size > most:
            causes.append(FieldCause(path, "FieldValueTooLong", f"Too long: may not be more than {most} bytes"))
            return
        if (least := limits.get("minLength")) is not None and size < least:
            causes.append(_bad(path, value, f"should be at least {least} chars long"))
    if node.pattern is not None and not node.pattern.search(value):
        causes.append(_bad(path, value, f"should match '{node.raw['pattern']}'"))
    if node.format and not (check := FORMATS.get(node.format, _any_text))(value):
        assert check is not _any_text
        causes.append(
            _bad(path, value, f"must be of type {node.format}: {format_value(value)}", "FieldValueTypeInvalid")
        )


def _any_text(text: str) -> bool:
    return True


def _check_number(value: float, node: Node, path: str, causes: list[FieldCause]) -> None:
    limits = node.limits
    if (most := limits.get("maximum")) is not None:
        if limits.get("exclusiveMaximum"):
            if value >= most:
                causes.append(_bad(path, value, f"should be less than {_number(most)}"))
        elif value > most:
            causes.append(_bad(path, value, f"should be less than or equal to {_number(most)}"))
    if (least := limits.get("minimum")) is not None:
        if limits.get("exclusiveMinimum"):
            if value <= least:
                causes.append(_bad(path, value, f"should be greater than {_number(least)}"))
        elif value < least:
            causes.append(_bad(path, value, f"should be greater than or equal to {_number(least)}"))
    factor = limits.get("multipleOf")
    if factor and abs(value / factor - round(value / factor)) > 1e-9:
        causes.append(_bad(path, value, f"should be a multiple of {_number(factor)}"))


def _check_object(value: dict[str, Any], node: Node, path: str, old: Any, causes: list[FieldCause]) -> None:
    if limits := node.limits:
        if (most := limits.get("maxProperties")) is not None and len(value) > most:
            words = f"Too many: {len(value)}: must have at most {most} items"
            causes.append(FieldCause(path, "FieldValueTooMany", words))
        if (least := limits.get("minProperties")) is not None and len(value) < least:
            causes.append(_bad(path, value, f"should have at least {least} properties"))
    causes.extend([
        FieldCause(_join(path, name), "FieldValueRequired", "Required value")
        for name in node.required
        if name not in value
    ])  # fmt: skip
    before: dict[str, Any] = old if isinstance(old, dict) else {}
    for name, member in value.items():
        inner = node.properties.get(name) or node.additional
        if inner is not None:
            # Most members are plain strings without checks.
            if inner.scalar is type(member):
                continue
            known = before.get(name, ABSENT)
            if known is not member:
                _check(member, inner, _join(path, name), known, causes)
        elif node.closed:
            causes.append(FieldCause(_join(path, name), "FieldValueForbidden", f"Forbidden: {path} in body is closed"))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check_array(value: list[Any], node: Node, path: str, old: Any, causes: list[FieldCause]) -> None:
    limits = node.limits
    if (most := limits.get("maxItems")) is not None and len(value) > most:
        words = f"Too many: {len(value)}: must have at most {most} items"
        causes.append(FieldCause(path, "FieldValueTooMany", words))
    if (least := limits.get("minItems")) is not None and len(value) < least:
        causes.append(_bad(path, value, f"should have at least {least} items"))
    if node.items is not None:
        before = lists_alike(node, old)
        for number, member in enumerate(value):
            inner = ABSENT if before is None else before.get(_identity(node, member), ABSENT)
            _check(member, node.items, f"{path}[{number}]", inner, causes)
    if node.list_type in {"set", "map"}:
        _check_unique(value, node, path, causes)


def lists_alike(node: Node, old: Any) -> dict[str, Any] | None:
    """The items of the old list by key; None when the list has no keys."""
    if node.list_type != "map" or not isinstance(old, list):
        return None
    return {_identity(node, item): item for item in old}


def _identity(node: Node, item: Any) -> str:
    if node.list_type == "map" and isinstance(item, dict):
        if len(node.list_keys) == 1 and type(named := item.get(node.list_keys[0])) is str:
            # The common case; other keys are JSON and begin with a brace.
            return f"={named}"
        return format_value({key: item.get(key) for key in node.list_keys})
    return format_value(item)


identity = _identity


def _check_unique(value: list[Any], node: Node, path: str, causes: list[FieldCause]) -> None:
    if len({_identity(node, item) for item in value}) == len(value):
        return
    seen: set[str] = set()
    reported: set[str] = set()
    for number, item in enumerate(value):
        if node.list_type == "map":
            if not isinstance(item, dict):
                continue
            key = format_value({name: item[name] for name in node.list_keys if name in item})
        else:
            key = format_value(item)
        if key in seen and key not in reported:
            causes.append(FieldCause(f"{path}[{number}]", "FieldValueDuplicate", f"Duplicate value: {key}"))
            reported.add(key)
        seen.add(key)


def _check_junctions(value: Any, node: Node, path: str, causes: list[FieldCause]) -> None:
    for inner in node.all_of:
        _check(value, inner, path, ABSENT, causes)
    if node.any_of and not any(not validate(value, inner, path) for inner in node.any_of):
        _junction(f'"{path}" must validate at least one schema (anyOf)', causes)
        _first_of(value, node.any_of, path, causes)
    if node.one_of:
        valid = sum(not validate(value, inner, path) for inner in node.one_of)
        words = f'"{path}" must validate one and only one schema (oneOf). Found '
        if valid == 0:
            _junction(words + "none valid", causes)
            _first_of(value, node.one_of, path, causes)
        elif valid > 1:
            _junction(words + f"{valid} valid alternatives", causes)
    if node.negated is not None and not validate(value, node.negated, path):
        _junction(f'"{path}" must not validate the schema (not)', causes)


def _junction(words: str, causes: list[FieldCause]) -> None:
    causes.append(FieldCause("<nil>", "FieldValueInvalid", f'Invalid value: "": {words}'))


def _first_of(value: Any, nodes: tuple[Node, ...], path: str, causes: list[FieldCause]) -> None:
    """Report the errors of the closest alternative."""
    found = [validate(value, inner, path) for inner in nodes]
    fewest = min(len(wrong) for wrong in found)
    causes += next(wrong for wrong in found if len(wrong) == fewest)
