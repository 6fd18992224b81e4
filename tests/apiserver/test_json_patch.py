"""JSON patches, with the extensions of the Go library that kube-apiserver uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.targets import Defined, Target

SPEC = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "nullable": {"type": "string", "nullable": True},
    },
}
BEFORE = {"number": 1, "list": [1, 2, 3], "map": {"k": "v"}}


@pytest.fixture(scope="module")
def defined(target: Target) -> Iterator[Defined]:
    made = target.define(SPEC)
    yield made
    made.remove()


@pytest.fixture(scope="module")
def widget(target: Target, defined: Defined) -> str:
    path = defined.path(target.namespace())
    body = defined.body("a", BEFORE, metadata={"finalizers": ["example.com/a", "example.com/b"]})
    target.create(path, body).ok()
    return f"{path}/a"


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "replace", "path": "/spec/nullable", "value": "z"}, {**BEFORE, "nullable": "z"}),
        ({"op": "replace", "path": "/spec/map/q", "value": "1"}, {**BEFORE, "map": {"k": "v", "q": "1"}}),
        ({"op": "test", "path": "/spec/none", "value": None}, BEFORE),
        ({"op": "test", "path": "/spec/none"}, BEFORE),
        ({"op": "test", "path": "/spec/list/-1", "value": 3}, BEFORE),
        ({"op": "add", "path": "/spec/number"}, {"list": [1, 2, 3], "map": {"k": "v"}}),
        ({"op": "add", "path": "/spec", "value": None}, None),
        ({"op": "add", "path": "/spec/list/-1", "value": 4}, {**BEFORE, "list": [1, 2, 3, 4]}),
        ({"op": "add", "path": "/spec/list/-4", "value": 4}, {**BEFORE, "list": [4, 1, 2, 3]}),
        ({"op": "add", "path": "/spec/list/01", "value": 4}, {**BEFORE, "list": [1, 4, 2, 3]}),
        ({"op": "remove", "path": "/spec/list/-1"}, {**BEFORE, "list": [1, 2]}),
        ({"op": "replace", "path": "/spec/list/-3", "value": 4}, {**BEFORE, "list": [4, 2, 3]}),
        ({"op": "move", "from": "/spec/list/0", "path": "/spec/list/2"}, {**BEFORE, "list": [2, 3, 1]}),
        ({"op": "copy", "from": "/spec/none", "path": "/spec/nullable"}, {**BEFORE, "nullable": None}),
        ({"op": "add", "path": "/spec/map/a~1b~0c~2", "value": "x"}, {**BEFORE, "map": {"k": "v", "a/b~c~2": "x"}}),
    ],
)
def test_operations_that_apply(target: Target, widget: str, operation: Any, after: Any) -> None:
    answer = target.patch(widget, [operation], "json", dryRun="All")
    assert answer.ok().get("spec") == after


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        ([{"op": "test", "path": "/spec/number", "value": 1.0}], 422),
        ([{"op": "test", "path": "/spec/number", "value": 2}], 422),
        ([{"op": "test", "path": "/spec/list/7", "value": None}], 422),
        ([{"op": "remove", "path": "/spec/none"}], 422),
        ([{"op": "remove", "path": "/spec/list/-4"}], 422),
        ([{"op": "add", "path": "/spec/list/-5", "value": 1}], 422),
        ([{"op": "add", "path": "/spec/list/x", "value": 1}], 422),
        ([{"op": "add", "path": "/spec/none/x", "value": 1}], 422),
        ([{"op": "add", "path": "/spec/number/x", "value": 1}], 422),
        ([{"op": "add", "path": "/spec/list/-"}], 422),
        ([{"op": "move", "from": "/spec/none", "path": "/spec/number"}], 422),
        ([{"op": "add", "path": "", "value": {}}], 422),
        ([{"op": "unknown", "path": "/spec"}], 422),
        ([{"path": "/spec"}], 422),
        ([{"op": "replace", "path": "/kind", "value": "Other"}], 422),
        ([{"op": "replace", "path": "/apiVersion", "value": "other/v1"}], 422),
        ([{"op": "remove", "path": "/metadata/name"}], 400),
        ([{"op": "remove", "path": "/metadata"}], 400),
        ([{"op": 1, "path": "/spec"}], 400),
        ([{"op": "add", "path": 1}], 400),
        ([1], 400),
        ([[]], 400),
        ({"op": "add"}, 400),
    ],
)
def test_patches_that_are_refused(target: Target, widget: str, patch: Any, status: int) -> None:
    assert target.patch(widget, patch, "json", dryRun="All").status == status
    assert target.get(widget).ok()["spec"] == BEFORE


@pytest.mark.parametrize("patch", ["null", "[]", "[null]"])
def test_a_patch_without_operations_changes_nothing(target: Target, widget: str, patch: str) -> None:
    answer = target.patch(widget, patch, "json")
    expected = 422 if patch == "[null]" else 200
    assert answer.status == expected
    assert target.get(widget).ok()["spec"] == BEFORE


def test_the_last_finalizer_is_removed_by_its_negative_index(target: Target, widget: str) -> None:
    operation = {"op": "remove", "path": "/metadata/finalizers/-1"}
    answer = target.patch(widget, [operation], "json", dryRun="All")
    assert answer.ok()["metadata"]["finalizers"] == ["example.com/a"]
