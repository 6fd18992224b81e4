"""Validation of structural schemas in CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fivespot.apiserver.status import FieldCause

from .cel_rules import rule_problems
from .defaults import prune
from .node import Node, compile_schema, go_pattern
from .validation import format_value, validate

__all__ = ["ROOT", "schema_problems"]

ROOT: Final = "spec.validation.openAPIV3Schema"
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_JUNCTIONS: Final = ("allOf", "anyOf", "oneOf")
_FORBIDDEN_INSIDE: Final = (
    "type", "default", "nullable", "additionalProperties", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-validations",
)  # fmt: skip


def schema_problems(raw: Mapping[str, Any], path: str = ROOT) -> list[FieldCause]:
    """Validate a schema as kube-apiserver does."""
    found: list[FieldCause] = []
    if raw.get("type") != "object":
        found.append(
            _cause(
                f"{path}.type",
                "FieldValueInvalid",
                f"Invalid value: {format_value(raw.get('type') or '')}: must be object at the root",
            )
        )
    _level(raw, path, found)
    if not found:
        _compiled(raw, path, found)
    return found


def _cause(path: str, reason: str, message: str) -> FieldCause:
    return FieldCause(path, reason, message)


def _forbid(path: str, words: str) -> FieldCause:
    return FieldCause(path, "FieldValueForbidden", f"Forbidden: {words}")


def _level(raw: Mapping[str, Any], path: str, found: list[FieldCause]) -> None:
    kind = raw.get("type") or ""
    if "$ref" in raw:
        found.append(_forbid(f"{path}.$ref", "$ref is not supported"))
        return
    open_type = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
    for junction in _JUNCTIONS:
        for number, inner in enumerate(raw.get(junction) or ()):
            _inside(inner, f"{path}.{junction}[{number}]", found, bool(raw.get("x-kubernetes-int-or-string")))
    if raw.get("not"):
        _inside(raw["not"], f"{path}.not", found, False)
    if not kind and not open_type:
        found.append(
            _cause(
                f"{path}.type", "FieldValueRequired", "Required value: must not be empty for specified object fields"
            )
        )
    elif kind and kind not in _TYPES:
        supported = ", ".join(f'"{name}"' for name in _TYPES)
        words = f"Unsupported value: {format_value(kind)}: supported values: {supported}"
        found.append(_cause(f"{path}.type", "FieldValueNotSupported", words))
    if raw.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(_forbid(f"{path}.uniqueItems", words))
    if raw.get("properties") and raw.get("additionalProperties") is not None:
        found.append(
            _forbid(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
        )
    _pattern(raw, path, found)
    _lists(raw, path, found)
    for name, inner in (raw.get("properties") or {}).items():
        _level(inner, f"{path}.properties[{name}]", found)
    if isinstance(raw.get("additionalProperties"), Mapping):
        _level(raw["additionalProperties"], f"{path}.additionalProperties", found)
    if isinstance(raw.get("items"), Mapping):
        _level(raw["items"], f"{path}.items", found)
    elif kind == "array":
        found.append(_cause(f"{path}.items", "FieldValueRequired", "Required value: must be specified"))


def _pattern(raw: Mapping[str, Any], path: str, found: list[FieldCause]) -> None:
    if raw.get("pattern"):
        try:
            go_pattern(raw["pattern"])
        except ValueError as error:
            words = (
                f"Invalid value: {format_value(raw['pattern'])}: must be a valid regular expression, but isn't: {error}"
            )
            found.append(_cause(f"{path}.pattern", "FieldValueInvalid", words))


def _lists(raw: Mapping[str, Any], path: str, found: list[FieldCause]) -> None:
    kind = raw.get("x-kubernetes-list-type")
    keys = raw.get("x-kubernetes-list-map-keys")
    if kind and raw.get("type") != "array":
        given = format_value(raw.get("type") or "")
        words = f"Invalid value: {given}: must be array if x-kubernetes-list-type is specified"
        found.append(_cause(f"{path}.type", "FieldValueInvalid", words))
    if kind and kind not in {"atomic", "set", "map"}:
        words = f'Unsupported value: {format_value(kind)}: supported values: "atomic", "map", "set"'
        found.append(_cause(f"{path}.x-kubernetes-list-type", "FieldValueNotSupported", words))
    if kind == "map" and not keys:
        words = "Required value: must not be empty if x-kubernetes-list-type is map"
        found.append(_cause(f"{path}.x-kubernetes-list-map-keys", "FieldValueRequired", words))
    if keys and kind == "map":
        items = raw.get("items") or {}
        for number, key in enumerate(keys):
            inner = (items.get("properties") or {}).get(key)
            if inner is None:
                words = f"Invalid value: {format_value(key)}: entries must all be names of item properties"
                found.append(_cause(f"{path}.x-kubernetes-list-map-keys[{number}]", "FieldValueInvalid", words))
            elif key not in (items.get("required") or ()) and inner.get("default") is None:
                where = f"{path}.items.properties[{key}].default"
                words = (
                    "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
                    "required property"
                )
                found.append(_cause(where, "FieldValueRequired", words))


def _inside(raw: Mapping[str, Any], path: str, found: list[FieldCause], int_or_string: bool) -> None:
    """Validate a schema inside allOf, anyOf, oneOf or not, where only value validations are allowed."""
    for name in _FORBIDDEN_INSIDE:
        if raw.get(name) is None or (name == "type" and int_or_string and raw[name] in {"integer", "string"}):
            continue
        found.append(_forbid(f"{path}.{name}", "must be empty to be structural"))
        if name == "type" and raw[name] == "null":
            found.append(_forbid(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    _pattern(raw, path, found)
    for junction in _JUNCTIONS:
        for number, inner in enumerate(raw.get(junction) or ()):
            _inside(inner, f"{path}.{junction}[{number}]", found, int_or_string)
    for name, inner in (raw.get("properties") or {}).items():
        _inside(inner, f"{path}.properties[{name}]", found, False)
    if isinstance(raw.get("items"), Mapping):
        _inside(raw["items"], f"{path}.items", found, False)


def _compiled(raw: Mapping[str, Any], path: str, found: list[FieldCause]) -> None:
    """Validate defaults and rules of a schema that is structural."""
    try:
        node = compile_schema(raw)
    except (ValueError, TypeError, AttributeError) as error:
        found.append(FieldCause(path, "FieldValueInvalid", f"Invalid value: {format_value(str(error))}: not a schema"))
        return
    _values(raw, node, path, found)


def _values(raw: Mapping[str, Any], node: Node, path: str, found: list[FieldCause]) -> None:
    if raw.get("default") is not None:
        found.extend(_default_problems(raw["default"], node, f"{path}.default"))
    found.extend(rule_problems(node, path))
    for name, inner in node.properties.items():
        _values(inner.raw, inner, f"{path}.properties[{name}]", found)
    if node.additional is not None:
        _values(node.additional.raw, node.additional, f"{path}.additionalProperties", found)
    if node.items is not None:
        _values(node.items.raw, node.items, f"{path}.items", found)


def _default_problems(default: Any, node: Node, path: str) -> list[FieldCause]:
    shown = format_value(default)
    unknown: list[str] = []
    prune(default if isinstance(default, dict | list) else None, node, "", unknown)
    causes = validate(default, node, path)
    if unknown:
        causes.append(FieldCause(path, "FieldValueInvalid", f"Invalid value: {shown}: must not have unknown fields"))
    return causes
