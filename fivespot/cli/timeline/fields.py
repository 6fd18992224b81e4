"""Finds fields that no schema has: the API server drops them, and kubectl refuses them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["unknown_fields"]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"


def unknown_fields(value: object, schema: Mapping[str, Any], at: str = "spec") -> Iterator[str]:
    """What is wrong with the names of fields, a text for each, with the nearest right name where there is one.

    :param schema: a structural schema, as a CustomResourceDefinition has it.
    """
    if isinstance(value, Mapping):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for name, member in value.items():
            if name in known:
                yield from unknown_fields(member, known[name], f"{at}.{name}")
            elif isinstance(others, Mapping):
                yield from unknown_fields(member, others, f"{at}.{name}")
            elif not others and not schema.get(_PRESERVE) and schema.get("type") == "object":
                near = difflib.get_close_matches(str(name), known, n=1) or _same_letters(str(name), known)
                yield f"{at}.{name}: there is no such field" + (f"; did you mean {near[0]}?" if near else "")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_fields(item, schema.get("items", {}), f"{at}[{index}]")


def _same_letters(name: str, known: Mapping[str, Any]) -> list[str]:
    return [other for other in known if other.lower() == name.replace("_", "").replace("-", "").lower()]
