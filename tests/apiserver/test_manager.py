"""``fivespot manager`` as a process, with Cluster API's own definitions, on the embedded server."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import cluster_api_crds, read_crds, stand_in_crds
from support.cluster import cluster_objects
from support.machines import machine, schedule
from support.targets import DEFINITIONS, EmbeddedServer, Target, embedded_target

# The definitions are read from Cluster API's own module, which comes with the real server.
pytestmark = pytest.mark.server

OWN_CRDS = Path(__file__).resolve().parents[2] / "manifests" / "crds"
MACHINES = "/apis/cluster.x-k8s.io/v1beta2"


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    with EmbeddedServer(tmp_path) as server:
        made = embedded_target(server, "")
        for body in [*cluster_api_crds(), *stand_in_crds(), *read_crds(OWN_CRDS)]:
            made.create(DEFINITIONS, body).ok()
        yield made
        made.close()


def path_of(target: Target, body: dict[str, Any], ns: str) -> str:
    served = target.get(f"/apis/{body['apiVersion']}").ok()["resources"]
    plural = next(each["name"] for each in served if each["kind"] == body["kind"] and "/" not in each["name"])
    return f"/apis/{body['apiVersion']}/namespaces/{ns}/{plural}"


def test_a_machine_comes_and_goes(target: Target, tmp_path: Path) -> None:
    ns = target.namespace()
    hours = schedule("hours", ns, {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "timezone": "Europe/Berlin"})
    web = machine("web", ns, gracefulShutdownTimeout="0s")
    for body in [*cluster_objects(ns), hours, web]:
        target.create(path_of(target, body, ns), body).ok()
    path = f"{path_of(target, web, ns)}/web"
    children = f"{MACHINES}/namespaces/{ns}/machines"
    command = [sys.executable, "-m", "fivespot.cli", "manager", "--kubeconfig", str(tmp_path / "embedded.kubeconfig")]
    options = ["--metrics-port", "0", "--health-port", "0", "--lease-namespace", "default", "--enable-leader-election"]

    def phase() -> Any:
        return target.get(path).ok().get("status", {}).get("phase")

    log = tmp_path / "manager.log"
    with log.open("w") as out, subprocess.Popen([*command, *options], stdout=out, stderr=out) as manager:
        try:
            target.eventually(lambda: phase() == "Active", 40)
            (child,) = target.get(children).ok()["items"]
            assert child["metadata"]["ownerReferences"][0]["uid"] == target.get(path).ok()["metadata"]["uid"]
            leases = target.get("/apis/coordination.k8s.io/v1/namespaces/default/leases").ok()["items"]
            assert [lease["metadata"]["name"] for lease in leases] == ["5spot-leader"]
            events = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
            target.eventually(lambda: target.get(events).ok()["items"])
            target.patch(path, {"spec": {"enabled": False}}).ok()
            target.eventually(lambda: target.get(children).ok()["items"] == [], 40)
            target.delete(path).ok()
            target.eventually(lambda: target.get(path).status == 404, 40)
        finally:
            manager.send_signal(signal.SIGTERM)
        assert manager.wait(30) == 0, log.read_text()[-3000:]
    told = log.read_text()
    assert '"level":"error"' not in told
