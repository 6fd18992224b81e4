"""CEL validation rules and their cache."""

from __future__ import annotations

from typing import Any

import pytest

from fivespot.apiserver.schema import check_rules, compile_schema
from fivespot.apiserver.schema.validation import ABSENT


def broken(rule: str, value: Any, schema: dict[str, Any], *old: Any) -> list[str]:
    """Messages of a rule on a value."""
    node = compile_schema({**schema, "x-kubernetes-validations": [{"rule": rule, "message": "no"}]})
    return [cause.message for cause in check_rules(value, node, "spec", *old)]


@pytest.mark.parametrize(
    ("rule", "value", "schema"),
    [
        ("self > 1", 2, {"type": "integer"}),
        ("self > 0.5", 1, {"type": "number"}),
        ("self.isSorted()", [1, 2, 2], {"type": "array", "items": {"type": "integer"}}),
        (
            "self.sum() == 3 && self.max() == 2 && self.min() == 1",
            [1, 2],
            {"type": "array", "items": {"type": "integer"}},
        ),
        ("self.indexOf('b') == 1", ["a", "b"], {"type": "array", "items": {"type": "string"}}),
        ("self.find('[0-9]+') == '12'", "a12b3", {"type": "string"}),
        ("self.all(k, k.startsWith('a'))", {"ab": "1"}, {"type": "object", "additionalProperties": {"type": "string"}}),
        ("self.a__dash__b == 1", {"a-b": 1}, {"type": "object", "properties": {"a-b": {"type": "integer"}}}),
        ("self.?x.orValue(3) == 3", {}, {"type": "object", "properties": {"x": {"type": "integer"}}}),
        ("isURL(self) && !isIP(self)", "https://example.com", {"type": "string"}),
        ("isQuantity(self)", "1Gi", {"type": "string"}),
        ("duration(self) > duration('30s')", "1m", {"type": "string"}),
        (
            "timestamp(self) > timestamp('2020-01-01T00:00:00Z')",
            "2026-01-01T00:00:00Z",
            {"type": "string"},
        ),
        ("self.size() == 2 && self.upperAscii() == 'AB'", "ab", {"type": "string"}),
    ],
)
def test_rules_that_hold(rule: str, value: Any, schema: dict[str, Any]) -> None:
    assert broken(rule, value, schema) == []
    assert broken(f"!({rule})", value, schema) != []


def test_rules_that_look_back() -> None:
    schema = {"type": "integer"}
    assert broken("self >= oldSelf", 1, schema) == [], "without an old value there is nothing to compare"
    assert broken("self >= oldSelf", 1, schema, 2) == ["Invalid value: 1: no"]
    assert broken("self > 5", 1, schema, 1) == [], "what has not changed is not asked again"
    node = compile_schema(
        {
            "type": "integer",
            "x-kubernetes-validations": [
                {"rule": "!oldSelf.hasValue() || self > oldSelf.value()", "optionalOldSelf": True}
            ],
        }
    )
    assert check_rules(1, node, "x") == []
    assert check_rules(1, node, "x", 2)[0].message.startswith("Invalid value: 1: failed rule")


def test_a_rule_that_cannot_be_evaluated_is_broken() -> None:
    (message,) = broken("self.x > 1", {}, {"type": "object", "properties": {"x": {"type": "integer"}}})
    assert "no such key: x" in message


_LIMITED = {
    "type": "object",
    "properties": {
        "low": {"type": "integer"},
        "high": {"type": "integer"},
        "note": {"type": "string"},
        "fixed": {"type": "string"},
        "in": {"type": "integer"},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low above high"},
        {"rule": "!has(oldSelf.fixed) || self.fixed == oldSelf.fixed", "message": "fixed"},
        {
            "rule": "oldSelf.hasValue() || !has(self.__in__) || self.__in__ > 0",
            "optionalOldSelf": True,
            "message": "in",
        },
        {"rule": "size(self) < 5", "message": "too much"},
    ],
}


_LIMITED_NODE = compile_schema(_LIMITED)


def _broken(value: dict[str, Any], old: Any = ABSENT) -> list[str]:
    return [cause.message.rpartition(": ")[2] for cause in check_rules(value, _LIMITED_NODE, "spec", old)]


def test_a_rule_that_held_is_asked_again_when_what_it_looks_at_changes() -> None:
    assert _broken({"low": 1, "high": 2, "note": "a"}) == []
    assert _broken({"low": 1, "high": 2, "note": "b"}) == []
    assert _broken({"low": 3, "high": 2, "note": "b"}) == ["low above high"]
    assert _broken({"low": 1, "high": 2, "note": "b", "fixed": "x"}) == []
    assert _broken({"low": 1, "high": 2, "note": "b", "fixed": "x", "in": 1}) == ["too much"]


def test_a_rule_that_compares_is_asked_again_when_what_was_there_before_is_another() -> None:
    now = {"fixed": "x", "note": "now"}
    assert _broken(now, {"fixed": "x"}) == []
    assert _broken(now, {"fixed": "y"}) == ["fixed"]
    assert _broken(now, {}) == []
    assert _broken({"in": 0}) == ["in"]
    assert _broken({"in": 0, "note": "n"}, {"in": 0}) == []
    assert _broken({"in": 0, "note": "n"}) == ["in"]
