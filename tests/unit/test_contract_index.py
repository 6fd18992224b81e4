"""The contract index is complete and true: every row of `docs/contract.md` names tests that exist, or says why not."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from contract_index import DUE, INDEX, Later
from real_only import LONG, REAL_ONLY

REPOSITORY = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\| ([ABC][0-9]+(?:\.[0-9]+)?) \|", re.MULTILINE)


def _rows() -> set[str]:
    return set(_ROW.findall((REPOSITORY / "docs" / "contract.md").read_text()))


@cache
def _tests_in(path: str) -> frozenset[str]:
    file = REPOSITORY / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def test_every_row_of_the_contract_is_in_the_index_and_no_other() -> None:
    assert set(INDEX) == _rows()


def test_every_entry_names_tests_that_exist() -> None:
    missing = [
        f"{row}: {entry}"
        for row, entries in INDEX.items()
        if not isinstance(entries, Later)
        for entry in entries
        if entry.partition("::")[2] not in _tests_in(entry.partition("::")[0])
    ]
    assert not missing


def test_every_test_with_a_reason_to_stay_on_the_real_server_exists() -> None:
    wrong = []
    for entry, reason in [*REAL_ONLY.items(), *LONG.items()]:
        path, _, test = entry.partition("::")
        exists = test in _tests_in(path) if test else (REPOSITORY / path).is_file()
        if not reason or not exists:
            wrong.append(entry)
    assert not wrong


def test_servers_come_from_fixtures_which_know_both() -> None:
    """A test that starts a control plane itself would be left out on the server in memory without being listed."""
    files = {path.name: path.read_text() for path in sorted((REPOSITORY / "tests" / "server").rglob("*.py"))}
    # That one is about the class.
    del files["test_control_plane.py"]
    assert not [name for name, text in files.items() if re.search(r"\bControlPlane\(", text)]


def test_no_row_is_without_a_test_or_a_reason() -> None:
    bare = [row for row, entries in INDEX.items() if not (entries.reason if isinstance(entries, Later) else entries)]
    assert not bare


def test_no_row_that_is_due_now_is_later() -> None:
    assert not [row for row in DUE if isinstance(INDEX[row], Later)]


def test_a_test_that_names_a_row_is_listed_under_it() -> None:
    """A test that was written for a row and forgotten in the index would leave a gap when it is deleted."""
    named = re.compile(r"test_((?:[abc][0-9]+(?:_[0-9]+)?_)+)[a-z]")
    unlisted = []
    tests = REPOSITORY / "tests"
    for file in sorted([*(tests / "server" / "contract").glob("test_*.py"), *(tests / "e2e").glob("test_*.py")]):
        path = str(file.relative_to(REPOSITORY))
        for test in sorted(_tests_in(path)):
            found = named.match(test)
            for row in _rows_in(found[1]) if found else ():
                entries = INDEX.get(row, ())
                if isinstance(entries, Later) or f"{path}::{test}" not in entries:
                    unlisted.append(f"{row}: {path}::{test}")
    assert not unlisted


def _rows_in(text: str) -> list[str]:
    """The row ids in the head of a test's name: ``b1_9_b1_21_`` is B1.9 and B1.21; ``a15_`` is A15."""
    known = _rows()
    rows, parts = [], text.strip("_").split("_")
    while parts:
        two = ".".join(parts[:2]).upper()
        if len(parts) > 1 and two in known:
            rows.append(two)
            parts = parts[2:]
        else:
            rows.append(parts[0].upper())
            parts = parts[1:]
    return [row for row in rows if row in known]
