"""The code on pages of the documentation: as files that a reader would make of it, and as commands to run.

Blocks of Python and YAML whose first line is a comment with a file's name are files. Blocks of ``sh`` are run, and
have to succeed. Blocks of ``console`` are commands after ``$`` with what they print; ``...`` in it stands for anything.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"# ([a-z0-9_-]+\.(?:py|yaml))\n")
_MARK = "=== step"


class Step(NamedTuple):
    """A command, or several, and what has to be printed; None where only success counts."""

    line: int
    script: str
    expected: str | None


class Walkthrough(NamedTuple):
    """The files and steps of a page."""

    files: dict[str, str]
    steps: list[Step]

    def run(self, folder: Path, environment: Mapping[str, str], seconds: float) -> None:
        """Write the files and run the steps, in order. What was started in the background is ended.

        Raises AssertionError with everything that was printed when a step fails, prints something else, or all of them
        together take longer than ``seconds``.
        """
        for name, text in self.files.items():
            (folder / name).write_text(text)
        process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", self._script()],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise AssertionError(f"not done after {seconds:g} s:\n{output}") from None
        assert process.returncode == 0, f"ended with {process.returncode}:\n{output}"
        printed = re.split(rf"^{_MARK} \d+\n", output, flags=re.MULTILINE)[1:]
        assert len(printed) == len(self.steps), output
        for step, text in zip(self.steps, printed, strict=True):
            if step.expected is not None:
                assert _matches(step.expected, text), f"line {step.line}: {step.script}\nprinted:\n{text}"

    def _script(self) -> str:
        lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
        for step in self.steps:
            lines.append(f"echo '{_MARK} {step.line}'")
            lines.append(step.script if step.expected is None else f"{{ {step.script}\n}} 2>&1 || true")
        return "\n".join(lines)


def read_page(page: Path) -> Walkthrough:
    """The files and steps of a page."""
    text = page.read_text()
    files: dict[str, str] = {}
    steps: list[Step] = []
    for fence in _FENCE.finditer(text):
        language, body = fence[1], fence[2]
        line = text.count("\n", 0, fence.start()) + 1
        if language in ("python", "yaml"):
            named = _NAMED.match(body)
            assert named or language != "python", f"{page.name}:{line}: a block of Python that does not name its file"
            if named:
                files[named[1]] = files.get(named[1], "") + body[named.end() :]
        elif language == "sh":
            steps.append(Step(line, body, None))
        elif language == "console":
            steps.extend(Step(line, *part) for part in _commands(body))
    return Walkthrough(files, steps)


def _commands(body: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def _matches(expected: str, printed: str) -> bool:
    """Whether it is what was expected; how wide columns are does not count."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in " ".join(expected.split()).split("..."))
    return re.fullmatch(pattern, " ".join(printed.split())) is not None


def python_files(page: Path) -> dict[str, str]:
    """Return file name -> text. Each block names its file in its first line; blocks of one file follow each other."""
    return {name: text for name, text in read_page(page).files.items() if name.endswith(".py")}
