"""Invalid requests: the right Status, and the server keeps working."""

from __future__ import annotations

import pytest

from support.targets import DEFINITIONS, NAMESPACES, TABLE, Target, config_map


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{broken",
        "[]",
        '"x"',
        "5",
        b"\xff\xfe",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}',
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":5}}',
        '{"apiVersion":1,"kind":"ConfigMap","metadata":{"name":"a"}}',
        '{"apiVersion":"v1","kind":["ConfigMap"],"metadata":{"name":"a"}}',
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":{}}}',
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":"x"}}',
        '{"a":' * 20_000 + "1" + "}" * 20_000,
    ],
)
def test_bodies_that_are_no_objects(target: Target, maps: str, body: str | bytes) -> None:
    refused = target.create(maps, body)
    assert (refused.status, refused.reason) == (400, "BadRequest")
    assert target.get(maps).ok()["items"] == []


def test_huge_bodies(target: Target, maps: str) -> None:
    refused = target.create(maps, b"x" * (3 * 1024 * 1024 + 10))
    assert (refused.status, refused.reason) == (413, "RequestEntityTooLarge")
    assert target.create(maps, config_map("a", {"x": "y" * 1_000_000})).status == 201


@pytest.mark.parametrize("content", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_content_types_that_are_not_read(target: Target, maps: str, content: str) -> None:
    refused = target.request("POST", maps, config_map("a"), content=content)
    assert (refused.status, refused.reason) == (415, "UnsupportedMediaType")


def test_methods_that_a_path_does_not_have(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    for method, path, body in (
        ("PUT", maps, config_map("a")),
        ("POST", f"{maps}/a", config_map("a")),
        ("OPTIONS", maps, None),
        ("HEAD", f"{maps}/a", None),
        ("POST", "/api/v1/configmaps", config_map("a")),
        ("DELETE", "/api/v1/configmaps", None),
        ("DELETE", f"{NAMESPACES}?labelSelector=no.such/label", None),
    ):
        answer = target.request(method, path, body)
        assert answer.status == 405, (method, path)
    refused = target.request("PATCH", maps, {}, content="application/merge-patch+json")
    assert (refused.status, refused.reason) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "99999999999999999999999"},
        {"timeoutSeconds": "x", "watch": "1"},
        {"labelSelector": "a" * 300},
        {"labelSelector": "x in (" + ",".join(["a"] * 10) + ")" * 3},
        {"fieldSelector": "=" * 50 + ","},
        {"resourceVersion": "-1"},
        {"resourceVersion": "1.5"},
        {"resourceVersion": "١"},
        {"continue": "eyJ2IjoxfQ"},
        {"continue": "\x00"},
    ],
)
def test_absurd_parameters(target: Target, maps: str, query: dict[str, str]) -> None:
    refused = target.get(maps, query=query)
    assert (refused.status, refused.reason) == (400, "BadRequest"), query


def test_deep_patches_and_odd_pointers(target: Target, maps: str) -> None:
    target.create(maps, config_map("a", {"x": "1"})).ok()
    for patch in (
        [{"op": "move", "from": "/data", "path": "/data/x/y"}],
        [{"op": "add", "path": "/metadata/labels/-", "value": "x"}],
        [{"op": "replace", "path": "", "value": 5}],
        [{"op": "remove", "path": ""}],
        [{"path": "/data"}],
        [5],
    ):
        refused = target.patch(f"{maps}/a", patch, "json")
        assert 400 <= refused.status < 500, (patch, refused.raw)
    assert target.get(f"{maps}/a").ok()["data"] == {"x": "1"}


def test_yaml_that_unfolds_without_end(target: Target, maps: str) -> None:
    levels = "".join(f"l{n + 1}: &l{n + 1} [{', '.join([f'*l{n}'] * 9)}]\n" for n in range(9))
    bomb = f"l0: &l0 [x]\n{levels}apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bomb}}\n"
    refused = target.request("POST", maps, bomb, content="application/yaml")
    assert refused.status in {400, 413}


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {"versions": "x"},
        {"versions": [5]},
        {"names": []},
        {"group": 5},
        {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": []}}]},
        {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": ["object"]}}}]},
        {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": []}}}]},
        {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "required": "x"}}}]},
    ],
)
def test_definitions_of_nothing(target: Target, spec: object) -> None:
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": spec,
    }
    refused = target.create(DEFINITIONS, body, dryRun="All")
    assert refused.status in {400, 422}, refused.raw[:300]


def test_names_with_every_sign(target: Target, maps: str) -> None:
    unreadable = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"\xff"}}'
    for body in (unreadable, "null"):
        assert target.create(maps, body).status == 422
    for name in ("a b", "a?b", "a#b", "ü", "A", "-a", "a-", "a..b", "a" * 254):
        refused = target.create(maps, config_map(name))
        assert (refused.status, refused.causes) == (422, {("FieldValueInvalid", "metadata.name")}), name
    refused = target.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}})
    assert (refused.status, refused.causes) == (422, {("FieldValueInvalid", "metadata.name")})


def test_objects_of_great_size(target: Target, maps: str) -> None:
    refused = target.create(maps, config_map("a", annotations={"a": "x" * 300_000}))
    assert (refused.status, refused.causes) == (422, {("FieldValueTooLong", "metadata.annotations")})


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        ("a in", "unable to parse requirement: found '', expected: '('"),
        ("a foo b", "unable to parse requirement: found 'foo', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("a,,b", "found ',', expected: identifier after ','"),
    ],
)
def test_label_selectors_that_cannot_be_parsed(target: Target, maps: str, selector: str, says: str) -> None:
    refused = target.get(maps, query={"labelSelector": selector})
    assert (refused.status, refused.message.replace("'' expected", "'', expected")) == (400, says)


def test_what_a_table_may_include(target: Target, maps: str) -> None:
    refused = target.get(maps, accept=TABLE, query={"includeObject": "Bad"})
    assert refused.status == 400
    assert "includeObject: Invalid value" in refused.message


def test_unknown_versions_of_the_core_group(target: Target, ns: str) -> None:
    for path in ("/api/v2", "/api/v2/pods"):
        refused = target.get(path)
        assert (refused.status, refused.reason) == (404, "NotFound")


def test_custom_objects_of_a_wrong_kind_field_or_subresource(target: Target, ns: str) -> None:
    widgets = target.define({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    path = widgets.path(ns)
    made = target.create(path, widgets.body("a")).ok()
    wrong = {**widgets.body("b"), "kind": "Gadget"}
    assert target.create(path, wrong).causes == {("FieldValueInvalid", "kind")}
    unversioned = target.put(f"{path}/a", {**widgets.body("a"), "kind": "Gadget"})
    assert unversioned.causes == {("FieldValueInvalid", "metadata.resourceVersion")}
    assert target.put(f"{path}/a", {**made, "kind": "Gadget"}).causes == {("FieldValueInvalid", "kind")}
    assert target.get(path, query={"fieldSelector": "spec.x=1"}).message == "field label not supported: spec.x"
    assert target.get(f"{path}/a/nothing").body["details"]["name"] == "a"
    applied = widgets.body("new", metadata={"resourceVersion": "4"})
    created = target.patch(f"{path}/new", applied, "apply", fieldManager="x")
    assert created.status == 201
    owners = [{"apiVersion": "v1", "kind": "X", "name": n, "uid": n, "controller": True} for n in "ab"]
    assert (
        "in references for X/a and X/b"
        in target.create(path, widgets.body("c", metadata={"ownerReferences": owners})).message
    )
    widgets.remove()


def test_booleans_of_yaml_are_no_strings(target: Target, maps: str) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {%s}\n"
    for value in ("y", "N", "yes", "off", "true"):
        refused = target.request("POST", maps, text % f"a: {value}", content="application/yaml")
        assert refused.status == 400, value
    data = target.request("POST", maps, text % "a: name, y: 'y'", content="application/yaml").ok()["data"]
    assert data == {"a": "name", "true": "y"}
