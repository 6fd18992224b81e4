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


def quoted(text: str) -> str:
    escaped = text.replace('"', '\\"')
    return f'299 - "{escaped}"'


@pytest.mark.parametrize(
    ("patch", "complaints"),
    [
        ('[{"op":"add","path":"/spec/number","value":2,"value":3}]', ['json patch duplicate field "[0].value"']),
        (
            '[{"op":"test","path":"/spec/number","value":1},{"op":"add","path":"/spec/number","more":1,"value":2}]',
            ['json patch unknown field "[1].more"'],
        ),
        (
            '[{"op":"add","path":"/spec/map","value":{"k":"a","k":"b"}}]',
            ['json patch duplicate field "[0].value.k"', 'duplicate field "spec.map.k"'],
        ),
        (
            '[{"op":"add","path":"/spec/other","value":3,"from":"/spec","e":[]}]',
            ['json patch unknown field "[0].e"', 'unknown field "spec.other"'],
        ),
    ],
)
def test_complaints_about_operations(target: Target, widget: str, patch: str, complaints: list[str]) -> None:
    answer = target.patch(widget, patch, "json", dryRun="All")
    assert (answer.status, answer.warnings) == (200, sorted(map(quoted, complaints)))
    refused = target.patch(widget, patch, "json", dryRun="All", fieldValidation="Strict")
    assert refused.status == 422
    assert refused.message.endswith(f"strict decoding error: {', '.join(complaints)}")
    ignored = target.patch(widget, patch, "json", dryRun="All", fieldValidation="Ignore")
    assert (ignored.status, ignored.warnings) == (200, [])


def test_a_refused_result_is_quoted_with_sorted_members(target: Target, widget: str) -> None:
    patch = [{"op": "replace", "path": "", "value": {"b": 1, "a": {"c": None, "d": "x"}}}]
    shown = '{"a":{"c":null,"d":"x"},"b":1}'
    escaped = shown.replace('"', '\\"')
    words = f"patch: Invalid value: \"{escaped}\": Object 'Kind' is missing in '{shown}'"
    assert target.patch(widget, patch, "json").message == f' "" is invalid: {words}'


def test_the_type_of_a_custom_resource_is_not_removed(target: Target, widget: str) -> None:
    without_kind = target.patch(widget, [{"op": "remove", "path": "/kind"}], "json")
    assert without_kind.status == 422
    assert "Object 'Kind' is missing in '{\"apiVersion\":" in without_kind.message
    without_version = target.patch(widget, [{"op": "remove", "path": "/apiVersion"}], "json")
    assert (without_version.status, without_version.message) == (
        500,
        "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'",
    )


@pytest.mark.parametrize("validation", ["Ignore", "Warn"])
@pytest.mark.parametrize("body", ["[", "null", "[]", "1", '"x"'])
def test_merge_patches_that_are_no_objects(target: Target, widget: str, body: str, validation: str) -> None:
    answer = target.patch(widget, body, "merge", fieldValidation=validation)
    name = {"[]": "array", "1": "number", '"x"': "string"}.get(body, "")
    if body == "[":
        expected = (400, "invalid JSON patch")
    elif validation == "Warn" and name:
        words = f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
        expected = (400, f"error decoding patch: {words}")
    elif body == "[]":
        expected = (422, answer.message)
    else:
        expected = (400, "Invalid JSON Patch")
    assert (answer.status, answer.message) == expected


@pytest.mark.parametrize("body", ["[", "null", "[]", "1"])
def test_strategic_patches_that_are_no_objects(target: Target, body: str) -> None:
    namespace = target.namespace()
    path = f"/api/v1/namespaces/{namespace}"
    answer = target.patch(path, body, "strategic", dryRun="All")
    name = {"[]": "array", "1": "number"}.get(body, "")
    words = f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
    expected = {"[": (400, "invalid JSON patch"), "null": (200, "")}.get(body, (400, words))
    assert (answer.status, answer.message) == expected
    target.leave(namespace)


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({"labels": {"l": None, "m": "1"}}, 200),
        ({"finalizers": [None]}, 422),
        ({"ownerReferences": [None]}, 422),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": None}]}, 200),
        ({"managedFields": [None]}, 200),
    ],
)
def test_nulls_within_metadata(target: Target, widget: str, metadata: Any, status: int) -> None:
    body = {**target.get(widget).ok()}
    body["metadata"] = {**body["metadata"], **metadata}
    answer = target.put(widget, body, dryRun="All")
    assert answer.status == status, answer.message


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (None, "Required value: must not be empty"),
        ("", "Required value: must not be empty"),
        ("a/b/c", 'Invalid value: "a/b/c": must be <group>/<version> or <version>'),
    ],
)
def test_owners_need_a_version(target: Target, widget: str, version: str | None, words: str) -> None:
    owner = {"apiVersion": version, "kind": "K", "name": "n", "uid": "u"}
    answer = target.patch(widget, {"metadata": {"ownerReferences": [owner]}})
    assert answer.status == 422
    assert f"metadata.ownerReferences[0].apiVersion: {words}" in answer.message
