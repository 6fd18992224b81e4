"""Defaulting, pruning and validation of arbitrary values."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings

from fivespot.apiserver.schema import apply_defaults, compile_schema, prune, validate

from .values import JSON, OBJECTS

DEFAULTED = {"type": "boolean", "default": True}


SCHEMA = compile_schema({
    "type": "object",
    "properties": {
        "a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 1}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string", "default": "x"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"d": DEFAULTED}}},
        "maybe": {"type": "string", "nullable": True, "default": "x"},
    },
})  # fmt: skip


def test_defaults_reach_every_level() -> None:
    value: dict[str, Any] = {"list": [{}, {"c": "y"}], "map": {"k": {}}, "maybe": None}
    apply_defaults(value, SCHEMA)
    assert value == {
        "a": {"b": 1},
        "list": [{"c": "x"}, {"c": "y"}],
        "map": {"k": {"d": True}},
        "maybe": None,
    }


@settings(max_examples=40)
@given(OBJECTS)
def test_what_was_pruned_and_defaulted_stays_as_it_is(value: dict[str, Any]) -> None:
    prune(value, SCHEMA)
    apply_defaults(value, SCHEMA)
    before = json.dumps(value)
    unknown: list[str] = []
    prune(value, SCHEMA, "", unknown)
    apply_defaults(value, SCHEMA)
    assert (json.dumps(value), unknown) == (before, [])


@settings(max_examples=40)
@given(JSON)
def test_validation_takes_anything(value: Any) -> None:
    for cause in validate(value, SCHEMA, "spec"):
        assert cause.field.startswith("spec")
