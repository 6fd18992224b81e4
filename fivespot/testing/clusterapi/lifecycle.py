"""The life of a simulated object: the next action by its script, its waiting times, and the status of each contract."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fivespot.runtime import Condition, Key, ManagerContext, Object, set_conditions

from .kinds import Contract, LifeScript, Outcome

__all__ = [
    "CREATED",
    "FAILED",
    "LifecycleAction",
    "LifecycleDecision",
    "Waits",
    "bootstrap_status",
    "control_plane_status",
    "decide",
    "infrastructure_cluster_status",
    "infrastructure_machine_status",
    "is_provisioned",
    "with_ready",
]

Json = dict[str, Any]

CREATED: Final = "Created"

FAILED: Final = "ScriptedFailure"


def bootstrap_status(contract: Contract, secret: str) -> Json:
    """Status of a bootstrap object whose data are in the Secret of that name."""
    return {"dataSecretName": secret, **_provisioned(contract, "dataSecretCreated", "ready")}


def infrastructure_machine_status(contract: Contract, addresses: list[Json]) -> Json:
    """Status of a provisioned infrastructure machine."""
    return {"addresses": addresses, **_provisioned(contract, "provisioned", "ready")}


def infrastructure_cluster_status(contract: Contract) -> Json:
    """Status of a provisioned infrastructure cluster."""
    return _provisioned(contract, "provisioned", "ready")


def control_plane_status(contract: Contract) -> Json:
    """Status of an initialized control plane that is managed externally.

    Without that field Cluster API watches no Nodes of the cluster, and neither drains nor deletes them.
    """
    initialized = _provisioned(contract, "controlPlaneInitialized", "initialized")
    return {"externalManagedControlPlane": True, **initialized, **({"ready": True} if contract == "v1beta1" else {})}


def is_provisioned(contract: Contract, newer: str, earlier: str, status: Mapping[str, Any]) -> bool:
    """Whether a status reports the object as provisioned."""
    if contract == "v1beta1":
        return status.get(earlier) is True
    initialization = status.get("initialization")
    return isinstance(initialization, Mapping) and initialization.get(newer) is True


def with_ready(status: Mapping[str, Any], *, generation: int, now: datetime, failure: str = "") -> Json:
    """Set the Ready condition, which Cluster API copies to the Machine; it is False with the message ``failure``."""
    ready = Condition("Ready", "False", FAILED, failure) if failure else Condition("Ready", "True", CREATED)
    conditions = set_conditions(status.get("conditions"), [ready], generation=generation, now=now)
    return {**status, "conditions": conditions}


def _provisioned(contract: Contract, newer: str, earlier: str) -> Json:
    return {earlier: True} if contract == "v1beta1" else {"initialization": {newer: True}}


class LifecycleAction(enum.Enum):
    """The action that an object needs."""

    NOTHING = "nothing"
    PROVISION = "provision"
    """Provision it, or keep it provisioned."""
    FAIL = "fail"
    """Report that provisioning or removal fails."""
    REMOVE = "remove"
    """Remove it, then its finalizer."""


@dataclass(frozen=True, slots=True)
class LifecycleDecision:
    """The next action, and the delay of the next reconcile.

    :param wait: seconds until the decision changes by time alone; None if it does not.
    :param reason: what it waits for, in words.
    """

    action: LifecycleAction
    wait: float | None = None
    reason: str = ""


Remaining = Callable[[str, float], float]
"""Seconds left of a waiting time: ``remaining("create", 5.0)`` counts from its first call."""


def decide(
    script: LifeScript,
    *,
    deleting: bool,
    held: bool,
    provisioned: bool,
    paused: bool,
    blocked_reason: str,
    remaining: Remaining,
) -> LifecycleDecision:
    """Decide the next action for an object.

    :param deleting: the object has a deletionTimestamp.
    :param held: it has our finalizer.
    :param provisioned: its status reports it as provisioned.
    :param blocked_reason: what provisioning still needs; "" when nothing is missing.
    """
    if paused:
        return LifecycleDecision(LifecycleAction.NOTHING, reason="paused")
    if deleting:
        if not held:
            return LifecycleDecision(LifecycleAction.NOTHING, reason="being deleted")
        return _when(
            script.delete, LifecycleAction.REMOVE, remaining("delete", script.delete_after_seconds), "deletion"
        )
    if provisioned:
        return LifecycleDecision(LifecycleAction.PROVISION)
    if blocked_reason:
        return LifecycleDecision(LifecycleAction.NOTHING, reason=blocked_reason)
    return _when(script.create, LifecycleAction.PROVISION, remaining("create", script.create_after_seconds), "creation")


def _when(outcome: Outcome, action: LifecycleAction, left: float, what: str) -> LifecycleDecision:
    if outcome == "Never":
        return LifecycleDecision(LifecycleAction.NOTHING, reason=f"{what} never ends")
    if left > 0:
        return LifecycleDecision(LifecycleAction.NOTHING, wait=left, reason=f"{what} takes {left:.1f} s more")
    return LifecycleDecision(LifecycleAction.FAIL if outcome == "Fail" else action)


class Waits:
    """Waiting times of each object, on the manager's clock. They start again after a restart."""

    def __init__(self, context: ManagerContext) -> None:
        self._clock = context.clock
        self._since: dict[Key, dict[tuple[str, str], float]] = {}

    def remaining(self, obj: Object, what: str, seconds: float) -> float:
        """Seconds left; 0 once they have passed."""
        now = self._clock.monotonic()
        began = self._since.setdefault(obj.key, {}).setdefault((obj.head.uid, what), now)
        return max(0.0, began + seconds - now)

    def due(self, obj: Object, what: str, every: float) -> float:
        """Seconds until a periodic action is due: 0 at first and after each interval."""
        now = self._clock.monotonic()
        since = self._since.setdefault(obj.key, {})
        began = since.get((obj.head.uid, what))
        if began is not None and now < began + every:
            return began + every - now
        since[obj.head.uid, what] = now
        return 0.0

    def forget(self, key: Key) -> None:
        """Drop the waiting times of an object that is gone."""
        self._since.pop(key, None)
