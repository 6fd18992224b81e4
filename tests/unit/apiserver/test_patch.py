"""JSON patches and merge patches."""

from __future__ import annotations

import copy
import json
from typing import Any

import hypothesis.strategies as st
import jsonpatch
import jsonpointer
from hypothesis import given, settings

from fivespot.apiserver.patch import JSON_PATCH, apply_patch, merge
from fivespot.apiserver.status import StatusError

from .values import JSON, OBJECTS, OPEN


@settings(max_examples=40)
@given(OBJECTS, OBJECTS)
def test_a_merge_patch_twice_is_a_merge_patch_once(value: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge(value, patch)
    assert merge(once, patch) == once
    assert merge(value, {}) == value


POINTERS = (
    st.lists(st.sampled_from(["a", "b", "x~1y", "0", "-"]), min_size=1, max_size=3).map("/".join).map("/{}".format)
)


OPERATIONS = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "test"]), "path": POINTERS, "value": JSON}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": POINTERS}),
    st.fixed_dictionaries({"op": st.sampled_from(["copy", "move"]), "from": POINTERS, "path": POINTERS}),
)


PATCHED = st.dictionaries(
    st.sampled_from(["a", "b", "x/y"]), JSON | st.dictionaries(st.sampled_from(["a", "b", "0"]), JSON), min_size=1
)


@settings(max_examples=150)
@given(PATCHED, st.lists(OPERATIONS, min_size=1, max_size=4))
def test_a_json_patch_leaves_what_it_is_applied_to_as_it_was(value: dict[str, Any], patch: list[Any]) -> None:
    before = copy.deepcopy(value)
    try:
        expected = jsonpatch.JsonPatch(patch).apply(copy.deepcopy(value))
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, LookupError, ValueError):
        expected = None
    try:
        patched = apply_patch(value, json.dumps(patch).encode(), JSON_PATCH, OPEN).value
    except StatusError:
        patched = None
    # The library takes True for 1, and has none of the extensions of Go's.
    if expected is not None and all(operation["op"] != "test" for operation in patch):
        assert patched == expected
    assert value == before
