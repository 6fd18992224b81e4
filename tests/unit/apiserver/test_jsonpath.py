"""JSONPath of columns and scale paths."""

from __future__ import annotations

from typing import Any

import pytest

from fivespot.apiserver.jsonpath import JsonPathError, find


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
