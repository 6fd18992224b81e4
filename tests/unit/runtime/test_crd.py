"""The generator, shape by shape: what a model says and what the API server gets to read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, create_model
from pydantic.alias_generators import to_camel

from fivespot.runtime.crd import (
    Cel,
    Column,
    CrdVersion,
    Extra,
    RuledModel,
    SchemaError,
    crd,
    list_atomic,
    list_map,
    list_set,
    matches,
    nullable,
    preserve_unknown_fields,
    structural_schema,
    undefaulted,
)


class Colour(StrEnum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


_TIME_OF_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])?$"


class Mixed(Enum):
    ONE = 1
    TWO = "two"


class Point(BaseModel):
    """A point,
    somewhere."""

    x: int
    y: int = 0


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: str = "a"


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    known: str = "a"


class Tree(BaseModel):
    name: str = ""
    children: list[Tree] = []


class Named(BaseModel):
    name: str | None = None


class Left(BaseModel):
    kind: Literal["left"]


class Right(BaseModel):
    kind: Literal["right"]


class TypedExtra(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    known: str = "a"


POINT = {
    "description": "A point, somewhere.",
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
    "required": ["x"],
}
KEEP = "x-kubernetes-preserve-unknown-fields"


def field_schema(annotation: Any, default: Any = ...) -> dict[str, Any]:
    model: type[BaseModel] = create_model("Sample", field=(annotation, default))
    schema: dict[str, Any] = structural_schema(model)["properties"]["field"]
    return schema


SHAPES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "string": (str, ..., {"type": "string"}),
    "boolean default": (bool, True, {"type": "boolean", "default": True}),
    "reference is inlined": (Point, ..., POINT),
    "what is beside a reference wins": (
        Annotated[Point, Field(description="Here.")],
        ...,
        {**POINT, "description": "Here."},
    ),
    "optional loses null and default": (str | None, None, {"type": "string"}),
    "optional reference": (Point | None, None, POINT),
    "required but null": (str | None, ..., {"type": "string", "nullable": True}),
    "nullable on demand": (Annotated[str | None, nullable()], None, {"type": "string", "nullable": True}),
    "optional with a real default": (str | None, "a", {"type": "string", "default": "a"}),
    "int or string": (int | str, 3, {"x-kubernetes-int-or-string": True, "default": 3}),
    "anything": (Any, None, {KEEP: True}),
    "free object": (dict[str, Any], ..., {"type": "object", KEEP: True}),
    "bare object": (dict, ..., {"type": "object", KEEP: True}),
    "map": (dict[str, int], ..., {"type": "object", "additionalProperties": {"type": "integer"}}),
    "map of objects": (dict[str, Point], ..., {"type": "object", "additionalProperties": POINT}),
    "bounded map": (
        Annotated[dict[str, int], Field(max_length=3)],
        ...,
        {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer"}},
    ),
    "extra members kept": (
        Open,
        ...,
        {"type": "object", "properties": {"known": {"type": "string", "default": "a"}}, KEEP: True},
    ),
    "extra members refused are pruned": (
        Closed,
        ...,
        {"type": "object", "properties": {"known": {"type": "string", "default": "a"}}},
    ),
    "list of anything": (list, ..., {"type": "array", "items": {KEEP: True}}),
    "one value": (Literal["a"], "a", {"type": "string", "enum": ["a"], "default": "a"}),
    "several values": (Literal["a", "b"], ..., {"type": "string", "enum": ["a", "b"]}),
    "enum": (
        Colour,
        Colour.RED,
        {"description": "A colour.", "type": "string", "enum": ["red", "blue"], "default": "red"},
    ),
    "exclusive bounds": (
        Annotated[int, Field(gt=0, lt=9)],
        ...,
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": True},
    ),
    "inclusive bounds": (Annotated[float, Field(ge=0, le=9)], ..., {"type": "number", "minimum": 0, "maximum": 9}),
    "pattern and lengths": (
        Annotated[str, Field(pattern="^[a-z]+$", min_length=1, max_length=9)],
        ...,
        {"type": "string", "pattern": "^[a-z]+$", "minLength": 1, "maxLength": 9},
    ),
    "set": (set[str], ..., {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
    "list set": (
        Annotated[list[str], list_set()],
        ...,
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    ),
    "list map": (
        Annotated[list[Point], list_map("x")],
        ...,
        {"type": "array", "items": POINT, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["x"]},
    ),
    "list map by a key with a default": (
        Annotated[list[Point], list_map("x", "y")],
        ...,
        {"type": "array", "items": POINT, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["x", "y"]},
    ),
    "atomic list": (
        Annotated[list[Point], list_atomic()],
        ...,
        {"type": "array", "items": POINT, "x-kubernetes-list-type": "atomic"},
    ),
    "time of day is a pattern": (time, ..., {"type": "string", "pattern": _TIME_OF_DAY}),
    "instant": (datetime, ..., {"type": "string", "format": "date-time"}),
    "date with a default": (date, date(2027, 1, 31), {"type": "string", "format": "date", "default": "2027-01-31"}),
    "enumeration with a default": (
        Colour,
        Colour.RED,
        {"description": "A colour.", "type": "string", "default": "red", "enum": ["red", "blue"]},
    ),
    "set with a default in a fixed order": (
        frozenset[str],
        frozenset({"wed", "mon", "tue"}),
        {
            "type": "array",
            "default": ["mon", "tue", "wed"],
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        },
    ),
    "tuple of any length": (tuple[date, ...], ..., {"type": "array", "items": {"type": "string", "format": "date"}}),
    "tuple of one type": (
        tuple[int, int],
        ...,
        {"type": "array", "maxItems": 2, "minItems": 2, "items": {"type": "integer"}},
    ),
    "bytes have no format": (bytes, ..., {"type": "string"}),
    "known format": (Annotated[str, Extra({"format": "date-time"})], ..., {"type": "string", "format": "date-time"}),
    "default left to readers": (
        Annotated[list[str], undefaulted()],
        [],
        {"type": "array", "items": {"type": "string"}},
    ),
    "preserved members": (
        Annotated[Point, preserve_unknown_fields()],
        ...,
        {**POINT, KEEP: True},
    ),
    "object default without its nulls": (
        create_model("Inner", a=(str | None, None), b=(int, 1)),
        create_model("Inner", a=(str | None, None), b=(int, 1))(),
        {
            "type": "object",
            "default": {"b": 1},
            "properties": {"a": {"type": "string"}, "b": {"type": "integer", "default": 1}},
        },
    ),
    "rule": (
        Annotated[int, Cel("self > 1", "must be above 1", reason="FieldValueInvalid")],
        ...,
        {
            "type": "integer",
            "x-kubernetes-validations": [
                {"rule": "self > 1", "message": "must be above 1", "reason": "FieldValueInvalid"}
            ],
        },
    ),
    "rules add up, inner first": (
        Annotated[Annotated[int, Cel("self > 1", "a")] | None, Cel("self < 9", "b", optional_old_self=True)],
        None,
        {
            "type": "integer",
            "x-kubernetes-validations": [
                {"rule": "self > 1", "message": "a"},
                {"rule": "self < 9", "message": "b", "optionalOldSelf": True},
            ],
        },
    ),
    "pattern with a message": (
        Annotated[str, Field(max_length=9), matches(r"^a\.b$", "must be a.b")],
        ...,
        {
            "type": "string",
            "maxLength": 9,
            "x-kubernetes-validations": [{"rule": r"self.matches(r'^a\.b$')", "message": "must be a.b"}],
        },
    ),
}


@pytest.mark.parametrize(("annotation", "default", "expected"), SHAPES.values(), ids=SHAPES.keys())
def test_a_field_becomes_its_structural_form(annotation: Any, default: Any, expected: dict[str, Any]) -> None:
    assert field_schema(annotation, default) == expected


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "union": (str | list[str], ..., "union"),
    "discriminated union": (Annotated[Left | Right, Field(discriminator="kind")], ..., "union"),
    "int or string with bounds": (Annotated[int, Field(ge=1)] | str, ..., "int-or-string"),
    "tuple": (tuple[int, str], ..., "tuple"),
    "restricted keys": (dict[Colour, str], ..., "keys"),
    "timedelta": (timedelta, ..., "timedelta"),
    "decimal": (Decimal, ..., "union"),
    "default factory": (list[str], Field(default_factory=list), "default_factory"),
    "default misses a required member": (dict[str, Any] | Point, {}, "union"),
    "default beside its bounds": (Annotated[int, Field(ge=5)], 1, "below the minimum"),
    "default against its pattern": (Annotated[str, Field(pattern="^a$")], "b", "does not match"),
    "default too long": (Annotated[str, Field(max_length=1)], "bb", "size"),
    "default of another type": (int, "a", "not of type integer"),
    "default not in the enumeration": (Literal["a", "b"], "c", "not one of"),
    "default with a bad item": (list[Annotated[int, Field(le=1)]], [2], "above the maximum"),
    "enumeration of mixed types": (Mixed, ..., "mixed types"),
    "null alone": (None, ..., "null"),
    "list without item type": (Annotated[list, WithJsonSchema({"type": "array"})], ..., "items"),
    "typed extra members": (TypedExtra, ..., "typed extra"),
    "set of objects": (Annotated[list[Point], list_set()], ..., "scalars"),
    "list map without that member": (Annotated[list[Point], list_map("z")], ..., "not a scalar member"),
    "list map by an optional member": (
        Annotated[list[Named], list_map("name")],
        ...,
        "must be required",
    ),
    "list type on a map": (Annotated[dict[str, str], list_atomic()], ..., "belongs on a list"),
    "digit class": (Annotated[str, Field(pattern=r"^\d+$")], ..., "ASCII"),
    "word class": (Annotated[str, Field(pattern=r"^\w+$")], ..., "ASCII"),
    "function": (Callable[[], int], ..., "JSON schema"),
    "default that is no JSON": (Any, object(), "JSON schema"),
}


@pytest.mark.parametrize(("annotation", "default", "part"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_structural_schema_holds_is_refused(annotation: Any, default: Any, part: str) -> None:
    with pytest.raises(SchemaError, match=part):
        field_schema(annotation, default)


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", "(?>a)", r"(a)\1", "a++", "a*+", "a{2}+"]
)
def test_a_pattern_that_re2_lacks_is_refused(pattern: str) -> None:
    with pytest.raises(SchemaError, match="RE2"):
        field_schema(Annotated[str, Extra({"pattern": pattern})])


@pytest.mark.parametrize("pattern", ["^(?:a|b)$", r"^\(\?=$", "^[+]+$", r"^a\+b$", "^(?i)a$"])
def test_a_pattern_that_both_engines_know_is_kept(pattern: str) -> None:
    assert field_schema(Annotated[str, Extra({"pattern": pattern})])["pattern"] == pattern


def test_an_error_names_the_model_and_the_field_at_any_depth() -> None:
    class Inner(BaseModel):
        pair: tuple[int, str] | None = None

    class Outer(BaseModel):
        inners: list[Inner] = []

    with pytest.raises(SchemaError, match=r"^Inner\.pair: a tuple of different types") as caught:
        structural_schema(Outer)
    assert caught.value.where == "Inner.pair"

    class Items(BaseModel):
        matrix: list[tuple[int, str]] = []

    with pytest.raises(SchemaError, match=r"^Items\.matrix\[\]: "):
        structural_schema(Items)


def test_a_default_that_misses_a_required_member_is_refused() -> None:
    class Holder(BaseModel):
        point: Point = Point.model_construct()

    with pytest.raises(SchemaError, match=r"^Holder\.point: default \{'y': 0\} .* required member 'x' is missing"):
        structural_schema(Holder)


def test_recursion_ends_in_an_object_that_keeps_what_it_does_not_know() -> None:
    schema = structural_schema(Tree)
    child = schema["properties"]["children"]["items"]
    assert child == {"type": "object", KEEP: True}
    assert schema["properties"]["name"] == {"type": "string", "default": ""}


def test_a_member_called_title_is_not_noise() -> None:
    class Book(BaseModel):
        title: str
        examples: list[str] = []

    assert list(structural_schema(Book)["properties"]) == ["title", "examples"]
    assert "title" not in structural_schema(Book)


def test_docstrings_flow_and_keep_their_paragraphs() -> None:
    class Noted(BaseModel):
        """One
        line.

        Another
        paragraph.
        """

        model_config = ConfigDict(use_attribute_docstrings=True, alias_generator=to_camel)
        some_field: int
        """What it
        means."""

    schema = structural_schema(Noted)
    assert schema["description"] == "One line.\n\nAnother paragraph."
    assert schema["properties"]["someField"]["description"] == "What it means."


def test_a_rule_judges_in_python_too() -> None:
    class Ruled(BaseModel):
        size: Annotated[int, Cel("self % 2 == 0", "must be even {sic}", check=lambda value: value % 2 == 0)]
        code: Annotated[str, matches("^a{2}$", "must be aa")] = "aa"
        changed_only: Annotated[int, Cel("self == oldSelf", "cannot change")] = 0
        points: Annotated[list[Point], list_map("x")] = []
        words: Annotated[list[str], list_set()] = []

    fine = {"size": 2, "code": "aa", "points": [{"x": 1}, {"x": 2}], "words": ["a", "b"]}
    assert Ruled.model_validate(fine).size == 2
    with pytest.raises(ValidationError) as caught:
        Ruled.model_validate(
            {"size": 3, "code": "aa\n", "points": [{"x": 1}, {"x": 1}], "words": ["a", "a"], "changed_only": 5}
        )
    assert [(error["type"], error["loc"]) for error in caught.value.errors()] == [
        ("rule_broken", ("size",)),
        ("rule_broken", ("code",)),
        ("rule_broken", ("points",)),
        ("rule_broken", ("words",)),
    ]
    assert caught.value.errors()[0]["msg"] == "must be even {sic}"


def test_a_rule_about_a_whole_object_holds_wherever_the_model_is_used() -> None:
    class Range(RuledModel):
        RULES = (Cel("self.low < self.high", "low must be below high", check=lambda it: it.low < it.high),)
        low: int
        high: int

    class Ranges(BaseModel):
        one: Range | None = None
        many: Annotated[list[Range], Field(description="Several.")] = []

    members = structural_schema(Ranges)["properties"]
    rules = [{"rule": "self.low < self.high", "message": "low must be below high"}]
    assert members["one"]["x-kubernetes-validations"] == rules
    assert members["many"]["items"]["x-kubernetes-validations"] == rules
    with pytest.raises(ValidationError, match="low must be below high") as caught:
        Ranges.model_validate({"many": [{"low": 1, "high": 2}, {"low": 2, "high": 1}]})
    assert caught.value.errors()[0]["loc"] == ("many", 1)


@pytest.mark.parametrize("pattern", ["a$", "^a", "^it's$"])
def test_a_pattern_that_cannot_be_quoted_or_is_not_anchored_is_refused_at_once(pattern: str) -> None:
    with pytest.raises(ValueError, match="anchored"):
        matches(pattern, "no")


class WidgetSpec(BaseModel):
    size: int = 1


class WidgetStatus(BaseModel):
    ready: bool | None = None
    conditions: list[dict[str, Any]] | None = None


class Widget(BaseModel):
    """A widget."""

    metadata: dict[str, Any] = {}
    spec: WidgetSpec
    status: WidgetStatus | None = None


class Bare(BaseModel):
    spec: WidgetSpec | None = None


def definition(**changes: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "group": "example.org",
        "kind": "Widget",
        "plural": "widgets",
        "singular": "widget",
        "versions": [CrdVersion("v1", Widget)],
    }
    return crd(**{**arguments, **changes})


def test_a_definition_has_names_scope_and_no_conversion() -> None:
    found = definition(short_names=["wd"], categories=["all"], labels={"b": "", "a": "x"}, annotations={"note": "y"})
    assert found["apiVersion"] == "apiextensions.k8s.io/v1"
    assert found["metadata"] == {
        "name": "widgets.example.org",
        "labels": {"a": "x", "b": ""},
        "annotations": {"note": "y"},
    }
    assert found["spec"]["scope"] == "Namespaced"
    assert found["spec"]["conversion"] == {"strategy": "None"}
    assert found["spec"]["names"] == {
        "kind": "Widget",
        "listKind": "WidgetList",
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "categories": ["all"],
    }


def test_the_root_leaves_metadata_to_the_server_and_turns_status_on() -> None:
    version = definition()["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["description"] == "A widget."
    assert schema["required"] == ["spec"]
    assert version["subresources"] == {"status": {}}
    bare = definition(versions=[CrdVersion("v1", Bare)])["spec"]["versions"][0]
    assert "subresources" not in bare
    assert "required" not in bare["schema"]["openAPIV3Schema"]


def test_root_rules_and_columns_are_written() -> None:
    version = definition(
        versions=[CrdVersion("v1", Widget, rules=[Cel("size(self.metadata.name) < 9", "too long")])],
        columns=[
            Column("Size", "integer", ".spec.size"),
            Column("Age", "date", ".metadata.creationTimestamp"),
            Column("Why", "string", '.status.conditions[?(@.type=="Ready")].reason', "Of Ready.", priority=1),
        ],
    )["spec"]["versions"][0]
    assert version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] == [
        {"rule": "size(self.metadata.name) < 9", "message": "too long"}
    ]
    assert version["additionalPrinterColumns"] == [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {
            "name": "Why",
            "type": "string",
            "jsonPath": '.status.conditions[?(@.type=="Ready")].reason',
            "description": "Of Ready.",
            "priority": 1,
        },
    ]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"columns": [Column("Size", "integer", ".spec.sise")]}, "is not a field"),
        ({"columns": [Column("Size", "integer", "spec.size")]}, "begin with a dot"),
        ({"plural": "Widgets"}, "lower-case"),
        ({"versions": [CrdVersion("v1", Widget, storage=False)]}, "storage version"),
        ({"versions": [CrdVersion("v1", Widget), CrdVersion("v2", Widget)]}, "storage version"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(changes: dict[str, Any], part: str) -> None:
    with pytest.raises(SchemaError, match=part):
        definition(**changes)


def test_several_versions_are_served_with_one_stored() -> None:
    versions = definition(versions=[CrdVersion("v1", Widget), CrdVersion("v1alpha1", Bare, storage=False)])["spec"][
        "versions"
    ]
    assert [(version["name"], version["served"], version["storage"]) for version in versions] == [
        ("v1", True, True),
        ("v1alpha1", True, False),
    ]


def test_the_same_models_give_the_same_bytes() -> None:
    assert json.dumps(definition()) == json.dumps(definition())
