"""What the reconcilers of the simulated providers have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar, cast

from pydantic import ValidationError

from fivespot.runtime import (
    DONE,
    Change,
    ChangeType,
    Controller,
    Informer,
    Key,
    KindSource,
    ManagerContext,
    Object,
    Resource,
    Result,
    TerminalError,
    any_of,
    ensure_finalizer,
    generation_or_metadata_changed,
    merge_diff,
    merge_patch,
    not_own,
    remove_finalizer,
)

from .kinds import KindFamily
from .lifecycle import LifecycleAction, decide, is_made, with_ready
from .script import LifeScript
from .views import (
    CLUSTER_KIND,
    MACHINE_KIND,
    PAUSED_ANNOTATION,
    ClusterState,
    MachineState,
    cluster_of,
    machine_owner,
    read_cluster,
    read_machine,
)

__all__ = ["SimulatedProvider", "Waits"]

_BY_CLUSTER = "cluster"
_MATTERS = any_of(not_own, generation_or_metadata_changed)
"""Nothing follows from the echo of a status that was written here."""

Script = TypeVar("Script", bound=LifeScript)


class Waits:
    """When each waiting time of each object began, on the injected clock. A restart begins them anew."""

    def __init__(self, context: ManagerContext) -> None:
        self._clock = context.clock
        self._since: dict[Key, dict[tuple[str, str], float]] = {}

    def remaining(self, obj: Object, what: str, seconds: float) -> float:
        """Seconds left; 0 when they are over."""
        now = self._clock.monotonic()
        began = self._since.setdefault(obj.key, {}).setdefault((obj.head.uid, what), now)
        return max(0.0, began + seconds - now)

    def due(self, obj: Object, what: str, every: float) -> float:
        """Seconds until something that is done every so often is due: 0 at first, and then again each time."""
        now = self._clock.monotonic()
        since = self._since.setdefault(obj.key, {})
        began = since.get((obj.head.uid, what))
        if began is not None and now < began + every:
            return began + every - now
        since[obj.head.uid, what] = now
        return 0.0

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._since.pop(key, None)


class SimulatedProvider(Generic[Script]):
    """One kind of simulated objects, with the Machines and Clusters around them.

    What a kind adds: what it waits for (``blocked``), when a deletion must be seen (``holds``), what it makes
    (``make``) and unmakes (``unmake``).

    :param resource: the kind.
    :param script: the model of its spec.
    :param fields: of the status, by which it is told whether the object was made, in the newer and in the earlier
        contract.
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
        self.controller.watches(self.objects, predicate=_MATTERS)
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
            made=is_made(self.family.contract, *self.fields, status),
            paused=self.paused(obj),
            blocked=self.blocked(obj, machine),
            remaining=partial(self.waits.remaining, obj),
        )
        if not obj.head.deleting and self.holds(obj, script):
            # Before anything exists outside, and as early as a real provider: it must see the deletion.
            obj = await ensure_finalizer(self.client, self.resource, obj, self.finalizer)
        match decision.act:
            case LifecycleAction.LET_GO:
                await self.unmake(obj, script, status)
                await remove_finalizer(self.client, self.resource, obj, self.finalizer)
                return DONE
            case LifecycleAction.FAIL:
                await self.say(obj, status, status, script.failure)
                return DONE
            case LifecycleAction.CREATE:
                return await self.make(obj, script, machine, status)
            case LifecycleAction.NOTHING:
                return Result(requeue_after=decision.wait)

    # What a kind adds

    def blocked(self, obj: Object, machine: MachineState | None) -> str:
        """What must be there before making may begin, and is not; "" when nothing is missing."""
        return ""

    def holds(self, obj: Object, script: Script) -> bool:
        """Whether its deletion is to be noticed; otherwise, like the usual providers, it needs no finalizer."""
        return script.delete != "Succeed" or script.delete_after_seconds > 0

    async def make(
        self, obj: Object, script: Script, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        """Make what the object stands for, or keep that true."""
        raise NotImplementedError

    async def unmake(self, obj: Object, script: Script, status: Mapping[str, Any]) -> None:
        """Unmake what is outside of the object."""

    # What kinds use

    def read_script(self, obj: Object) -> Script:
        """
        :raises TerminalError: the spec does not fit; only an edit can help.
        """
        try:
            return self._script.model_validate(obj.decode().get("spec") or {})
        except ValidationError as error:
            raise TerminalError(f"{obj.key}: {error}") from error

    def machine(self, obj: Object) -> MachineState | None:
        """The Machine that has adopted the object; None while none has, or none is known."""
        owner = machine_owner(obj.head)
        informer = cast("Informer | None", self._machines.informer)
        if owner is None or informer is None:
            return None
        found = informer.get(Key(obj.key.namespace, owner.name))
        return read_machine(found) if found is not None and found.head.uid == owner.uid else None

    def cluster(self, key: Key | None) -> ClusterState | None:
        informer = cast("Informer | None", self._clusters.informer)
        if key is None or informer is None:
            return None
        found = informer.get(key)
        return read_cluster(found) if found is not None else None

    def paused(self, obj: Object) -> bool:
        """Cluster API's way of saying "hands off": the object's own annotation, or its Cluster's spec."""
        cluster = self.cluster(cluster_of(obj.head))
        return PAUSED_ANNOTATION in obj.head.annotations or (cluster is not None and cluster.paused)

    def unready(self, obj: Object, machine: MachineState | None) -> str:
        """Why nothing can be made yet for the Machine that is to adopt the object; "" when it can."""
        if machine is None:
            return "no Machine has adopted it"
        cluster = self.cluster(Key(obj.key.namespace, machine.cluster))
        ready = cluster is not None and cluster.infrastructure_ready
        return "" if ready else f"the infrastructure of Cluster {machine.cluster} is not ready"

    async def say(self, obj: Object, before: Mapping[str, Any], status: Mapping[str, Any], failure: str = "") -> None:
        """Write a status and what it says of readiness: one patch, and none when nothing changed."""
        now = self.context.clock.now()
        after = with_ready(status, generation=obj.head.generation, now=now, failure=failure)
        change = merge_diff(before, after)
        if change:
            patch = merge_patch({"status": change}, obj.head)
            await self.client.patch(self.resource, obj.key, patch, subresource="status")

    def _referred(self, change: Change) -> Iterable[Key]:
        spec = read_machine(change.object).spec
        references = (spec.infrastructure_ref, spec.bootstrap.config_ref)
        kind = self.resource.kind
        return [Key(change.key.namespace, ref.name) for ref in references if ref is not None and ref.kind == kind]

    def _in_cluster(self, change: Change) -> Iterable[Key]:
        return [obj.key for obj in self.objects.by_index(_BY_CLUSTER, str(change.key))]


def _spec_changed(change: Change) -> bool:
    """Whether a Machine changed in what a provider looks at: not its status, nor what its owners note on it."""
    old = change.old
    return old is None or change.type is not ChangeType.MODIFIED or read_machine(old) != read_machine(change.object)


def _cluster_names(change: Change) -> Iterable[str]:
    cluster = cluster_of(change.head)
    return [str(cluster)] if cluster is not None else []
