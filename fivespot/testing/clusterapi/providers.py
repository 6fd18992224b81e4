"""The simulated bootstrap provider: data to start a machine with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fivespot.runtime import (
    DONE,
    AlreadyExistsError,
    Controller,
    Key,
    ManagerContext,
    Object,
    Resource,
    Result,
    merge_patch,
)

from . import nodes
from .base import SimulatedProvider
from .kinds import Contract, KindFamily
from .lifecycle import bootstrap_made, cluster_made, control_plane_made, is_made, machine_made
from .script import BootstrapScript, LifeScript, MachineScript
from .views import CLUSTER_LABEL, MachineState, cluster_of, machine_owner

__all__ = [
    "BootstrapProvider",
    "ClusterPartProvider",
    "MachineProvider",
    "build_bootstraps",
    "build_clusters",
    "build_control_planes",
    "build_machines",
]

SECRETS: Final = Resource("", "v1", "secrets", "Secret")


class BootstrapProvider(SimulatedProvider[BootstrapScript]):
    """Writes a Secret for every object that a Machine has adopted, in a Cluster that is ready."""

    def __init__(self, family: KindFamily, context: ManagerContext) -> None:
        super().__init__(family.bootstrap, BootstrapScript, family, context, fields=("dataSecretCreated", "ready"))

    def blocked(self, obj: Object, machine: MachineState | None) -> str:
        return self.unready(obj, machine)

    def holds(self, obj: Object, script: BootstrapScript) -> bool:
        return machine_owner(obj.head) is not None and super().holds(obj, script)

    async def make(
        self, obj: Object, script: BootstrapScript, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        if machine is not None:
            secret = await self._write_secret(obj, machine)
            await self.say(obj, status, {**status, **bootstrap_made(self.family.contract, secret)})
        return DONE

    async def _write_secret(self, obj: Object, machine: MachineState) -> str:
        body = secret_body(obj, self.resource, machine.cluster)
        name: str = body["metadata"]["name"]
        if (obj.decode().get("status") or {}).get("dataSecretName") != name:
            try:
                await self.client.create(SECRETS, body)
            except AlreadyExistsError:
                # Of an earlier run that did not reach the status: the name holds the object's uid.
                return name
        return name


def secret_body(obj: Object, resource: Resource, cluster: str) -> dict[str, Any]:
    """The Secret with the data; it goes with the object."""
    owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": obj.key.name, "uid": obj.head.uid}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{obj.key.name}-{obj.head.uid[:8]}",
            "namespace": obj.key.namespace,
            "labels": {CLUSTER_LABEL: cluster},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"value": "#cloud-config\n", "format": "cloud-config"},
    }


def build_bootstraps(family: KindFamily, context: ManagerContext) -> Controller:
    """The controller of a family's bootstrap objects."""
    return BootstrapProvider(family, context).controller


class ClusterPartProvider(SimulatedProvider[LifeScript]):
    """Brings one object per Cluster to what its contract calls ready.

    :param made: the status that says so.
    :param fields: by which it is told whether that was said, in the newer and in the earlier contract.
    """

    def __init__(
        self,
        resource: Resource,
        family: KindFamily,
        context: ManagerContext,
        *,
        made: Callable[[Contract], dict[str, Any]],
        fields: tuple[str, str],
    ) -> None:
        super().__init__(resource, LifeScript, family, context, fields=fields)
        self._made = made

    # A Cluster refers to both, and waits for them: they need not wait for it.

    async def make(
        self, obj: Object, script: LifeScript, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        await self.say(obj, status, {**status, **self._made(self.family.contract)})
        return DONE


def build_clusters(family: KindFamily, context: ManagerContext) -> Controller:
    """The controller of a family's infrastructure clusters."""
    fields = ("provisioned", "ready")
    return ClusterPartProvider(family.cluster, family, context, made=cluster_made, fields=fields).controller


def build_control_planes(family: KindFamily, context: ManagerContext) -> Controller:
    """The controller of a family's control planes."""
    fields = ("controlPlaneInitialized", "initialized")
    made = control_plane_made
    return ClusterPartProvider(family.control_plane, family, context, made=made, fields=fields).controller


_NODE = "node"

_NODE_READY = "nodeReady"


class MachineProvider(SimulatedProvider[MachineScript]):
    """Makes a machine for every object that a Machine has adopted, in a Cluster that is ready, with bootstrap data.

    The status notes the Node (``node``) and whether it was last shown ready (``nodeReady``), so that a Node which
    somebody removed is not registered again: a kubelet registers when it starts.

    :param workload: where Nodes are registered; None: in the management cluster itself.
    """

    def __init__(self, family: KindFamily, workload: nodes.Workload | None, context: ManagerContext) -> None:
        super().__init__(family.machine, MachineScript, family, context, fields=("provisioned", "ready"))
        self._workload = workload

    def blocked(self, obj: Object, machine: MachineState | None) -> str:
        bootstrapped = machine is not None and machine.bootstrapped
        return self.unready(obj, machine) or ("" if bootstrapped else "there are no bootstrap data yet")

    def holds(self, obj: Object, script: MachineScript) -> bool:
        return machine_owner(obj.head) is not None

    async def make(
        self, obj: Object, script: MachineScript, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        after = dict(status)
        if not is_made(self.family.contract, *self.fields, status):
            if script.provider_id is None:
                patch = merge_patch({"spec": {"providerID": nodes.provider_id(obj)}}, obj.head)
                obj = await self.client.patch(self.resource, obj.key, patch)
            after |= machine_made(self.family.contract, nodes.addresses(obj))
        wait = await self._keep_node(obj, script, machine, after)
        await self.say(obj, status, after)
        return Result(requeue_after=wait)

    async def _keep_node(
        self, obj: Object, script: MachineScript, machine: MachineState | None, status: dict[str, Any]
    ) -> float | None:
        """Register the Node and show its readiness when it is time, noting both in ``status``; seconds to wait."""
        node = script.node
        if not node.create or machine is None:
            return None
        if left := self.waits.remaining(obj, "node", node.create_after_seconds):
            return left
        left = self.waits.remaining(obj, "node ready", node.ready_after_seconds)
        ready, now = node.ready and left == 0, self.context.clock.now()
        client = self._client_of(Key(obj.key.namespace, machine.cluster))
        if _NODE not in status:
            if not await nodes.register(client, nodes.node_body(obj, node, ready=ready, now=now)):
                # By a run whose status was not taken; its script may have been another one.
                await nodes.show_ready(client, nodes.node_name(obj), ready=ready, now=now)
        elif status.get(_NODE_READY) is not ready:
            await nodes.show_ready(client, status[_NODE], ready=ready, now=now)
        status |= {_NODE: nodes.node_name(obj), _NODE_READY: ready}
        return left or None

    async def unmake(self, obj: Object, script: MachineScript, status: Mapping[str, Any]) -> None:
        cluster = cluster_of(obj.head)
        if script.node.remove and cluster is not None and _NODE in status:
            await nodes.remove(self._client_of(cluster), status[_NODE])

    def _client_of(self, cluster: Key) -> Any:
        return self.client if self._workload is None else self._workload(cluster)


def build_machines(family: KindFamily, workload: nodes.Workload | None, context: ManagerContext) -> Controller:
    """The controller of a family's infrastructure machines."""
    return MachineProvider(family, workload, context).controller
