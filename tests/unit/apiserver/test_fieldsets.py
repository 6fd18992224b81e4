"""Field sets and their comparison."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings

from fivespot.apiserver.fieldsets import applied_set, compare, decode_fields, encode_fields

from .values import OBJECTS, OPEN


@settings(max_examples=40)
@given(OBJECTS)
def test_sets_of_fields_survive_their_encoding(value: dict[str, Any]) -> None:
    paths = applied_set(value, OPEN)
    assert decode_fields(json.loads(json.dumps(encode_fields(paths)))) == paths


@settings(max_examples=40)
@given(OBJECTS, OBJECTS)
def test_a_comparison_tells_each_path_once(old: dict[str, Any], new: dict[str, Any]) -> None:
    changes = compare(old, new, OPEN)
    assert not changes.added & changes.modified
    assert not changes.added & changes.removed
    assert not changes.modified & changes.removed
    assert changes.any == (json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True))
    back = compare(new, old, OPEN)
    assert (back.added, back.removed, back.modified) == (changes.removed, changes.added, changes.modified)
