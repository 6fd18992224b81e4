"""``--provider``: what it finds, and the one line that it answers to each mistake."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fivespot.cli.main import cli
from fivespot.cli.options import ManagerOptions
from fivespot.cli.provider_loader import load_providers
from fivespot.runtime import ConfigError

MODULE = """
from fivespot.providers.sdk import SCHEDULES, ApiModel, Provider, Verdict

class ToggleSpec(ApiModel):
    '''A switch.'''
    up: bool
    '''Whether it is on.'''

TOGGLE = Provider("Toggle", spec=ToggleSpec, decide=lambda spec, at: Verdict(spec.up))
FOLLOWER = Provider("Follower", spec=ToggleSpec, decide=lambda spec, at: Verdict(spec.up), reads=(SCHEDULES,))
BOTH = (TOGGLE, FOLLOWER)
AGAIN = Provider("Toggle", spec=ToggleSpec, decide=lambda spec, at: Verdict(False))
CLASH = Provider("Switch", "toggles", spec=ToggleSpec, decide=lambda spec, at: Verdict(False))
METRIC = Provider("Knob", metrics="fivespot_toggle", spec=ToggleSpec, decide=lambda spec, at: Verdict(False))
NONE = []
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that lies in the working directory, as it does where somebody tries a provider out."""
    (tmp_path / "toggles").mkdir()
    (tmp_path / "toggles" / "__init__.py").write_text(MODULE)
    (tmp_path / "toggles" / "broken.py").write_text("1 / 0")
    (tmp_path / "toggles" / "needy.py").write_text("import a_library_that_is_not_there")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "toggles"]:
        del sys.modules[name]


def kinds(*texts: str) -> list[str]:
    return [provider.kind for provider in load_providers(texts)]


def test_one_or_several_are_found_in_the_working_directory() -> None:
    assert kinds("toggles:TOGGLE") == ["Toggle"]
    assert kinds("toggles:TOGGLE,FOLLOWER") == ["Toggle", "Follower"]
    assert kinds("toggles:FOLLOWER", " toggles:TOGGLE ") == ["Follower", "Toggle"]
    assert kinds("toggles:BOTH") == ["Toggle", "Follower"]
    assert kinds("toggles:TOGGLE", "toggles:BOTH") == ["Toggle", "Follower"]
    assert kinds() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("toggles", "write it as package.module:Object"),
        ("toggles:", "write it as package.module:Object"),
        (":TOGGLE", "write it as package.module:Object"),
        ("toggles.py:TOGGLE", "there is no module toggles.py"),
        ("./toggles:TOGGLE", "write it as package.module:Object"),
        ("togles:TOGGLE", "there is no module togles; install the package, or start in its folder"),
        ("toggles.more.here:TOGGLE", "there is no module toggles.more"),
        ("toggles.needy:TOGGLE", "importing toggles.needy failed: No module named 'a_library_that_is_not_there'"),
        ("toggles.broken:TOGGLE", "importing toggles.broken failed: ZeroDivisionError: division by zero"),
        ("toggles:TOGLE", "toggles has no TOGLE; did you mean TOGGLE?"),
        ("os:TOGGLE", "os has no TOGGLE, nor any provider"),
        ("toggles:ToggleSpec", "ToggleSpec is the class ToggleSpec, not a fivespot.providers.sdk.Provider; did you"),
        ("os:sep", "sep is of type str, not a fivespot.providers.sdk.Provider"),
        ("toggles:NONE", "NONE is empty"),
    ],
)
def test_what_is_no_provider_is_told_in_one_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_providers([text])
    assert words in str(refused.value)
    assert str(refused.value).startswith(f"--provider {text}") or f"--provider {text!r}" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["toggles:TOGGLE", "toggles:AGAIN"], "two providers serve kind Toggle"),
        (["toggles:TOGGLE", "toggles:CLASH"], "Toggle and Switch both have plural 'toggles'"),
        (["toggles:TOGGLE", "toggles:METRIC"], "Toggle and Knob both have metrics 'fivespot_toggle'"),
    ],
)
def test_two_of_a_name_are_refused(texts: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_providers(texts)


def parse(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> ManagerOptions:
    seen: list[ManagerOptions] = []
    monkeypatch.setattr("fivespot.cli.process.run_process", seen.append)
    result = CliRunner().invoke(cli, ["manager", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_a_manager_with_a_provider_runs_it_alone_or_next_to_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEASE_NAME", raising=False)
    alone = parse(monkeypatch, "--provider", "toggles:TOGGLE", "--provider", "toggles:FOLLOWER")
    assert (alone.controllers, alone.reconcilers) == ((), ("follower", "toggle"))
    assert alone.lease_name == "5spot-follower-toggle-leader"
    beside = parse(monkeypatch, "--provider", "toggles:TOGGLE", "--controllers", "scheduledmachine")
    assert beside.reconcilers == ("scheduledmachine", "toggle")
    assert beside.lease_name == "5spot-leader"


def test_the_definitions_and_rights_of_a_provider_are_printed(tmp_path: Path) -> None:
    shown = CliRunner().invoke(cli, ["crds", "--provider", "toggles:BOTH"], catch_exceptions=False).output
    documents = list(yaml.safe_load_all(shown))
    assert [document["spec"]["names"]["kind"] for document in documents] == ["Toggle", "Follower"]
    written = CliRunner().invoke(cli, ["crds", "--provider", "toggles:TOGGLE", "-o", str(tmp_path / "out")])
    assert written.output == f"{tmp_path / 'out' / 'toggles.yaml'}\n"
    arguments = ["crds", "--provider", "toggles:TOGGLE", "--rbac", "--service-account", "team/toggler"]
    roles = list(yaml.safe_load_all(CliRunner().invoke(cli, arguments, catch_exceptions=False).output))
    assert [role["kind"] for role in roles] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert roles[1]["subjects"] == [{"kind": "ServiceAccount", "name": "toggler", "namespace": "team"}]
    # The Lease that the manager takes when it runs this provider alone.
    assert roles[2]["rules"][1]["resourceNames"] == ["5spot-toggle-leader"]
    assert roles[2]["metadata"]["namespace"] == "team"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--service-account", "toggler"], "'toggler' is not NAMESPACE/NAME"),
        (["--rbac", "-o", "out"], "--rbac writes to standard output"),
        (["--provider", "nowhere:X"], "there is no module nowhere"),
    ],
)
def test_a_mistake_in_asking_for_them_is_told(arguments: list[str], words: str) -> None:
    error = CliRunner().invoke(cli, ["crds", *arguments]).exception
    assert isinstance(error, ConfigError)
    assert words in str(error)
