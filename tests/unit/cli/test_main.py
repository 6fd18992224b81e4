"""The command line: help without imports, one line per mistake, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fivespot import __version__
from fivespot.cli.main import cli, complain, main
from fivespot.cli.options import ManagerOptions
from fivespot.runtime import ConfigError
from fivespot.runtime.errors import StopError
from fivespot.schedule.zones import TZDATA_RELEASE
from fivespot.settings import program_settings

ROOT = Path(__file__).resolve().parents[3]

VARIABLES = [
    "KUBECONFIG", "METRICS_PORT", "HEALTH_PORT", "LOG_FORMAT", "RUST_LOG_FORMAT", "ENABLE_LEADER_ELECTION",
    "LEASE_NAME",
    "POD_NAMESPACE", "POD_NAME", "LEASE_DURATION_SECONDS", "LEASE_RENEW_DEADLINE_SECONDS", "LEASE_RETRY_PERIOD_SECONDS",
    "FORCE_FINALIZER_ON_TIMEOUT", "CAPI_MACHINE_API_VERSION", "OPERATOR_INSTANCE_ID", "OPERATOR_INSTANCE_COUNT",
    "EVENT_LOOP",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def parse(monkeypatch: pytest.MonkeyPatch, *arguments: str, **environment: str) -> ManagerOptions:
    """Return the options that `fivespot manager` would run with."""
    seen: list[ManagerOptions] = []
    monkeypatch.setattr("fivespot.cli.process.run_process", seen.append)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(cli, ["manager", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_defaults_match_5_spot(monkeypatch: pytest.MonkeyPatch) -> None:
    options = parse(monkeypatch)
    assert (options.metrics_port, options.health_port) == (8080, 8081)
    assert (options.lease_duration, options.lease_renew_deadline, options.lease_retry_period) == (15, 10, 2)
    assert (options.lease_name, options.lease_namespace) == ("5spot-leader", "5spot-system")
    assert (options.leader_election, options.dry_run, options.force_finalizer_on_timeout) == (None, False, False)
    assert (options.log_format, options.verbose, options.event_loop) == ("json", 0, "asyncio")
    assert (options.bind_address, options.namespaces) == (None, None)
    assert (options.max_deletions_per_minute, options.capi_version) == (None, None)
    assert options.instance_id == 0


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("METRICS_PORT", "0", "metrics_port", 0),
        ("HEALTH_PORT", "9001", "health_port", 9001),
        ("LOG_FORMAT", "text", "log_format", "text"),
        ("RUST_LOG_FORMAT", "TEXT", "log_format", "text"),
        ("ENABLE_LEADER_ELECTION", "true", "leader_election", True),
        ("ENABLE_LEADER_ELECTION", "false", "leader_election", False),
        ("LEASE_NAME", "mine", "lease_name", "mine"),
        ("POD_NAMESPACE", "elsewhere", "lease_namespace", "elsewhere"),
        ("POD_NAME", "pod-1", "pod_name", "pod-1"),
        ("LEASE_DURATION_SECONDS", "30", "lease_duration", 30),
        ("LEASE_RENEW_DEADLINE_SECONDS", "20", "lease_renew_deadline", 20),
        ("LEASE_RETRY_PERIOD_SECONDS", "4", "lease_retry_period", 4),
        ("FORCE_FINALIZER_ON_TIMEOUT", "1", "force_finalizer_on_timeout", True),
        ("CAPI_MACHINE_API_VERSION", "v1beta1", "capi_version", "v1beta1"),
        ("OPERATOR_INSTANCE_ID", "3", "instance_id", 3),
        ("OPERATOR_INSTANCE_COUNT", "1", "instance_id", 0),
    ],
)
def test_every_variable_of_5_spot_is_read(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, field: str, expected: Any
) -> None:
    assert getattr(parse(monkeypatch, **{variable: value}), field) == expected


def test_a_flag_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse(monkeypatch, "--health-port", "1", HEALTH_PORT="2").health_port == 1
    assert parse(monkeypatch, LOG_FORMAT="text", RUST_LOG_FORMAT="json").log_format == "text"


@pytest.mark.parametrize("name", ["asyncio", "uvloop", "auto"])
def test_the_event_loop_is_chosen_by_flag_or_variable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert parse(monkeypatch, "--event-loop", name, EVENT_LOOP="asyncio").event_loop == name
    assert parse(monkeypatch, EVENT_LOOP=name.upper()).event_loop == name


@pytest.mark.parametrize("given", [["--event-loop", "trio"], []], ids=["flag", "variable"])
def test_an_event_loop_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch, given: list[str]) -> None:
    if not given:
        monkeypatch.setenv("EVENT_LOOP", "trio")
    result = CliRunner().invoke(cli, ["manager", *given])
    assert result.exit_code == 2
    assert "'trio' is no event loop; write asyncio, uvloop or auto" in " ".join(result.output.split())


@pytest.mark.parametrize(("name", "runs"), [("auto", "uvloop"), ("uvloop", "uvloop"), ("asyncio", "asyncio")])
def test_a_program_of_a_provider_runs_on_the_loop_that_the_variable_names(name: str, runs: str) -> None:
    code = """
import asyncio
from fivespot.providers.registry import shipped_provider
from fivespot.providers.sdk import run
from fivespot.runtime.manager import entrypoint
entrypoint.open_manager = lambda *_, **__: print(type(asyncio.get_running_loop()).__module__)
run(shipped_provider("ManualSchedule"), name="program")
"""
    command = [sys.executable, "-c", code]
    environ = {**os.environ, "EVENT_LOOP": name}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    assert done.stdout.decode().startswith(runs)


def test_two_free_ports_do_not_clash(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse(monkeypatch, "--health-port", "0", "--metrics-port", "0").health_port == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shortest-grace", "5 min"], "--shortest-grace: '5 min' is not a duration"),
        (["--shortest-grace", "25h"], "--shortest-grace: '25h' is longer than a day"),
        (["--instance-count", "2"], "--instance-count above 1 is not supported yet, use leader election"),
        (["--metrics-port", "8081"], "--metrics-port and --health-port are both 8081"),
        (["--controllers", "zzz"], "unknown kind 'zzz'"),
        (["--namespaces", "A"], "'A' cannot be a namespace"),
        (["--kubeconfig", "/nowhere/kubeconfig"], "/nowhere/kubeconfig"),
    ],
)
def test_a_configuration_error_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["fivespot", "manager", *arguments])
    monkeypatch.setattr("fivespot.cli.process.configure_logging", lambda *_: None)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("fivespot: ")
    assert error.count("\n") == 1
    assert words in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["manager", "--metrics-port", "70000"],
        ["manager", "--max-deletions-per-minute", "0"],
        ["manager", "--max-activations-per-hour", "0"],
        ["manager", "--max-namespace-activations-per-hour", "-1"],
        ["manager", "--max-machines-per-namespace", "none"],
        ["manager", "--lease-duration-secs", "0"],
        ["manager", "--log-format", "xml"],
        ["manager", "--no-such-flag"],
        ["no-such-command"],
    ],
)
def test_a_usage_error_exits_2_too(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, arguments).exit_code == 2


def test_errors_become_one_line_with_an_exit_code_by_type(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert complain(ConfigError("a\nb")) == 2
    assert complain(StopError("")) == 1
    assert capsys.readouterr().err == "fivespot: a b\nfivespot: StopError\n"


def test_an_error_inside_task_groups_is_unwrapped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(options: ManagerOptions) -> None:
        raise ExceptionGroup("tasks", [ExceptionGroup("more", [ConfigError("port 1 is taken")])])

    monkeypatch.setattr("fivespot.cli.process.run_process", run)
    monkeypatch.setattr(sys, "argv", ["fivespot", "manager"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert (stop.value.code, capsys.readouterr().err) == (2, "fivespot: port 1 is taken\n")


def test_the_version_includes_the_time_zone_data() -> None:
    shown = f"fivespot {__version__} (tzdata {TZDATA_RELEASE})\n"
    assert CliRunner().invoke(cli, ["--version"]).output == shown
    assert CliRunner().invoke(cli, ["version"]).output == shown


def test_every_command_exists_and_has_the_help_that_the_group_shows() -> None:
    group = CliRunner().invoke(cli, ["--help"]).output
    for name in ("manager", "crds", "version"):
        assert name in group
        assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0


@pytest.mark.parametrize(("typo", "name"), [("mannager", "manager"), ("timelime", "timeline"), ("demoo", "demo")])
def test_a_mistyped_command_suggests_the_nearest_one(typo: str, name: str) -> None:
    result = CliRunner().invoke(cli, [typo])
    assert result.exit_code == 2
    assert f"there is no command {typo!r}; did you mean {name!r}?" in result.output


def test_an_unknown_command_that_resembles_none_gets_no_suggestion() -> None:
    output = CliRunner().invoke(cli, ["xyzzy"]).output
    assert "there is no command 'xyzzy'" in output
    assert "did you mean" not in output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_the_command(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert "_FIVESPOT_COMPLETE" in result.output


@pytest.mark.parametrize(("terminal", "expected"), [(True, "text"), (False, "json")])
def test_logs_are_text_on_a_terminal_and_json_elsewhere(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, expected: str
) -> None:
    monkeypatch.setattr("fivespot.cli.manager._stderr_is_terminal", lambda: terminal)
    assert parse(monkeypatch).log_format == expected
    assert parse(monkeypatch, "--log-format", "json").log_format == "json"


def test_the_help_imports_neither_the_runtime_nor_kubernetes() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom fivespot.cli.main import cli\n"
        "CliRunner().invoke(cli, ['--help']); CliRunner().invoke(cli, ['manager', '--help'])\n"
        "heavy = {'aiohttp', 'kubernetes_asyncio', 'pydantic', 'prometheus_client', 'structlog'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_crds_are_printed_or_written(tmp_path: Path) -> None:
    printed = CliRunner().invoke(cli, ["crds"])
    assert printed.output.count("kind: CustomResourceDefinition") == printed.output.count("---\n") + 1
    written = CliRunner().invoke(cli, ["crds", "-o", str(tmp_path / "new")])
    assert written.exit_code == 0
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert "scheduledmachines.yaml" in names
    assert len(names) == printed.output.count("kind: CustomResourceDefinition")


def test_an_unwritable_directory_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(cli, ["crds", "-o", str(tmp_path / "file" / "x")])
    assert isinstance(result.exception, ConfigError)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("METRICS_PORT", "http"),
        ("HEALTH_PORT", "70000"),
        ("ENABLE_LEADER_ELECTION", "maybe"),
        ("LEASE_DURATION_SECONDS", "long"),
        ("LEASE_RETRY_PERIOD_SECONDS", "0"),
    ],
)
def test_a_program_of_a_provider_refuses_what_the_manager_refuses_in_the_same_words(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    with pytest.raises(ConfigError) as of_a_program:
        program_settings({variable: value}, ["toggle"], in_cluster=True, identity="me")
    words = str(of_a_program.value).removeprefix(f"{variable}: ")
    monkeypatch.setenv(variable, value)
    result = CliRunner().invoke(cli, ["manager"])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
