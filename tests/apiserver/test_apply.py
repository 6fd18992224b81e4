"""Server-side apply: ownership, conflicts, removal of fields."""

from __future__ import annotations

from typing import Any

import pytest

from support.targets import NAMESPACES, Defined, Target, config_map

pytestmark = pytest.mark.usefixtures("cleared")

SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "default": 2},
        "note": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "plain": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "port": {"type": "integer"}, "host": {"type": "string"}},
            },
        },
        "whole": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        },
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


@pytest.fixture(scope="module")
def widgets(target: Target) -> Any:
    defined = target.define(SPEC, subresources={"status": {}})
    yield defined
    defined.remove()


def owners(body: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Owned fields by manager and operation."""
    return {
        (each["manager"], each["operation"]): each["fieldsV1"] for each in body["metadata"].get("managedFields", [])
    }


class Applier:
    """Applies configurations of one Widget."""

    def __init__(self, target: Target, defined: Defined, ns: str) -> None:
        self.target, self.defined = target, defined
        self.path = f"{defined.path(ns)}/a"

    def __call__(self, manager: str, spec: Any, *, force: bool = False, sub: str = "", **extra: Any) -> Any:
        query = {"fieldManager": manager, **({"force": "true"} if force else {})}
        return self.target.patch(self.path + sub, self.defined.body("a", spec, **extra), "apply", **query)


@pytest.fixture
def apply(target: Target, widgets: Defined, ns: str) -> Applier:
    return Applier(target, widgets, ns)


def test_the_first_apply_creates(apply: Applier) -> None:
    answer = apply("m1", {"size": 3, "tags": ["a"], "ports": [{"name": "p", "port": 5}]})
    assert answer.status == 201
    fields = {
        "f:spec": {
            "f:ports": {'k:{"name":"p"}': {".": {}, "f:name": {}, "f:port": {}}},
            "f:size": {},
            "f:tags": {'v:"a"': {}},
        }
    }
    assert owners(answer.ok()) == {("m1", "Apply"): fields}
    again = apply("m1", {"size": 3, "tags": ["a"], "ports": [{"name": "p", "port": 5}]})
    assert (again.status, again.ok()) == (200, answer.ok())


def test_managers_share_lists_and_maps(apply: Applier) -> None:
    apply("m1", {"tags": ["a"], "ports": [{"name": "p", "port": 5}], "map": {"x": "1"}})
    both = apply("m2", {"tags": ["b"], "ports": [{"name": "q", "port": 6}], "map": {"y": "2"}}).ok()
    assert sorted(both["spec"]["tags"]) == ["a", "b"]
    assert sorted(both["spec"]["ports"], key=lambda port: port["name"]) == [
        {"name": "p", "port": 5},
        {"name": "q", "port": 6},
    ]
    assert both["spec"]["map"] == {"x": "1", "y": "2"}
    less = apply("m2", {"tags": ["b"]}).ok()
    assert less["spec"] == {"size": 2, "tags": ["a", "b"], "ports": [{"name": "p", "port": 5}], "map": {"x": "1"}}


def test_an_item_of_two_managers_keeps_what_the_other_states(apply: Applier) -> None:
    apply("m1", {"ports": [{"name": "p", "port": 5}]})
    apply("m2", {"ports": [{"name": "p", "host": "h"}]}).ok()
    left = apply("m1", {"note": "n"}).ok()
    assert left["spec"]["ports"] == [{"name": "p", "host": "h"}]


def test_a_field_of_another_manager_is_a_conflict(apply: Applier) -> None:
    apply("m1", {"size": 3, "note": "x"})
    refused = apply("m2", {"size": 4})
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert refused.causes == {("FieldManagerConflict", ".spec.size")}
    assert refused.message == 'Apply failed with 1 conflict: conflict with "m1": .spec.size'
    assert apply("m2", {"size": 3}).status == 200, "the same value is no conflict"
    taken = apply("m2", {"size": 4}, force=True).ok()
    assert taken["spec"]["size"] == 4
    assert owners(taken) == {
        ("m1", "Apply"): {"f:spec": {"f:note": {}}},
        ("m2", "Apply"): {"f:spec": {"f:size": {}}},
    }


def test_several_conflicts(apply: Applier) -> None:
    apply("m1", {"size": 3, "ports": [{"name": "p", "port": 5}]})
    refused = apply("m2", {"size": 4, "ports": [{"name": "p", "port": 6}]})
    assert refused.causes == {
        ("FieldManagerConflict", ".spec.size"),
        ("FieldManagerConflict", '.spec.ports[name="p"].port'),
    }


def test_a_field_of_an_updater_is_a_conflict_too(target: Target, apply: Applier, widgets: Defined, ns: str) -> None:
    target.create(widgets.path(ns), widgets.body("a", {"size": 3})).ok()
    refused = apply("m1", {"size": 4})
    assert refused.causes == {("FieldManagerConflict", ".spec.size")}
    assert "using" in refused.message
    taken = apply("m1", {"size": 4}, force=True).ok()
    assert owners(taken) == {
        ("m1", "Apply"): {"f:spec": {"f:size": {}}},
        ("conformance", "Update"): {"f:spec": {}},
    }


def test_what_is_no_longer_stated_goes_or_falls_back_to_its_default(apply: Applier) -> None:
    apply("m1", {"size": 3, "note": "x", "ports": [{"name": "p", "port": 5}], "map": {"x": "1"}})
    less = apply("m1", {"map": {"y": "2"}}).ok()
    assert less["spec"] == {"size": 2, "map": {"y": "2"}}


def test_updates_take_ownership(target: Target, apply: Applier) -> None:
    apply("m1", {"size": 3, "note": "x"})
    patched = target.patch(apply.path, {"spec": {"size": 4}}).ok()
    assert owners(patched) == {
        ("m1", "Apply"): {"f:spec": {"f:note": {}}},
        ("conformance", "Update"): {"f:spec": {"f:size": {}}},
    }
    removed = target.patch(apply.path, {"spec": {"note": None}}).ok()
    assert ("m1", "Apply") not in owners(removed)


def test_atomic_parts_have_one_owner(apply: Applier) -> None:
    apply("m1", {"whole": {"a": "1"}, "plain": ["x"]})
    refused = apply("m2", {"whole": {"b": "2"}, "plain": ["y"]})
    assert refused.causes == {("FieldManagerConflict", ".spec.whole"), ("FieldManagerConflict", ".spec.plain")}
    taken = apply("m2", {"whole": {"b": "2"}, "plain": ["y"]}, force=True).ok()
    assert (taken["spec"]["whole"], taken["spec"]["plain"]) == ({"b": "2"}, ["y"])


def test_the_status_is_applied_apart(apply: Applier) -> None:
    apply("m1", {"size": 3})
    done = apply("m1", None, sub="/status", status={"ok": True}).ok()
    assert (done["status"], done["spec"]) == ({"ok": True}, {"size": 3})
    entries = {(each["manager"], each.get("subresource", "")) for each in done["metadata"]["managedFields"]}
    assert entries == {("m1", ""), ("m1", "status")}
    assert apply("m1", {"size": 3}, status={"ok": False}).ok()["status"] == {"ok": True}


def test_labels_and_finalizers(apply: Applier) -> None:
    metadata = {"labels": {"a": "1"}, "finalizers": ["example.com/f"]}
    made = apply("m1", {"size": 3}, metadata=metadata).ok()
    assert owners(made)["m1", "Apply"]["f:metadata"] == {
        "f:finalizers": {'v:"example.com/f"': {}},
        "f:labels": {"f:a": {}},
    }
    bare = apply("m1", {"size": 3}).ok()
    assert ("labels" in bare["metadata"], "finalizers" in bare["metadata"]) == (False, False)


def test_a_dry_run_applies_nothing(target: Target, apply: Applier, widgets: Defined) -> None:
    query = {"fieldManager": "m1", "dryRun": "All"}
    assert target.patch(apply.path, widgets.body("a", {"size": 3}), "apply", **query).status == 201
    assert target.get(apply.path).status == 404


def test_yaml_is_applied(target: Target, apply: Applier, widgets: Defined) -> None:
    body = f"apiVersion: {widgets.group}/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 3\n"
    assert target.patch(apply.path, body, "apply", fieldManager="m1").ok()["spec"] == {"size": 3}


def test_built_in_kinds(target: Target, maps: str) -> None:
    target.create(maps, config_map("a", {"x": "1"})).ok()
    refused = target.patch(f"{maps}/a", config_map("a", {"x": "9", "z": "1"}), "apply", fieldManager="m1")
    assert refused.message == 'Apply failed with 1 conflict: conflict with "conformance" using v1: .data.x'
    done = target.patch(f"{maps}/a", config_map("a", {"z": "1"}), "apply", fieldManager="m1").ok()
    assert done["data"] == {"x": "1", "z": "1"}


@pytest.mark.parametrize(
    ("body", "query", "status", "causes"),
    [
        (config_map("a"), {}, 422, {("FieldValueRequired", "fieldManager")}),
        (config_map("a"), {"fieldManager": "m" * 129}, 422, {("FieldValueTooLong", "fieldManager")}),
        (config_map("b"), {"fieldManager": "m1"}, 400, set()),
        (config_map("a", managedFields=[]), {"fieldManager": "m1"}, 400, set()),
        ({"metadata": {"name": "a"}}, {"fieldManager": "m1"}, 400, set()),
        ("[]", {"fieldManager": "m1"}, 400, set()),
        ("{broken", {"fieldManager": "m1"}, 400, set()),
    ],
)
def test_applies_that_are_refused(
    target: Target, maps: str, body: Any, query: dict[str, str], status: int, causes: set[tuple[str, str]]
) -> None:
    refused = target.patch(f"{maps}/a", body, "apply", **query)
    assert refused.status == status
    assert refused.causes == causes


def test_force_is_for_applies(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    refused = target.patch(f"{maps}/a", {}, force="true")
    assert (refused.status, refused.causes) == (422, {("FieldValueForbidden", "force")})


def test_unknown_fields_cannot_be_owned(apply: Applier) -> None:
    refused = apply("m1", {"unknown": 5})
    assert refused.status == 500
    assert ".spec.unknown: field not declared in schema" in refused.message


def test_applying_to_a_namespace_that_is_not_there(target: Target) -> None:
    path = f"{NAMESPACES}/nowhere/configmaps/a"
    assert target.patch(path, config_map("a"), "apply", fieldManager="m1").status == 404


def test_an_entry_of_a_map_with_a_default_in_it_is_removed(target: Target, ns: str) -> None:
    entries = {"type": "object", "properties": {"q": {"type": "string", "default": "qq"}}}
    made = target.define({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": entries}}})
    path = f"{made.path(ns)}/a"
    body = made.body("a", {"m": {"k1": {}, "k2": {"q": "z"}}})
    first = target.patch(path, body, "apply", fieldManager="m").ok()
    assert first["spec"]["m"] == {"k1": {"q": "qq"}, "k2": {"q": "z"}}
    (entry,) = first["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:spec"]["f:m"] == {"f:k1": {}, "f:k2": {".": {}, "f:q": {}}}
    second = target.patch(path, made.body("a", {"m": {"k2": {"q": "z"}}}), "apply", fieldManager="m").ok()
    assert second["spec"]["m"] == {"k2": {"q": "z"}}
    made.remove()


def test_only_the_status_is_applied_to_the_status(target: Target, ns: str) -> None:
    made = target.define({"type": "object", "properties": {"i": {"type": "integer"}}}, subresources={"status": {}})
    path = f"{made.path(ns)}/a"
    target.create(made.path(ns), made.body("a", {"i": 1})).ok()
    body = made.body("a", {"i": 5}, metadata={"labels": {"l": "1"}}, status={"x": 1})
    changed = target.patch(f"{path}/status", body, "apply", fieldManager="m").ok()
    assert (changed["spec"], changed["status"]) == ({"i": 1}, {"x": 1})
    assert "labels" not in changed["metadata"]
    (entry,) = [each for each in changed["metadata"]["managedFields"] if each["manager"] == "m"]
    assert entry["fieldsV1"] == {"f:status": {"f:x": {}}}
    made.remove()
