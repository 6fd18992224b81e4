"""Decoding of JSONSchemaProps, the Go type of schemas in CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any, Final

from fivespot.apiserver.status import bad_request

__all__ = ["decode_schema"]

_TEXTS: Final = (
    "id", "$schema", "$ref", "description", "type", "format", "title", "pattern", "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)  # fmt: skip
_FLAGS: Final = (
    "exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems", "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
)  # fmt: skip
_COUNTS: Final = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
_NUMBERS: Final = ("maximum", "minimum", "multipleOf")
_TEXT_LISTS: Final = ("required", "x-kubernetes-list-map-keys")
_LISTS: Final = ("enum", "allOf", "anyOf", "oneOf", "x-kubernetes-validations")
_MAPS: Final = ("properties", "patternProperties", "definitions", "dependencies", "externalDocs")
_ANY: Final = ("default", "example", "items", "additionalItems", "additionalProperties", "not")
_RULE_TEXTS: Final = ("rule", "message", "messageExpression", "reason", "fieldPath")
_KNOWN: Final = frozenset(
    {*_TEXTS, *_FLAGS, *_COUNTS, *_NUMBERS, *_TEXT_LISTS, *_LISTS, *_MAPS, *_ANY}
)  # fmt: skip
_GO_NAMES: Final = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
_WHERE: Final = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema"


def decode_schema(raw: Any, path: str = "", unknown: list[str] | None = None) -> Any:
    """Decode a schema: check types, drop unknown members and nulls.

    :param path: of the schema, for the paths of unknown members.
    :param unknown: receives the paths of unknown members.
    :raises StatusError: 400, a member has the wrong type.
    """
    if not isinstance(raw, dict):
        raise _mismatch("", raw, "v1.JSONSchemaProps")
    made: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in _KNOWN:
            if unknown is not None:
                unknown.append(f"{path}.{name}")
        elif value is not None:
            _check_type(name, value)
            made[name] = _decoded(name, value, f"{path}.{name}", unknown)
    return made


def _decoded(name: str, value: Any, path: str, unknown: list[str] | None) -> Any:
    if name in {"properties", "patternProperties", "definitions"}:
        return {key: decode_schema(inner, f"{path}.{key}", unknown) for key, inner in value.items()}
    if name in {"allOf", "anyOf", "oneOf"}:
        return [decode_schema(inner, f"{path}[{number}]", unknown) for number, inner in enumerate(value)]
    if name == "items" and isinstance(value, list):
        return [decode_schema(inner, f"{path}[{number}]", unknown) for number, inner in enumerate(value)]
    if name == "not" or (name in {"items", "additionalProperties"} and not isinstance(value, bool)):
        return decode_schema(value, path, unknown)
    if name == "x-kubernetes-validations":
        return [_rule(each) for each in value]
    return value


def _rule(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise _mismatch(".x-kubernetes-validations", raw, "v1.ValidationRule")
    for name in _RULE_TEXTS:
        _expect(f".x-kubernetes-validations.{name}", raw.get(name), str, "string")
    _expect(".x-kubernetes-validations.optionalOldSelf", raw.get("optionalOldSelf"), bool, "bool")
    return {name: value for name, value in raw.items() if value is not None}


def _check_type(name: str, value: Any) -> None:
    where = f".{name}"
    if name in _TEXTS:
        _expect(where, value, str, "string")
    elif name in _FLAGS:
        _expect(where, value, bool, "bool")
    elif name in _COUNTS:
        _expect(where, value, int, "int64")
    elif name in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _mismatch(where, value, "float64")
    elif name in _TEXT_LISTS or name in _LISTS:
        _expect(where, value, list, "[]string" if name in _TEXT_LISTS else "[]v1.JSON")
        for each in value if name in _TEXT_LISTS else ():
            _expect(where, each, str, "string")
    elif name in _MAPS:
        _expect(where, value, dict, "map[string]v1.JSONSchemaProps")


def _expect(where: str, value: Any, expected: type, go_type: str) -> None:
    if value is not None and type(value) is not expected:
        raise _mismatch(where, value, go_type)


def _mismatch(where: str, value: Any, go_type: str) -> Exception:
    found = _GO_NAMES.get(type(value), "null")
    return bad_request(
        'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: '
        f"json: cannot unmarshal {found} into Go struct field {_WHERE}{where} of type {go_type}"
    )
