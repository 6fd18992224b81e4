"""Go programs of our own are built again when their source changes, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.goprogram import CONTROLLER_RUNTIME, build_go_program, go_program


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "main.go").write_text("package main\n")
    (folder / "go.mod").write_text("module program\n")
    return folder


@pytest.mark.parametrize("name", ["main.go", "more.go", "go.mod", "go.sum"])
def test_every_file_that_is_compiled_decides_what_is_run(source: Path, name: str) -> None:
    before = go_program(source)
    (source / "account.json").write_text("{}")
    assert go_program(source) == before
    with (source / name).open("a") as file:
        file.write("// more\n")
    assert go_program(source) != before


def test_what_is_there_is_not_built_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # With no compiler to be found, an attempt to build would fail.
    monkeypatch.setenv("PATH", "")
    binary = go_program(source)
    binary.parent.mkdir(parents=True)
    binary.touch()
    said: list[str] = []
    assert build_go_program(source, said.append) == binary
    assert not said


def test_the_program_s_modules_are_locked() -> None:
    assert (CONTROLLER_RUNTIME / "go.sum").stat().st_size > 0
