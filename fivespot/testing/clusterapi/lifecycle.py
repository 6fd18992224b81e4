"""The status of a simulated object, in the words of either contract. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fivespot.runtime import Condition, set_conditions

from .kinds import Contract
from .script import LifeScript, Outcome

__all__ = [
    "CREATED",
    "FAILED",
    "LifecycleAction",
    "LifecycleDecision",
    "bootstrap_made",
    "cluster_made",
    "control_plane_made",
    "decide",
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


class LifecycleAction(enum.Enum):
    """What is to be done with an object."""

    NOTHING = "nothing"
    CREATE = "create"
    """Make what it stands for, or keep that true."""
    FAIL = "fail"
    """Say that it cannot be made, or not unmade."""
    LET_GO = "let go"
    """Unmake what it stands for, and take the finalizer off."""


@dataclass(frozen=True, slots=True)
class LifecycleDecision:
    """What to do now, and when to look again.

    :param wait: seconds until time alone makes a difference; None: it does not.
    :param why: what is waited for, for people.
    """

    act: LifecycleAction
    wait: float | None = None
    why: str = ""


Remaining = Callable[[str, float], float]

"""Seconds left of a waiting time: ``remaining("create", 5.0)`` counts from its own first call."""


def decide(
    script: LifeScript,
    *,
    deleting: bool,
    held: bool,
    made: bool,
    paused: bool,
    blocked: str,
    remaining: Remaining,
) -> LifecycleDecision:
    """
    :param deleting: the object has a deletionTimestamp.
    :param held: our finalizer is on it.
    :param made: what it stands for exists.
    :param blocked: what must be there before making may begin, and is not; "" when nothing is missing.
    """
    if paused:
        return LifecycleDecision(LifecycleAction.NOTHING, why="paused")
    if deleting:
        if not held:
            return LifecycleDecision(LifecycleAction.NOTHING, why="being deleted")
        return _when(
            script.delete, LifecycleAction.LET_GO, remaining("delete", script.delete_after_seconds), "deletion"
        )
    if made:
        return LifecycleDecision(LifecycleAction.CREATE)
    if blocked:
        return LifecycleDecision(LifecycleAction.NOTHING, why=blocked)
    return _when(script.create, LifecycleAction.CREATE, remaining("create", script.create_after_seconds), "creation")


def _when(outcome: Outcome, act: LifecycleAction, left: float, what: str) -> LifecycleDecision:
    if outcome == "Never":
        return LifecycleDecision(LifecycleAction.NOTHING, why=f"{what} never ends")
    if left > 0:
        return LifecycleDecision(LifecycleAction.NOTHING, wait=left, why=f"{what} takes {left:.1f} s more")
    return LifecycleDecision(LifecycleAction.FAIL if outcome == "Fail" else act)
