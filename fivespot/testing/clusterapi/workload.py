"""The workload cluster: the Nodes that simulated machines become, and the kubelet that runs and ends their Pods.

Without a kubelet an evicted Pod keeps its deletionTimestamp for ever, and no drain of a node ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from fivespot.runtime import (
    DONE,
    METADATA,
    AlreadyExistsError,
    Change,
    Client,
    Condition,
    Controller,
    Key,
    ManagerContext,
    NotFoundError,
    Object,
    Resource,
    Result,
    Selector,
    set_conditions,
)
from fivespot.runtime.objects import Exists, rfc3339

from .kinds import NodeScript
from .lifecycle import Waits

__all__ = [
    "NODES",
    "PODS",
    "SIMULATED_LABEL",
    "TERMINATE_AFTER",
    "Kubelet",
    "Workload",
    "build_kubelet",
    "node_addresses",
    "node_body",
    "node_name",
    "provider_id",
    "register_node",
    "remove_node",
    "running_status",
    "set_node_ready",
]

NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
SIMULATED_LABEL: Final = "testing.5spot.finos.org/simulated"
"""Label of Nodes that simulated machines became; the simulated kubelet handles only those."""

Workload = Callable[[Key], Client]
"""Returns the client of a Cluster's workload cluster, by the Cluster's namespace and name."""

_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")

PODS: Final = Resource("", "v1", "pods", "Pod")
TERMINATE_AFTER: Final = "testing.5spot.finos.org/terminate-after"
"""Annotation of a Pod: seconds that its termination takes, or ``never``. Without it a Pod terminates at once."""
_NEVER: Final = "never"
_BY_NODE: Final = "node"


def node_name(machine: Object) -> str:
    """Name of a machine's Node: unique in a workload cluster that Clusters share, and new for each machine."""
    return f"{machine.key.name}-{machine.head.uid[:8]}.{machine.key.namespace}"


def provider_id(machine: Object) -> str:
    """The providerID by which Cluster API finds the Node of a Machine."""
    return f"simulated:///{machine.key.namespace}/{machine.key.name}/{machine.head.uid}"


def node_addresses(machine: Object) -> list[dict[str, str]]:
    """Addresses of a machine: only a host name, because nothing listens there."""
    return [{"type": "Hostname", "address": node_name(machine)}]


def node_body(machine: Object, script: NodeScript, *, ready: bool, now: datetime) -> dict[str, Any]:
    """The Node as a kubelet registers it, including its status."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node_name(machine), "labels": {**script.labels, SIMULATED_LABEL: ""}},
        "spec": {"providerID": provider_id(machine)},
        "status": {"addresses": node_addresses(machine), "conditions": _conditions([], ready=ready, now=now)},
    }


async def register_node(client: Client, body: dict[str, Any]) -> bool:
    """Create the Node; returns False if it exists. Its name contains the machine's uid, so it is this machine's."""
    try:
        await client.create(NODES, body)
    except AlreadyExistsError:
        return False
    return True


async def set_node_ready(client: Client, name: str, *, ready: bool, now: datetime) -> None:
    """Set the Node's Ready condition, unless the Node was deleted."""
    key = Key("", name)
    try:
        node = await client.get(NODES, key)
        conditions = _conditions(node.decode().get("status", {}).get("conditions"), ready=ready, now=now)
        await client.patch_status(NODES, node, {"conditions": conditions})
    except NotFoundError:
        return


async def remove_node(client: Client, name: str) -> None:
    """Delete the Node if it exists."""
    key = Key("", name)
    try:
        node = await client.get(NODES, key, metadata_only=True)
    except NotFoundError:
        return
    await client.delete(NODES, key, uid=node.head.uid)


def _conditions(existing: object, *, ready: bool, now: datetime) -> list[dict[str, Any]]:
    wanted = [Condition(type_, "False", "KubeletHasSufficient") for type_ in _PRESSURES]
    shown = Condition("Ready", "True", "KubeletReady") if ready else Condition("Ready", "False", "KubeletNotReady")
    conditions = set_conditions(existing, [*wanted, shown], generation=0, now=now)
    # Conditions of Nodes have lastHeartbeatTime and no observedGeneration.
    return [
        {
            **{name: value for name, value in c.items() if name != "observedGeneration"},
            "lastHeartbeatTime": rfc3339(now),
        }
        for c in conditions
    ]


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class _Pod(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_decoder = msgspec.json.Decoder(_Pod)


class Kubelet:
    """Sets Pods on simulated Nodes to Running and Ready, and removes those that are being deleted."""

    def __init__(self, context: ManagerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._waits = Waits(context)
        self._pods = context.cache.informer(PODS)
        self._pods.add_index(_BY_NODE, _node_of)
        self._nodes = context.cache.informer(NODES, selector=Selector(Exists(SIMULATED_LABEL)), projection=METADATA)
        self.controller: Controller = context.controller("simulatedkubelet", self)
        self.controller.watches(self._pods)
        self.controller.watches(self._nodes, self._on_node)

    async def reconcile(self, key: Key) -> Result:
        obj = self._pods.get(key)
        if obj is None:
            self._waits.forget(key)
            return DONE
        pod = obj.decode_as(_decoder)
        node = pod.spec.node_name
        if not node or self._nodes.get(Key("", node)) is None:
            return DONE
        if obj.head.deleting:
            return await self._terminate(obj)
        if pod.status.phase in {"", "Pending"}:
            await self._client.patch_status(PODS, obj, running_status(rfc3339(self._clock.now())))
        return DONE

    async def _terminate(self, obj: Object) -> Result:
        after = obj.head.annotations.get(TERMINATE_AFTER, "0")
        if after == _NEVER:
            return DONE
        if left := self._waits.remaining(obj, "termination", float(after)):
            return Result(requeue_after=left)
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": obj.head.uid},
        }
        try:
            await self._client.raw("DELETE", PODS.object_path(obj.key), body=msgspec.json.encode(options))
        except NotFoundError:
            return DONE
        return DONE

    def _on_node(self, change: Change) -> list[Key]:
        return [obj.key for obj in self._pods.by_index(_BY_NODE, change.key.name)]


def running_status(now: str) -> Mapping[str, Any]:
    """Status of a Pod whose containers are all running."""
    types = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [{"type": type_, "status": "True", "lastTransitionTime": now} for type_ in types],
    }


def _node_of(change: Change) -> list[str]:
    node = change.object.decode_as(_decoder).spec.node_name
    return [node] if node else []


def build_kubelet(context: ManagerContext) -> Controller:
    """Build the controller of Pods on simulated Nodes of the management cluster."""
    return Kubelet(context).controller
