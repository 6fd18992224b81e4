"""The index of faults met in the field is true: every row names tests that exist, or says why there is none."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from pains_index import INDEX, Untested

REPOSITORY = Path(__file__).resolve().parents[2]
KINDS = {"P-W": 33, "P-Q": 15, "P-LE": 11, "P-C": 7}
"""Rows of each kind: watches and caches, queues and controllers, leaders and stops, clients and events."""


@cache
def _tests_in(path: str) -> frozenset[str]:
    tree = ast.parse((REPOSITORY / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def test_no_row_was_lost() -> None:
    assert {kind: sum(row.split()[0] == kind for row in INDEX) for kind in KINDS} == KINDS


def test_every_row_names_tests_that_exist_or_a_reason() -> None:
    missing = []
    for row, (reports, tests) in INDEX.items():
        if isinstance(tests, Untested):
            found = bool(tests.reason)
        else:
            found = bool(tests) and all(test.partition("::")[2] in _tests_in(test.partition("::")[0]) for test in tests)
        if not (found and reports):
            missing.append(row)
    assert not missing
