"""A Machine with everything around it, and the status that follows, in the words of v1beta2. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from fivespot.runtime import Condition, Head, find_condition, set_conditions

__all__ = [
    "CONTRACTS",
    "ExternalState",
    "MachineSnapshot",
    "NodeState",
    "machine_phase",
    "machine_status",
    "read_bootstrap",
    "read_infrastructure",
    "read_node",
]

Json = dict[str, Any]

CONTRACTS: Final = ("v1beta2", "v1beta1")
"""Supported contracts, the newer first."""


@dataclass(frozen=True, slots=True)
class ExternalState:
    """A bootstrap or infrastructure object.

    :param kind: kind of the object, for messages.
    :param problem: why it cannot be read, such as a kind that is not installed or has no contract label.
    :param done: its status reports it as provisioned.
    :param value: the name of the Secret with the bootstrap data, or the providerID.
    :param message: message of its Ready condition while that is not True.
    """

    head: Head | None = None
    problem: str = ""
    kind: str = "object"
    done: bool = False
    value: str = ""
    message: str = ""
    addresses: tuple[Json, ...] = ()
    failure_domain: str = ""

    @property
    def exists(self) -> bool:
        return self.head is not None

    @property
    def usable(self) -> bool:
        """Whether it is provisioned and has its value; Cluster API requires both."""
        return self.done and bool(self.value)


@dataclass(frozen=True, slots=True)
class NodeState:
    """The Node with the Machine's providerID."""

    name: str
    uid: str
    ready: bool
    message: str = ""
    volumes: tuple[str, ...] = ()
    unschedulable: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MachineSnapshot:
    """A Machine with its external objects and its Node."""

    head: Head
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    bootstrap: ExternalState
    infrastructure: ExternalState
    node: NodeState | None
    cluster_deleting: bool = False
    control_plane: bool = True
    """Whether the Cluster has a control plane; without one, Nodes are neither drained nor deleted."""

    @property
    def provisioned_once(self) -> bool:
        initialization = self.status.get("initialization") or {}
        return initialization.get("infrastructureProvisioned") is True

    @property
    def node_name(self) -> str:
        """Name of the Node in ``status.nodeRef``."""
        name: str = (self.status.get("nodeRef") or {}).get("name", "")
        return name


def read_bootstrap(contract: str, head: Head, body: Mapping[str, Any]) -> ExternalState:
    """Read a bootstrap object by its contract."""
    status = _mapping(body.get("status"))
    done = _said(contract, status, "dataSecretCreated")
    value = status.get("dataSecretName")
    return ExternalState(head, done=done, value=value if isinstance(value, str) else "", message=_not_ready(status))


def read_infrastructure(contract: str, head: Head, body: Mapping[str, Any]) -> ExternalState:
    """Read an infrastructure machine by its contract."""
    status = _mapping(body.get("status"))
    value = _mapping(body.get("spec")).get("providerID")
    addresses = status.get("addresses")
    return ExternalState(
        head,
        done=_said(contract, status, "provisioned"),
        value=value if isinstance(value, str) else "",
        message=_not_ready(status),
        addresses=tuple(a for a in addresses if isinstance(a, dict)) if isinstance(addresses, list) else (),
        failure_domain=str(status.get("failureDomain") or ""),
    )


def read_node(body: Mapping[str, Any]) -> NodeState:
    """Read the fields of a Node that a Machine mirrors."""
    metadata, status = _mapping(body.get("metadata")), _mapping(body.get("status"))
    ready = find_condition(status.get("conditions"), "Ready") or {}
    volumes = status.get("volumesAttached") or ()
    return NodeState(
        name=str(metadata.get("name")),
        uid=str(metadata.get("uid")),
        ready=ready.get("status") == "True",
        message=str(ready.get("message") or ready.get("reason") or "no condition Ready yet"),
        volumes=tuple(str(volume.get("name")) for volume in volumes),
        unschedulable=_mapping(body.get("spec")).get("unschedulable") is True,
        annotations=_mapping(metadata.get("annotations")),
    )


def _said(contract: str, status: Mapping[str, Any], newer: str) -> bool:
    if contract == "v1beta1":
        return status.get("ready") is True
    return _mapping(status.get("initialization")).get(newer) is True


def _not_ready(status: Mapping[str, Any]) -> str:
    ready = find_condition(status.get("conditions"), "Ready")
    if ready is None or ready.get("status") == "True":
        return ""
    return str(ready.get("message") or ready.get("reason") or "")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_READY_PARTS: Final = ("BootstrapConfigReady", "InfrastructureReady", "NodeHealthy")


def machine_phase(machine: MachineSnapshot, *, provisioned: bool, node: str) -> str:
    """Compute the phase. Running means that a Node registered, not that it is ready."""
    if machine.head.deleting:
        return "Deleting"
    if provisioned:
        return "Running" if node else "Provisioned"
    return "Provisioning" if machine.bootstrap.usable or _data_given(machine) else "Pending"


def machine_status(
    machine: MachineSnapshot, *, now: datetime, paused: bool = False, deleting: tuple[str, str] | None = None
) -> Json:
    """Compute the status.

    :param deleting: reason and message of condition Deleting.
    """
    status = dict(machine.status)
    generation = machine.head.generation
    if paused:
        conditions = [Condition("Paused", "True", "Paused", "the Machine or its Cluster is paused")]
        return {
            **status,
            "conditions": set_conditions(status.get("conditions"), conditions, generation=generation, now=now),
        }
    # A Machine that was provisioned once stays so, whatever its provider reports later.
    provisioned = machine.provisioned_once or machine.infrastructure.usable
    bootstrapped = machine.bootstrap.usable or _data_given(machine)
    node = machine.node.name if machine.node is not None and provisioned else machine.node_name
    initialization = {
        **({"bootstrapDataSecretCreated": True} if bootstrapped else {}),
        **({"infrastructureProvisioned": True} if provisioned else {}),
    }
    status |= {
        "phase": machine_phase(machine, provisioned=provisioned, node=node),
        "observedGeneration": generation,
        **({"initialization": initialization} if initialization else {}),
        **({"nodeRef": {"name": node}} if node else {}),
    }
    if provisioned and machine.infrastructure.addresses:
        status["addresses"] = list(machine.infrastructure.addresses)
    parts = {
        "BootstrapConfigReady": _external("BootstrapConfigReady", machine.bootstrap, bootstrapped),
        "InfrastructureReady": _external("InfrastructureReady", machine.infrastructure, provisioned),
        "NodeHealthy": _node_healthy(machine, node),
    }
    going = machine.head.deleting
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


def _data_given(machine: MachineSnapshot) -> bool:
    bootstrap: Mapping[str, Any] = machine.spec.get("bootstrap") or {}
    return bool(bootstrap.get("dataSecretName"))


def _external(type_: str, external: ExternalState, done: bool) -> Condition:
    if external.problem:
        return Condition(type_, "Unknown", "InternalError", external.problem)
    if not external.exists:
        return Condition(type_, "False", "ObjectDeleted" if done else "ObjectDoesNotExist", "the object does not exist")
    if done and not external.message:
        return Condition(type_, "True", "Ready")
    return Condition(type_, "False", "NotReady", external.message or "not ready yet")


def _node_healthy(machine: MachineSnapshot, node: str) -> Condition:
    if machine.node is not None:
        if machine.node.ready:
            return Condition("NodeHealthy", "True", "NodeHealthy")
        return Condition("NodeHealthy", "False", "NodeNotHealthy", f"* Node.Ready: {machine.node.message}")
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
