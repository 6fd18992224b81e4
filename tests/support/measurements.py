"""Measurements of a manager: its metrics, its memory, its log, and its writes in the server's audit log."""

from __future__ import annotations

import http.client
import re
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import POLICY, WRITES, select, tally
from harness import MANAGER_USER, ManagerProcess
from harness.wait import eventually

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Samples = Mapping[str, float]


def scrape(port: int) -> dict[str, float]:
    """All samples of `/metrics` on a loopback port: `name{labels}` -> value."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def total(samples: Samples, name: str, /, **labels: str) -> float:
    """The sum of all series of a metric that carry these labels; 0 when there is none."""
    return sum(
        value
        for series, value in samples.items()
        if series.partition("{")[0] == name and labels.items() <= dict(_LABEL.findall(series)).items()
    )


def resident_bytes(pid: int) -> int:
    """The resident memory of a process of this machine."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB$", text, re.MULTILINE)
    assert found is not None, text
    return int(found[1]) * 1024


def writes(plane: ControlPlane, since: int, namespace: str, *, user: str = MANAGER_USER) -> list[dict[str, Any]]:
    """Return the manager's writes in a namespace after a mark of the audit log, Events excepted."""
    found = select(plane.audit(since=since), user=user, verbs=WRITES, namespace=namespace)
    return [event for event in found if event["objectRef"].get("resource") != "events"]


def calm(plane: ControlPlane, namespace: str, *, seconds: float = 1.0) -> int:
    """Wait until the manager has written nothing in a namespace for so long; the mark of the audit log before that.

    For the end of a storm, after which what is seen may still be of an earlier moment than what is wanted.
    """
    for _ in range(60):
        mark = plane.audit_log.mark()
        time.sleep(seconds)
        if not writes(plane, mark, namespace):
            return mark
    raise AssertionError(f"the manager keeps writing in {namespace}")


def caught_up(process: ManagerProcess, *states: Mapping[str, Any]) -> None:
    """Wait until a manager has heard of these states of objects, or of later ones, wherever it reads such objects now.

    Watches of different kinds are not in step: what was written first may be heard of last.
    """

    def heard() -> bool:
        shown = process.debug("informers")
        for state in states:
            resource = f"{state['kind'].lower()}s.{state['apiVersion'].rpartition('/')[0]}/"
            reading = [each for each in shown if each["resource"].startswith(resource)]
            late = [each for each in reading if each["version"] < int(state["metadata"]["resourceVersion"])]
            assert not late, late
        return True

    eventually(heard, 30, what="the manager has caught up")


def said(process: ManagerProcess, event: str) -> list[datetime]:
    """Return the times at which a manager logged this message."""
    return [datetime.fromisoformat(each["time"]) for each in process.logs() if each.get("msg") == event]


STATUS = "patch 5spot.finos.org/scheduledmachines/status"
MAKE_BOOTSTRAP = "create bootstrap.cluster.x-k8s.io/standinbootstraps"
MAKE_INFRASTRUCTURE = "create infrastructure.cluster.x-k8s.io/standinmachines"
MAKE_MACHINE = "create cluster.x-k8s.io/machines"
DELETE_BOOTSTRAP = "delete bootstrap.cluster.x-k8s.io/standinbootstraps"
DELETE_INFRASTRUCTURE = "delete infrastructure.cluster.x-k8s.io/standinmachines"
DELETE_MACHINE = "delete cluster.x-k8s.io/machines"
PATCH_MACHINE = "patch cluster.x-k8s.io/machines"


def spent(plane: ControlPlane, since: int, namespace: str | None = None) -> dict[str, int]:
    """Count the manager's writes since a mark of the audit log by verb and resource, Events and Leases excepted."""
    return dict(tally(event for event in written(plane, since, namespace) if not _is_event(event)))


def settle_bill(plane: ControlPlane, since: int, namespace: str, expected: dict[str, int]) -> None:
    """Check what the manager wrote, once the last of it has reached the log.

    The log has a write when it is answered, and its effect can be seen a moment before.
    """

    def same() -> bool:
        found = spent(plane, since, namespace)
        assert found == expected, found
        return True

    eventually(same, 5, what="the bill")


def told(plane: ControlPlane, since: int, namespace: str) -> Counter[str]:
    """Count the manager's writes of Events by verb."""
    return Counter(event["verb"] for event in written(plane, since, namespace) if _is_event(event))


def written(plane: ControlPlane, since: int, namespace: str | None = None) -> list[dict[str, Any]]:
    """The manager's write requests since a mark, Leases excepted; refused ones too."""
    found = select(plane.audit(since=since), user=MANAGER_USER, verbs=WRITES, namespace=namespace)
    return [event for event in found if event["objectRef"]["resource"] != "leases"]


def received(event: dict[str, Any]) -> datetime:
    """The instant at which the server received a request."""
    return datetime.fromisoformat(event["requestReceivedTimestamp"])


def log_bodies(monkeypatch: pytest.MonkeyPatch, *resources: tuple[str, str]) -> None:
    """Have servers that start from now on write the bodies of requests to these (group, resource) to their logs."""
    listed = [{"group": group, "resources": [resource]} for group, resource in resources]
    policy = {**POLICY, "rules": [{"level": "Request", "resources": listed, "verbs": sorted(WRITES)}, *POLICY["rules"]]}
    monkeypatch.setattr("controlplane.server.POLICY", policy)


def _is_event(event: dict[str, Any]) -> bool:
    resource: str = event["objectRef"]["resource"]
    return resource == "events"
