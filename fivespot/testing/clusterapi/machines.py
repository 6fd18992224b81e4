"""The simulated infrastructure provider: machines that are made, become Nodes, and are unmade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fivespot.runtime import (
    Controller,
    Key,
    ManagerContext,
    Object,
    Result,
    merge_patch,
)

from . import nodes
from .base import Provider
from .family import Family
from .script import MachineScript
from .states import is_made, machine_made
from .views import MachineState, cluster_of, machine_owner

__all__ = ["MachineProvider", "build_machines"]

_NODE = "node"
_NODE_READY = "nodeReady"


class MachineProvider(Provider[MachineScript]):
    """Makes a machine for every object that a Machine has adopted, in a Cluster that is ready, with bootstrap data.

    The status notes the Node (``node``) and whether it was last shown ready (``nodeReady``), so that a Node which
    somebody removed is not registered again: a kubelet registers when it starts.

    :param workload: where Nodes are registered; None: in the management cluster itself.
    """

    def __init__(self, family: Family, workload: nodes.Workload | None, context: ManagerContext) -> None:
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


def build_machines(family: Family, workload: nodes.Workload | None, context: ManagerContext) -> Controller:
    """The controller of a family's infrastructure machines."""
    return MachineProvider(family, workload, context).controller
