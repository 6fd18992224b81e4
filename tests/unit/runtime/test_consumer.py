"""Projects that use the library: their types hold, and what the tutorial tests holds too."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from support.pages import python_files

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


def test_a_consumer_the_examples_and_the_tutorial_pass_strict_type_checks(tutorial: dict[str, Path]) -> None:
    files = [CONSUMER / "janitor.py", *sorted((REPOSITORY / "examples").glob("*.py")), *tutorial.values()]
    assert len(files) == 8
    done = check(tutorial["roster.py"].parent, *files)
    assert done.returncode == 0, done.stdout + done.stderr


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
