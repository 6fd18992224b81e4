"""``fivespot override`` beside a repository that applies the same schedule with kubectl, on both servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from structlog.testing import capture_logs

from controlplane import build, kubernetes_version
from fivespot.cli.crds.definitions import definitions
from fivespot.cli.main import cli
from fivespot.runtime import ConfigError
from support.targets import EmbeddedServer, Target, embedded_target, real_target

# kubectl is built with the real server.
pytestmark = pytest.mark.server

Override = Callable[..., str]
OFFICE = {"timezone": "Europe/Berlin", "windows": [{"days": ["mon-sun"], "start": "00:00", "end": "24:00"}]}
FROM_GIT = {"name": "release-night", "active": True, "from": "2027-03-12T17:00:00Z", "until": "2027-03-13T04:00:00Z"}


@pytest.fixture(scope="module", params=["embedded", "real"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The embedded or the real server, with fivespot's kinds."""
    if request.param == "real":
        # The control plane of the tests has the definitions.
        real = real_target(request.getfixturevalue("control_plane"))
        yield real
        real.close()
        return
    with EmbeddedServer(tmp_path_factory.mktemp("override")) as server:
        made = embedded_target(server, build(kubernetes_version()).kubectl)
        made.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(definitions()))
        made.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=50s")
        yield made
        made.close()


@pytest.fixture
def ns(target: Target) -> Iterator[str]:
    name = target.namespace()
    yield name
    target.leave(name)


@pytest.fixture
def override(target: Target, ns: str, monkeypatch: pytest.MonkeyPatch) -> Override:
    """Runs the command in the namespace; returns its output, or the message of its failure."""
    monkeypatch.setattr("fivespot.runtime.configure_logging", lambda *_: None)

    def run(*arguments: str, fails: bool = False) -> str:
        # Logs go to standard error, which the command sets up for a process of its own.
        with capture_logs():
            environment = {"KUBECONFIG": str(target.config)}
            result = CliRunner().invoke(cli, ["override", *arguments, "-n", ns], env=environment)
        if fails:
            assert isinstance(result.exception, ConfigError), result
            return str(result.exception)
        assert result.exit_code == 0, result.exception
        return result.output

    return run


def manifest(ns: str, *overrides: dict[str, Any], kind: str = "TimeBasedSpotSchedule", **spec: Any) -> str:
    entries = {"overrides": list(overrides)} if overrides else {}
    return json.dumps(
        {
            "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
            "kind": kind,
            "metadata": {"name": "hours", "namespace": ns},
            "spec": {**(spec or OFFICE), **entries},
        }
    )


def entries(target: Target, ns: str, kind: str = "tbss") -> dict[str, dict[str, Any]]:
    found = json.loads(target.kubectl("-n", ns, "get", kind, "hours", "-o", "json"))
    return {entry["name"]: entry for entry in found["spec"].get("overrides") or []}


def test_a_person_and_a_repository_own_different_entries(target: Target, ns: str, override: Override) -> None:
    target.kubectl("apply", "--server-side", "-f", "-", stdin=manifest(ns, FROM_GIT))
    told = override("set", "tbss/hours", "--off", "--for", "2h", "--reason", "no load")
    assert "TimeBasedSpotSchedule/hours becomes inactive until" in told
    assert "(in 2h); then it is active by its own schedule." in told
    assert "the next such apply removes this one" not in told
    found = entries(target, ns)
    assert set(found) == {"release-night", "by-hand"}
    assert (found["by-hand"]["active"], found["by-hand"]["reason"]) == (False, "no load")
    # The repository applies again, with another entry and without.
    target.kubectl("apply", "--server-side", "-f", "-", stdin=manifest(ns, {**FROM_GIT, "reason": "release 4.2"}))
    assert set(entries(target, ns)) == {"release-night", "by-hand"}
    target.kubectl("apply", "--server-side", "-f", "-", stdin=manifest(ns))
    assert set(entries(target, ns)) == {"by-hand"}
    # The command replaces its own entry and no other.
    override("set", "tbss/hours", "--off", "--until", "forever", "--name", "freeze")
    override("set", "tbss/hours", "--off", "--for", "3h")
    assert set(entries(target, ns)) == {"by-hand", "freeze"}
    listed = json.loads(override("list", "tbss/hours", "-o", "json"))
    assert {row["name"]: row["managers"] for row in listed} == {
        "by-hand": ["fivespot-override-by-hand"],
        "freeze": ["fivespot-override-freeze"],
    }
    assert "Removed override freeze." in override("clear", "tbss/hours", "--name", "freeze")
    assert set(entries(target, ns)) == {"by-hand"}


def test_clear_removes_what_the_command_made_and_leaves_the_rest(target: Target, ns: str, override: Override) -> None:
    target.kubectl("apply", "--server-side", "-f", "-", stdin=manifest(ns, FROM_GIT))
    assert "no override made by this command; --all or --name removes: release-night" in override(
        "clear", "TimeBasedSpotSchedule/hours"
    )
    override("set", "timebasedspotschedules/hours", "--off", "--for", "2h")
    told = override("clear", "tbss/hours")
    assert "Removed override by-hand. TimeBasedSpotSchedule/hours is active" in told
    assert set(entries(target, ns)) == {"release-night"}
    assert "kubectl wrote override release-night and may add it again" in override("clear", "tbss/hours", "--all")
    assert entries(target, ns) == {}
    override("clear", "tbss/hours", "--name", "release-night", fails=True)


def test_client_side_apply_keeps_the_entry_unless_its_manifest_lists_overrides(
    target: Target, ns: str, override: Override
) -> None:
    target.kubectl("apply", "-f", "-", stdin=manifest(ns))
    assert "the next such apply" not in override("set", "tbss/hours", "--off", "--for", "2h")
    target.kubectl("apply", "-f", "-", stdin=manifest(ns, timezone="UTC", windows=OFFICE["windows"]))
    assert set(entries(target, ns)) == {"by-hand"}
    # A list in the manifest replaces the whole list, and the command warns once it is there.
    target.kubectl("apply", "-f", "-", stdin=manifest(ns, FROM_GIT))
    assert set(entries(target, ns)) == {"release-night"}
    told = override("set", "tbss/hours", "--off", "--for", "2h")
    assert "the next such apply removes this one" in told
    assert set(entries(target, ns)) == {"release-night", "by-hand"}
    target.kubectl("apply", "-f", "-", stdin=manifest(ns, FROM_GIT))
    assert set(entries(target, ns)) == {"release-night"}


def test_one_that_changes_nothing_is_written_only_by_force(target: Target, ns: str, override: Override) -> None:
    target.kubectl("apply", "--server-side", "-f", "-", stdin=manifest(ns, kind="ManualSchedule", enabled=True))
    told = override("set", "manual/hours", "--on", "--for", "2h")
    assert "Not written; --force writes it all the same." in told
    assert entries(target, ns, "manualschedule") == {}
    override("set", "manual/hours", "--off", "--for", "2h", "--dry-run")
    assert entries(target, ns, "manualschedule") == {}
    override("set", "manual/hours", "--on", "--for", "2h", "--force")
    assert set(entries(target, ns, "manualschedule")) == {"by-hand"}


def test_what_the_server_refuses_is_one_line(target: Target, ns: str, override: Override) -> None:
    target.kubectl("apply", "--server-side", "-f", "-", stdin=manifest(ns, FROM_GIT))
    for arguments, words in (
        (("set", "tbss/hours", "--off", "--for", "2h", "--name", "Not_A_Name"), "overrides"),
        (
            ("set", "tbss/hours", "--off", "--for", "2h", "--name", "release-night"),
            "is managed by kubectl; choose another",
        ),
        (("set", "tbss/nowhere", "--off"), "there is no TimeBasedSpotSchedule nowhere in namespace"),
        (("set", "tbs/hours", "--off"), "did you mean TimeBasedSpotSchedule?"),
        (("set", "tbss/hours"), "--on or --off is required"),
        (("set", "hours", "--off"), "is not KIND/NAME"),
    ):
        told = override(*arguments, fails=True)
        assert words in told
        assert "\n" not in told
    assert set(entries(target, ns)) == {"release-night"}
