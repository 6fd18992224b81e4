"""The Machine controller of the simulated core: adopts, provisions, matches a Node, drains and deletes."""

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
    ManagerContext,
    NotFoundError,
    Object,
    Resource,
    Result,
    ensure_finalizer,
    merge_diff,
    merge_patch,
    owner_of,
    owner_reference,
    remove_finalizer,
)
from fivespot.runtime.reconcile import KindSource
from fivespot.testing.clusterapi.kinds import CORE_GROUP
from fivespot.testing.clusterapi.lifecycle import Waits
from fivespot.testing.clusterapi.views import CLUSTER_KIND, CLUSTER_LABEL, MACHINE_KIND, PAUSED_ANNOTATION
from fivespot.testing.clusterapi.workload import NODES, PODS

from .deletion import DeletionAction, DeletionStep, drain, next_deletion_step
from .externals import ExternalObject, ExternalReference, ObjectTracker
from .machine_status import (
    ExternalState,
    MachineSnapshot,
    machine_status,
    read_bootstrap,
    read_infrastructure,
    read_node,
)

__all__ = ["CLUSTERS", "MACHINES", "CoreSettings", "MachineCore", "build_core_machines"]

MACHINES: Final = Resource(CORE_GROUP, "v1beta2", "machines", "Machine")
CLUSTERS: Final = Resource(CORE_GROUP, "v1beta2", "clusters", "Cluster")
FINALIZER: Final = "machine.cluster.x-k8s.io"

_BY_PROVIDER_ID: Final = "core: providerID"
_BY_CLUSTER: Final = "core: cluster"
_BY_NODE: Final = "core: node"
_DRAIN: Final = "drain"


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """Settings of the simulated core.

    :param drain_interval: seconds between two checks of a drain or of attached volumes.
    """

    drain_interval: float = 20.0

    def __post_init__(self) -> None:
        if not self.drain_interval > 0:
            raise ValueError("drain_interval must be above zero")


class MachineCore:
    """Reconciler of Machines at v1beta2. The workload cluster is the management cluster."""

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
        # Only synced before the start: Cluster API does not react to Pods either, it checks them at an interval.
        self.controller.watches(self._pods, lambda _: ())
        self._clusters: KindSource = self.controller.watches_kind(
            cache.kinds, CLUSTER_KIND, cache.informer, self._on_cluster
        )
        self._tracker = ObjectTracker(context, self.controller, self._on_external)

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
            machine = self._snapshot(obj.head, body, cluster, ExternalState(), ExternalState())
            await self._write_status(obj, machine, machine_status(machine, now=self._clock.now(), paused=True))
            return DONE
        spec = body["spec"]
        bootstrap = self._tracker.find(
            key.namespace, ExternalReference.read((spec.get("bootstrap") or {}).get("configRef"))
        )
        infrastructure = self._tracker.find(key.namespace, ExternalReference.read(spec.get("infrastructureRef")))
        if obj.head.deleting:
            return await self._reconcile_delete(obj, body, cluster, bootstrap, infrastructure)
        return await self._reconcile_normal(obj, body, cluster, bootstrap, infrastructure)

    async def _reconcile_normal(
        self,
        obj: Object,
        body: Mapping[str, Any],
        cluster: Mapping[str, Any] | None,
        bootstrap: ExternalObject,
        infrastructure: ExternalObject,
    ) -> Result:
        name = body["spec"]["clusterName"]
        obj = await self._label(obj, name, cluster)
        owner = owner_reference(MACHINES, obj)
        problems = [await self._tracker.adopt(found, owner, name) for found in (bootstrap, infrastructure)]
        externals = (
            _external(bootstrap, read_bootstrap, problems[0]),
            _external(infrastructure, read_infrastructure, problems[1]),
        )
        machine = self._snapshot(obj.head, body, cluster, *externals)
        patched = await self._copy_provider_values(obj, machine)
        if patched is not obj:
            obj = patched
            machine = self._snapshot(obj.head, obj.decode(), cluster, *externals)
        await self._write_status(obj, machine, machine_status(machine, now=self._clock.now()))
        if machine.node is not None:
            await self._annotate_node(obj, machine)
        return Result(requeue_after=bootstrap.retry or infrastructure.retry)

    async def _label(self, obj: Object, name: str, cluster: Mapping[str, Any] | None) -> Object:
        """Set the Cluster label, and the Cluster as owner of a Machine that has none."""
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

    async def _copy_provider_values(self, obj: Object, machine: MachineSnapshot) -> Object:
        """Copy the name of the bootstrap Secret and the providerID into the Machine's spec."""
        spec: dict[str, Any] = {}
        if machine.bootstrap.usable and (machine.spec.get("bootstrap") or {}).get("dataSecretName") is None:
            spec["bootstrap"] = {"dataSecretName": machine.bootstrap.value}
        if machine.infrastructure.usable and machine.spec.get("providerID") != machine.infrastructure.value:
            spec["providerID"] = machine.infrastructure.value
        if not spec:
            return obj
        return await self._client.patch(MACHINES, obj.key, merge_patch({"spec": spec}, obj.head))

    async def _annotate_node(self, obj: Object, machine: MachineSnapshot) -> None:
        assert machine.node is not None
        wanted = {
            f"{CORE_GROUP}/cluster-name": str(machine.spec["clusterName"]),
            f"{CORE_GROUP}/cluster-namespace": obj.key.namespace,
            f"{CORE_GROUP}/machine": obj.key.name,
        }
        if wanted.items() <= machine.node.annotations.items():
            return
        patch = merge_patch({"metadata": {"annotations": wanted}})
        try:
            await self._client.patch(NODES, Key("", machine.node.name), patch)
        except NotFoundError:
            return

    async def _reconcile_delete(
        self,
        obj: Object,
        body: Mapping[str, Any],
        cluster: Mapping[str, Any] | None,
        bootstrap: ExternalObject,
        infrastructure: ExternalObject,
    ) -> Result:
        if FINALIZER not in obj.head.finalizers:
            return DONE
        externals = _external(bootstrap, read_bootstrap), _external(infrastructure, read_infrastructure)
        machine = self._snapshot(obj.head, body, cluster, *externals)
        step = next_deletion_step(machine, drained=False, now=self._clock.now())
        message = step.message
        if step.action is DeletionAction.DRAIN:
            if left := self._waits.due(obj, _DRAIN, self._settings.drain_interval):
                # Between two checks nothing is requested or reported, unless the drain is called off.
                return Result(requeue_after=left)
            assert machine.node is not None
            remaining = await drain(self._client, machine.node, self._pods, _BY_NODE)
            if remaining:
                message = f"{step.message}:\n{remaining}"
            else:
                step = next_deletion_step(machine, drained=True, now=self._clock.now())
                message = step.message
        await self._execute(obj, machine, step, bootstrap, infrastructure, message)
        if step.slow:
            return Result(requeue_after=self._settings.drain_interval)
        # An object that cannot be read is not taken for gone; no event tells when it can be read again.
        unknown = [found.retry for found in (infrastructure, bootstrap) if found.problem]
        return Result(requeue_after=next(iter(unknown), None))

    async def _execute(
        self,
        obj: Object,
        machine: MachineSnapshot,
        step: DeletionStep,
        bootstrap: ExternalObject,
        infrastructure: ExternalObject,
        message: str,
    ) -> None:
        status = machine_status(machine, now=self._clock.now(), deleting=(step.reason, message))
        if step.started:
            status["deletion"] = {**(status.get("deletion") or {}), **step.started}
        if step.action is not DeletionAction.REMOVE_FINALIZER:
            obj = await self._write_status(obj, machine, status)
        match step.action:
            case DeletionAction.DELETE_INFRASTRUCTURE:
                await self._tracker.delete(infrastructure)
            case DeletionAction.DELETE_BOOTSTRAP:
                await self._tracker.delete(bootstrap)
            case DeletionAction.DELETE_NODE if machine.node is not None:
                await self._client.delete(NODES, Key("", machine.node.name), uid=machine.node.uid)
            case DeletionAction.REMOVE_FINALIZER:
                await remove_finalizer(self._client, MACHINES, obj, FINALIZER)

    def _snapshot(
        self,
        head: Head,
        body: Mapping[str, Any],
        cluster: Mapping[str, Any] | None,
        bootstrap: ExternalState,
        infrastructure: ExternalState,
    ) -> MachineSnapshot:
        spec = body["spec"]
        provider_id = spec.get("providerID")
        nodes = self._nodes.by_index(_BY_PROVIDER_ID, provider_id) if provider_id else ()
        node = next(iter(nodes), None)
        about = cluster or {}
        return MachineSnapshot(
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

    async def _write_status(self, obj: Object, machine: MachineSnapshot, status: Mapping[str, Any]) -> Object:
        change = merge_diff(machine.status, status)
        if not change:
            return obj
        return await self._client.patch_status(MACHINES, obj.head, change)

    def _on_external(self, change: Change) -> Iterable[Key]:
        return owner_of(MACHINE_KIND)(change)

    def _on_node(self, change: Change) -> Iterable[Key]:
        return [key for value in _provider_ids(change) for key in self._machines.keys_by_index(_BY_PROVIDER_ID, value)]

    def _on_cluster(self, change: Change) -> Iterable[Key]:
        return list(self._machines.keys_by_index(_BY_CLUSTER, str(change.key)))


def _external(found: ExternalObject, read: Any, problem: str = "") -> ExternalState:
    problem = found.problem or problem
    if found.obj is None or found.resource is None:
        return ExternalState(problem=problem)
    external: ExternalState = read(found.contract, found.obj.head, found.obj.decode())
    return replace(external, problem=problem, kind=found.resource.kind)


def _provider_ids(change: Change) -> list[str]:
    value = (change.body.get("spec") or {}).get("providerID")
    return [value] if isinstance(value, str) and value else []


def _indexed(fn: Callable[[Change], list[str]]) -> Callable[[Change], list[str] | None]:
    """Wrap an index function of Machines so that a change of the status alone leaves the index untouched."""

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
    """Build the Machine controller."""
    return MachineCore(settings, context).controller
