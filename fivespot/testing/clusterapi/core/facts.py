"""What the simulated core decides on: a Machine, what it refers to, and its Node. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fivespot.runtime import Head, find_condition

__all__ = [
    "EXTERNAL_KNOWN",
    "External",
    "MachineFacts",
    "NodeFacts",
    "read_bootstrap",
    "read_infrastructure",
    "read_node",
]

Json = dict[str, Any]

EXTERNAL_KNOWN: Final = ("v1beta2", "v1beta1")
"""The contracts that are understood, the newer first."""


@dataclass(frozen=True, slots=True)
class External:
    """A bootstrap or infrastructure object.

    :param kind: of the object, for people.
    :param problem: why nothing can be said of it: its kind is not installed, or carries no contract label.
    :param done: it says that what it stands for exists.
    :param value: the name of the Secret with the bootstrap data, or the providerID.
    :param message: what its Ready condition says while it is not true.
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
        """Cluster API goes by both: a word without its value counts as nothing."""
        return self.done and bool(self.value)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The Node with the Machine's providerID."""

    name: str
    uid: str
    ready: bool
    message: str = ""
    volumes: tuple[str, ...] = ()
    unschedulable: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Everything around one Machine."""

    head: Head
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    bootstrap: External
    infrastructure: External
    node: NodeFacts | None
    cluster_deleting: bool = False
    control_plane: bool = True
    """The Cluster has an initialized control plane; without one, Nodes are neither drained nor deleted."""

    @property
    def provisioned_once(self) -> bool:
        initialization = self.status.get("initialization") or {}
        return initialization.get("infrastructureProvisioned") is True

    @property
    def node_name(self) -> str:
        """The Node that the status remembers."""
        name: str = (self.status.get("nodeRef") or {}).get("name", "")
        return name


def read_bootstrap(contract: str, head: Head, body: Mapping[str, Any]) -> External:
    """A bootstrap object in the words of a contract."""
    status = _mapping(body.get("status"))
    done = _said(contract, status, "dataSecretCreated")
    value = status.get("dataSecretName")
    return External(head, done=done, value=value if isinstance(value, str) else "", message=_not_ready(status))


def read_infrastructure(contract: str, head: Head, body: Mapping[str, Any]) -> External:
    """An infrastructure machine in the words of a contract."""
    status = _mapping(body.get("status"))
    value = _mapping(body.get("spec")).get("providerID")
    addresses = status.get("addresses")
    return External(
        head,
        done=_said(contract, status, "provisioned"),
        value=value if isinstance(value, str) else "",
        message=_not_ready(status),
        addresses=tuple(a for a in addresses if isinstance(a, dict)) if isinstance(addresses, list) else (),
        failure_domain=str(status.get("failureDomain") or ""),
    )


def read_node(body: Mapping[str, Any]) -> NodeFacts:
    """A Node as far as a Machine mirrors it."""
    metadata, status = _mapping(body.get("metadata")), _mapping(body.get("status"))
    ready = find_condition(status.get("conditions"), "Ready") or {}
    volumes = status.get("volumesAttached") or ()
    return NodeFacts(
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
