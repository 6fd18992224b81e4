"""The Nodes that simulated machines become. Pure bodies, and the few calls to the workload cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from fivespot.runtime import (
    AlreadyExistsError,
    Client,
    Condition,
    Key,
    NotFoundError,
    Object,
    Resource,
    merge_patch,
    rfc3339,
    set_conditions,
)

from .script import NodeScript

__all__ = ["NODES", "SIMULATED_LABEL", "Workload", "node_body", "node_name", "provider_id", "remove", "show_ready"]

NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
SIMULATED_LABEL: Final = "testing.5spot.finos.org/simulated"
"""On every Node that a simulated machine became; the simulated kubelet looks after those alone."""

Workload = Callable[[Key], Client]
"""The workload cluster of a Cluster, by its namespace and name."""

_READY: Final = "Ready"
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")


def node_name(machine: Object) -> str:
    """Unique in the workload cluster, also when several Clusters share it, and new for each new machine."""
    return f"{machine.key.name}-{machine.head.uid[:8]}.{machine.key.namespace}"


def provider_id(machine: Object) -> str:
    """By which Cluster API finds the Node of a Machine."""
    return f"simulated:///{machine.key.namespace}/{machine.key.name}/{machine.head.uid}"


def addresses(machine: Object) -> list[dict[str, str]]:
    """What the machine is reachable under: nothing but a name, since it is none."""
    return [{"type": "Hostname", "address": node_name(machine)}]


def node_body(machine: Object, script: NodeScript, *, ready: bool, now: datetime) -> dict[str, Any]:
    """The Node as a kubelet registers it, status included."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node_name(machine), "labels": {**script.labels, SIMULATED_LABEL: ""}},
        "spec": {"providerID": provider_id(machine)},
        "status": {"addresses": addresses(machine), "conditions": _conditions([], ready=ready, now=now)},
    }


async def register(client: Client, body: dict[str, Any]) -> bool:
    """Create the Node; False for one that is there already: this machine's own, because the name says whose it is."""
    try:
        await client.create(NODES, body)
    except AlreadyExistsError:
        return False
    return True


async def show_ready(client: Client, name: str, *, ready: bool, now: datetime) -> None:
    """Set the Node's Ready condition; nothing happens where the Node was removed by somebody."""
    key = Key("", name)
    try:
        node = await client.get(NODES, key)
        conditions = _conditions(node.decode().get("status", {}).get("conditions"), ready=ready, now=now)
        await client.patch(
            NODES, key, merge_patch({"status": {"conditions": conditions}}, node.head), subresource="status"
        )
    except NotFoundError:
        return


async def remove(client: Client, name: str) -> None:
    """Delete the Node unless it is gone."""
    key = Key("", name)
    try:
        node = await client.get(NODES, key, metadata_only=True)
    except NotFoundError:
        return
    await client.delete(NODES, key, uid=node.head.uid)


def _conditions(existing: object, *, ready: bool, now: datetime) -> list[dict[str, Any]]:
    wanted = [Condition(type_, "False", "KubeletHasSufficient") for type_ in _PRESSURES]
    shown = Condition(_READY, "True", "KubeletReady") if ready else Condition(_READY, "False", "KubeletNotReady")
    conditions = set_conditions(existing, [*wanted, shown], generation=0, now=now)
    # Nodes have no such field, and their own one for when the kubelet was last heard.
    return [
        {
            **{name: value for name, value in c.items() if name != "observedGeneration"},
            "lastHeartbeatTime": rfc3339(now),
        }
        for c in conditions
    ]
