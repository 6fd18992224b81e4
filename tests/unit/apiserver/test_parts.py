"""Pure parts of the embedded API server: sets of fields, paths, patterns, durations, selectors, rules."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

import hypothesis.strategies as st
import jsonpatch
import jsonpointer
import pytest
from hypothesis import given, settings

from fivespot.apiserver.columns import human_duration
from fivespot.apiserver.fieldsets import applied_set, compare, decode_fields, encode_fields
from fivespot.apiserver.jsonpath import JsonPathError, find
from fivespot.apiserver.kinds import version_priority
from fivespot.apiserver.patch import JSON_PATCH, apply_patch, merge
from fivespot.apiserver.routes import RequestTarget, resource_target
from fivespot.apiserver.schema import apply_defaults, check_rules, compile_schema, prune, validate
from fivespot.apiserver.schema.cel_library import parse_quantity
from fivespot.apiserver.schema.node import cel_name, go_pattern
from fivespot.apiserver.schema.validation import ABSENT
from fivespot.apiserver.status import ApiFault
from fivespot.apiserver.store import Collection, Entry

WORDS = st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=4)
OPEN = compile_schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})


@settings(max_examples=40)
@given(OBJECTS)
def test_sets_of_fields_survive_their_encoding(value: dict[str, Any]) -> None:
    paths = applied_set(value, OPEN)
    assert decode_fields(json.loads(json.dumps(encode_fields(paths)))) == paths


@settings(max_examples=40)
@given(OBJECTS, OBJECTS)
def test_a_comparison_tells_each_path_once(old: dict[str, Any], new: dict[str, Any]) -> None:
    changes = compare(old, new, OPEN)
    assert not changes.added & changes.modified
    assert not changes.added & changes.removed
    assert not changes.modified & changes.removed
    assert changes.any == (json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True))
    back = compare(new, old, OPEN)
    assert (back.added, back.removed, back.modified) == (changes.removed, changes.added, changes.modified)


@settings(max_examples=40)
@given(OBJECTS, OBJECTS)
def test_a_merge_patch_twice_is_a_merge_patch_once(value: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge(value, patch)
    assert merge(once, patch) == once
    assert merge(value, {}) == value


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(["put", "drop"]), st.sampled_from(["a/x", "a/y", "b/x", "a-b/x"])), max_size=30)
)
def test_every_state_of_the_window_can_be_seen_again(steps: list[tuple[str, str]]) -> None:
    collection = Collection(window=1000)
    states: list[list[tuple[str, int]]] = [[]]
    for version, (step, key) in enumerate(steps, 1):
        if step == "put":
            collection.put(Entry(key, "u", version, b"", {}, (), False, {}, 0))
        elif key in collection.entries:
            collection.remove(key, version)
        states.append(sorted((entry.key, entry.version) for entry in collection.entries.values()))
    for version, state in enumerate(states):
        seen = collection.snapshot_at(version, "")
        assert seen is not None
        assert [(entry.key, entry.version) for entry in seen] == state
        inside = collection.snapshot_at(version, "a")
        assert inside is not None
        assert [entry.key for entry in inside] == [key for key, _ in state if key.startswith("a/")]


def test_a_forgotten_state_is_none() -> None:
    collection = Collection(window=4)
    for version in range(1, 20):
        collection.put(Entry(f"k{version}", "u", version, b"", {}, (), False, {}, 0))
    assert collection.snapshot_at(3, "") is None
    assert collection.floor >= 10
    assert collection.events(0, 5) is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".a.b", 1),
        ("a.b", 1),
        ("{.a.b}", 1),
        ("$.a.b", 1),
        (".list[0]", "x"),
        (".list[-1]", "z"),
        (".list[*]", "x"),
        (".list[9]", None),
        (".a['b']", 1),
        (".labels.a\\.b", None),
        (".labels['a.b/c']", "dotted"),
        ('.conditions[?(@.type=="Ready")].status', "True"),
        (".conditions[?(@.n>1)].status", "False"),
        (".conditions[?(@.none)].status", None),
        (".none.at.all", None),
    ],
)
def test_paths_of_columns(path: str, value: Any) -> None:
    body = {
        "a": {"b": 1},
        "list": ["x", "y", "z"],
        "labels": {"a.b/c": "dotted"},
        "conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2}],
    }
    assert find(body, path) == value


@pytest.mark.parametrize("path", ["a b", ".a[", ".a[?(]", ".[x]"])
def test_paths_that_are_none(path: str) -> None:
    with pytest.raises(JsonPathError):
        find({}, path)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (731 * 86400, "2y1d"),
        (3000 * 86400, "8y"),
    ],
)
def test_ages_as_kubectl_shows_them(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def test_versions_are_preferred_as_kubernetes_prefers_them() -> None:
    order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(sorted(order), key=version_priority) == order


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/pods", RequestTarget("", "v1", "pods")),
        ("/api/v1/namespaces", RequestTarget("", "v1", "namespaces")),
        ("/api/v1/namespaces/x", RequestTarget("", "v1", "namespaces", "", "x")),
        ("/api/v1/namespaces/x/status", RequestTarget("", "v1", "namespaces", "", "x", "status")),
        ("/api/v1/namespaces/x/pods", RequestTarget("", "v1", "pods", "x")),
        ("/api/v1/namespaces/x/pods/y", RequestTarget("", "v1", "pods", "x", "y")),
        ("/api/v1/namespaces/x/pods/y/status", RequestTarget("", "v1", "pods", "x", "y", "status")),
        ("/apis/g.io/v1/things/y", RequestTarget("g.io", "v1", "things", "", "y")),
        ("/apis/g.io/v1/namespaces/x/things/y/scale", RequestTarget("g.io", "v1", "things", "x", "y", "scale")),
        ("/apis/g.io/v1/things/", RequestTarget("g.io", "v1", "things")),
    ],
)
def test_paths_of_resources(path: str, target: RequestTarget) -> None:
    assert resource_target(path) == target


@pytest.mark.parametrize("path", ["/", "/api", "/apis", "/apis/g.io", "/version", "//", "/metrics"])
def test_paths_that_are_about_no_resource(path: str) -> None:
    assert resource_target(path) is None


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        ("[$]", "$", True),
        (r"\$", "$", True),
        (r"a\z", "a", True),
        ("b", "abc", True),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern: str, text: str, matches: bool) -> None:
    assert (go_pattern(pattern).search(text) is not None) is matches


@pytest.mark.parametrize("pattern", ["(?=x)", "(?<!x)y", r"(a)\1", "a++", "(?>a)", "(", "[a"])
def test_patterns_that_go_refuses(pattern: str) -> None:
    with pytest.raises(ValueError, match="error parsing regexp"):
        go_pattern(pattern)


@pytest.mark.parametrize(
    ("name", "rule_name"),
    [
        ("a", "a"),
        ("a-b", "a__dash__b"),
        ("a.b", "a__dot__b"),
        ("a/b", "a__slash__b"),
        ("a__b", "a__underscores__b"),
        ("for", "__for__"),
    ],
)
def test_names_in_rules(name: str, rule_name: str) -> None:
    assert cel_name(name) == rule_name


@pytest.mark.parametrize(
    ("text", "number"), [("500m", 0.5), ("1Ki", 1024), ("2", 2), ("1e3", 1000), (".5", 0.5), ("3M", 3e6)]
)
def test_quantities(text: str, number: float) -> None:
    assert float(parse_quantity(text)) == number


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


DEFAULTED = {"type": "boolean", "default": True}
SCHEMA = compile_schema({
    "type": "object",
    "properties": {
        "a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 1}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string", "default": "x"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"d": DEFAULTED}}},
        "maybe": {"type": "string", "nullable": True, "default": "x"},
    },
})  # fmt: skip


def test_defaults_reach_every_level() -> None:
    value: dict[str, Any] = {"list": [{}, {"c": "y"}], "map": {"k": {}}, "maybe": None}
    apply_defaults(value, SCHEMA)
    assert value == {
        "a": {"b": 1},
        "list": [{"c": "x"}, {"c": "y"}],
        "map": {"k": {"d": True}},
        "maybe": None,
    }


@settings(max_examples=40)
@given(OBJECTS)
def test_what_was_pruned_and_defaulted_stays_as_it_is(value: dict[str, Any]) -> None:
    prune(value, SCHEMA)
    apply_defaults(value, SCHEMA)
    before = json.dumps(value)
    unknown: list[str] = []
    prune(value, SCHEMA, "", unknown)
    apply_defaults(value, SCHEMA)
    assert (json.dumps(value), unknown) == (before, [])


@settings(max_examples=40)
@given(JSON)
def test_validation_takes_anything(value: Any) -> None:
    for cause in validate(value, SCHEMA, "spec"):
        assert cause.field.startswith("spec")


def test_a_timestamp_is_in_whole_seconds() -> None:
    from fivespot.apiserver.clock import micro_time, timestamp  # noqa: PLC0415

    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert (timestamp(moment), micro_time(moment)) == ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678901Z")


# -- rules that are remembered ---------------------------------------------------------------------------------------

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


POINTERS = (
    st.lists(st.sampled_from(["a", "b", "x~1y", "0", "-"]), min_size=1, max_size=3).map("/".join).map("/{}".format)
)
OPERATIONS = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "test"]), "path": POINTERS, "value": JSON}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": POINTERS}),
    st.fixed_dictionaries({"op": st.sampled_from(["copy", "move"]), "from": POINTERS, "path": POINTERS}),
)
PATCHED = st.dictionaries(
    st.sampled_from(["a", "b", "x/y"]), JSON | st.dictionaries(st.sampled_from(["a", "b", "0"]), JSON), min_size=1
)


@settings(max_examples=150)
@given(PATCHED, st.lists(OPERATIONS, min_size=1, max_size=4))
def test_a_json_patch_leaves_what_it_is_applied_to_as_it_was(value: dict[str, Any], patch: list[Any]) -> None:
    before = copy.deepcopy(value)
    try:
        expected = jsonpatch.JsonPatch(patch).apply(copy.deepcopy(value))
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, LookupError, ValueError):
        expected = None
    try:
        patched = apply_patch(value, json.dumps(patch).encode(), JSON_PATCH, OPEN)
    except ApiFault:
        assert expected is None
    else:
        assert patched == expected
    assert value == before
