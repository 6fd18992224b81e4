"""The folders in which a failing run leaves its logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.log_folder import begin_run, log_folder


def test_runs_have_folders_of_their_own_and_the_newest_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIVESPOT_TEST_LOGS", "restored afterwards")
    old = [tmp_path / f"20260101-00000{number}-1" for number in range(7)]
    for path in old:
        (path / "shared-main").mkdir(parents=True)
    begin_run(tmp_path)
    assert log_folder().parent == tmp_path
    assert not log_folder().exists(), "a run without failures leaves nothing"
    log_folder().mkdir()
    assert sorted(tmp_path.iterdir()) == [*old[3:], log_folder()]


def test_the_first_run_of_all_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIVESPOT_TEST_LOGS", "restored afterwards")
    begin_run(tmp_path / "absent")
    assert log_folder().parent == tmp_path / "absent"
