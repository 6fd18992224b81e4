"""The status of a simulated object, in the words of either contract. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fivespot.runtime import Condition, set_conditions

from .family import Contract

__all__ = [
    "CREATED",
    "FAILED",
    "bootstrap_made",
    "cluster_made",
    "control_plane_made",
    "is_made",
    "machine_made",
    "with_ready",
]

Json = dict[str, Any]

CREATED: Final = "Created"
FAILED: Final = "ScriptedFailure"


def bootstrap_made(contract: Contract, secret: str) -> Json:
    """There are data, in a Secret of that name."""
    return {"dataSecretName": secret, **_made(contract, "dataSecretCreated", "ready")}


def machine_made(contract: Contract, addresses: list[Json]) -> Json:
    """There is a machine."""
    return {"addresses": addresses, **_made(contract, "provisioned", "ready")}


def cluster_made(contract: Contract) -> Json:
    """There is what the machines of a cluster share."""
    return _made(contract, "provisioned", "ready")


def control_plane_made(contract: Contract) -> Json:
    """There is a control plane, which Cluster API does not manage machine by machine.

    Without that field Cluster API watches no Nodes of the cluster, and neither drains nor deletes them.
    """
    initialized = _made(contract, "controlPlaneInitialized", "initialized")
    return {"externalManagedControlPlane": True, **initialized, **({"ready": True} if contract == "v1beta1" else {})}


def is_made(contract: Contract, newer: str, earlier: str, status: Mapping[str, Any]) -> bool:
    """Whether a status says that what the object stands for exists."""
    if contract == "v1beta1":
        return status.get(earlier) is True
    initialization = status.get("initialization")
    return isinstance(initialization, Mapping) and initialization.get(newer) is True


def with_ready(status: Mapping[str, Any], *, generation: int, now: datetime, failure: str = "") -> Json:
    """The status with a Ready condition, which Cluster API copies to the Machine; false when ``failure`` says why."""
    ready = Condition("Ready", "False", FAILED, failure) if failure else Condition("Ready", "True", CREATED)
    conditions = set_conditions(status.get("conditions"), [ready], generation=generation, now=now)
    return {**status, "conditions": conditions}


def _made(contract: Contract, newer: str, earlier: str) -> Json:
    return {earlier: True} if contract == "v1beta1" else {"initialization": {newer: True}}
