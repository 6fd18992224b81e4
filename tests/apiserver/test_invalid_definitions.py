"""CustomResourceDefinitions that are refused, and warnings about accepted ones."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from support.targets import DEFINITIONS, Answer, Target, definition

STRING = {"type": "string"}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}
SET_WARNING = (
    'x-kubernetes-list-type: set for items of type \\"array\\" is not supported by server-side apply or CEL validation '
    "rules"
)
ROOT = "spec.validation.openAPIV3Schema"
HERE = f"{ROOT}.properties[spec].properties[a]"
KEYED = {"type": "object", "required": ["k"], "properties": {"k": STRING}}


def array(kind: str | None, items: Any, *keys: str) -> dict[str, Any]:
    made = {"type": "array", "items": items}
    if kind:
        made["x-kubernetes-list-type"] = kind
    return made | ({"x-kubernetes-list-map-keys": list(keys)} if keys else {})


def create(target: Target, body: Any) -> Answer:
    return target.create(DEFINITIONS, body, dryRun="All")


def with_member(schema: Any) -> Any:
    return definition(f"g{secrets.token_hex(4)}.example.com", {"type": "object", "properties": {"a": schema}})


def with_version(**parts: Any) -> Any:
    spec = {"type": "object", "properties": MEMBERS}
    return definition(f"g{secrets.token_hex(4)}.example.com", spec, **parts)


def with_spec(path: str, value: Any) -> Any:
    body = with_member(STRING)
    *outer, last = path.split(".")
    part = body["spec"]
    for name in outer:
        part = part[name]
    part[last] = value
    return body


MEMBERS: dict[str, Any] = {
    "text": {**STRING, "maxLength": 9},
    "number": {"type": "number"},
    "count": {"type": "integer"},
    "object": {"type": "object", "properties": {"x": {**STRING, "maxLength": 9}}},
    "list": {**array(None, {**STRING, "maxLength": 9}), "maxItems": 3},
    "map": {"type": "object", "additionalProperties": {**STRING, "maxLength": 9}, "maxProperties": 3},
    "intOrString": {"x-kubernetes-int-or-string": True},
    "open": {"type": "object", **OPEN},
}


@pytest.mark.parametrize(
    ("schema", "reason", "where"),
    [
        (array("set", {"type": "object", "properties": {"b": STRING}}), "Invalid", ".items.x-kubernetes-map-type"),
        (array("set", {**STRING, "nullable": True}), "Forbidden", ".items.nullable"),
        (array("map", STRING, "k"), "Invalid", ".items.type"),
        (array("map", {**KEYED, "nullable": True}, "k"), "Forbidden", ".items.nullable"),
        (array("map", KEYED, "k", "k"), "Invalid", ".x-kubernetes-list-map-keys"),
        (array("map", KEYED, "none"), "Invalid", ".x-kubernetes-list-map-keys"),
        (array("map", {"type": "object", **OPEN}, "k"), "Invalid", ".x-kubernetes-list-map-keys"),
        (array("map", KEYED), "Required", ".x-kubernetes-list-map-keys"),
        (array(None, KEYED, "k"), "Required", ".x-kubernetes-list-type"),
        (array("atomic", KEYED, "k"), "Invalid", ".x-kubernetes-list-type"),
        (array("other", STRING), "NotSupported", ".x-kubernetes-list-type"),
        (
            array("map", {"type": "object", "required": ["k"], "properties": {"k": {"type": "object"}}}, "k"),
            "Invalid",
            ".items.properties[k].type",
        ),
        ({"type": "array", "items": [STRING]}, "Forbidden", ".items"),
        ({"type": "array"}, "Required", ".items"),
        ({**STRING, "x-kubernetes-map-type": "atomic"}, "Invalid", ".type"),
        ({"type": "object", "x-kubernetes-map-type": "other"}, "NotSupported", ".x-kubernetes-map-type"),
        ({"x-kubernetes-embedded-resource": True, **OPEN}, "Required", ".type"),
        ({"type": "object", "x-kubernetes-embedded-resource": True}, "Required", ".properties"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, "Invalid", f".{next(iter(OPEN))}"),
        (
            {"type": "object", "properties": {"x": STRING}, "additionalProperties": STRING},
            "Forbidden",
            ".additionalProperties",
        ),
        ({**STRING, "definitions": {"a": STRING}}, "Forbidden", ".definitions"),
        ({**STRING, "patternProperties": {"a": STRING}}, "Forbidden", ".patternProperties"),
        ({**STRING, "id": "x"}, "Forbidden", ".id"),
        ({**STRING, "$ref": "#/x"}, "Forbidden", ".$ref"),
        ({**STRING, "uniqueItems": True}, "Forbidden", ".uniqueItems"),
        ({**STRING, "allOf": [{"description": "x"}]}, "Forbidden", ".allOf[0].description"),
        ({**STRING, "allOf": [{"nullable": True}]}, "Forbidden", ".allOf[0].nullable"),
        ({**STRING, "pattern": "("}, "Invalid", ".pattern"),
        ({"type": "other"}, "NotSupported", ".type"),
        ({"type": "integer", "format": "int32", "default": 2**40}, "Invalid", ".default"),
        ({**STRING, "pattern": "^a$", "default": "b"}, "Invalid", ".default"),
    ],
)
def test_schemas_that_are_refused(target: Target, schema: Any, reason: str, where: str) -> None:
    answer = create(target, with_member(schema))
    assert (answer.status, answer.causes) == (422, {(f"FieldValue{reason}", HERE + where)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("required", [True]),
        ("required", "a"),
        ("description", 1),
        ("type", ["string"]),
        ("format", 1),
        ("pattern", 1),
        ("enum", "x"),
        ("maxLength", 1.5),
        ("maximum", "x"),
        ("nullable", "x"),
        ("allOf", "x"),
        ("x-kubernetes-validations", "x"),
        ("properties", []),
    ],
)
def test_members_of_a_schema_with_the_wrong_type(target: Target, name: str, value: Any) -> None:
    assert create(target, with_member({**STRING, name: value})).status == 400


@pytest.mark.parametrize(
    ("schema", "warning"),
    [
        ({**STRING, "format": "unknown"}, 'unrecognized format \\"unknown\\"'),
        ({"type": "integer", "format": "uint32"}, 'unrecognized format \\"uint32\\"'),
        (
            {**STRING, "other": 1},
            'unknown field \\"spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.a.other\\"',
        ),
        (
            array("set", {"type": "array", "items": STRING}),
            SET_WARNING,
        ),
    ],
)
def test_schemas_with_a_warning(target: Target, schema: Any, warning: str) -> None:
    answer = create(target, with_member(schema))
    assert (answer.status, answer.warnings) == (201, [f'299 - "{warning}"'])


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("names.plural", "Widgets", "Invalid"),
        ("names.listKind", "Widget", "Invalid"),
        ("names.shortNames", ["W"], "Invalid"),
        ("names.categories", ["a b"], "Invalid"),
        ("group", "single", "Invalid"),
        ("scope", "cluster", "NotSupported"),
        ("preserveUnknownFields", True, "Invalid"),
        ("conversion", {}, "Required"),
        ("conversion", {"strategy": "Other"}, "NotSupported"),
        ("conversion", {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}, "Forbidden"),
    ],
)
def test_specs_that_are_refused(target: Target, path: str, value: Any, reason: str) -> None:
    answer = create(target, with_spec(path, value))
    assert answer.status == 422
    field = f"spec.{path}"
    assert any(each == f"FieldValue{reason}" and at.startswith(field) for each, at in answer.causes), answer.causes


@pytest.mark.parametrize(
    ("parts", "reason", "where"),
    [
        ({"deprecationWarning": "x"}, "Invalid", "spec.versions[0].deprecationWarning"),
        ({"deprecated": True, "deprecationWarning": ""}, "Invalid", "spec.versions[0].deprecationWarning"),
        ({"deprecated": True, "deprecationWarning": "a\nb"}, "Invalid", "spec.versions[0].deprecationWarning"),
        ({"additionalPrinterColumns": [{"name": "A", "type": "string"}]}, "Required", "[0].JSONPath"),
        ({"additionalPrinterColumns": [{"name": "A", "type": "x", "jsonPath": ".a"}]}, "Invalid", "[0].type"),
        ({"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": "a"}]}, "Invalid", "[0].JSONPath"),
        ({"subresources": {"scale": {"specReplicasPath": ".spec.n"}}}, "Required", "scale.statusReplicasPath"),
        (
            {"subresources": {"scale": {"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n"}}},
            "Invalid",
            "scale.specReplicasPath",
        ),
        ({"selectableFields": [{"jsonPath": ".spec.none"}]}, "Invalid", "[0].jsonPath"),
        ({"selectableFields": [{"jsonPath": ".spec.number"}]}, "Invalid", "[0].jsonPath"),
        ({"selectableFields": [{"jsonPath": ".spec.list[0]"}]}, "Invalid", "[0].jsonPath"),
        ({"selectableFields": [{"jsonPath": ""}]}, "Required", "[0].jsonPath"),
        ({"selectableFields": [{"jsonPath": ".spec.text"}] * 2}, "Duplicate", "[1].jsonPath"),
    ],
)
def test_versions_that_are_refused(target: Target, parts: Any, reason: str, where: str) -> None:
    answer = create(target, with_version(**parts))
    ((found, at),) = answer.causes
    assert (answer.status, found) == (422, f"FieldValue{reason}")
    assert at.endswith(where)


def rule_answer(target: Target, rule: Any) -> Answer:
    spec = {"type": "object", "properties": MEMBERS, "x-kubernetes-validations": [rule]}
    return create(target, definition(f"g{secrets.token_hex(4)}.example.com", spec))


@pytest.mark.parametrize(
    ("rule", "member", "reason"),
    [
        ({"rule": "true", "message": "a\nb"}, "message", "Invalid"),
        ({"rule": "true", "message": "  "}, "message", "Invalid"),
        ({"rule": "true", "reason": "Other"}, "reason", "NotSupported"),
        ({"rule": "true", "fieldPath": "text"}, "fieldPath", "Invalid"),
        ({"rule": "true", "fieldPath": ".none"}, "fieldPath", "Invalid"),
        ({"rule": "true", "fieldPath": ".list[0]"}, "fieldPath", "Invalid"),
        ({"rule": "true", "optionalOldSelf": True}, "optionalOldSelf", "Invalid"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression", "Invalid"),
        ({"rule": "true", "messageExpression": "self.none"}, "messageExpression", "Invalid"),
        ({"rule": ""}, "rule", "Required"),
    ],
)
def test_rules_with_invalid_members(target: Target, rule: Any, member: str, reason: str) -> None:
    answer = rule_answer(target, rule)
    where = f"{ROOT}.properties[spec].x-kubernetes-validations[0].{member}"
    assert (answer.status, answer.causes) == (422, {(f"FieldValue{reason}", where)})


@pytest.mark.parametrize(
    "rule",
    [
        "self.text == 1",
        "self.none == 'x'",
        "has(self.none)",
        "self.object.none == 'x'",
        "self.open.x == 1",
        "self.metadata.name == 'x'",
        "self.text",
        "self.count == 1.0",
        "self.count > 'a'",
        "self.list.all(x, x == 1)",
        "self.map['a'] == 1",
        "self.text.matches('(')",
        "duration('x') > duration('1s')",
        "cel.bind(x, self.text, x == 'a')",
        "self.text ===",
        "other(self.text)",
    ],
)
def test_rules_that_do_not_compile(target: Target, rule: str) -> None:
    answer = rule_answer(target, {"rule": rule})
    where = f"{ROOT}.properties[spec].x-kubernetes-validations[0].rule"
    assert (answer.status, answer.causes) == (422, {("FieldValueInvalid", where)})


@pytest.mark.parametrize(
    "rule",
    [
        "self.text == 'self.none'",
        "self.text.size() > 1 && self.?text.orValue('') != ''",
        "has(self.object.x) && self.object.x == 'a'",
        "self.number > 1",
        "self.intOrString == 1 || self.intOrString == 'x'",
        "self.list.exists_one(x, x == 'a') && self.list[0] == 'a'",
        "self.map.all(k, k.startsWith('a')) && self.map['a'] == 'x'",
        "dyn(self.text) == 1",
        "self == oldSelf || oldSelf.text == 'x'",
        "self.text in ['a'] || self.text in self.map",
        "timestamp(self.text) > timestamp('2020-01-01T00:00:00Z')",
    ],
)
def test_rules_that_compile(target: Target, rule: str) -> None:
    assert rule_answer(target, {"rule": rule}).status == 201


def test_an_optional_old_value(target: Target) -> None:
    rule = {"rule": "!oldSelf.hasValue() || oldSelf.value().text == self.text", "optionalOldSelf": True}
    assert rule_answer(target, rule).status == 201
