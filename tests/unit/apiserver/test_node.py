"""Patterns and names of compiled schemas."""

from __future__ import annotations

import pytest

from fivespot.apiserver.schema.node import cel_name, go_pattern


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
