"""Duplicate fields in YAML bodies, merge patches and applies; objects that are too large."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.targets import Defined, Target, config_map

SPEC = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
LABELS = "  labels:\n    a: '1'\n    a: '2'\n"
TWICE = '{"metadata":{"labels":{"a":"1","a":"2"}},"data":{"k":"1"},"data":{"k":"2"}}'


@pytest.fixture(scope="module")
def defined(target: Target) -> Iterator[Defined]:
    made = target.define(SPEC)
    yield made
    made.remove()


@pytest.fixture
def widgets(defined: Defined, ns: str) -> str:
    return defined.path(ns)


def warned(*texts: str) -> list[str]:
    quoted = [text.replace('"', '\\"') for text in texts]
    return [f'299 - "{text}"' for text in quoted]


@pytest.mark.parametrize(
    ("body", "complaints"),
    [
        (HEAD + LABELS, ['line 7: key "a" already set in map']),
        (
            HEAD + "data: {k: x, k: y}\ndata: {}\nkind: ConfigMap\n",
            [
                'line 5: key "k" already set in map',
                'line 6: key "data" already set in map',
                'line 7: key "kind" already set in map',
            ],
        ),
        (HEAD + "nope:\n- x: 1\n  x: 2\n", ['line 7: key "x" already set in map', 'unknown field "nope"']),
    ],
)
def test_yaml_bodies_with_duplicate_keys(target: Target, maps: str, body: str, complaints: list[str]) -> None:
    def sent(validation: str) -> dict[str, str]:
        return {"fieldValidation": validation, "dryRun": "All"}

    answer = target.request("POST", maps, body, content="application/yaml", query=sent("Warn"))
    assert (answer.status, answer.warnings) == (201, warned(*complaints))
    refused = target.request("POST", maps, body, content="application/yaml", query=sent("Strict"))
    lines = "".join(f"\n  {line}" for line in complaints if line.startswith("line"))
    rest = "".join(f", {line}" for line in complaints if line.startswith("unknown"))
    assert (refused.status, refused.reason) == (400, "BadRequest")
    assert refused.message.endswith(f"strict decoding error: yaml: unmarshal errors:{lines}{rest}")
    ignored = target.request("POST", maps, body, content="application/yaml", query=sent("Ignore"))
    assert (ignored.status, ignored.warnings) == (201, [])


def test_yaml_keys_of_different_types_are_no_duplicates(target: Target, defined: Defined, widgets: str) -> None:
    body = f"apiVersion: {defined.group}/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  1: 2\n  '1': 3\n"
    answer = target.request("POST", widgets, body, content="application/yaml", query={"fieldValidation": "Strict"})
    assert (answer.status, answer.warnings) == (201, [])


@pytest.mark.parametrize("how", ["merge", "strategic"])
def test_merge_patches_with_duplicate_fields(target: Target, maps: str, how: str) -> None:
    target.create(maps, config_map("a")).ok()
    refused = target.patch(f"{maps}/a", TWICE, how, fieldValidation="Strict")
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert 'strict decoding error: duplicate field "metadata.labels.a", duplicate field "data"' in refused.message
    answer = target.patch(f"{maps}/a", TWICE, how)
    assert answer.warnings == warned('duplicate field "data"', 'duplicate field "metadata.labels.a"')
    assert answer.ok()["data"] == {"k": "2"}
    assert target.patch(f"{maps}/a", TWICE, how, fieldValidation="Ignore").warnings == []


@pytest.mark.parametrize(
    ("body", "complaints"),
    [
        (HEAD + LABELS, ['line 7: key "a" already set in map']),
        (
            '{"apiVersion":"v1","kind":"ConfigMap",' + TWICE[1:],
            ['line 1: key "a" already set in map', 'line 1: key "data" already set in map'],
        ),
    ],
)
def test_applies_with_duplicate_keys(target: Target, maps: str, body: str, complaints: list[str]) -> None:
    target.create(maps, config_map("a")).ok()
    answer = target.patch(f"{maps}/a", body, "apply", fieldManager="m")
    assert (answer.status, answer.warnings) == (200, warned(*complaints))
    refused = target.patch(f"{maps}/a", body, "apply", fieldManager="m", fieldValidation="Strict")
    lines = "".join(f"\n  {line}" for line in complaints)
    words = f"error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:{lines}"
    assert (refused.status, refused.message) == (400, words)


def test_objects_that_are_too_large_for_etcd(target: Target, defined: Defined, widgets: str) -> None:
    assert target.create(widgets, defined.body("fits", {"x": "y" * 1_500_000})).status == 201
    refused = target.create(widgets, defined.body("large", {"x": "y" * 1_600_000}))
    assert (refused.status, refused.message) == (500, "etcdserver: request is too large")
    refused = target.create(widgets, defined.body("larger", {"x": "y" * 2_200_000}))
    assert refused.status == 500
    assert "trying to send message larger than max" in refused.message
    assert target.create(widgets, defined.body("large", {"x": "y" * 1_600_000}), dryRun="All").status == 201


def test_an_object_that_a_patch_makes_too_large_stays_as_it_was(target: Target, defined: Defined, widgets: str) -> None:
    made = target.create(widgets, defined.body("grows", {"x": "y" * 900_000})).ok()
    refused = target.patch(f"{widgets}/grows", {"spec": {"z": "z" * 900_000}})
    assert (refused.status, refused.message) == (500, "etcdserver: request is too large")
    assert target.get(f"{widgets}/grows").ok() == made
