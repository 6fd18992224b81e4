"""The manager as a process under the shipped rights: its Lease, its signals, a server that is not as it should be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controlplane import ControlPlane, read_crds, select
from fivespot.cli.options import CONTROLLERS
from harness import MANAGER_USER, MANIFESTS, SYSTEM_NAMESPACE, ManagerProcess, install
from harness.wait import eventually
from support import make_namespace
from support.machines import MACHINE, machine, schedule
from support.measurements import said
from support.scenario import MACHINES

LEASE = ("coordination.k8s.io/v1", "Lease", "5spot-leader", SYSTEM_NAMESPACE)
LEASE_SECONDS = 8
# A leader gives up after twice what a request may take on a busy machine, so that none does by accident.
ELECTION = ("--enable-leader-election", "--lease-duration-secs", str(LEASE_SECONDS), "--lease-renew-deadline-secs", "6",
            "--lease-retry-period-secs", "0.5")  # fmt: skip
WRITES = ("create", "update", "patch", "delete", "deletecollection")

pytestmark = [pytest.mark.server, pytest.mark.first]

Start = Callable[..., ControlPlane]


def holder(plane: ControlPlane) -> str:
    lease = plane.api.find(*LEASE)
    return str(lease["spec"].get("holderIdentity", "")) if lease is not None else ""


def leads(process: ManagerProcess) -> bool:
    return process.metrics()["fivespot_is_leader"] == 1


@pytest.fixture(scope="module")
def plane(module_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """One for this module, since its tests share one Lease and stop the server; each leaves it running."""
    found = module_control_plane()
    install(found)
    return found


def candidate(plane: ControlPlane, name: str, *arguments: str) -> ManagerProcess:
    return ManagerProcess(plane, *ELECTION, *arguments, environment={"POD_NAME": name})


@contextmanager
def leader(plane: ControlPlane, name: str, *arguments: str) -> Iterator[ManagerProcess]:
    """One that leads. Where another died with the lease, that takes as long as it lasts."""
    with candidate(plane, name, *arguments) as process:
        eventually(lambda: leads(process), 40, what="it leads")
        yield process


def test_one_leads_the_other_stands_by_ready_and_takes_over_from_a_stopped_and_from_a_killed_one(
    plane: ControlPlane,
) -> None:
    mark = plane.audit_log.mark()
    with leader(plane, "pod-1") as first, candidate(plane, "pod-2") as second:
        assert not leads(second)
        assert second.health("/readyz")[0] == 200, "a synced standby is ready"
        lease = plane.api.get(*LEASE)
        assert lease["spec"]["holderIdentity"] == "pod-1"
        assert lease["metadata"]["annotations"] == {"5spot.finos.org/reconcilers": ",".join(sorted(CONTROLLERS))}

        assert first.stop() == 0
        eventually(lambda: leads(second), 30, what="the second leads")
        let_go, taken = said(first, "released the lease")[-1], said(second, "leading")[-1]
        assert (taken - let_go).total_seconds() < LEASE_SECONDS - 3, "a lease that was let go is not waited for"

        with candidate(plane, "pod-3") as third:
            second.kill()
            killed = datetime.now(UTC)
            renewed = datetime.fromisoformat(plane.api.get(*LEASE)["spec"]["renewTime"])
            assert renewed <= killed, "the second's last renewal"
            eventually(lambda: leads(third), 40, what="the third leads")
            taken = said(third, "leading")[-1]
            assert (taken - renewed).total_seconds() >= LEASE_SECONDS, "its time is up"
            assert (taken - killed).total_seconds() < LEASE_SECONDS + 6
            assert holder(plane) == "pod-3"
            assert plane.api.get(*LEASE)["spec"]["leaseTransitions"] >= 2
            assert third.stop() == 0
    assert holder(plane) == ""
    refused = select(plane.audit(since=mark), user=MANAGER_USER, resource="leases", code=403)
    assert not refused, "the shipped rights are enough for the Lease"


def test_a_leader_that_the_server_does_not_answer_stops_working_and_works_again_afterwards(
    plane: ControlPlane,
) -> None:
    with leader(plane, "pod-1") as process:
        plane.pause_apiserver()
        try:
            eventually(lambda: not leads(process), 30, what="it gave up")
            assert process.health("/healthz")[0] == 200, "no restart would bring the server back"
        finally:
            plane.resume_apiserver()
        eventually(lambda: leads(process), 60, what="it leads again")
        assert process.exit_code is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_with_the_server_away_ends_well_within_the_grace_period(plane: ControlPlane, number: int) -> None:
    with leader(plane, "pod-1") as process:
        plane.kill_apiserver()
        time.sleep(1)
        began = time.monotonic()
        os.kill(process.pid, number)
        try:
            eventually(lambda: process.exit_code is not None, 25, what="it stopped")
            assert process.exit_code == 0
            assert time.monotonic() - began < 20
        finally:
            plane.restart_apiserver()


def test_a_lease_shared_by_mistake_ends_the_second_deployment_with_exit_code_2(plane: ControlPlane) -> None:
    with leader(plane, "pod-1", "--controllers", "scheduledmachine") as first:
        other = candidate(plane, "pod-2", "--controllers", "timebasedspotschedule", "--lease-name", "5spot-leader")
        other.start(wait=False)
        try:
            eventually(lambda: other.exit_code is not None, 60, what="the second ended")
            assert other.exit_code == 2
            assert "is held by pod-1, which runs scheduledmachine" in other.tail(1)
        finally:
            other.__exit__()
        assert leads(first)


@pytest.mark.contract("B8.1")
def test_a_dry_run_decides_and_writes_nothing(plane: ControlPlane) -> None:
    namespace = make_namespace(plane.api, "dry")
    always = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
    plane.api.create(schedule("hours", namespace, always))
    plane.api.create(machine("web", namespace))
    mark = plane.audit_log.mark()

    with ManagerProcess(plane, "--dry-run", *ELECTION) as process:

        def decided() -> bool:
            plans: list[dict[str, Any]] = process.debug("plans")
            return f"{namespace}/web" in {plan["object"] for plan in plans}

        eventually(decided, 60, what="it has decided")
        assert process.stop() == 0
    writes = [event for event in plane.audit(since=mark) if event["verb"] in WRITES]
    assert not select(writes, user=MANAGER_USER)


def test_on_uvloop_it_works_over_a_restart_of_the_server_and_stops_in_order(plane: ControlPlane) -> None:
    namespace = make_namespace(plane.api, "uvloop")
    always = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
    plane.api.create(schedule("hours", namespace, always))
    made = partial(plane.api.find, *MACHINES, "web", namespace)
    with candidate(plane, "pod-1", "--event-loop", "uvloop") as process:
        assert "/uvloop/" in Path(f"/proc/{process.pid}/maps").read_text(), "it really runs on it"
        plane.api.create(machine("web", namespace, gracefulShutdownTimeout="0s"))
        eventually(lambda: made() is not None, 60, what="a machine")
        plane.restart_apiserver()
        plane.api.patch(*MACHINE, "web", namespace, {"spec": {"enabled": False}})
        eventually(lambda: made() is None, 60, what="no machine")
        # All its controllers began again, and this machine needs one of them.
        eventually(lambda: process.health("/readyz")[0] == 200, 30, what="it is ready")
        assert process.stop() == 0
    assert holder(plane) == ""


def test_without_its_definitions_the_manager_waits_says_so_and_begins_when_they_come(
    own_control_plane: Start, tmp_path: Path
) -> None:
    plane = own_control_plane(crds=[])
    process = ManagerProcess(plane, kubeconfig=plane.kubeconfig(tmp_path / "kubeconfig"))
    process.start(wait=False)
    try:
        eventually(lambda: "scheduledmachines" in _readyz(process), 60, what="it says what is missing")
        assert process.health("/healthz")[0] == 200
        eventually(
            lambda: any(line.get("msg") == "not ready" for line in process.logs()), 60, what="the log says so too"
        )
        assert process.exit_code is None
        plane.install_crds(read_crds(MANIFESTS / "crds"))
        eventually(lambda: process.health("/readyz")[0] == 200, 60, what="it is ready")
    finally:
        process.__exit__()


def _readyz(process: ManagerProcess) -> str:
    try:
        return process.health("/readyz")[1]
    except (LookupError, OSError):
        return ""


def test_a_server_that_cannot_be_reached_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "abcdefgh"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    command = [sys.executable, "-m", "fivespot.cli", "manager", "--kubeconfig", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert result.returncode == 2
    assert str(path) in result.stderr
    assert "http://127.0.0.1:1" in result.stderr
    assert "Traceback" not in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("fivespot: ")]) == 1
