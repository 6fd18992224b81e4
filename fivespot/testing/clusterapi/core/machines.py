"""Machines, as Cluster API's core manager moves them: adopted, provisioned, matched with a Node, drained, removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from fivespot.runtime import (
    DONE,
    Change,
    Controller,
    Head,
    Informer,
    Key,
    KindSource,
    ManagerContext,
    NotFoundError,
    Object,
    Resource,
    Result,
    ensure_finalizer,
    merge_diff,
    merge_patch,
    owner_of,
    remove_finalizer,
)
from fivespot.testing.clusterapi.base import Waits
from fivespot.testing.clusterapi.kinds import CORE_GROUP
from fivespot.testing.clusterapi.kubelet import PODS
from fivespot.testing.clusterapi.nodes import NODES
from fivespot.testing.clusterapi.views import CLUSTER_KIND, CLUSTER_LABEL, MACHINE_KIND, PAUSED_ANNOTATION

from .deletion import Removed, Step, drain, next_step
from .externals import ExternalReference, Externals, Found, owner_reference
from .facts import External, MachineFacts, read_bootstrap, read_infrastructure, read_node
from .status import machine_status

__all__ = ["CLUSTERS", "MACHINES", "CoreSettings", "MachineCore", "build_core_machines"]

MACHINES: Final = Resource(CORE_GROUP, "v1beta2", "machines", "Machine")
CLUSTERS: Final = Resource(CORE_GROUP, "v1beta2", "clusters", "Cluster")
FINALIZER: Final = "machine.cluster.x-k8s.io"

_BY_PROVIDER_ID: Final = "core: providerID"
_BY_CLUSTER: Final = "core: cluster"
_BY_NODE: Final = "core: node"
_LOOK: Final = "look"


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """How the simulated core works.

    :param slow_look: seconds between two looks at a drain or at volumes, as Cluster API waits.
    """

    slow_look: float = 20.0

    def __post_init__(self) -> None:
        if not self.slow_look > 0:
            raise ValueError("slow_look must be above zero")


class MachineCore:
    """The reconciler of Machines at v1beta2. The workload cluster is the management cluster."""

    def __init__(self, settings: CoreSettings, context: ManagerContext) -> None:
        self._settings = settings
        self._client, self._clock = context.client, context.clock
        self._waits = Waits(context)
        cache = context.cache
        self._machines = cache.informer(MACHINES)
        self._machines.add_index(_BY_PROVIDER_ID, _MACHINES_BY_PROVIDER_ID)
        self._machines.add_index(_BY_CLUSTER, _MACHINES_BY_CLUSTER)
        self._nodes = cache.informer(NODES)
        self._nodes.add_index(_BY_PROVIDER_ID, _provider_ids)
        self._pods = cache.informer(PODS)
        self._pods.add_index(_BY_NODE, _node_names)
        self.controller: Controller = context.controller("simulatedcoremachine", self)
        self.controller.watches(self._machines)
        self.controller.watches(self._nodes, self._on_node)
        # Waited for, and not listened to: Cluster API does not watch Pods either, and looks every so often.
        self.controller.watches(self._pods, lambda _: ())
        self._clusters: KindSource = self.controller.watches_kind(
            cache.kinds, CLUSTER_KIND, cache.informer, self._on_cluster
        )
        self._externals = Externals(context, self.controller, self._on_external)

    async def reconcile(self, key: Key) -> Result:
        obj = self._machines.get(key)
        if obj is None:
            self._waits.forget(key)
            return DONE
        body = obj.decode()
        cluster = self._cluster(Key(key.namespace, body["spec"]["clusterName"]))
        if cluster is None and not obj.head.deleting:
            return DONE  # As Cluster API: no finalizer, no phase, no adoption.
        if cluster is not None and not obj.head.deleting:
            obj = await ensure_finalizer(self._client, MACHINES, obj, FINALIZER)
        paused = PAUSED_ANNOTATION in obj.head.annotations or (cluster or {}).get("spec", {}).get("paused") is True
        if paused:
            facts = self._facts(obj.head, body, cluster, External(), External())
            await self._write_status(obj, facts, machine_status(facts, now=self._clock.now(), paused=True))
            return DONE
        spec = body["spec"]
        bootstrap = self._externals.find(
            key.namespace, ExternalReference.read((spec.get("bootstrap") or {}).get("configRef"))
        )
        infrastructure = self._externals.find(key.namespace, ExternalReference.read(spec.get("infrastructureRef")))
        if obj.head.deleting:
            return await self._go(obj, body, cluster, bootstrap, infrastructure)
        return await self._move(obj, body, cluster, bootstrap, infrastructure)

    # Making ------------------------------------------------------------------------------------------------------

    async def _move(
        self,
        obj: Object,
        body: Mapping[str, Any],
        cluster: Mapping[str, Any] | None,
        bootstrap: Found,
        infrastructure: Found,
    ) -> Result:
        name = body["spec"]["clusterName"]
        obj = await self._label(obj, name, cluster)
        owner = owner_reference(MACHINES, obj.head)
        problems = [await self._externals.adopt(found, owner, name) for found in (bootstrap, infrastructure)]
        externals = (
            _external(bootstrap, read_bootstrap, problems[0]),
            _external(infrastructure, read_infrastructure, problems[1]),
        )
        facts = self._facts(obj.head, body, cluster, *externals)
        taken = await self._take_over(obj, facts)
        if taken is not obj:
            obj = taken
            facts = self._facts(obj.head, obj.decode(), cluster, *externals)
        await self._write_status(obj, facts, machine_status(facts, now=self._clock.now()))
        if facts.node is not None:
            await self._mark_node(obj, facts)
        return Result(requeue_after=bootstrap.retry or infrastructure.retry)

    async def _label(self, obj: Object, name: str, cluster: Mapping[str, Any] | None) -> Object:
        """The label of the Cluster, and the Cluster as owner where nobody else is."""
        metadata: dict[str, Any] = {}
        if obj.head.labels.get(CLUSTER_LABEL) != name:
            metadata["labels"] = {CLUSTER_LABEL: name}
        if cluster is not None and not obj.head.owners:
            about = cluster["metadata"]
            entry = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "name": name, "uid": about["uid"]}
            metadata["ownerReferences"] = [entry]
        if not metadata:
            return obj
        return await self._client.patch(MACHINES, obj.key, merge_patch({"metadata": metadata}, obj.head))

    async def _take_over(self, obj: Object, facts: MachineFacts) -> Object:
        """What the providers say that belongs into the Machine's spec."""
        spec: dict[str, Any] = {}
        if facts.bootstrap.usable and (facts.spec.get("bootstrap") or {}).get("dataSecretName") is None:
            spec["bootstrap"] = {"dataSecretName": facts.bootstrap.value}
        if facts.infrastructure.usable and facts.spec.get("providerID") != facts.infrastructure.value:
            spec["providerID"] = facts.infrastructure.value
        if not spec:
            return obj
        return await self._client.patch(MACHINES, obj.key, merge_patch({"spec": spec}, obj.head))

    async def _mark_node(self, obj: Object, facts: MachineFacts) -> None:
        assert facts.node is not None
        wanted = {
            f"{CORE_GROUP}/cluster-name": str(facts.spec["clusterName"]),
            f"{CORE_GROUP}/cluster-namespace": obj.key.namespace,
            f"{CORE_GROUP}/machine": obj.key.name,
        }
        if wanted.items() <= facts.node.annotations.items():
            return
        patch = merge_patch({"metadata": {"annotations": wanted}})
        try:
            await self._client.patch(NODES, Key("", facts.node.name), patch)
        except NotFoundError:
            return

    # Unmaking ----------------------------------------------------------------------------------------------------

    async def _go(
        self,
        obj: Object,
        body: Mapping[str, Any],
        cluster: Mapping[str, Any] | None,
        bootstrap: Found,
        infrastructure: Found,
    ) -> Result:
        if FINALIZER not in obj.head.finalizers:
            return DONE
        externals = _external(bootstrap, read_bootstrap), _external(infrastructure, read_infrastructure)
        facts = self._facts(obj.head, body, cluster, *externals)
        step = next_step(facts, drained=False, now=self._clock.now())
        message = step.message
        if step.do is Removed.DRAIN:
            if left := self._waits.due(obj, _LOOK, self._settings.slow_look):
                # Between two looks nothing is asked or said, whatever happens, unless the drain is called off.
                return Result(requeue_after=left)
            assert facts.node is not None
            remaining = await drain(self._client, facts.node, self._pods, _BY_NODE)
            if remaining:
                message = f"{step.message}:\n{remaining}"
            else:
                step = next_step(facts, drained=True, now=self._clock.now())
                message = step.message
        await self._carry_out(obj, facts, step, bootstrap, infrastructure, message)
        if step.slow:
            return Result(requeue_after=self._settings.slow_look)
        # Not to know is not to be gone: the step waits, and nothing tells when it is known.
        unknown = [found.retry for found in (infrastructure, bootstrap) if found.problem]
        return Result(requeue_after=next(iter(unknown), None))

    async def _carry_out(
        self, obj: Object, facts: MachineFacts, step: Step, bootstrap: Found, infrastructure: Found, message: str
    ) -> None:
        status = machine_status(facts, now=self._clock.now(), deleting=(step.reason, message))
        if step.started:
            status["deletion"] = {**(status.get("deletion") or {}), **step.started}
        if step.do is not Removed.LET_GO:
            obj = await self._write_status(obj, facts, status)
        match step.do:
            case Removed.DELETE_INFRASTRUCTURE:
                await self._externals.delete(infrastructure)
            case Removed.DELETE_BOOTSTRAP:
                await self._externals.delete(bootstrap)
            case Removed.DELETE_NODE if facts.node is not None:
                await self._client.delete(NODES, Key("", facts.node.name), uid=facts.node.uid)
            case Removed.LET_GO:
                await remove_finalizer(self._client, MACHINES, obj, FINALIZER)

    # Looking -----------------------------------------------------------------------------------------------------

    def _facts(
        self,
        head: Head,
        body: Mapping[str, Any],
        cluster: Mapping[str, Any] | None,
        bootstrap: External,
        infrastructure: External,
    ) -> MachineFacts:
        spec = body["spec"]
        provider_id = spec.get("providerID")
        nodes = self._nodes.by_index(_BY_PROVIDER_ID, provider_id) if provider_id else ()
        node = next(iter(nodes), None)
        about = cluster or {}
        return MachineFacts(
            head=head,
            spec=spec,
            status=body.get("status") or {},
            bootstrap=bootstrap,
            infrastructure=infrastructure,
            node=read_node(node.decode()) if node is not None else None,
            cluster_deleting="deletionTimestamp" in about.get("metadata", {}) or cluster is None,
            control_plane=bool((about.get("spec") or {}).get("controlPlaneRef")),
        )

    def _cluster(self, key: Key) -> dict[str, Any] | None:
        informer = cast("Informer | None", self._clusters.informer)
        found = informer.get(key) if informer is not None else None
        return found.decode() if found is not None else None

    async def _write_status(self, obj: Object, facts: MachineFacts, status: Mapping[str, Any]) -> Object:
        change = merge_diff(facts.status, status)
        if not change:
            return obj
        return await self._client.patch(
            MACHINES, obj.key, merge_patch({"status": change}, obj.head), subresource="status"
        )

    def _on_external(self, change: Change) -> Iterable[Key]:
        return owner_of(MACHINE_KIND)(change)

    def _on_node(self, change: Change) -> Iterable[Key]:
        return [key for value in _provider_ids(change) for key in self._machines.keys_by_index(_BY_PROVIDER_ID, value)]

    def _on_cluster(self, change: Change) -> Iterable[Key]:
        return list(self._machines.keys_by_index(_BY_CLUSTER, str(change.key)))


def _external(found: Found, read: Any, problem: str = "") -> External:
    problem = found.problem or problem
    if found.obj is None or found.resource is None:
        return External(problem=problem)
    external: External = read(found.contract, found.obj.head, found.obj.decode())
    return replace(external, problem=problem, kind=found.resource.kind)


def _provider_ids(change: Change) -> list[str]:
    value = (change.body.get("spec") or {}).get("providerID")
    return [value] if isinstance(value, str) and value else []


def _indexed(fn: Callable[[Change], list[str]]) -> Callable[[Change], list[str] | None]:
    """The same for an index of Machines, which a change of nothing but the status leaves as it is."""

    def values(change: Change) -> list[str] | None:
        old = change.old
        same = old is not None and old.head.generation == change.head.generation and old.head.uid == change.head.uid
        return None if same else fn(change)

    return values


def _cluster_names(change: Change) -> list[str]:
    name = (change.body.get("spec") or {}).get("clusterName")
    return [str(Key(change.key.namespace, name))] if name else []


def _node_names(change: Change) -> list[str]:
    name = (change.body.get("spec") or {}).get("nodeName")
    return [name] if name else []


_MACHINES_BY_PROVIDER_ID: Final = _indexed(_provider_ids)
_MACHINES_BY_CLUSTER: Final = _indexed(_cluster_names)


def build_core_machines(settings: CoreSettings, context: ManagerContext) -> Controller:
    """The controller of Machines."""
    return MachineCore(settings, context).controller
