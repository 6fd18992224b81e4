"""Does a default fit the schema it stands in? The API server refuses a CRD whose default does not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fivespot.runtime._crd.annotations import INT_OR_STRING

_TYPES: dict[str, tuple[type, ...]] = {
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


def default_problem(value: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with `value` under `schema`, or None. CEL rules and formats are left to the server."""
    if value is None:
        return None if schema.get("nullable") else "null is not allowed"
    kind = "integer" if schema.get(INT_OR_STRING) and isinstance(value, int) else schema.get("type")
    if kind is not None:
        wanted = _TYPES[kind]
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
        return next(filter(None, (default_problem(item, schema["items"]) for item in value)), None)
    if not isinstance(value, dict):
        return None
    for name in schema.get("required", ()):
        if name not in value and "default" not in schema["properties"][name]:
            return f"required member {name!r} is missing"
    members = schema.get("properties", {})
    for name, member in value.items():
        inner = members.get(name, schema.get("additionalProperties"))
        if inner is not None and (problem := default_problem(member, inner)):
            return f"{name}: {problem}"
    return None
