"""Nulls in custom resources: kept where they are allowed, replaced by defaults, or dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.targets import Defined, Target

STRING = {"type": "string"}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}
SPEC = {
    "type": "object",
    "properties": {
        "string": STRING,
        "list": {"type": "array", "items": {"type": "object", "properties": {"q": STRING}}},
        "object": {"type": "object", "required": ["x"], "properties": {"x": STRING}},
        "map": {"type": "object", "additionalProperties": STRING},
        "nullableMap": {"type": "object", "additionalProperties": {**STRING, "nullable": True}},
        "nullable": {**STRING, "nullable": True},
        "nullableDefault": {**STRING, "nullable": True, "default": "n"},
        "default": {**STRING, "default": "d"},
        "open": {"type": "object", **OPEN, "properties": {"x": STRING}},
        "any": OPEN,
        "intOrString": {"x-kubernetes-int-or-string": True},
        "defaultItems": {"type": "array", "items": {**STRING, "default": "i"}},
    },
}


@pytest.fixture(scope="module")
def defined(target: Target) -> Iterator[Defined]:
    made = target.define(SPEC, subresources={"status": {}})
    yield made
    made.remove()


@pytest.fixture(scope="module")
def widgets(target: Target, defined: Defined) -> str:
    return defined.path(target.namespace())


CASES = [
    ({"string": None}, {}),
    ({"list": None}, {}),
    ({"list": [{"q": None}]}, {"list": [{}]}),
    ({"object": None}, {}),
    ({"map": None}, {}),
    ({"map": {"k": None}}, {"map": {}}),
    ({"nullableMap": {"k": None}}, {"nullableMap": {"k": None}}),
    ({"nullable": None}, {"nullable": None}),
    ({"default": None}, {}),
    ({"nullableDefault": None}, {"nullableDefault": None}),
    ({"open": None}, {}),
    ({"open": {"x": None, "y": None}}, {"open": {"y": None}}),
    ({"open": {"y": {"z": None}}}, {"open": {"y": {"z": None}}}),
    ({"any": None}, {}),
    ({"any": [None]}, {"any": [None]}),
    ({"intOrString": None}, {}),
    ({"defaultItems": [None, "x"]}, {"defaultItems": ["i", "x"]}),
]


@pytest.mark.parametrize(("spec", "stored"), CASES)
def test_nulls_of_a_new_object(target: Target, defined: Defined, widgets: str, spec: Any, stored: Any) -> None:
    made = target.create(widgets, defined.body("a", spec), dryRun="All").ok()
    assert made["spec"] == {"default": "d", "nullableDefault": "n", **stored}


def test_a_null_spec_is_dropped(target: Target, defined: Defined, widgets: str) -> None:
    body = {**defined.body("a"), "spec": None}
    assert "spec" not in target.create(widgets, body, dryRun="All").ok()


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"object": {"x": None}}, ("FieldValueRequired", "spec.object.x")),
        ({"list": [None]}, ("FieldValueTypeInvalid", "spec.list[0]")),
    ],
)
def test_nulls_that_are_refused(target: Target, defined: Defined, widgets: str, spec: Any, cause: Any) -> None:
    answer = target.create(widgets, defined.body("a", spec), dryRun="All")
    assert (answer.status, answer.causes) == (422, {cause})


def test_a_json_patch_to_null_removes_the_member_and_its_owner(target: Target, defined: Defined, widgets: str) -> None:
    target.create(widgets, defined.body("patched", {"string": "x"})).ok()
    operation = {"op": "replace", "path": "/spec/string", "value": None}
    changed = target.patch(f"{widgets}/patched", [operation], "json").ok()
    assert "string" not in changed["spec"]
    (entry,) = changed["metadata"]["managedFields"]
    assert "f:string" not in entry["fieldsV1"]["f:spec"]


def test_an_applied_null_is_refused(target: Target, defined: Defined, widgets: str) -> None:
    answer = target.patch(f"{widgets}/applied", defined.body("applied", {"string": None}), "apply", fieldManager="m")
    assert (answer.status, answer.causes) == (422, {("FieldValueTypeInvalid", "spec.string")})


def test_a_null_in_a_map_of_strings_of_a_built_in_kind_is_the_empty_string(target: Target, maps: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": None}}
    assert target.create(maps, body).ok()["data"] == {"x": ""}
