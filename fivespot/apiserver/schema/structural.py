"""Validation of structural schemas in CustomResourceDefinitions."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from fivespot.apiserver.status import FieldCause

from .cel_check import rule_problems
from .defaults import prune
from .formats import is_format
from .node import Node, compile_schema, go_pattern
from .validation import format_value, validate

__all__ = ["ROOT", "schema_problems", "schema_warnings"]

ROOT: Final = "spec.validation.openAPIV3Schema"
Raw = Mapping[str, Any]
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_JUNCTIONS: Final = ("allOf", "anyOf", "oneOf")
_FORBIDDEN: Final = ("definitions", "dependencies", "patternProperties", "additionalItems", "id")
_FORBIDDEN_INSIDE: Final = (
    "type", "default", "nullable", "title", "description", "additionalProperties",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-validations",
)  # fmt: skip
_METADATA_PROPERTIES: Final = frozenset({"name", "generateName"})
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]


def schema_problems(raw: Raw, path: str = ROOT) -> list[FieldCause]:
    """Validate a schema as kube-apiserver does."""
    found: list[FieldCause] = []
    if _has_schema_member(raw):
        return [_cause(path, "FieldValueInvalid", "$schema is not supported")]
    if raw.get("nullable"):
        found.append(_forbid(f"{path}.nullable", "nullable cannot be true at the root"))
    if raw.get("type") and raw["type"] != "object":
        found.append(
            _cause(f"{path}.type", "FieldValueInvalid", f"{format_value(raw['type'])}: must be object at the root")
        )
    _level(raw, path, found)
    _type_members(raw, path, found)
    if not found:
        _compiled(raw, path, found)
    return found


def schema_warnings(raw: Raw) -> list[str]:
    """Warnings about members of a schema that have no effect."""
    found: list[str] = []
    form = raw.get("format")
    if form and not is_format(form, raw.get("type") or ""):
        found.append(f'unrecognized format "{form}"')
    items = raw.get("items")
    if (
        raw.get("x-kubernetes-list-type") == "set"
        and isinstance(items, Mapping)
        and items.get("type") in {"array", "object"}
    ):
        found.append(
            f'x-kubernetes-list-type: set for items of type "{items["type"]}" is not supported by server-side apply or '
            "CEL validation rules"
        )
    for inner in (raw.get("properties") or {}).values():
        found += schema_warnings(inner)
    for name in ("items", "additionalProperties"):
        if isinstance(raw.get(name), Mapping):
            found += schema_warnings(raw[name])
    return found


def _cause(path: str, reason: str, message: str) -> FieldCause:
    prefixes = {
        "FieldValueInvalid": "Invalid value: ",
        "FieldValueRequired": "Required value: ",
        "FieldValueNotSupported": "Unsupported value: ",
    }
    return FieldCause(path, reason, prefixes[reason] + message)


def _forbid(path: str, words: str) -> FieldCause:
    return FieldCause(path, "FieldValueForbidden", f"Forbidden: {words}")


def _has_schema_member(raw: Raw) -> bool:
    below = [raw[name] for name in ("items", "additionalProperties", "not") if isinstance(raw.get(name), Mapping)]
    return bool(raw.get("$schema")) or any(map(_has_schema_member, [*(raw.get("properties") or {}).values(), *below]))


def _level(raw: Raw, path: str, found: list[FieldCause]) -> None:
    kind = raw.get("type") or ""
    if "$ref" in raw:
        found.append(_forbid(f"{path}.$ref", "$ref is not supported"))
        return
    found += [_forbid(f"{path}.{name}", f"{name} is not supported") for name in _FORBIDDEN if name in raw]
    _junctions(raw, path, found)
    _type(raw, kind, path, found)
    if raw.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(_forbid(f"{path}.uniqueItems", words))
    _members(raw, kind, path, found)
    _pattern(raw, path, found)
    _lists(raw, kind, path, found)
    for name, inner in (raw.get("properties") or {}).items():
        _level(inner, f"{path}.properties[{name}]", found)
    if raw.get("x-kubernetes-embedded-resource"):
        _type_members(raw, path, found, root=False)
    if isinstance(raw.get("additionalProperties"), Mapping):
        _level(raw["additionalProperties"], f"{path}.additionalProperties", found)
    if isinstance(raw.get("items"), Mapping):
        _level(raw["items"], f"{path}.items", found)
    elif isinstance(raw.get("items"), list):
        found.append(_forbid(f"{path}.items", "items must be a schema object and not an array"))
    elif kind == "array":
        found.append(_cause(f"{path}.items", "FieldValueRequired", "must be specified"))


def _type(raw: Raw, kind: str, path: str, found: list[FieldCause]) -> None:
    open_type = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
    embedded = raw.get("x-kubernetes-embedded-resource")
    if not kind and (not open_type or embedded):
        found.append(_cause(f"{path}.type", "FieldValueRequired", "must not be empty for specified object fields"))
    elif kind and kind not in _TYPES:
        supported = ", ".join(f'"{name}"' for name in _TYPES)
        words = f"{format_value(kind)}: supported values: {supported}"
        found.append(_cause(f"{path}.type", "FieldValueNotSupported", words))
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        words = "false: must be true or undefined"
        found.append(_cause(f"{path}.x-kubernetes-preserve-unknown-fields", "FieldValueInvalid", words))
    if embedded and kind and kind != "object":
        words = f"{format_value(kind)}: must be object if x-kubernetes-embedded-resource is true"
        found.append(_cause(f"{path}.type", "FieldValueInvalid", words))
    if embedded and kind and not raw.get("x-kubernetes-preserve-unknown-fields") and not raw.get("properties"):
        words = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        found.append(_cause(f"{path}.properties", "FieldValueRequired", words))


def _members(raw: Raw, kind: str, path: str, found: list[FieldCause]) -> None:
    additional = raw.get("additionalProperties")
    if raw.get("properties") and additional is not None and additional is not True:
        words = "additionalProperties and properties are mutual exclusive"
        found.append(_forbid(f"{path}.additionalProperties", words))
    elif raw.get("x-kubernetes-embedded-resource") and additional is not None:
        words = "must not be used if x-kubernetes-embedded-resource is set"
        found.append(_forbid(f"{path}.additionalProperties", words))
    map_type = raw.get("x-kubernetes-map-type")
    if map_type and kind != "object":
        words = f"{format_value(kind)}: must be object if x-kubernetes-map-type is specified"
        found.append(_cause(f"{path}.type", "FieldValueInvalid", words))
    if map_type and map_type not in {"atomic", "granular"}:
        words = f'{format_value(map_type)}: supported values: "atomic", "granular"'
        found.append(_cause(f"{path}.x-kubernetes-map-type", "FieldValueNotSupported", words))


def _type_members(raw: Raw, path: str, found: list[FieldCause], *, root: bool = True) -> None:
    """Validate the schemas of apiVersion, kind and metadata of a resource."""
    properties = raw.get("properties") or {}
    for name, expected in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        if name in properties and (given := properties[name].get("type") or "") != expected:
            where = f"{path}.properties[{name}].type"
            found.append(_cause(where, "FieldValueInvalid", f"{format_value(given)}: must be {expected}"))
    metadata = properties.get("metadata")
    if not root or not metadata or metadata.get("type") != "object":
        return
    where = f"{path}.properties[metadata]"
    named = metadata.get("properties") or {}
    if set(metadata) - {"type", "properties", "description"} or set(named) - _METADATA_PROPERTIES:
        words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        found.append(_forbid(where, words))
    for name, inner in named.items():
        if "default" in inner:
            found.append(_forbid(f"{where}.properties[{name}].default", "must not be set in metadata"))


def _pattern(raw: Raw, path: str, found: list[FieldCause]) -> None:
    if raw.get("pattern"):
        try:
            go_pattern(raw["pattern"])
        except ValueError as error:
            words = f"{format_value(raw['pattern'])}: must be a valid regular expression, but isn't: {error}"
            found.append(_cause(f"{path}.pattern", "FieldValueInvalid", words))


def _lists(raw: Raw, kind: str, path: str, found: list[FieldCause]) -> None:
    list_type = raw.get("x-kubernetes-list-type")
    keys = raw.get("x-kubernetes-list-map-keys")
    items: Raw = raw["items"] if isinstance(raw.get("items"), Mapping) else {}
    where = f"{path}.x-kubernetes-list-type"
    if list_type and kind != "array":
        words = f"{format_value(kind)}: must be array if x-kubernetes-list-type is specified"
        found.append(_cause(f"{path}.type", "FieldValueInvalid", words))
    if list_type and list_type not in {"atomic", "set", "map"}:
        words = f'{format_value(list_type)}: supported values: "atomic", "map", "set"'
        found.append(_cause(where, "FieldValueNotSupported", words))
    if keys and not list_type:
        found.append(_cause(where, "FieldValueRequired", "must be map if x-kubernetes-list-map-keys is non-empty"))
    elif keys and list_type != "map":
        words = f"{format_value(list_type)}: must be map if x-kubernetes-list-map-keys is non-empty"
        found.append(_cause(where, "FieldValueInvalid", words))
    if list_type in {"set", "map"} and items.get("nullable"):
        words = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        found.append(_forbid(f"{path}.items.nullable", words))
    if list_type == "set":
        _set(items, path, found)
    elif list_type == "map":
        _map(keys or [], items, path, found)


def _set(items: Raw, path: str, found: list[FieldCause]) -> None:
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        words = "must be atomic as item of a list with x-kubernetes-list-type=set"
        given = format_value(items.get("x-kubernetes-map-type"))
        found.append(_cause(f"{path}.items.x-kubernetes-map-type", "FieldValueInvalid", f"{given}: {words}"))
    if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in {None, "atomic"}:
        words = "must be atomic as item of a list with x-kubernetes-list-type=set"
        given = format_value(items["x-kubernetes-list-type"])
        found.append(_cause(f"{path}.items.x-kubernetes-list-type", "FieldValueInvalid", f"{given}: {words}"))


def _map(keys: list[str], items: Raw, path: str, found: list[FieldCause]) -> None:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        found.append(_cause(where, "FieldValueRequired", "must not be empty if x-kubernetes-list-type is map"))
    if items.get("type") != "object":
        words = (
            f"{format_value(items.get('type') or '')}: must be object if parent array's x-kubernetes-list-type is map"
        )
        found.append(_cause(f"{path}.items.type", "FieldValueInvalid", words))
        return
    if len(set(keys)) < len(keys):
        found.append(_cause(where, "FieldValueInvalid", f"{format_value(keys)}: duplicate keys"))
    known = items.get("properties") or {}
    if not known:
        words = f"{format_value(keys)}: entries must all be names of item properties"
        found.append(_cause(where, "FieldValueInvalid", words))
        return
    for key in keys:
        inner = known.get(key)
        at = f"{path}.items.properties[{key}]"
        if inner is None:
            words = f"{format_value(key)}: entries must all be names of item properties"
            found.append(_cause(where, "FieldValueInvalid", words))
            continue
        if inner.get("type") in {"array", "object"}:
            words = (
                f"{format_value(inner['type'])}: must be a scalar type if parent array's x-kubernetes-list-type is map"
            )
            found.append(_cause(f"{at}.type", "FieldValueInvalid", words))
        if inner.get("nullable"):
            found.append(_forbid(f"{at}.nullable", "this property is in x-kubernetes-list-map-keys"))
        if key not in (items.get("required") or ()) and inner.get("default") is None:
            words = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            found.append(_cause(f"{at}.default", "FieldValueRequired", words))


def _junctions(raw: Raw, path: str, found: list[FieldCause]) -> None:
    int_or_string = bool(raw.get("x-kubernetes-int-or-string"))
    # The only types inside a junction: the standard form of int-or-string, also as the first of several.
    for junction in _JUNCTIONS:
        alternatives = raw.get(junction) or []
        if int_or_string and junction == "anyOf" and alternatives == _INT_OR_STRING:
            continue
        for number, inner in enumerate(alternatives):
            if int_or_string and junction == "allOf" and number == 0 and inner == {"anyOf": _INT_OR_STRING}:
                continue
            _inside(inner, f"{path}.{junction}[{number}]", found)
    if raw.get("not"):
        _inside(raw["not"], f"{path}.not", found)


def _inside(raw: Raw, path: str, found: list[FieldCause]) -> None:
    """Validate a schema inside allOf, anyOf, oneOf or not, where only value validations are allowed."""
    for name in _FORBIDDEN_INSIDE:
        if raw.get(name) is None:
            continue
        found.append(_forbid(f"{path}.{name}", "must be empty to be structural"))
        if name == "type" and raw[name] not in _TYPES:
            supported = ", ".join(f'"{each}"' for each in _TYPES)
            words = f"{format_value(raw[name])}: supported values: {supported}"
            found.append(_cause(f"{path}.type", "FieldValueNotSupported", words))
    _pattern(raw, path, found)
    for junction in _JUNCTIONS:
        for number, inner in enumerate(raw.get(junction) or ()):
            _inside(inner, f"{path}.{junction}[{number}]", found)
    for name, inner in (raw.get("properties") or {}).items():
        _inside(inner, f"{path}.properties[{name}]", found)
    if isinstance(raw.get("items"), Mapping):
        _inside(raw["items"], f"{path}.items", found)


def _compiled(raw: Raw, path: str, found: list[FieldCause]) -> None:
    """Validate defaults and rules of a schema that is structural."""
    node = compile_schema(raw)
    # Rules at the root see the type and metadata, as those of embedded resources do.
    node.embedded = True
    if raw.get("default") is not None:
        found += [_cause(f"{path}.default.{name}", "FieldValueRequired", "") for name in ("apiVersion", "kind")]
    _values(raw, node, path, found)


def _values(raw: Raw, node: Node, path: str, found: list[FieldCause]) -> None:
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
    unknown: list[str] = []
    prune(copy.deepcopy(default), node, "", unknown)
    causes = [
        FieldCause(path if cause.field == "<nil>" else cause.field, cause.reason, cause.message)
        for cause in validate(default, node, path)
    ]
    if unknown:
        causes.append(_cause(path, "FieldValueInvalid", f"{format_value(default)}: must not have unknown fields"))
    return causes
