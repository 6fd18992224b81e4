"""Credentials that cannot be used, servers that are not there, and CustomResourceDefinitions that come later."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import ControlPlane, free_ports, read_crds
from harness import MANIFESTS, SERVICE_ACCOUNT, SYSTEM_NAMESPACE, ManagerProcess, install
from harness.providers import ProviderKind
from support import cluster_objects, eventually
from support.machines import machine, schedule
from support.manager import Ended, PodProcess, begun, mount_service_account, run_manager
from support.scenario import Scenario

pytestmark = pytest.mark.first

SECRET = "s3cr3t-of-somebody"
ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}


def complains(ended: Ended, *words: str) -> None:
    """It ended with exit code 2 and one line for people that holds all the words, and no secret."""
    assert ended.code == 2, ended
    assert ended.output == ""
    # Its own records are JSON; what it says to the person is one line.
    said = [line for line in ended.lines if not line.startswith("{")]
    assert len(said) == 1, ended.errors
    assert said[0].startswith("fivespot: ")
    missing = [word for word in words if word not in said[0]]
    assert not missing, said[0]
    assert "Traceback" not in ended.errors
    assert SECRET not in ended.errors


def kubeconfig(path: Path, *, server: str, ca: Path | None = None, **user: Any) -> Path:
    cluster: dict[str, Any] = {"server": server}
    if ca is not None:
        cluster["certificate-authority"] = str(ca)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(content))
    return path


def jwt(**claims: Any) -> str:
    parts = [json.dumps({"alg": "none"}).encode(), json.dumps(claims).encode(), b"signature"]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def test_a_kubeconfig_that_is_missing(tmp_path: Path) -> None:
    wanted = tmp_path / "nowhere" / "config"
    complains(run_manager(tmp_path, "--kubeconfig", str(wanted)), f"kubeconfig {wanted} does not exist")
    named = run_manager(tmp_path, environment={"KUBECONFIG": str(wanted)})
    complains(named, f"kubeconfig {wanted} does not exist")
    usual = tmp_path / ".kube" / "config"
    complains(run_manager(tmp_path), "no kubeconfig", "KUBECONFIG is not set", str(usual))


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (f"users: [\ntoken: {SECRET}", "not valid YAML in line"),
        (f"just {SECRET}", "not a kubeconfig, but a str"),
        ("{}", "no current-context"),
        ('{"current-context": "gone"}', "there is no context named 'gone'"),
        (b"\xff\xfe", "not UTF-8 text"),
        ("", "no current-context"),
    ],
    ids=["yaml", "text", "empty-map", "context", "binary", "empty"],
)
def test_a_kubeconfig_that_is_malformed(tmp_path: Path, content: str | bytes, cause: str) -> None:
    path = tmp_path / "config"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    complains(run_manager(tmp_path, "--kubeconfig", str(path)), str(path), cause)


def test_a_token_that_has_expired_or_that_the_server_does_not_know(control_plane: ControlPlane, tmp_path: Path) -> None:
    server, ca = control_plane.url, control_plane.ca_file
    old = kubeconfig(tmp_path / "old", server=server, ca=ca, token=jwt(exp=1_700_000_000))
    complains(run_manager(tmp_path, "--kubeconfig", str(old)), str(old), "the token expired at 2023-11-14T22:13:20Z")
    unknown = kubeconfig(tmp_path / "unknown", server=server, ca=ca, token=SECRET)
    complains(
        run_manager(tmp_path, "--kubeconfig", str(unknown)), str(unknown), server, "does not accept the credentials"
    )


def test_a_server_that_cannot_be_reached_or_trusted(control_plane: ControlPlane, tmp_path: Path) -> None:
    [port] = free_ports(1)
    closed = kubeconfig(tmp_path / "closed", server=f"https://127.0.0.1:{port}", token=SECRET)
    complains(
        run_manager(tmp_path, "--kubeconfig", str(closed)),
        *(str(closed), f"cannot reach https://127.0.0.1:{port}: Connection refused"),
    )
    untrusted = kubeconfig(tmp_path / "untrusted", server=control_plane.url, token=SECRET)
    complains(
        run_manager(tmp_path, "--kubeconfig", str(untrusted)),
        *(str(untrusted), f"cannot reach {control_plane.url}: ", "certificate"),
    )


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_server_that_never_answers(silent: int, tmp_path: Path) -> None:
    server = f"http://127.0.0.1:{silent}"
    path = kubeconfig(tmp_path / "silent", server=server, token=SECRET)
    begun = time.monotonic()
    complains(run_manager(tmp_path, "--kubeconfig", str(path)), str(path), server, "did not answer within 10 s")
    assert time.monotonic() - begun < 40


@pytest.mark.timeout(240)
def test_in_a_cluster_the_manager_waits_for_its_server_and_says_so(
    own_control_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    plane = own_control_plane()
    install(plane)
    account = mount_service_account(plane, tmp_path / "serviceaccount")
    plane.kill_apiserver()
    with begun(PodProcess(plane, account)) as manager:
        problem = f"[-]api server: no answer from the API server at {plane.url} yet"
        status, _ = eventually(lambda: waits_for(manager, problem), 60, what="/readyz says it")
        assert status == 503
        assert probe(manager, "/healthz")[0] == 200, "a restart would not help"
        connected = json.loads(probe(manager, "/health/status")[1])
        assert connected == {"healthy": True, "ready": False, "k8s_connected": False}
        mark = len(refusals(manager))
        # It tries again and again, and not in a hurry.
        time.sleep(2)
        assert manager.exit_code is None
        assert len(refusals(manager)) - mark < 10
        assert not [record for record in manager.logs() if "raw" in record], "nothing but records of its own"
        plane.restart_apiserver()
        manager.wait_ready()
        assert manager.exit_code is None
        works(plane)


def probe(manager: ManagerProcess, path: str) -> tuple[int, str]:
    try:
        return manager.health(path)
    except (OSError, http.client.HTTPException) as error:
        raise AssertionError(str(error)) from None


def refusals(manager: ManagerProcess) -> list[dict[str, Any]]:
    return [record for record in manager.logs() if record.get("level") in {"warning", "error"}]


def works(plane: ControlPlane, namespace: str = "default") -> None:
    """A machine comes and goes."""
    api = plane.api
    for body in cluster_objects(namespace):
        api.create(body)
    api.create(schedule("hours", namespace, ALWAYS))
    scenario = Scenario(api, namespace, ProviderKind(api, "TimeBasedSpotSchedule"))
    scenario.create()
    scenario.wait_made(60)
    scenario.wait_phase("Active", timeout=60)
    api.patch("spotschedules.5spot.finos.org/v1alpha1", "TimeBasedSpotSchedule", "hours", namespace, DISABLED)
    scenario.wait_gone(60)
    scenario.wait_phase("Inactive", timeout=60)


DISABLED = {"spec": {"enabled": False}}


@pytest.mark.long
@pytest.mark.timeout(240)
def test_without_its_crds_the_manager_waits_and_says_so_and_works_once_they_are_installed(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane(crds=())
    install(plane, definitions=False)
    path = plane.service_account_kubeconfig(SYSTEM_NAMESPACE, SERVICE_ACCOUNT)
    with begun(ManagerProcess(plane, kubeconfig=path)) as manager:
        kinds = ("scheduledmachines", "timebasedspotschedules.spotschedules.5spot.finos.org")
        status, _ = eventually(lambda: waits_for(manager, *kinds), 60, what="/readyz says it")
        assert status == 503
        assert probe(manager, "/healthz")[0] == 200
        # The first that was told may be of something else that was waited for before.
        kind = "scheduledmachines.5spot.finos.org"
        eventually(lambda: [line for line in unready(manager) if kind in line], what="the log says it")
        mark = plane.audit_log.mark()
        time.sleep(3)
        assert manager.exit_code is None
        # Nothing spins while it waits: a few tries for each kind, and no log line for each.
        assert len([e for e in plane.audit(since=mark) if e["user"]["username"].endswith(SERVICE_ACCOUNT)]) < 20
        assert len(refusals(manager)) < 10

        # One after the other: the readiness names what is left.
        definitions = {crd["spec"]["names"]["kind"]: crd for crd in read_crds(MANIFESTS / "crds")}
        machines = definitions.pop("ScheduledMachine")
        plane.install_crds(definitions.values())
        eventually(lambda: "spotschedules.5spot" not in probe(manager, "/readyz")[1], 30, what="schedules are read")
        assert waits_for(manager, "scheduledmachines")[0] == 503
        plane.install_crds([machines])
        manager.wait_ready()
        works(plane)
        assert manager.exit_code is None

        # Taken away while it runs, and installed again.
        crd = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "scheduledmachines.5spot.finos.org")
        plane.api.delete(*crd)
        eventually(lambda: plane.api.find(*crd) is None, 60, what="it is gone")
        plane.install_crds([machines])
        manager.wait_ready()
        plane.api.patch(
            "spotschedules.5spot.finos.org/v1alpha1",
            "TimeBasedSpotSchedule",
            "hours",
            "default",
            {"spec": {"enabled": True}},
        )
        plane.api.create(machine("again", "default"))
        again = Scenario(plane.api, "default", ProviderKind(plane.api, "TimeBasedSpotSchedule"), "again")
        again.wait_made(60)
        assert manager.exit_code is None
        assert not [r for r in manager.logs() if "exception" in r or re.search("Traceback", json.dumps(r))]


def waits_for(manager: ManagerProcess, *what: str) -> tuple[int, str]:
    status, text = probe(manager, "/readyz")
    assert all(each in text for each in what), text
    return status, text


def unready(manager: ManagerProcess) -> list[str]:
    """Return the log's messages about missing readiness."""
    return [json.dumps(record) for record in manager.logs() if record.get("msg") == "not ready"]
