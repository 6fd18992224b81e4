"""Tests and `docs/contract.md` agree: every rule has a test with its id, or is marked as planned on the page."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from real_only import LONG, REAL_ONLY
from support.contract_page import Row, contract_problems, contract_rows

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(400)
def test_every_rule_has_a_test_or_is_planned(tmp_path: Path) -> None:
    report = tmp_path / "rows.json"
    command = [sys.executable, "-m", "pytest", "tests", "--long", "--collect-only", "-qq"]
    collected = subprocess.run(
        [*command, f"--contract-report={report}"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert collected.returncode == 0, collected.stdout[-2000:] + collected.stderr[-2000:]
    tests: dict[str, list[str]] = json.loads(report.read_text())
    assert list(contract_problems(contract_rows(), tests)) == []


def test_a_rule_without_a_test_a_planned_one_with_a_test_and_an_unknown_id_are_found() -> None:
    page = "| A1 | Rule. |\n| A2 *planned* | Rule. |\n| A3 | Rule. *Planned:* more. |\n| B1.2 *planned* | Rule. |\n"
    rows = contract_rows(page)
    assert rows == {
        "A1": Row("A1", planned=False, partly_planned=False),
        "A2": Row("A2", planned=True, partly_planned=False),
        "A3": Row("A3", planned=False, partly_planned=True),
        "B1.2": Row("B1.2", planned=True, partly_planned=False),
    }
    assert not list(contract_problems(rows, {"A1": ["x"], "A3": ["y"]}))
    problems = list(contract_problems(rows, {"A2": ["x"], "A3": ["y"], "B9": ["z"]}))
    assert [problem.split()[0] for problem in problems] == ["A1", "A2", "B9"]
    with pytest.raises(ValueError, match="same id"):
        contract_rows("| A1 | Rule. |\n| A1 | Rule. |\n")


@cache
def _tests_in(path: str) -> frozenset[str]:
    file = REPOSITORY / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


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
