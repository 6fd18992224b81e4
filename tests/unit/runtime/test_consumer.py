"""Projects that use the library: their types hold, and what the tutorial tests holds too."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.doc_pages import python_files

REPOSITORY = Path(__file__).resolve().parents[3]
CONSUMER = REPOSITORY / "tests" / "consumer"
TUTORIAL = REPOSITORY / "docs" / "runtime" / "tutorial.md"
CACHE = REPOSITORY / ".cache" / "mypy-consumer"


@pytest.fixture
def tutorial(tmp_path: Path) -> dict[str, Path]:
    """The files that a reader of the tutorial has at the end."""
    for name, text in python_files(TUTORIAL).items():
        (tmp_path / name).write_text(text)
    return {path.name: path for path in tmp_path.iterdir()}


def check(folder: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    """mypy outside of the repository and with a configuration of its own: as those who install fivespot see it."""
    command = [sys.executable, "-m", "mypy", "--config-file", str(CONSUMER / "pyproject.toml")]
    command += ["--cache-dir", str(CACHE), *map(str, files)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def programs(tutorial: dict[str, Path]) -> list[Path]:
    """Everything that is shown to users as a program of theirs."""
    files = [CONSUMER / "janitor.py", *sorted((REPOSITORY / "examples").glob("*.py")), *tutorial.values()]
    assert len(files) == 8
    return files


def complaints(folder: Path) -> set[tuple[str, str]]:
    """Return pyright's strict findings on the programs in a folder: file and rule."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict", "include": ["."]}))
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--pythonpath",
        sys.executable,
        "--outputjson",
        "--project",
        str(folder),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        reason = (done.stderr or done.stdout).strip()[-1000:]
        pytest.fail(f"pyright cannot be run (a release may load parts of itself from npm on its first use): {reason}")
    assert told["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py")))
    return {(Path(found["file"]).name, found.get("rule", found["message"])) for found in told["generalDiagnostics"]}


def test_a_consumer_the_examples_and_the_tutorial_pass_strict_type_checks(tutorial: dict[str, Path]) -> None:
    files = programs(tutorial)
    done = check(tutorial["roster.py"].parent, *files)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_agrees_and_refuses_what_is_wrong(tutorial: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "checked"
    folder.mkdir()
    for file in programs(tutorial):
        shutil.copy(file, folder)
    (folder / "wrong.py").write_text(
        "from fivespot.runtime import Key, Shared\n\nKey(1, 'web').surname\nname: int = Key('prod', 'web').name\n"
    )
    found = complaints(folder)
    # Were nothing resolved, there would be nothing to complain about in the others either.
    assert {"reportAttributeAccessIssue", "reportArgumentType", "reportAssignmentType"} <= {rule for _, rule in found}
    assert {file for file, _ in found} == {"wrong.py"}, found


def test_a_name_that_is_not_public_is_refused_by_the_type_check(tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text("from fivespot.runtime import Shared\n\nShared.nothing\n")
    done = check(tmp_path, program)
    assert done.returncode == 1
    assert 'has no attribute "Shared"' in done.stdout


def test_the_tutorial_tests_its_decision_without_a_cluster(
    tutorial: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tutorial["roster.py"].parent))
    tests = {
        name: test for name, test in runpy.run_path(str(tutorial["test_roster.py"])).items() if name.startswith("test_")
    }
    sys.modules.pop("roster")
    assert tests
    for test in tests.values():
        test()
