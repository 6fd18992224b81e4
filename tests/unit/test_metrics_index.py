"""The index of metrics is complete and true: every metric names tests that move it, or says why none does."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from metrics_index import INDEX, OTHERS

REPOSITORY = Path(__file__).resolve().parents[2]


def _documented() -> set[str]:
    """The first column of the table; that it is all there is in the code is checked with the other pages."""
    section = (REPOSITORY / "docs" / "operations.md").read_text().partition("\n## Metrics\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE))


@cache
def _tests_in(path: str) -> frozenset[str]:
    file = REPOSITORY / path
    if not file.is_file():
        return frozenset()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, functions))


def test_every_metric_of_the_documentation_is_in_one_of_the_lists_and_no_other() -> None:
    assert INDEX.keys() | OTHERS.keys() == _documented()
    assert not INDEX.keys() & OTHERS.keys()
    assert all(INDEX.values())
    assert all(OTHERS.values())


def test_every_entry_names_a_test_that_exists() -> None:
    entries = {entry for listed in INDEX.values() for entry in listed}
    missing = {entry for entry in entries if entry.partition("::")[2] not in _tests_in(entry.partition("::")[0])}
    assert not missing
