"""The simulated bootstrap, infrastructure and control plane providers, and the reconciler that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast

from pydantic import ValidationError

from fivespot.runtime import (
    DONE,
    AlreadyExistsError,
    Change,
    ChangeType,
    Client,
    Controller,
    Informer,
    Key,
    ManagerContext,
    Object,
    Resource,
    Result,
    TerminalError,
    ensure_finalizer,
    merge_diff,
    merge_patch,
    not_written_by,
    owner_reference,
    remove_finalizer,
)
from fivespot.runtime.reconcile import KindSource

from .kinds import BootstrapScript, Contract, KindFamily, LifeScript, MachineScript
from .lifecycle import (
    LifecycleAction,
    Waits,
    bootstrap_status,
    control_plane_status,
    decide,
    infrastructure_cluster_status,
    infrastructure_machine_status,
    is_provisioned,
    with_ready,
)
from .views import (
    CLUSTER_KIND,
    CLUSTER_LABEL,
    MACHINE_KIND,
    PAUSED_ANNOTATION,
    ClusterState,
    MachineState,
    cluster_of,
    machine_owner,
    read_cluster,
    read_machine,
)
from .workload import (
    Workload,
    node_addresses,
    node_body,
    node_name,
    provider_id,
    register_node,
    remove_node,
    set_node_ready,
)

__all__ = [
    "BootstrapProvider",
    "ClusterPartProvider",
    "MachineProvider",
    "SimulatedProvider",
    "build_bootstraps",
    "build_clusters",
    "build_control_planes",
    "build_machines",
]

_BY_CLUSTER = "cluster"

Script = TypeVar("Script", bound=LifeScript)

SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_NODE = "node"
_NODE_READY = "nodeReady"


class SimulatedProvider(Generic[Script]):
    """Reconciler of one simulated kind, with the Machines and Clusters around its objects.

    Subclasses override :meth:`blocked_reason`, :meth:`needs_finalizer`, :meth:`provision` and :meth:`remove`.

    :param resource: the kind.
    :param script: the model of its spec.
    :param fields: status fields that report the object as provisioned, in contract v1beta2 and in v1beta1.
    """

    def __init__(
        self,
        resource: Resource,
        script: type[Script],
        family: KindFamily,
        context: ManagerContext,
        *,
        fields: tuple[str, str],
    ) -> None:
        self.resource = resource
        self.finalizer = f"{resource.qualified}/simulated"
        self.fields = fields
        self.family = family
        self.context = context
        self.client = context.client
        self.waits = Waits(context)
        self.objects: Informer = context.cache.informer(resource)
        self.objects.add_index(_BY_CLUSTER, _cluster_names)
        self._script = script
        self.controller: Controller = context.controller(resource.kind.lower(), self)
        self.controller.watches(self.objects, predicate=not_written_by(self.controller.name))
        kinds = context.cache.kinds
        self._machines: KindSource = self.controller.watches_kind(
            kinds, MACHINE_KIND, context.cache.informer, self._referred, _spec_changed
        )
        self._clusters: KindSource = self.controller.watches_kind(
            kinds, CLUSTER_KIND, context.cache.informer, self._in_cluster
        )

    async def reconcile(self, key: Key) -> Result:
        obj = self.objects.get(key)
        if obj is None:
            self.waits.forget(key)
            return DONE
        script = self.read_script(obj)
        machine = self.machine(obj)
        status = obj.decode().get("status") or {}
        decision = decide(
            script,
            deleting=obj.head.deleting,
            held=self.finalizer in obj.head.finalizers,
            provisioned=is_provisioned(self.family.contract, *self.fields, status),
            paused=self.paused(obj),
            blocked_reason=self.blocked_reason(obj, machine),
            remaining=partial(self.waits.remaining, obj),
        )
        if not obj.head.deleting and self.needs_finalizer(obj, script):
            # Added before anything is provisioned, as a real provider does, so that the deletion is always seen.
            obj = await ensure_finalizer(self.client, self.resource, obj, self.finalizer)
        match decision.action:
            case LifecycleAction.REMOVE:
                await self.remove(obj, script, status)
                await remove_finalizer(self.client, self.resource, obj, self.finalizer)
                return DONE
            case LifecycleAction.FAIL:
                await self.write_status(obj, status, status, script.failure)
                return DONE
            case LifecycleAction.PROVISION:
                return await self.provision(obj, script, machine, status)
            case LifecycleAction.NOTHING:
                return Result(requeue_after=decision.wait)

    # Overridden by kinds

    def blocked_reason(self, obj: Object, machine: MachineState | None) -> str:
        """Name the prerequisite of provisioning that is missing; "" when there is none."""
        return ""

    def needs_finalizer(self, obj: Object, script: Script) -> bool:
        """Whether the object carries our finalizer, so that its deletion can be scripted."""
        return script.delete != "Succeed" or script.delete_after_seconds > 0

    async def provision(
        self, obj: Object, script: Script, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        """Provision the object, or keep it provisioned."""
        raise NotImplementedError

    async def remove(self, obj: Object, script: Script, status: Mapping[str, Any]) -> None:
        """Remove what was created outside of the object."""

    # Used by kinds

    def read_script(self, obj: Object) -> Script:
        """Parse the spec.

        :raises TerminalError: it does not validate; only an edit can help.
        """
        try:
            return self._script.model_validate(obj.decode().get("spec") or {})
        except ValidationError as error:
            raise TerminalError(f"{obj.key}: {error}") from error

    def machine(self, obj: Object) -> MachineState | None:
        """The Machine that owns the object; None while none does, or it is not in the cache."""
        owner = machine_owner(obj.head)
        informer = cast("Informer | None", self._machines.informer)
        if owner is None or informer is None:
            return None
        found = informer.get(Key(obj.key.namespace, owner.name))
        return read_machine(found) if found is not None and found.head.uid == owner.uid else None

    def cluster(self, key: Key | None) -> ClusterState | None:
        """The Cluster, None if it is not in the cache."""
        informer = cast("Informer | None", self._clusters.informer)
        if key is None or informer is None:
            return None
        found = informer.get(key)
        return read_cluster(found) if found is not None else None

    def paused(self, obj: Object) -> bool:
        """Whether the object is paused, by its own annotation or by its Cluster's spec."""
        cluster = self.cluster(cluster_of(obj.head))
        return PAUSED_ANNOTATION in obj.head.annotations or (cluster is not None and cluster.paused)

    def unready_reason(self, obj: Object, machine: MachineState | None) -> str:
        """Explain why the object's Machine or Cluster is not ready for it; "" when it is."""
        if machine is None:
            return "no Machine owns it"
        cluster = self.cluster(Key(obj.key.namespace, machine.cluster))
        ready = cluster is not None and cluster.infrastructure_ready
        return "" if ready else f"the infrastructure of Cluster {machine.cluster} is not ready"

    async def write_status(
        self, obj: Object, before: Mapping[str, Any], status: Mapping[str, Any], failure: str = ""
    ) -> None:
        """Write the status and its Ready condition in one patch; write nothing if nothing changed."""
        now = self.context.clock.now()
        after = with_ready(status, generation=obj.head.generation, now=now, failure=failure)
        change = merge_diff(before, after)
        if change:
            await self.client.patch_status(self.resource, obj.head, change)

    def _referred(self, change: Change) -> Iterable[Key]:
        spec = read_machine(change.object).spec
        references = (spec.infrastructure_ref, spec.bootstrap.config_ref)
        kind = self.resource.kind
        return [Key(change.key.namespace, ref.name) for ref in references if ref is not None and ref.kind == kind]

    def _in_cluster(self, change: Change) -> Iterable[Key]:
        return [obj.key for obj in self.objects.by_index(_BY_CLUSTER, str(change.key))]


def _spec_changed(change: Change) -> bool:
    """Whether the fields of a Machine changed that a provider reads: not its status or annotations."""
    old = change.old
    return old is None or change.type is not ChangeType.MODIFIED or read_machine(old) != read_machine(change.object)


def _cluster_names(change: Change) -> Iterable[str]:
    cluster = cluster_of(change.head)
    return [str(cluster)] if cluster is not None else []


class BootstrapProvider(SimulatedProvider[BootstrapScript]):
    """Writes a bootstrap Secret for every object that a Machine owns, in a Cluster that is ready."""

    def __init__(self, family: KindFamily, context: ManagerContext) -> None:
        super().__init__(family.bootstrap, BootstrapScript, family, context, fields=("dataSecretCreated", "ready"))

    def blocked_reason(self, obj: Object, machine: MachineState | None) -> str:
        return self.unready_reason(obj, machine)

    def needs_finalizer(self, obj: Object, script: BootstrapScript) -> bool:
        return machine_owner(obj.head) is not None and super().needs_finalizer(obj, script)

    async def provision(
        self, obj: Object, script: BootstrapScript, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        if machine is not None:
            secret = await self._write_secret(obj, machine)
            await self.write_status(obj, status, {**status, **bootstrap_status(self.family.contract, secret)})
        return DONE

    async def _write_secret(self, obj: Object, machine: MachineState) -> str:
        body = secret_body(obj, self.resource, machine.cluster)
        name: str = body["metadata"]["name"]
        if (obj.decode().get("status") or {}).get("dataSecretName") != name:
            try:
                await self.client.create(SECRETS, body)
            except AlreadyExistsError:
                # Left by an earlier run that did not write the status; the name contains the object's uid.
                return name
        return name


def secret_body(obj: Object, resource: Resource, cluster: str) -> dict[str, Any]:
    """The Secret with the bootstrap data, owned by the object."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{obj.key.name}-{obj.head.uid[:8]}",
            "namespace": obj.key.namespace,
            "labels": {CLUSTER_LABEL: cluster},
            "ownerReferences": [owner_reference(resource, obj)],
        },
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"value": "#cloud-config\n", "format": "cloud-config"},
    }


def build_bootstraps(family: KindFamily, context: ManagerContext) -> Controller:
    """The controller of a family's bootstrap objects."""
    return BootstrapProvider(family, context).controller


class ClusterPartProvider(SimulatedProvider[LifeScript]):
    """Provisions the infrastructure or the control plane object of a Cluster. Neither waits for the Cluster.

    :param provisioned_status: the status that reports it as provisioned.
    :param fields: the status fields of that, in contract v1beta2 and in v1beta1.
    """

    def __init__(
        self,
        resource: Resource,
        family: KindFamily,
        context: ManagerContext,
        *,
        provisioned_status: Callable[[Contract], dict[str, Any]],
        fields: tuple[str, str],
    ) -> None:
        super().__init__(resource, LifeScript, family, context, fields=fields)
        self._provisioned_status = provisioned_status

    async def provision(
        self, obj: Object, script: LifeScript, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        await self.write_status(obj, status, {**status, **self._provisioned_status(self.family.contract)})
        return DONE


def build_clusters(family: KindFamily, context: ManagerContext) -> Controller:
    """The controller of a family's infrastructure clusters."""
    fields = ("provisioned", "ready")
    provider = ClusterPartProvider(
        family.cluster, family, context, provisioned_status=infrastructure_cluster_status, fields=fields
    )
    return provider.controller


def build_control_planes(family: KindFamily, context: ManagerContext) -> Controller:
    """The controller of a family's control planes."""
    fields = ("controlPlaneInitialized", "initialized")
    provider = ClusterPartProvider(
        family.control_plane, family, context, provisioned_status=control_plane_status, fields=fields
    )
    return provider.controller


class MachineProvider(SimulatedProvider[MachineScript]):
    """Provisions a machine for every object that a Machine owns, once the Cluster is ready and bootstrap data exist.

    The status records the Node (``node``) and its last readiness (``nodeReady``), so that a Node which somebody deleted
    is not registered again: a kubelet registers when it starts.

    :param workload: workload cluster of each Cluster; None if it is the management cluster.
    """

    def __init__(self, family: KindFamily, workload: Workload | None, context: ManagerContext) -> None:
        super().__init__(family.machine, MachineScript, family, context, fields=("provisioned", "ready"))
        self._workload = workload

    def blocked_reason(self, obj: Object, machine: MachineState | None) -> str:
        bootstrapped = machine is not None and machine.bootstrapped
        return self.unready_reason(obj, machine) or ("" if bootstrapped else "the bootstrap data do not exist yet")

    def needs_finalizer(self, obj: Object, script: MachineScript) -> bool:
        return machine_owner(obj.head) is not None

    async def provision(
        self, obj: Object, script: MachineScript, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        after = dict(status)
        if not is_provisioned(self.family.contract, *self.fields, status):
            if script.provider_id is None:
                patch = merge_patch({"spec": {"providerID": provider_id(obj)}}, obj.head)
                obj = await self.client.patch(self.resource, obj.key, patch)
            after |= infrastructure_machine_status(self.family.contract, node_addresses(obj))
        wait = await self._keep_node(obj, script, machine, after)
        await self.write_status(obj, status, after)
        return Result(requeue_after=wait)

    async def _keep_node(
        self, obj: Object, script: MachineScript, machine: MachineState | None, status: dict[str, Any]
    ) -> float | None:
        """Register the Node and set its readiness when due, recorded in ``status``; return the seconds to wait."""
        node = script.node
        if not node.create or machine is None:
            return None
        if left := self.waits.remaining(obj, "node", node.create_after_seconds):
            return left
        left = self.waits.remaining(obj, "node ready", node.ready_after_seconds)
        ready, now = node.ready and left == 0, self.context.clock.now()
        client = self._client_of(Key(obj.key.namespace, machine.cluster))
        if _NODE not in status:
            if not await register_node(client, node_body(obj, node, ready=ready, now=now)):
                # Registered by a run whose status write failed, perhaps under another script.
                await set_node_ready(client, node_name(obj), ready=ready, now=now)
        elif status.get(_NODE_READY) is not ready:
            await set_node_ready(client, status[_NODE], ready=ready, now=now)
        status |= {_NODE: node_name(obj), _NODE_READY: ready}
        return left or None

    async def remove(self, obj: Object, script: MachineScript, status: Mapping[str, Any]) -> None:
        cluster = cluster_of(obj.head)
        if script.node.remove and cluster is not None and _NODE in status:
            await remove_node(self._client_of(cluster), status[_NODE])

    def _client_of(self, cluster: Key) -> Client:
        return self.client if self._workload is None else self._workload(cluster)


def build_machines(family: KindFamily, workload: Workload | None, context: ManagerContext) -> Controller:
    """The controller of a family's infrastructure machines."""
    return MachineProvider(family, workload, context).controller
