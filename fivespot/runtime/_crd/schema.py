"""Structural schemas from pydantic models.

Defaults are checked, because the API server rejects a CRD with an invalid one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import core_schema

from fivespot.runtime._crd.annotations import (
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    PRESERVE,
    UNDEFAULTED,
    VALIDATIONS,
)

Schema = dict[str, Any]

_FACTORY = "x-default-factory"

_NOISE = frozenset({"title", "examples", "deprecated", "readOnly", "writeOnly", "contentMediaType", "contentEncoding"})

_COPIED = frozenset(
    {
        "default",
        "description",
        "enum",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "nullable",
    }
)

_FORMATS = frozenset(
    {
        "byte",
        "cidr",
        "date",
        "date-time",
        "double",
        "email",
        "float",
        "hostname",
        "int32",
        "int64",
        "ipv4",
        "ipv6",
        "mac",
        "password",
        "uri",
        "uuid",
    }
)

_TIME_OF_DAY = "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])?$"

_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean"})

_ORDER = ("description", "type", "format", "nullable", "default", "enum", "pattern")

_SCALARS = _TYPES - {"object", "array"}

_TOKEN = re.compile(r"\\.|\(\?[^:]?.|[*+?}]\+|.", re.DOTALL)
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_SIZES = (
    ("minLength", "maxLength", str),
    ("minItems", "maxItems", list),
    ("minProperties", "maxProperties", dict),
)


class SchemaError(ValueError):
    """A model cannot be expressed as a structural schema; the message begins with `Model.field`."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where


def structural_schema(model: type[BaseModel]) -> Schema:
    """Convert a model to a structural schema, in the order of its fields; the output is deterministic.

    Recursion, which a structural schema cannot express, becomes an object that keeps unknown fields. Raises
    `SchemaError` naming `Model.field` for everything else that has no equivalent.
    """
    name = model.__name__
    try:
        document = model.model_json_schema(schema_generator=_Generator, mode="validation", by_alias=True)
    except PydanticInvalidForJsonSchema as error:
        raise SchemaError(name, f"has no JSON schema: {error.message}") from error
    definitions = document.pop("$defs", {})
    if "$ref" in document:
        name = _definition(document["$ref"])
    return _Walk(definitions).convert(document, name, ())


class _Generator(GenerateJsonSchema):
    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        if "default_factory" in schema:
            found = {**found, _FACTORY: True}
        return found

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        raise PydanticInvalidForJsonSchema(f"{kind}: {detail}")


def _definition(reference: str) -> str:
    return reference.removeprefix("#/$defs/")


class _Walk:
    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def convert(self, node: Schema, where: str, trail: tuple[str, ...]) -> Schema:
        """Convert one node. `trail` holds the definitions being expanded, innermost last."""
        if node.get(_FACTORY) and not node.get(UNDEFAULTED):
            raise SchemaError(where, "default_factory never reaches the schema; use a literal default")
        found = self._shape(node, where, trail)
        if found.get("default", ...) is None or node.get(UNDEFAULTED):
            found.pop("default", None)
        if "default" in found:
            found["default"] = _without_null(found["default"])
            if found.get(LIST_TYPE) == "set":
                found["default"] = sorted(found["default"])  # the order of a Python set differs between processes
            problem = default_error(found["default"], found)
            if problem:
                raise SchemaError(where, f"default {found['default']!r} does not fit its own schema: {problem}")
        _check_list(found, where)
        return {key: found[key] for key in (*(k for k in _ORDER if k in found), *found)}

    def _shape(self, node: Schema, where: str, trail: tuple[str, ...]) -> Schema:
        if "$ref" in node:
            return self._reference(node, where, trail)
        for union in ("anyOf", "oneOf", "allOf"):
            if union in node:
                return self._union(node, union, where, trail)
        return self._plain(node, where, trail)

    def _reference(self, node: Schema, where: str, trail: tuple[str, ...]) -> Schema:
        name = _definition(node["$ref"])
        target = self._definitions[name]
        if name in trail:
            if target.get("type") != "object":
                raise SchemaError(where, f"{name} contains itself and is not an object")
            return _merge({"type": "object", PRESERVE: True}, node, "$ref")
        inner = name if target.get("type") == "object" else where
        return _merge(self.convert(target, inner, (*trail, name)), node, "$ref")

    def _union(self, node: Schema, union: str, where: str, trail: tuple[str, ...]) -> Schema:
        branches: list[Schema] = node[union]
        solid = [branch for branch in branches if branch.get("type") != "null"]
        siblings = dict(node)
        if len(solid) < len(branches) and "default" not in node and not node.get("nullable"):
            siblings["nullable"] = True  # required, and None allowed: only an explicit null can say it
        if len(solid) == 1 and "discriminator" not in node:
            return _merge(self.convert(solid[0], where, trail), siblings, union)
        if union == "anyOf" and sorted(branch.get("type", "") for branch in solid) == ["integer", "string"]:
            if any(set(branch) - {"type"} - _NOISE for branch in solid):
                raise SchemaError(where, "int-or-string takes no bounds or patterns of one branch; use a Cel rule")
            return _merge({INT_OR_STRING: True}, siblings, union)
        raise SchemaError(where, "a union has no structural form; use one model with optional members and a Cel rule")

    def _plain(self, node: Schema, where: str, trail: tuple[str, ...]) -> Schema:
        found: Schema = {}
        for key, value in node.items():
            if key in _COPIED or key.startswith("x-kubernetes-"):
                found[key] = _flow(value) if key == "description" else value
            elif key in _NOISE or key in {"type", UNDEFAULTED, _FACTORY, "additionalProperties"}:
                continue
            else:
                self._special(found, key, value, where, trail)
        kind = node.get("type")
        if kind is None:
            if "enum" in node or "const" in node:
                raise SchemaError(where, "an enumeration of mixed types has no structural form")
            found.setdefault(INT_OR_STRING if INT_OR_STRING in found else PRESERVE, True)
        elif kind not in _TYPES:
            raise SchemaError(where, f"type {kind!r} has no structural form")
        else:
            found["type"] = kind
        if kind == "array" and "items" not in found:
            raise SchemaError(where, "a list needs a type for its items")
        if kind == "object":
            self._members(found, node, where, trail)
        return found

    def _special(self, found: Schema, key: str, value: Any, where: str, trail: tuple[str, ...]) -> None:
        """Convert a key whose form differs between JSON schema and structural schema."""
        match key:
            case "properties":
                found[key] = {name: self.convert(member, f"{where}.{name}", trail) for name, member in value.items()}
            case "required":
                found[key] = list(value)
            case "items":
                found[key] = self.convert(value, f"{where}[]", trail)
            case "const":
                found["enum"] = [value]
            case "exclusiveMinimum" | "exclusiveMaximum":
                found[key.removeprefix("exclusive").lower()] = value
                found[key] = True
            case "uniqueItems":
                found[LIST_TYPE] = "set"
            case "pattern":
                found[key] = _portable(value, where)
            case "format" if value == "duration":
                raise SchemaError(where, "timedelta is written PT1S, Kubernetes' durations 1s; use a string type")
            case "format" if value == "time":
                found["pattern"] = _TIME_OF_DAY  # the API server has no such format
            case "format":
                if value in _FORMATS:  # others draw a warning from newer servers and check nothing
                    found[key] = value
            case "prefixItems" if value and all(item == value[0] for item in value):
                found["items"] = self.convert(value[0], f"{where}[]", trail)
            case "prefixItems":
                raise SchemaError(where, "a tuple of different types has no structural form; use a list or a model")
            case "propertyNames" | "patternProperties":
                raise SchemaError(where, "keys cannot be restricted by schema; use dict[str, ...] and a Cel rule")
            case _:
                raise SchemaError(where, f"{key!r} has no structural form")

    def _members(self, found: Schema, node: Schema, where: str, trail: tuple[str, ...]) -> None:
        extra = node.get("additionalProperties")
        if isinstance(extra, dict) and extra:
            if "properties" in found:
                raise SchemaError(where, "typed extra members beside fields have no structural form")
            found["additionalProperties"] = self.convert(extra, f"{where}{{}}", trail)
        elif extra not in (None, False):
            found[PRESERVE] = True


def _merge(inner: Schema, outer: Schema, drop: str) -> Schema:
    """Merge `inner` with the keys beside the reference or union, which take precedence; rules are combined."""
    merged = dict(inner)
    for key, value in outer.items():
        if key == VALIDATIONS:
            merged[key] = [*merged.get(key, ()), *value]
        elif key == "description":
            merged[key] = _flow(value)
        elif key != drop and key not in _NOISE and key not in {UNDEFAULTED, _FACTORY}:
            merged[key] = value
    return merged


def _flow(text: str) -> str:
    """Unwrap a docstring: paragraphs are kept, line breaks inside them removed."""
    return re.sub(r"[ \t]*(?<!\n)\n(?!\n)[ \t]*", " ", text.strip())


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(member) for key, member in value.items() if member is not None}
    return value


def _portable(pattern: str, where: str) -> str:
    """Return the pattern, or raise if Go's RE2 lacks a construct or reads it differently from pydantic's engine."""
    for token in _TOKEN.findall(pattern):
        if token[0] == "\\" and token[1].isdigit():
            raise SchemaError(where, f"pattern {pattern!r}: RE2 has no back-references")
        if token[0] == "\\" and token[1] in "dwsbDWSB":
            raise SchemaError(where, f"pattern {pattern!r}: {token} is ASCII in RE2 only; write the class out")
        if token.startswith(("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?(")) or token in {"*+", "++", "?+", "}+"}:
            raise SchemaError(where, f"pattern {pattern!r}: RE2 has no {token}")
    return pattern


def _check_list(found: Schema, where: str) -> None:
    kind = found.get(LIST_TYPE)
    if kind is None:
        return
    if found.get("type") != "array":
        raise SchemaError(where, f"{LIST_TYPE} belongs on a list")
    items = found["items"]
    if kind == "set" and items.get("type") not in _SCALARS:
        raise SchemaError(where, "a set holds scalars; tell objects apart with list_map(...)")
    if kind == "map":
        members = items.get("properties", {})
        for key in found.get(LIST_MAP_KEYS, ()):
            if members.get(key, {}).get("type") not in _SCALARS:
                raise SchemaError(where, f"list map key {key!r} is not a scalar member of the items")
            if key not in items.get("required", ()) and "default" not in members[key]:
                raise SchemaError(where, f"list map key {key!r} must be required or have a default")


# -- defaults --------------------------------------------------------------------------------------------------------


def default_error(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Explain why `value` is invalid under `schema`; None if it is valid. CEL rules and formats are not checked."""
    if value is None:
        return None if schema.get("nullable") else "null is not allowed"
    kind = "integer" if schema.get(INT_OR_STRING) and isinstance(value, int) else schema.get("type")
    if kind is not None:
        wanted = _PYTHON_TYPES[kind]
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            return f"{value!r} is not of type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{value!r} is not one of {schema['enum']}"
    return _bounds(value, schema) or _inside(value, schema)


def _bounds(value: Any, schema: Mapping[str, Any]) -> str | None:
    for low, high, kind in _SIZES:
        if isinstance(value, kind) and not schema.get(low, 0) <= len(value) <= schema.get(high, len(value)):
            return f"its size is outside {low}/{high}"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        return f"{value!r} does not match {schema['pattern']}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
            return f"{value} is below the minimum {least}"
        if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
            return f"{value} is above the maximum {most}"
    return None


def _inside(value: Any, schema: Mapping[str, Any]) -> str | None:
    if isinstance(value, list):
        return next(filter(None, (default_error(item, schema["items"]) for item in value)), None)
    if not isinstance(value, dict):
        return None
    for name in schema.get("required", ()):
        if name not in value and "default" not in schema["properties"][name]:
            return f"required member {name!r} is missing"
    members = schema.get("properties", {})
    for name, member in value.items():
        inner = members.get(name, schema.get("additionalProperties"))
        if inner is not None and (problem := default_error(member, inner)):
            return f"{name}: {problem}"
    return None
