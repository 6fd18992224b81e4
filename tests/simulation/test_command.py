"""The command ``./dev simulate``, with random days replaced."""

from __future__ import annotations

import pytest

from simulation.__main__ import main
from simulation.random_day import RandomDay


class Broken(RandomDay):
    async def run(self) -> None:
        self.log.append("it rains")
        raise AssertionError(f"seed {self.seed}: nobody came\nit rains")


class Endless(RandomDay):
    async def run(self) -> None:
        while True:
            pass


def test_a_failed_day_is_reported_with_its_seed_and_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("simulation.runner.RandomDay", Broken)
    assert main(["--replay", "7"]) == 1
    assert capsys.readouterr().out == "it rains\nseed 7: nobody came\n"


def test_a_day_that_does_not_end_is_reported_as_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("simulation.runner.RandomDay", Endless)
    assert main(["--replay", "7", "--limit", "0.1"]) == 1
    assert "seed 7: no end within 0.1 s" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["--seeds 0", "--jobs many", "17"])
def test_wrong_arguments_are_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(wrong.split())
    assert refused.value.code == 2
    assert "./dev simulate" in capsys.readouterr().err
