"""The command line of `fivespot why`: what it prints, and the code that it ends with."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from fivespot.cli.main import cli
from fivespot.cli.why.command import qualified
from fivespot.cli.why.explain import explain
from fivespot.cli.why.judge import Evaluated
from fivespot.runtime import ConfigError
from unit.cli.why.test_text import GRACE, grace, judgement
from unit.controllers.build import BLIND, ready_machine, snapshot

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command on a judgement in place of a server."""
    monkeypatch.setattr("fivespot.runtime.configure_logging", lambda *_: None)

    def run(found: Evaluated, *arguments: str) -> Result:
        async def ask(machine: str, kubeconfig: str | None, context: str | None, version: str | None) -> object:
            assert (machine, kubeconfig, context, version) == ("team-a/web-1", "file", None, "v1beta1")
            return explain(found)

        monkeypatch.setattr("fivespot.cli.why.ask.ask", ask)
        monkeypatch.setenv("CAPI_MACHINE_API_VERSION", "v1beta1")
        return CliRunner().invoke(cli, ["why", "team-a/web-1", "--kubeconfig", "file", *arguments])

    return run


def test_text_is_the_default_and_has_no_styles_where_there_is_no_terminal(run: Run) -> None:
    assert run(grace()).output == GRACE


@pytest.mark.parametrize(
    ("found", "verdict", "code"),
    [
        (judgement(snapshot(machine=ready_machine())), "AsWanted", 0),
        (grace(), "NotAsWanted", 1),
        (judgement(snapshot(BLIND, machine=ready_machine())), "CannotTell", 2),
    ],
)
def test_the_exit_code_is_the_answer(run: Run, found: Evaluated, verdict: str, code: int) -> None:
    result = run(found, "-o", "json")
    assert (json.loads(result.output)["verdict"], result.exit_code) == (verdict, code)
    assert run(found).exit_code == code


@pytest.mark.parametrize("name", ["a/b/c", "team-a/", "/"])
def test_what_is_no_name_is_refused_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("fivespot.runtime.configure_logging", lambda *_: None)
    result = CliRunner().invoke(cli, ["why", name, "--kubeconfig", "/nowhere"])
    assert isinstance(result.exception, ConfigError)
    assert "is no NAMESPACE/NAME" in str(result.exception)


@pytest.mark.parametrize(
    ("written", "namespace", "name"),
    [
        ("web-1", None, "web-1"),
        ("team-a/web-1", None, "team-a/web-1"),
        ("sm/web-1", None, "web-1"),
        ("SM/web-1", "team-a", "team-a/web-1"),
        ("scheduledmachine.5spot.finos.org/web-1", None, "web-1"),
        ("scheduledmachines/web-1", "sm", "sm/web-1"),
        ("web-1", "team-a", "team-a/web-1"),
        ("team-a/web-1", "team-a", "team-a/web-1"),
    ],
)
def test_a_machine_is_named_as_kubectl_names_it(written: str, namespace: str | None, name: str) -> None:
    assert qualified(written, namespace) == name


def test_two_namespaces_are_refused() -> None:
    with pytest.raises(ConfigError, match="names another namespace than --namespace team-b"):
        qualified("team-a/web-1", "team-b")
