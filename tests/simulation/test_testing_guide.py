"""The tests on ``docs/testing.md`` pass as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.doc_pages import python_files

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
SETTINGS = """\
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""


def test_the_tests_on_the_page_pass(tmp_path: Path) -> None:
    files = python_files(PAGE)
    assert len(files) >= 5
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(files)} passed" in done.stdout
