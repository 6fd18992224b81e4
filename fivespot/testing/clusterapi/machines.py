"""The simulated infrastructure provider: machines that are made, become Nodes, and are unmade."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from fivespot.runtime import (
    DONE,
    Controller,
    Key,
    ManagerContext,
    Object,
    Result,
    ensure_finalizer,
    merge_patch,
    remove_finalizer,
)

from . import nodes
from .base import Provider
from .family import Family
from .life import Act, Decision, decide
from .script import MachineScript
from .states import is_made, machine_made, with_ready
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
        resource = family.machine
        super().__init__(resource.kind.lower(), resource, MachineScript, family, context)
        self._workload = workload
        self.finalizer = f"{resource.qualified}/simulated"

    async def reconcile(self, key: Key) -> Result:
        obj = self.objects.get(key)
        if obj is None:
            self.waits.forget(key)
            return DONE
        script = self.read_script(obj)
        machine = self.machine(obj)
        status = obj.decode().get("status") or {}
        made = is_made(self.family.contract, "provisioned", "ready", status)
        decision = decide(
            script,
            deleting=obj.head.deleting,
            held=self.finalizer in obj.head.finalizers,
            made=made,
            paused=self.paused(obj),
            blocked=self._blocked(obj, machine),
            remaining=partial(self.waits.remaining, obj),
        )
        return await self._carry_out(decision, obj, script, machine, status)

    def _blocked(self, obj: Object, machine: MachineState | None) -> str:
        if machine is None:
            return "no Machine has adopted it"
        cluster = self.cluster(Key(obj.key.namespace, machine.cluster))
        if cluster is None or not cluster.infrastructure_ready:
            return f"the infrastructure of Cluster {machine.cluster} is not ready"
        return "" if machine.bootstrapped else "there are no bootstrap data yet"

    async def _carry_out(
        self,
        decision: Decision,
        obj: Object,
        script: MachineScript,
        machine: MachineState | None,
        status: Mapping[str, Any],
    ) -> Result:
        if machine_owner(obj.head) is not None and not obj.head.deleting:
            # Before anything exists outside, and as early as a real provider: it must see the deletion.
            obj = await ensure_finalizer(self.client, self.resource, obj, self.finalizer)
        match decision.act:
            case Act.LET_GO:
                await self._unmake(obj, script, status)
            case Act.FAIL:
                await self._say(obj, status, status, script.failure)
            case Act.CREATE if not obj.head.deleting:
                return await self._make(obj, script, machine, status)
            case _:
                return Result(requeue_after=decision.wait)
        return DONE

    async def _make(
        self, obj: Object, script: MachineScript, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        after = dict(status)
        if not is_made(self.family.contract, "provisioned", "ready", status):
            if script.provider_id is None:
                patch = merge_patch({"spec": {"providerID": nodes.provider_id(obj)}}, obj.head)
                obj = await self.client.patch(self.resource, obj.key, patch)
            after |= machine_made(self.family.contract, nodes.addresses(obj))
        wait = await self._keep_node(obj, script, machine, after)
        await self._say(obj, status, after)
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
            await nodes.register(client, nodes.node_body(obj, node, ready=ready, now=now))
        elif status.get(_NODE_READY) is not ready:
            await nodes.show_ready(client, status[_NODE], ready=ready, now=now)
        status |= {_NODE: nodes.node_name(obj), _NODE_READY: ready}
        return left or None

    async def _unmake(self, obj: Object, script: MachineScript, status: Mapping[str, Any]) -> None:
        cluster = cluster_of(obj.head)
        if script.node.remove and cluster is not None and _NODE in status:
            await nodes.remove(self._client_of(cluster), status[_NODE])
        await remove_finalizer(self.client, self.resource, obj, self.finalizer)

    async def _say(self, obj: Object, before: Mapping[str, Any], status: Mapping[str, Any], failure: str = "") -> None:
        now = self.context.clock.now()
        after = with_ready(status, generation=obj.head.generation, now=now, failure=failure)
        await self.write_status(obj, before, after)

    def _client_of(self, cluster: Key) -> Any:
        return self.client if self._workload is None else self._workload(cluster)


def build_machines(family: Family, workload: nodes.Workload | None, context: ManagerContext) -> Controller:
    """The controller of a family's infrastructure machines."""
    return MachineProvider(family, workload, context).controller
