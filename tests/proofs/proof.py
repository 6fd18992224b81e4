"""A proof is a long check with a seed and a time budget; its result becomes a page of the documentation."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["PAGES", "Budget", "Proof", "Result", "page"]

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = REPOSITORY / "docs" / "proofs"


@dataclass(frozen=True)
class Budget:
    """The limits of one run.

    :param seconds: of real time; nothing is started afterwards.
    """

    seed: int
    seconds: float
    jobs: int


@dataclass(frozen=True)
class Result:
    """The outcome of a proof.

    :param facts: what was run, as rows of a table.
    :param failures: one line each, with the command that repeats it; none means that the proof passed.
    """

    facts: Sequence[tuple[str, str]]
    failures: Sequence[str] = ()


@dataclass(frozen=True)
class Proof:
    """A named check.

    :param claim: the statement that a result without failures supports.
    :param seconds: the default budget.
    """

    name: str
    claim: str
    run: Callable[[Budget], Result]
    seconds: float


def page(proof: Proof, budget: Budget, result: Result) -> str:
    """Return the page of a result."""
    command = f"./dev prove {proof.name} --seed {budget.seed} --for {budget.seconds:g} --jobs {budget.jobs}"
    rows = [
        ("Result", f"{len(result.failures)} failures" if result.failures else "passed"),
        *result.facts,
        ("Commit", _commit()),
        ("Date", f"{datetime.now(UTC):%Y-%m-%d}"),
        ("Machine", f"{os.cpu_count()} CPUs, Python {platform.python_version()}"),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    failures = "".join(f"- {failure}\n" for failure in result.failures)
    listed = f"\n## Failures\n\n{failures}" if failures else ""
    return (
        f"# {proof.name.capitalize()}\n\n{proof.claim}\n\n```sh\n{command}\n```\n\n| | |\n|---|---|\n{table}\n{listed}"
    )


def _commit() -> str:
    commit = _git("rev-parse", "--short=12", "HEAD")
    changed = [line for line in _git("status", "--porcelain").splitlines() if "docs/proofs/" not in line]
    return f"`{commit}` with local changes" if changed else f"`{commit}`"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
