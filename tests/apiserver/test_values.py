"""Numbers, formats and embedded resources in custom resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.targets import Defined, Target

FORMATS = (
    "bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "duration", "email", "hexcolor", "hostname",
    "ipv4", "ipv6", "isbn", "mac", "rgbcolor", "ssn", "uri", "uuid", "uuid4", "unknown",
)  # fmt: skip
SPEC = {
    "type": "object",
    "properties": {
        "integer": {"type": "integer"},
        "int32": {"type": "integer", "format": "int32"},
        "number": {"type": "number"},
        "float": {"type": "number", "format": "float"},
        "intOrString": {"x-kubernetes-int-or-string": True},
        "resource": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
        **{name: {"type": "string", "format": name} for name in FORMATS},
    },
}
RANGE = ("FieldValueInvalid", "<nil>")


@pytest.fixture(scope="module")
def defined(target: Target) -> Iterator[Defined]:
    made = target.define(SPEC)
    yield made
    made.remove()


@pytest.fixture(scope="module")
def widgets(target: Target, defined: Defined) -> str:
    return defined.path(target.namespace())


@pytest.mark.parametrize(
    ("member", "text", "stored"),
    [
        ("integer", "9223372036854775807", "9223372036854775807"),
        ("integer", "1.0", "1"),
        ("integer", "1e3", "1000"),
        ("number", "18446744073709551616", "18446744073709552000"),
        ("number", "2.0", "2"),
        ("number", "1.5", "1.5"),
        ("intOrString", "1e2", "100"),
        ("int32", "-2147483648", "-2147483648"),
        ("float", "3.4e38", "340000000000000000000000000000000000000"),
    ],
)
def test_numbers_are_written_as_go_writes_them(
    target: Target, defined: Defined, widgets: str, member: str, text: str, stored: str
) -> None:
    head = f'"apiVersion":"{defined.group}/v1","kind":"Widget","metadata":{{"generateName":"a-"}}'
    made = target.request("POST", widgets, f'{{{head},"spec":{{"{member}":{text}}}}}')
    assert made.status == 201
    if member != "float":
        assert f'"{member}":{stored}}}'.encode() in made.raw
    name = made.body["metadata"]["name"]
    assert target.get(f"{widgets}/{name}").ok()["spec"][member] == pytest.approx(float(stored))


@pytest.mark.parametrize(
    ("member", "value", "causes"),
    [
        ("integer", 2**63, {RANGE, ("FieldValueTypeInvalid", "spec.integer")}),
        ("integer", -(2**63) - 1, {RANGE, ("FieldValueTypeInvalid", "spec.integer")}),
        ("integer", 1.5, {RANGE, ("FieldValueTypeInvalid", "spec.integer")}),
        ("int32", 2**31, {RANGE}),
        ("int32", -(2**31) - 1, {RANGE}),
        ("float", 3.5e38, {RANGE}),
        ("intOrString", 10**20, {("FieldValueTypeInvalid", "spec.intOrString")}),
    ],
)
def test_numbers_out_of_range(
    target: Target, defined: Defined, widgets: str, member: str, value: float, causes: Any
) -> None:
    answer = target.create(widgets, defined.body("a", {member: value}), dryRun="All")
    assert (answer.status, answer.causes) == (422, causes)


@pytest.mark.parametrize(
    ("form", "valid", "invalid"),
    [
        ("bsonobjectid", ["507f1f77bcf86cd799439011"], ["x"]),
        ("byte", ["YQ=="], ["", "YQ", "Y!"]),
        ("cidr", ["1.2.3.4/8", "::/0"], ["1.2.3.4", "1.2.3.4/33"]),
        ("creditcard", ["4111111111111111"], ["4111111111111112", "x"]),
        ("date", ["2026-01-02"], ["2026-1-2", "2026-13-01"]),
        ("date-time", ["2026-01-02T03:04:05Z", "2026-01-02t03:04:05.1+02:00"], ["2026-01-02", "2026-02-30T00:00:00Z"]),
        ("duration", ["1h30m", "2 weeks", "1d", "P1D"], ["", "1", "3 fortnights"]),
        ("email", ["a@b", "A <a@b.c>"], ["a", "@b"]),
        ("hexcolor", ["#fff", "ffffff"], ["x"]),
        ("hostname", ["a", "a-", "a.bb", "é.com"], ["a.b", "a_b", "a..bb", "-a", "a.bb."]),
        ("ipv4", ["1.2.3.4", "01.2.3.4"], ["::1", "1.2.3"]),
        ("ipv6", ["::1"], ["1.2.3.4"]),
        ("isbn", ["0306406152", "9780306406157"], ["0306406153"]),
        ("mac", ["01:23:45:67:89:ab", "0123.4567.89ab"], ["01:23:45:67:89", ""]),
        ("rgbcolor", ["rgb(1,2,3)"], ["rgb(1,2)", "x"]),
        ("ssn", ["111-11-1111"], ["x"]),
        ("uri", ["http://a", "/a"], ["a", ""]),
        ("uuid", ["123e4567e89b12d3a456426614174000"], ["x"]),
        ("uuid4", ["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]),
        ("unknown", ["", "anything"], []),
    ],
)
def test_formats(target: Target, defined: Defined, widgets: str, form: str, valid: Any, invalid: Any) -> None:
    for text in valid:
        assert target.create(widgets, defined.body("a", {form: text}), dryRun="All").status == 201, text
    for text in invalid:
        answer = target.create(widgets, defined.body("a", {form: text}), dryRun="All")
        assert (answer.status, answer.causes) == (422, {("FieldValueTypeInvalid", f"spec.{form}")}), text


TYPE = {"apiVersion": "v1", "kind": "X"}


@pytest.mark.parametrize(
    ("resource", "status", "fields"),
    [
        ({}, 422, {"apiVersion", "kind"}),
        ({"apiVersion": "a/b/c", "kind": "X"}, 422, {"apiVersion"}),
        ({"apiVersion": "v1", "kind": "x y"}, 422, {"kind"}),
        ({**TYPE, "metadata": {"name": "Bad/Name"}}, 422, {"metadata.name"}),
        ({**TYPE, "metadata": {"labels": {"a b": "c"}}}, 422, {"metadata.labels"}),
        ({**TYPE, "metadata": {"namespace": "Bad NS"}}, 422, {"metadata.namespace"}),
        ({"apiVersion": 1, "kind": "X"}, 400, set()),
        ({**TYPE, "metadata": []}, 400, set()),
        ({**TYPE, "metadata": {"name": 1}}, 400, set()),
    ],
)
def test_embedded_resources_that_are_refused(
    target: Target, defined: Defined, widgets: str, resource: Any, status: int, fields: Any
) -> None:
    answer = target.create(widgets, defined.body("a", {"resource": resource}), dryRun="All")
    assert answer.status == status
    assert {field.removeprefix("spec.resource.") for _, field in answer.causes} == fields


def test_the_metadata_of_an_embedded_resource_is_pruned_and_owned(
    target: Target, defined: Defined, widgets: str
) -> None:
    resource = {**TYPE, "metadata": {"name": "A_B", "other": 1, "finalizers": ["x"]}, "spec": {"a": "x", "b": 1}}
    answer = target.create(widgets, defined.body("embedded", {"resource": resource}))
    made = answer.ok()
    assert answer.warnings == [
        '299 - "unknown field \\"spec.resource.metadata.other\\""',
        '299 - "unknown field \\"spec.resource.spec.b\\""',
    ]
    assert made["spec"]["resource"] == {**TYPE, "metadata": {"name": "A_B", "finalizers": ["x"]}, "spec": {"a": "x"}}
    (entry,) = made["metadata"]["managedFields"]
    owned = entry["fieldsV1"]["f:spec"]["f:resource"]["f:metadata"]
    assert owned == {".": {}, "f:name": {}, "f:finalizers": {".": {}, 'v:"x"': {}}}
    strict = target.create(widgets, defined.body("b", {"resource": resource}), fieldValidation="Strict")
    assert (strict.status, "spec.resource.metadata.other" in strict.message) == (400, True)


def test_a_finalizer_without_a_domain_is_warned_of_when_it_is_added(
    target: Target, defined: Defined, widgets: str
) -> None:
    body = defined.body("finalized", {}, metadata={"finalizers": ["plain"]})
    answer = target.create(widgets, body)
    assert answer.status == 201
    assert len(answer.warnings) == 1
    assert "prefer a domain-qualified finalizer name to avoid" in answer.warnings[0]
    changed = target.patch(f"{widgets}/finalized", {"metadata": {"finalizers": ["plain", "dotted.name"]}})
    assert len(changed.warnings) == 1
    assert "name including a path (/)" in changed.warnings[0]
    target.patch(f"{widgets}/finalized", {"metadata": {"finalizers": None}}).ok()


@pytest.mark.parametrize(
    ("name", "value", "wanted", "shown", "range_"),
    [
        ("integer", 1.5, "integer", "number", "(default format)"),
        ("integer", 10**19, "integer", "number", "(default format)"),
        ("integer", "x", "integer", "string", ""),
        ("int32", 1.5, "int32", "float64", "with format int32"),
        ("int32", 2**63, "int32", "float64", "with format int32"),
        ("int32", True, "int32", "", ""),
        ("int32", [], "integer", "array", ""),
        ("int32", "x", "integer", "string", ""),
        ("float", True, "float", "", ""),
        ("float", "x", "number", "string", ""),
        ("date", 1, "date", "int64", ""),
        ("date", 1.5, "date", "float64", ""),
        ("date", True, "date", "", ""),
    ],
)
def test_words_for_values_of_a_wrong_type(
    target: Target, defined: Defined, widgets: str, name: str, value: Any, wanted: str, shown: str, range_: str
) -> None:
    answer = target.create(widgets, defined.body("words", {name: value}), dryRun="All")
    assert answer.status == 422
    path = f"spec.{name}"
    expected = [f'Invalid value: "{shown}": {path} in body must be of type {wanted}: "{shown}"']
    if range_:
        expected.append(f'Invalid value: "": Checked value must be of type integer {range_} in {path}')
    assert [cause["message"] for cause in answer.body["details"]["causes"]] == expected
