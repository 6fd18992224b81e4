"""The status of a Machine that follows from the facts, in the words of v1beta2. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fivespot.runtime import Condition, set_conditions

from .facts import External, MachineFacts

__all__ = ["machine_phase", "machine_status"]

Json = dict[str, Any]

_READY_PARTS: Final = ("BootstrapConfigReady", "InfrastructureReady", "NodeHealthy")


def machine_phase(facts: MachineFacts, *, provisioned: bool, node: str) -> str:
    """Running means that a Node registered, not that it is ready."""
    if facts.head.deleting:
        return "Deleting"
    if provisioned:
        return "Running" if node else "Provisioned"
    return "Provisioning" if facts.bootstrap.usable or _data_given(facts) else "Pending"


def machine_status(
    facts: MachineFacts, *, now: datetime, paused: bool = False, deleting: tuple[str, str] | None = None
) -> Json:
    """
    :param deleting: why the deletion waits: reason and message of condition Deleting.
    """
    status = dict(facts.status)
    generation = facts.head.generation
    if paused:
        conditions = [Condition("Paused", "True", "Paused", "the Machine or its Cluster is paused")]
        return {
            **status,
            "conditions": set_conditions(status.get("conditions"), conditions, generation=generation, now=now),
        }
    # One-way: a provider that takes its word back changes nothing.
    provisioned = facts.provisioned_once or facts.infrastructure.usable
    bootstrapped = facts.bootstrap.usable or _data_given(facts)
    node = facts.node.name if facts.node is not None and provisioned else facts.node_name
    initialization = {
        **({"bootstrapDataSecretCreated": True} if bootstrapped else {}),
        **({"infrastructureProvisioned": True} if provisioned else {}),
    }
    status |= {
        "phase": machine_phase(facts, provisioned=provisioned, node=node),
        "observedGeneration": generation,
        **({"initialization": initialization} if initialization else {}),
        **({"nodeRef": {"name": node}} if node else {}),
    }
    if provisioned and facts.infrastructure.addresses:
        status["addresses"] = list(facts.infrastructure.addresses)
    parts = {
        "BootstrapConfigReady": _external("BootstrapConfigReady", facts.bootstrap, bootstrapped),
        "InfrastructureReady": _external("InfrastructureReady", facts.infrastructure, provisioned),
        "NodeHealthy": _node_healthy(facts, node),
    }
    going = facts.head.deleting
    reason, message = deleting or ("Deleting", "")
    conditions = [
        *parts.values(),
        Condition("Paused", "False", "NotPaused"),
        Condition("Deleting", "True", reason, message) if going else Condition("Deleting", "False", "NotDeleting"),
        _summary(parts, deleting=message or reason if going else ""),
    ]
    conditions.append(_available(conditions[-1]))
    status["conditions"] = set_conditions(status.get("conditions"), conditions, generation=generation, now=now)
    return status


def _data_given(facts: MachineFacts) -> bool:
    bootstrap: Mapping[str, Any] = facts.spec.get("bootstrap") or {}
    return bool(bootstrap.get("dataSecretName"))


def _external(type_: str, external: External, done: bool) -> Condition:
    if external.problem:
        return Condition(type_, "Unknown", "InternalError", external.problem)
    if not external.exists:
        return Condition(type_, "False", "ObjectDeleted" if done else "ObjectDoesNotExist", "the object does not exist")
    if done and not external.message:
        return Condition(type_, "True", "Ready")
    return Condition(type_, "False", "NotReady", external.message or "not ready yet")


def _node_healthy(facts: MachineFacts, node: str) -> Condition:
    if facts.node is not None:
        if facts.node.ready:
            return Condition("NodeHealthy", "True", "NodeHealthy")
        return Condition("NodeHealthy", "False", "NodeNotHealthy", f"* Node.Ready: {facts.node.message}")
    if node:
        return Condition(
            "NodeHealthy", "False", "NodeDeleted", f"Node {node} has been deleted while the Machine still exists"
        )
    return Condition("NodeHealthy", "Unknown", "NodeInspecting", "waiting for a Node with the providerID to exist")


def _summary(parts: Mapping[str, Condition], *, deleting: str) -> Condition:
    problems = [f"* {type_}: {c.message or c.reason}" for type_, c in parts.items() if c.status != "True"]
    if deleting:
        problems = [f"* Deleting: {deleting}"]
    if not problems:
        return Condition("Ready", "True", "Ready")
    unknown = not deleting and all(c.status != "False" for c in parts.values())
    return Condition("Ready", "Unknown" if unknown else "False", "NotReady", "\n".join(problems))


def _available(ready: Condition) -> Condition:
    return Condition(
        "Available",
        "True" if ready.status == "True" else "False",
        "Available" if ready.status == "True" else "NotReady",
    )
