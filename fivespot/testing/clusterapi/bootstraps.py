"""The simulated bootstrap provider: data to start a machine with."""

from __future__ import annotations

from functools import partial
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
    ensure_finalizer,
    remove_finalizer,
)

from .base import Provider
from .family import Family
from .life import Act, decide
from .script import BootstrapScript
from .states import bootstrap_made, is_made, with_ready
from .views import CLUSTER_LABEL, MachineState, machine_owner

__all__ = ["BootstrapProvider", "build_bootstraps"]

SECRETS: Final = Resource("", "v1", "secrets", "Secret")


class BootstrapProvider(Provider[BootstrapScript]):
    """Writes a Secret for every object that a Machine has adopted, in a Cluster that is ready."""

    def __init__(self, family: Family, context: ManagerContext) -> None:
        resource = family.bootstrap
        super().__init__(resource.kind.lower(), resource, BootstrapScript, family, context)
        self.finalizer = f"{resource.qualified}/simulated"

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
            made=is_made(self.family.contract, "dataSecretCreated", "ready", status),
            paused=self.paused(obj),
            blocked=self._blocked(obj, machine),
            remaining=partial(self.waits.remaining, obj),
        )
        if _lingers(script) and machine_owner(obj.head) is not None and not obj.head.deleting:
            obj = await ensure_finalizer(self.client, self.resource, obj, self.finalizer)
        now = self.context.clock.now()
        match decision.act:
            case Act.LET_GO:
                await remove_finalizer(self.client, self.resource, obj, self.finalizer)
            case Act.FAIL:
                failed = with_ready(status, generation=obj.head.generation, now=now, failure=script.failure)
                await self.write_status(obj, status, failed)
            case Act.CREATE if machine is not None:
                secret = await self._write_secret(obj, machine)
                made = {**status, **bootstrap_made(self.family.contract, secret)}
                await self.write_status(obj, status, with_ready(made, generation=obj.head.generation, now=now))
            case _:
                return Result(requeue_after=decision.wait)
        return DONE

    def _blocked(self, obj: Object, machine: MachineState | None) -> str:
        if machine is None:
            return "no Machine has adopted it"
        cluster = self.cluster(Key(obj.key.namespace, machine.cluster))
        ready = cluster is not None and cluster.infrastructure_ready
        return "" if ready else f"the infrastructure of Cluster {machine.cluster} is not ready"

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


def _lingers(script: BootstrapScript) -> bool:
    """Whether its deletion is to be noticed; otherwise, like the usual providers, it needs no finalizer."""
    return script.delete != "Succeed" or script.delete_after_seconds > 0


def build_bootstraps(family: Family, context: ManagerContext) -> Controller:
    """The controller of a family's bootstrap objects."""
    return BootstrapProvider(family, context).controller
