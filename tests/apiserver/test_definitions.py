"""CustomResourceDefinitions and the objects of their kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.targets import DEFINITIONS, Defined, Target, definition, established

pytestmark = pytest.mark.usefixtures("cleared")

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2},
        "mode": {"type": "string", "enum": ["A", "B"]},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": True},
        "when": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3},
        "ports": {
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 10},
                    "port": {
                        "type": "integer",
                        "default": 80,
                        "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "no shrinking"}],
                    },
                },
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "map": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
        "maybe": {"type": "string", "nullable": True},
        "one": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        "fixed": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
    },
    "x-kubernetes-validations": [
        {
            "rule": "!has(self.mode) || self.size > 1",
            "message": "size must exceed 1 with mode",
            "fieldPath": ".size",
            "reason": "FieldValueForbidden",
        },
        {"rule": "self.size < 5", "messageExpression": "'size must be ' + 'under 5'"},
    ],
}

BLOCKED = ("FieldValueInvalid", "<nil>")


@pytest.fixture(scope="module")
def widgets(target: Target) -> Any:
    """A kind with many schema features and a status subresource."""
    defined = target.define(SPEC, subresources={"status": {}})
    yield defined
    defined.remove()


def test_a_definition_is_completed_and_established(target: Target, widgets: Defined) -> None:
    body = target.get(f"{DEFINITIONS}/{widgets.name}").ok()
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    assert body["spec"]["names"] == names
    assert body["spec"]["conversion"] == {"strategy": "None"}
    status = body["status"]
    assert (status["acceptedNames"], status["storedVersions"]) == (names, ["v1"])
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert conditions["NamesAccepted"] == ("True", "NoConflicts")
    assert conditions["Established"] == ("True", "InitialNamesAccepted")
    assert body["metadata"]["generation"] == 1


def test_objects_are_pruned_and_defaulted(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    spec = {"size": 3, "unknown": 1, "free": {"x": [1]}, "ports": [{"name": "p", "z": 1}], "maybe": None}
    answer = target.create(path, widgets.body("a", spec, extra=1, status={"ok": True}))
    made = answer.ok()
    assert made["spec"] == {"size": 3, "free": {"x": [1]}, "ports": [{"name": "p", "port": 80}], "maybe": None}
    assert ("extra" in made, "status" in made, made["metadata"]["generation"]) == (False, False, 1)
    assert answer.warnings == [
        f'299 - "unknown field \\"{field}\\""' for field in ("extra", "spec.ports[0].z", "spec.unknown")
    ]
    assert target.create(path, widgets.body("b", {"size": None})).ok()["spec"] == {"size": 2}
    assert "spec" not in target.create(path, widgets.body("c")).ok()
    strict = target.create(path, widgets.body("d", spec), fieldValidation="Strict")
    assert (strict.status, strict.reason) == (400, "BadRequest")
    assert 'unknown field "spec.ports[0].z", unknown field "spec.unknown"' in strict.message


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"size": 9}, {("FieldValueInvalid", "spec.size"), ("FieldValueInvalid", "spec")}),
        ({"size": 0}, {("FieldValueInvalid", "spec.size")}),
        ({"size": "x"}, {("FieldValueTypeInvalid", "spec.size"), BLOCKED}),
        ({"name": "ABC"}, {("FieldValueInvalid", "spec.name")}),
        ({"name": "abcdef"}, {("FieldValueTooLong", "spec.name"), BLOCKED}),
        ({"name": "a"}, {("FieldValueInvalid", "spec.name")}),
        ({"mode": "C"}, {("FieldValueNotSupported", "spec.mode"), BLOCKED}),
        ({"ratio": "x"}, {("FieldValueTypeInvalid", "spec.ratio"), BLOCKED}),
        ({"flag": 1}, {("FieldValueTypeInvalid", "spec.flag"), BLOCKED}),
        ({"port": True}, {("FieldValueTypeInvalid", "spec.port"), BLOCKED}),
        ({"when": "nope"}, {("FieldValueTypeInvalid", "spec.when"), BLOCKED}),
        ({"tags": ["a", "a"]}, {("FieldValueDuplicate", "spec.tags[1]")}),
        ({"tags": ["a", "b", "c", "d"]}, {("FieldValueTooMany", "spec.tags"), BLOCKED}),
        ({"tags": "a"}, {("FieldValueTypeInvalid", "spec.tags"), BLOCKED}),
        ({"ports": [{"name": "p"}, {"name": "p"}]}, {("FieldValueDuplicate", "spec.ports[1]")}),
        ({"ports": [{}]}, {("FieldValueRequired", "spec.ports[0].name"), BLOCKED}),
        ({"free": 5}, {("FieldValueTypeInvalid", "spec.free"), BLOCKED}),
        ({"map": {"a": "toolong"}}, {("FieldValueTooLong", "spec.map.a"), BLOCKED}),
        ({"map": {"a": 5}}, {("FieldValueTypeInvalid", "spec.map.a"), BLOCKED}),
        ({"one": {}}, {BLOCKED, ("FieldValueRequired", "spec.one.a")}),
        ({"one": {"a": "1", "b": "2"}}, {BLOCKED}),
        ({"size": 1, "mode": "A"}, {("FieldValueForbidden", "spec.size")}),
        ({"size": 5}, {("FieldValueInvalid", "spec")}),
        ([], {("FieldValueTypeInvalid", "spec"), BLOCKED}),
    ],
)
def test_what_the_schema_refuses(
    target: Target, widgets: Defined, ns: str, spec: Any, causes: set[tuple[str, str]]
) -> None:
    refused = target.create(widgets.path(ns), widgets.body("a", spec))
    assert (refused.status, refused.reason, refused.causes) == (422, "Invalid", causes)
    assert refused.body["details"]["kind"] == "Widget"
    assert refused.body["details"]["group"] == widgets.group


@pytest.mark.parametrize(
    "spec",
    [
        {"port": 80},
        {"port": "http"},
        {"when": "2026-01-01T00:00:00Z"},
        {"ratio": 1},
        {"ratio": 0.5},
        {"tags": ["a", "b"]},
        {"map": {"a": "b", "x y": "c"}},
        {"maybe": None},
        {"one": {"b": "1"}},
        {"size": 2, "mode": "B"},
    ],
)
def test_what_the_schema_takes(target: Target, widgets: Defined, ns: str, spec: dict[str, Any]) -> None:
    made = target.create(widgets.path(ns), widgets.body("a", spec), dryRun="All").ok()
    assert made["spec"] == {"size": 2, **spec}


def test_messages_of_rules(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    assert "size must be under 5" in target.create(path, widgets.body("a", {"size": 5})).message
    refused = target.create(path, widgets.body("a", {"size": 1, "mode": "A"}))
    assert "spec.size: Forbidden: size must exceed 1 with mode" in refused.message


def test_rules_on_changes(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    spec = {"fixed": "q", "ports": [{"name": "p", "port": 5}, {"name": "q", "port": 9}]}
    target.create(path, widgets.body("a", spec)).ok()
    moved = {"spec": {"fixed": "z", "ports": [{"name": "q", "port": 9}, {"name": "p", "port": 4}]}}
    refused = target.patch(f"{path}/a", moved)
    wanted = {("FieldValueInvalid", "spec.ports[1].port"), ("FieldValueInvalid", "spec.fixed")}
    assert (refused.status, refused.causes) == (422, wanted)
    assert "failed rule: self == oldSelf" in refused.message
    assert "no shrinking" in refused.message
    added = {"spec": {"ports": [{"name": "q", "port": 9}, {"name": "p", "port": 6}, {"name": "r", "port": 1}]}}
    assert target.patch(f"{path}/a", added).status == 200


def test_the_status_is_written_apart(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    made = target.create(path, widgets.body("a", {"size": 3})).ok()
    same = target.patch(f"{path}/a", {"status": {"ok": True}}).ok()
    assert same == made
    patch = {"status": {"ok": True}, "spec": {"size": 4}, "metadata": {"labels": {"a": "b"}}}
    status = target.patch(f"{path}/a/status", patch).ok()
    assert (status["status"], status["spec"], status["metadata"].get("labels")) == ({"ok": True}, {"size": 3}, None)
    assert status["metadata"]["generation"] == 1
    changed = target.patch(f"{path}/a", {"spec": {"size": 4}}).ok()
    assert (changed["metadata"]["generation"], changed["status"]) == (2, {"ok": True})
    labelled = target.patch(f"{path}/a", {"metadata": {"labels": {"a": "b"}}}).ok()
    assert labelled["metadata"]["generation"] == 2
    replaced = target.put(f"{path}/a/status", {**labelled, "status": {"ok": False}}).ok()
    assert replaced["status"] == {"ok": False}
    stale = target.put(f"{path}/a/status", {**labelled, "status": {}})
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert target.get(f"{path}/a/status").ok() == replaced
    managers = {(each["operation"], each.get("subresource", "")) for each in replaced["metadata"]["managedFields"]}
    assert managers == {("Update", ""), ("Update", "status")}


def test_a_replacement_needs_a_version(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    target.create(path, widgets.body("a", {"size": 3})).ok()
    blind = target.put(f"{path}/a", widgets.body("a", {"size": 4}))
    assert (blind.status, blind.causes) == (422, {("FieldValueInvalid", "metadata.resourceVersion")})
    assert target.put(f"{path}/none", widgets.body("none", metadata={"resourceVersion": "4"})).status == 404


def test_patches_of_custom_resources(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    target.create(path, widgets.body("a", {"size": 3})).ok()
    strategic = target.patch(f"{path}/a", {"spec": {"size": 4}}, "strategic")
    assert (strategic.status, strategic.reason) == (415, "UnsupportedMediaType")
    unknown = target.patch(f"{path}/a", {"spec": {"unknown": 4}})
    assert (unknown.status, unknown.warnings) == (200, ['299 - "unknown field \\"spec.unknown\\""'])
    assert target.patch(f"{path}/a", {"spec": {"unknown": 4}}, fieldValidation="Strict").status == 422
    defaulted = target.patch(f"{path}/a", [{"op": "remove", "path": "/spec/size"}], "json").ok()
    assert defaulted["spec"] == {"size": 2}


def test_deletion_counts_as_a_generation(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    target.create(path, widgets.body("a", {"size": 3}, metadata={"finalizers": ["example.com/hold"]})).ok()
    assert target.delete(f"{path}/a").ok()["metadata"]["generation"] == 2
    target.patch(f"{path}/a", {"metadata": {"finalizers": None}}).ok()


def test_an_object_that_a_stricter_schema_would_refuse_can_still_be_changed(target: Target, ns: str) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}, "size": {"type": "integer"}}}
    defined = target.define(schema)
    path = defined.path(ns)
    target.create(path, defined.body("a", {"text": "long enough", "size": 1})).ok()
    _change_schema(target, defined, {"text": {"type": "string", "maxLength": 3}, "size": {"type": "integer"}})
    target.eventually(lambda: target.create(path, defined.body("b", {"text": "long"}), dryRun="All").status == 422)
    assert target.patch(f"{path}/a", {"spec": {"size": 2}}).ok()["spec"]["size"] == 2
    assert target.patch(f"{path}/a", {"spec": {"text": "longer still"}}).status == 422


def test_defaults_of_a_later_schema_are_seen_on_objects_from_before(target: Target, ns: str) -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    defined = target.define(schema)
    path = defined.path(ns)
    target.create(path, defined.body("a", {"size": 1})).ok()
    _change_schema(target, defined, {"size": {"type": "integer"}, "mode": {"type": "string", "default": "A"}})
    target.eventually(lambda: target.get(f"{path}/a").ok()["spec"] == {"size": 1, "mode": "A"})


def _change_schema(target: Target, defined: Defined, properties: dict[str, Any]) -> None:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"
    step = [{"op": "replace", "path": path, "value": properties}]
    target.patch(f"{DEFINITIONS}/{defined.name}", step, "json").ok()


def test_two_versions_show_the_same_objects(target: Target, ns: str) -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}, "note": {"type": "string"}}}
    young = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    other = {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": young}}
    defined = target.define(schema, versions=[other])
    made = target.create(defined.path(ns), defined.body("a", {"size": 1, "note": "n"})).ok()
    old = defined.path(ns, "v1beta1")
    seen = target.get(f"{old}/a").ok()
    assert (seen["apiVersion"], seen["spec"]) == (f"{defined.group}/v1beta1", {"size": 1})
    assert seen["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert [item["spec"] for item in target.get(old).ok()["items"]] == [{"size": 1}]
    written = target.create(old, defined.body("b", {"size": 2}, "v1beta1")).ok()
    with target.watch(old, resourceVersion=made["metadata"]["resourceVersion"]) as events:
        event = events.next()
    assert event == {"type": "ADDED", "object": written}
    wrong = target.create(old, defined.body("c", {"size": 2}, "v1"))
    assert (wrong.status, wrong.reason) == (400, "BadRequest")
    group = target.get(f"/apis/{defined.group}").ok()
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]
    target.patch(
        f"{DEFINITIONS}/{defined.name}", [{"op": "replace", "path": "/spec/versions/1/served", "value": False}], "json"
    )
    target.eventually(lambda: target.get(old).status == 404)


def test_scale(target: Target, ns: str) -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    scale = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}
    defined = target.define(schema, subresources={"status": {}, "scale": scale})
    path = defined.path(ns)
    target.create(path, defined.body("a", {"count": 3})).ok()
    seen = target.get(f"{path}/a/scale").ok()
    assert (seen["kind"], seen["apiVersion"], seen["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 3})
    assert target.patch(f"{path}/a/scale", {"spec": {"replicas": 2}}).ok()["spec"] == {"replicas": 2}
    assert target.get(f"{path}/a").ok()["spec"] == {"count": 2}


def test_selectable_fields(target: Target, ns: str) -> None:
    schema = {"type": "object", "properties": {"color": {"type": "string"}}}
    defined = target.define(schema, selectableFields=[{"jsonPath": ".spec.color"}])
    path = defined.path(ns)
    for name, color in (("a", "red"), ("b", "blue")):
        target.create(path, defined.body(name, {"color": color})).ok()
    found = target.get(path, query={"fieldSelector": "spec.color=red"}).ok()["items"]
    assert [item["metadata"]["name"] for item in found] == ["a"]
    assert target.get(path, query={"fieldSelector": "spec.size=1"}).status == 400


def test_watchers_see_objects_go_with_their_definition(target: Target, ns: str) -> None:
    defined = target.define({"type": "object"})
    path = defined.path(ns)
    for name in ("a", "b"):
        target.create(path, defined.body(name)).ok()
    version = target.get(path).ok()["metadata"]["resourceVersion"]
    with target.watch(path, resourceVersion=version) as events:
        deleted = target.delete(f"{DEFINITIONS}/{defined.name}").ok()
        assert deleted["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert sorted(events.take(2)) == [("DELETED", "a"), ("DELETED", "b")]
        assert events.next() is None
    gone = target.eventually(lambda: (answer := target.get(path)).status == 404 and answer)
    assert gone.raw.strip() == b"404 page not found"
    target.eventually(lambda: target.get(f"{DEFINITIONS}/{defined.name}").status == 404)


def test_names_that_are_taken(target: Target) -> None:
    defined = target.define({"type": "object"})
    body = definition(defined.group, {"type": "object"})
    body["metadata"]["name"] = f"others.{defined.group}"
    body["spec"]["names"] = {"kind": "Widget", "plural": "others"}
    target.create(DEFINITIONS, body).ok()
    path = f"{DEFINITIONS}/others.{defined.group}"

    def conditions() -> dict[str, tuple[str, str]]:
        found = (target.get(path).ok().get("status") or {}).get("conditions") or []
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    target.eventually(lambda: conditions().get("NamesAccepted", ("", ""))[0] == "False")
    assert conditions()["NamesAccepted"] == ("False", "ListKindConflict")
    assert conditions()["Established"] == ("False", "NotAccepted")
    assert target.get(f"/apis/{defined.group}/v1/others").status == 404
    defined.remove()
    target.eventually(lambda: established(target.get(path).ok()))
    target.delete(path)


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        ({"spec": {"scope": "Foo"}}, {("FieldValueNotSupported", "spec.scope")}),
        ({"metadata": {"name": "wrong.name"}}, {("FieldValueInvalid", "metadata.name")}),
    ],
)
def test_definitions_that_are_refused(target: Target, change: dict[str, Any], reasons: set[tuple[str, str]]) -> None:
    body = definition("refused.example.com", {"type": "object"})
    for part, members in change.items():
        body[part] = {**body[part], **members}
    refused = target.create(DEFINITIONS, body)
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert reasons <= refused.causes


FIELD = "spec.validation.openAPIV3Schema.properties[spec].properties[f]"


@pytest.mark.parametrize(
    ("schema", "cause"),
    [
        ({"$ref": "#/x"}, ("FieldValueForbidden", f"{FIELD}.$ref")),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            ("FieldValueForbidden", f"{FIELD}.uniqueItems"),
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ("FieldValueForbidden", f"{FIELD}.anyOf[0].type")),
        ({"description": "x"}, ("FieldValueRequired", f"{FIELD}.type")),
        ({"type": "frob"}, ("FieldValueNotSupported", f"{FIELD}.type")),
        (
            {"type": "object", "default": {}, "required": ["q"], "properties": {"q": {"type": "string"}}},
            ("FieldValueRequired", f"{FIELD}.default.q"),
        ),
        ({"type": "string", "pattern": "(?=x)"}, ("FieldValueInvalid", f"{FIELD}.pattern")),
        (
            {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self +"}]},
            ("FieldValueInvalid", f"{FIELD}.x-kubernetes-validations[0].rule"),
        ),
        (
            {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self.foo == 1"}]},
            ("FieldValueInvalid", f"{FIELD}.x-kubernetes-validations[0].rule"),
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
            ("FieldValueRequired", f"{FIELD}.x-kubernetes-list-map-keys"),
        ),
        (
            {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string"}}},
            ("FieldValueForbidden", f"{FIELD}.additionalProperties"),
        ),
        ({"type": "array"}, ("FieldValueRequired", f"{FIELD}.items")),
    ],
)
def test_schemas_that_are_refused(target: Target, schema: dict[str, Any], cause: tuple[str, str]) -> None:
    body = definition("refused.example.com", {"type": "object", "properties": {"f": schema}})
    refused = target.create(DEFINITIONS, body, dryRun="All")
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert cause in refused.causes


def test_a_number_for_a_flag_of_a_schema(target: Target) -> None:
    schema = {"type": "object", "properties": {"f": {"type": "integer", "exclusiveMinimum": 3}}}
    assert target.create(DEFINITIONS, definition("refused.example.com", schema), dryRun="All").status == 400


def test_what_a_schema_keeps_and_what_it_drops(target: Target) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "const": "x", "title": "A", "default": None, "example": "y"},
            "closed": {"type": "object", "additionalProperties": False},
        },
    }
    made = target.create(DEFINITIONS, definition("kept.example.com", schema), dryRun="All").ok()
    kept = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert kept == {
        "a": {"type": "string", "title": "A", "example": "y"},
        "closed": {"type": "object", "additionalProperties": False},
    }


def test_closed_objects_take_no_members(target: Target, ns: str) -> None:
    schema = {"type": "object", "properties": {"closed": {"type": "object", "additionalProperties": False}}}
    defined = target.define(schema)
    path = defined.path(ns)
    assert target.create(path, defined.body("a", {"closed": {}})).status == 201
    refused = target.create(path, defined.body("b", {"closed": {"x": 1}}))
    assert (refused.status, refused.reason) == (422, "Invalid")


def test_a_stale_version_in_a_patch_of_the_status(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    made = target.create(path, widgets.body("a", {"size": 3})).ok()
    target.patch(f"{path}/a", {"spec": {"size": 4}}).ok()
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "status": {"ok": True}}
    refused = target.patch(f"{path}/a/status", stale)
    assert (refused.status, refused.reason) == (409, "Conflict")


def test_true_is_not_one_and_one_is_not_a_fraction(target: Target, widgets: Defined, ns: str) -> None:
    path = widgets.path(ns)
    target.create(path, widgets.body("a", {"free": {"x": True, "list": [1]}})).ok()
    for patch in ({"x": 1}, {"x": True}, {"list": [True]}, {"list": [1]}):
        before = target.get(f"{path}/a").ok()
        after = target.patch(f"{path}/a", {"spec": {"free": patch}}).ok()
        assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
        assert json.dumps(after["spec"]["free"] | patch) == json.dumps(after["spec"]["free"])
