"""``./dev prove``: every proof writes a page with its seed, its commit and its failures."""

from __future__ import annotations

from pathlib import Path

import pytest

import proofs.__main__ as command
from proofs.proof import PAGES, Budget, Proof, Result
from proofs.registry import PROOFS


def play(monkeypatch: pytest.MonkeyPatch, folder: Path, result: Result) -> list[Budget]:
    """Replace the proofs by one with a fixed result; return the budgets that it gets."""
    budgets: list[Budget] = []

    def run(budget: Budget) -> Result:
        budgets.append(budget)
        return result

    monkeypatch.setattr(command, "PROOFS", (Proof("sample", "The sample holds.", run, 7.0),))
    monkeypatch.setattr(command, "PAGES", folder)
    return budgets


def test_a_proof_that_passes_is_written_with_seed_budget_and_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    budgets = play(monkeypatch, tmp_path, Result([("Days", "12")]))
    assert command.main(["sample", "--seed", "5", "--jobs", "1"]) == 0
    assert budgets == [Budget(5, 7.0, 1)]
    text = (tmp_path / "sample.md").read_text()
    assert "./dev prove sample --seed 5 --for 7 --jobs 1" in text
    assert "| Result | passed |" in text
    assert "| Days | 12 |" in text
    assert "| Commit | `" in text
    assert "Failures" not in text


def test_a_proof_that_fails_lists_each_failure_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play(monkeypatch, tmp_path, Result([], ["seed 3: a write without the Lease"]))
    assert command.main(["--for", "1"]) == 1
    assert "- seed 3: a write without the Lease" in (tmp_path / "sample.md").read_text()
    assert capsys.readouterr().out == "sample: seed 3: a write without the Lease\n"


def test_an_unknown_proof_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budgets = play(monkeypatch, tmp_path, Result([]))
    with pytest.raises(SystemExit) as refused:
        command.main(["sample", "simulatoin"])
    assert refused.value.code == 2
    assert "there are sample" in capsys.readouterr().err
    assert budgets == []


def test_every_page_in_the_folder_belongs_to_a_proof() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} <= {proof.name for proof in PROOFS}
