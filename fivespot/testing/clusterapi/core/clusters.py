"""The Cluster controller of the simulated core: ready once its parts are, deleted after its Machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fivespot.runtime import (
    DONE,
    METADATA,
    Change,
    Condition,
    Controller,
    Key,
    ManagerContext,
    Object,
    Resource,
    Result,
    Selector,
    ensure_finalizer,
    merge_diff,
    merge_patch,
    owner_of,
    owner_reference,
    remove_finalizer,
    set_conditions,
)
from fivespot.runtime.objects import Exists
from fivespot.testing.clusterapi.lifecycle import is_provisioned
from fivespot.testing.clusterapi.views import CLUSTER_KIND, CLUSTER_LABEL, PAUSED_ANNOTATION

from .externals import ExternalObject, ExternalReference, ObjectTracker
from .machines import CLUSTERS, MACHINES

__all__ = ["ClusterCore", "build_core_clusters"]

FINALIZER: Final = "cluster.cluster.x-k8s.io"
_SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_BY_CLUSTER: Final = "core: cluster label"

Json = dict[str, Any]


class ClusterCore:
    """Reconciler of Clusters at v1beta2."""

    def __init__(self, context: ManagerContext) -> None:
        self._client, self._clock = context.client, context.clock
        cache = context.cache
        self._clusters = cache.informer(CLUSTERS)
        self._machines = cache.informer(MACHINES)
        self._machines.add_index(_BY_CLUSTER, _labelled)
        # Cluster API does not see a kubeconfig Secret without the label either.
        self._secrets = cache.informer(_SECRETS, selector=Selector(Exists(CLUSTER_LABEL)), projection=METADATA)
        self.controller: Controller = context.controller("simulatedcorecluster", self)
        self.controller.watches(self._clusters)
        self.controller.watches(self._machines, _cluster_of)
        self.controller.watches(self._secrets, _cluster_of)
        self._tracker = ObjectTracker(context, self.controller, owner_of(CLUSTER_KIND))

    async def reconcile(self, key: Key) -> Result:
        obj = self._clusters.get(key)
        if obj is None:
            return DONE
        spec = obj.decode().get("spec") or {}
        infrastructure, control_plane = (
            self._tracker.find(key.namespace, ExternalReference.read(spec.get(name)))
            for name in ("infrastructureRef", "controlPlaneRef")
        )
        if not obj.head.deleting:
            obj = await ensure_finalizer(self._client, CLUSTERS, obj, FINALIZER)
        if spec.get("paused") is True or PAUSED_ANNOTATION in obj.head.annotations:
            await self._write_status(obj, [Condition("Paused", "True", "Paused")], {})
        elif obj.head.deleting:
            await self._reconcile_delete(obj, control_plane, infrastructure)
        else:
            await self._reconcile_normal(obj, control_plane, infrastructure)
            return Result(requeue_after=infrastructure.retry or control_plane.retry)
        return DONE

    async def _reconcile_normal(
        self, obj: Object, control_plane: ExternalObject, infrastructure: ExternalObject
    ) -> None:
        owner = owner_reference(CLUSTERS, obj)
        for found in (infrastructure, control_plane):
            await self._tracker.adopt(found, owner, obj.key.name)
        endpoint = _spec(infrastructure).get("controlPlaneEndpoint") or {}
        if endpoint.get("host") and not (obj.decode().get("spec") or {}).get("controlPlaneEndpoint"):
            change = {"spec": {"controlPlaneEndpoint": endpoint}}
            obj = await self._client.patch(CLUSTERS, obj.key, merge_patch(change, obj.head))
        before = (obj.decode().get("status") or {}).get("initialization") or {}
        provisioned = before.get("infrastructureProvisioned") is True or _made(infrastructure, "provisioned", "ready")
        initialized = before.get("controlPlaneInitialized") is True or _made(
            control_plane, "controlPlaneInitialized", "initialized"
        )
        reachable = initialized and Key(obj.key.namespace, f"{obj.key.name}-kubeconfig") in self._secrets.keys()  # noqa: SIM118 - no mapping
        conditions = [
            _condition("InfrastructureReady", provisioned, "Ready"),
            _condition("ControlPlaneInitialized", initialized, "Initialized"),
            _condition("RemoteConnectionProbe", reachable, "ProbeSucceeded"),
            Condition("Paused", "False", "NotPaused"),
            Condition("Deleting", "False", "NotDeleting"),
        ]
        await self._write_status(
            obj,
            conditions,
            {
                "phase": "Provisioned" if provisioned and endpoint else "Provisioning",
                "initialization": {"infrastructureProvisioned": provisioned, "controlPlaneInitialized": initialized},
            },
        )

    async def _reconcile_delete(
        self, obj: Object, control_plane: ExternalObject, infrastructure: ExternalObject
    ) -> None:
        """Delete the Machines that the Cluster owns, wait for all others, then delete its parts."""
        if FINALIZER not in obj.head.finalizers:
            return
        machines = list(self._machines.by_index(_BY_CLUSTER, str(obj.key)))
        for machine in machines:
            owned = any(owner.uid == obj.head.uid for owner in machine.head.owners)
            if owned and not machine.head.deleting:
                await self._client.delete(MACHINES, machine.key, uid=machine.head.uid)
        if machines:
            await self._report_deleting(obj, "WaitingForWorkersDeletion", f"{len(machines)} Machines still exist")
        elif control_plane.obj is not None:
            await self._report_deleting(obj, "WaitingForControlPlaneDeletion", "the control plane still exists")
            await self._tracker.delete(control_plane)
        elif infrastructure.obj is not None:
            await self._report_deleting(obj, "WaitingForInfrastructureDeletion", "the infrastructure still exists")
            await self._tracker.delete(infrastructure)
        else:
            await remove_finalizer(self._client, CLUSTERS, obj, FINALIZER)

    async def _report_deleting(self, obj: Object, reason: str, message: str) -> None:
        await self._write_status(obj, [Condition("Deleting", "True", reason, message)], {"phase": "Deleting"})

    async def _write_status(self, obj: Object, conditions: list[Condition], status: Mapping[str, Any]) -> None:
        before = obj.decode().get("status") or {}
        generation, now = obj.head.generation, self._clock.now()
        merged = set_conditions(before.get("conditions"), conditions, generation=generation, now=now)
        change = merge_diff(before, {**before, **status, "conditions": merged})
        if change:
            await self._client.patch_status(CLUSTERS, obj.head, change)


def _condition(type_: str, met: bool, reason: str) -> Condition:
    return Condition(type_, "True", reason) if met else Condition(type_, "False", f"Not{reason}")


def _made(found: ExternalObject, newer: str, earlier: str) -> bool:
    if found.obj is None:
        return False
    status = found.obj.decode().get("status") or {}
    return is_provisioned("v1beta1" if found.contract == "v1beta1" else "v1beta2", newer, earlier, status)


def _spec(found: ExternalObject) -> Mapping[str, Any]:
    return (found.obj.decode().get("spec") or {}) if found.obj is not None else {}


def _labelled(change: Change) -> Iterable[str]:
    return [str(key) for key in _cluster_of(change)]


def _cluster_of(change: Change) -> list[Key]:
    name = change.head.labels.get(CLUSTER_LABEL)
    return [Key(change.key.namespace, name)] if name else []


def build_core_clusters(context: ManagerContext) -> Controller:
    """Build the Cluster controller."""
    return ClusterCore(context).controller
