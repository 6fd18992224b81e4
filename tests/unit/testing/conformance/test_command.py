"""``fivespot conformance``: its command line, without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner, Result

from fivespot.cli.conformance import Command
from fivespot.cli.main import cli
from fivespot.runtime import ConfigError
from fivespot.testing.conformance import RULES, SHIPPED, ConformanceReport, RuleOutcome, Subject
from fivespot.testing.conformance import RuleResult as Found


class Connected:
    """A connection that is not used."""

    client = None

    async def check(self) -> str:
        return ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return


class Ran:
    """Stands in for the kit: records its arguments and returns one outcome for every rule."""

    def __init__(self, outcome: RuleOutcome) -> None:
        self.outcome = outcome
        self.subject: Subject | None = None
        self.options: dict[str, Any] = {}

    async def __call__(self, subject: Subject, client: None, **options: Any) -> ConformanceReport:
        self.subject, self.options = subject, options
        return ConformanceReport(subject.kind, [Found(rule, self.outcome, "seen") for rule in RULES], 1.0)


def invoke(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, outcome: RuleOutcome = RuleOutcome.PASSED
) -> tuple[Ran, Result]:
    async def connect(**_: Any) -> Connected:
        return Connected()

    ran = Ran(outcome)
    monkeypatch.setattr("fivespot.runtime.connect", connect)
    monkeypatch.setattr("fivespot.testing.conformance.check_provider", ran)
    monkeypatch.setattr("fivespot.runtime.configure_logging", lambda *_: None)
    monkeypatch.setattr("structlog.configure", lambda **_: None)
    return ran, CliRunner().invoke(cli, ["conformance", *arguments])


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text("{}")
    return path


def test_shipped_kinds_need_no_specs(monkeypatch: pytest.MonkeyPatch) -> None:
    ran, result = invoke(monkeypatch, "--kind", "TimeBasedSpotSchedule", "--restart-command", "true")
    assert result.exit_code == 0, result.output
    assert ran.subject is not None
    assert ran.subject.active == SHIPPED["TimeBasedSpotSchedule"].active
    assert ran.subject.restart is not None


def test_an_empty_spec_is_a_spec(monkeypatch: pytest.MonkeyPatch, spec: Path) -> None:
    chosen = ("--spec-active", str(spec), "--spec-inactive", str(spec))
    ran, result = invoke(monkeypatch, "--kind", "TimeBasedSpotSchedule", *chosen, "--skip", "steady")
    assert result.exit_code == 0, result.output
    assert ran.subject is not None
    assert (ran.subject.active, ran.subject.inactive, ran.subject.invalid) == ({}, {}, None)
    assert ran.options["skip"] == ("steady",)


def test_a_failure_has_exit_code_1_and_is_in_every_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    arguments = ("--kind", "ManualSchedule", "-o", "json", "--junit", str(junit))
    _, result = invoke(monkeypatch, *arguments, outcome=RuleOutcome.FAILED)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["passed"] is False
    assert "<failure" in junit.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--kind or --provider is required"),
        (["--kind", "OfficeHours"], "a spec of OfficeHours that is active is required"),
        (["--kind", "OfficeHours", "--spec-active", "SPEC"], "OfficeHours: a spec that is inactive is required"),
        (["--kind", "OfficeHours", "--spec-active", "nowhere.yaml"], "nowhere.yaml: No such file"),
        (["--kind", "OfficeHours", "-f", "SPEC"], "there is no OfficeHours named active"),
    ],
)
def test_a_missing_argument_is_named(
    monkeypatch: pytest.MonkeyPatch, spec: Path, arguments: list[str], words: str
) -> None:
    _, result = invoke(monkeypatch, *(str(spec) if word == "SPEC" else word for word in arguments))
    assert isinstance(result.exception, ConfigError)
    assert words in str(result.exception)


def test_a_spec_that_ends_soon_gives_the_boundary(monkeypatch: pytest.MonkeyPatch, spec: Path, tmp_path: Path) -> None:
    ending = tmp_path / "soon.yaml"
    ending.write_text("until: $(SOON)")
    chosen = ("--spec-active", str(spec), "--spec-inactive", str(spec), "--spec-soon", str(ending))
    ran, _ = invoke(monkeypatch, "--kind", "OfficeHours", *chosen)
    assert ran.subject is not None
    assert ran.subject.boundary is not None


@pytest.mark.parametrize(("flag", "shown"), [("--progress", True), ("--no-progress", False), (None, False)])
def test_progress_is_shown_on_request_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, flag: str | None, shown: bool
) -> None:
    ran, result = invoke(monkeypatch, "--kind", "ManualSchedule", *([flag] if flag else []))
    progress = ran.options["progress"]
    assert (progress is not None) is shown
    assert result.exit_code == 0


def test_the_rules_are_listed_without_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = invoke(monkeypatch, "--rules")
    assert result.exit_code == 0
    for rule in RULES:
        assert f"{rule.id} ({rule.contract}): {rule.title}" in result.output


async def test_a_flip_command_gets_the_schedule_in_its_environment(tmp_path: Path) -> None:
    target = tmp_path / "said"
    words = '"$SCHEDULE_NAMESPACE/$SCHEDULE_NAME $SCHEDULE_ACTIVE"'
    await Command("--flip-command", f"echo {words} > {target}").flip("prod", "hours", True)
    assert target.read_text() == "prod/hours true\n"


async def test_a_failed_command_is_reported_with_its_output() -> None:
    with pytest.raises(ConfigError, match="--restart-command: exited with 3: no such deployment"):
        await Command("--restart-command", "echo no such deployment; exit 3").restart()
