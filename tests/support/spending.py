"""What the manager's acts cost, counted in the server's audit log."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import POLICY, WRITES, select, tally

from .manager import MANAGER_USER
from .waiting import eventually

STATUS = "patch 5spot.finos.org/scheduledmachines/status"
MAKE_BOOTSTRAP = "create bootstrap.cluster.x-k8s.io/standinbootstraps"
MAKE_INFRASTRUCTURE = "create infrastructure.cluster.x-k8s.io/standinmachines"
MAKE_MACHINE = "create cluster.x-k8s.io/machines"
DELETE_BOOTSTRAP = "delete bootstrap.cluster.x-k8s.io/standinbootstraps"
DELETE_INFRASTRUCTURE = "delete infrastructure.cluster.x-k8s.io/standinmachines"
DELETE_MACHINE = "delete cluster.x-k8s.io/machines"
PATCH_MACHINE = "patch cluster.x-k8s.io/machines"


def spent(plane: ControlPlane, since: int, namespace: str | None = None) -> dict[str, int]:
    """How often the manager wrote what since a mark of the audit log, Events and Leases excepted."""
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
    """How often the manager created and patched Events."""
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
