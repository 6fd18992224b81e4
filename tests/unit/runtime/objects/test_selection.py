"""Selectors select what Kubernetes selects, and projections keep everything but managedFields, or what they say."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import (
    FULL,
    DoesNotExist,
    Exists,
    In,
    NotIn,
    Projection,
    Requirement,
    Selector,
    decode_meta,
)

_names = st.sampled_from(["a", "managedFields", ',"managedFields":', "metadata", 'x"managedFields', "z"])
_values = st.recursive(
    st.none() | st.integers(0, 3) | _names,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
_objects = st.dictionaries(_names, _values, max_size=3)
_metadata = st.fixed_dictionaries({}, optional={"name": st.just("n"), "managedFields": _values, "uid": st.just("u")})


@given(before=_objects, metadata=_metadata, after=_objects, compact=st.booleans(), decoded=st.booleans())
def test_managed_fields_are_cut_out_and_nothing_else(
    before: dict[str, Any], metadata: dict[str, Any], after: dict[str, Any], compact: bool, decoded: bool
) -> None:
    body = before | {"metadata": metadata} | {name: value for name, value in after.items() if name != "metadata"}
    raw = json.dumps(body, separators=(",", ":") if compact else None).encode()
    kept = FULL.project(raw, decode_meta(raw) if decoded else None)
    assert json.loads(kept) == body | {"metadata": {n: v for n, v in metadata.items() if n != "managedFields"}}
    assert FULL.project(msgspec.Raw(raw)) == kept


def test_what_is_kept_pins_no_buffer_of_a_page() -> None:
    page = msgspec.json.decode(b'[{"metadata":{"name":"n"}}]', type=list[msgspec.Raw])
    assert type(FULL.project(page[0])) is bytes


@pytest.mark.parametrize("raw", [b"[1]", b'{"metadata":3}', b'{"metadata":{}', b"\xff"])
def test_what_is_no_object_cannot_be_kept(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match="full"):
        FULL.project(raw)


LABELLED: list[dict[str, str]] = [{}, {"tier": "web"}, {"tier": "db", "gone": ""}, {"tier": ""}, {"other": "web"}]


@pytest.mark.parametrize(
    ("requirement", "text", "selected"),
    [
        (In("tier", "web"), "tier=web", [1]),
        (In("tier", "web", "db", "web"), "tier in (db,web)", [1, 2]),
        (In("tier", ""), "tier=", [3]),
        (NotIn("tier", "web"), "tier!=web", [0, 2, 3, 4]),
        (NotIn("tier", "web", "db"), "tier notin (db,web)", [0, 3, 4]),
        (Exists("tier"), "tier", [1, 2, 3]),
        (DoesNotExist("tier"), "!tier", [0, 4]),
        (Exists("gone"), "gone", [2]),
    ],
)
def test_a_requirement_selects_as_kubernetes_does(requirement: Requirement, text: str, selected: list[int]) -> None:
    assert str(requirement) == text
    assert Selector(requirement).query() == {"labelSelector": text}
    assert [number for number, labels in enumerate(LABELLED) if Selector(requirement).matches(labels)] == selected


def test_all_requirements_have_to_hold() -> None:
    selector = Selector(Exists("tier"), NotIn("tier", "db"), fields="metadata.name=web")
    assert selector.query() == {"labelSelector": "tier,tier!=db", "fieldSelector": "metadata.name=web"}
    assert [selector.matches(labels) for labels in LABELLED] == [False, True, False, True, False]


def test_selectors_that_say_the_same_are_equal_however_they_are_written() -> None:
    assert Selector(Exists("a"), In("b", "y", "x")) == Selector(In("b", "x", "y"), Exists("a"), Exists("a"))
    assert Selector.labels({"b": "x", "a": "y"}) == Selector(In("a", "y"), In("b", "x"))
    assert len({Selector(In("a", "x")), Selector(NotIn("a", "x")), Selector(Exists("a")), Selector()}) == 4


@pytest.mark.parametrize("name", ["", "a,b", "a=b", "!a", "a b", "-a", "a/b/c", "/a", "A.io/x", "x" * 64])
def test_a_label_name_that_would_change_the_query_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="label name"):
        Exists(name)


@pytest.mark.parametrize("value", ["a,b", "a)", "a b", "-a", "x" * 64, "a\n"])
def test_a_label_value_that_would_change_the_query_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="value"):
        In("example.com/tier", "web", value)


class Small(msgspec.Struct):
    kind: str = ""


class Other(msgspec.Struct):
    kind: str = ""


def test_projections_of_one_name_are_equal_only_if_they_keep_the_same() -> None:
    assert Projection.fields("p", Small) == Projection.fields("p", Small)
    assert len({Projection.fields("p", Small), Projection.fields("p", Small)}) == 1
    assert Projection.fields("p", Small) != Projection.fields("p", Other)
    assert not Projection.fields("p", Small).covers(Projection.fields("p", Other))
    assert Projection("p", bytes) != Projection("p", lambda raw: bytes(raw)[:1])
    assert Projection("p", bytes) != Projection("p")


def test_projections_made_at_one_place_are_equal() -> None:
    def make(length: int) -> Projection:
        return Projection("cut", lambda raw: bytes(raw)[:length])

    assert make(3) == make(3)
    assert make(3) != make(4)
