"""The simulated bootstrap provider: data to start a machine with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fivespot.runtime import (
    DONE,
    AlreadyExistsError,
    Controller,
    ManagerContext,
    Object,
    Resource,
    Result,
)

from .base import Provider
from .family import Family
from .script import BootstrapScript
from .states import bootstrap_made
from .views import CLUSTER_LABEL, MachineState, machine_owner

__all__ = ["BootstrapProvider", "build_bootstraps"]

SECRETS: Final = Resource("", "v1", "secrets", "Secret")


class BootstrapProvider(Provider[BootstrapScript]):
    """Writes a Secret for every object that a Machine has adopted, in a Cluster that is ready."""

    def __init__(self, family: Family, context: ManagerContext) -> None:
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


def build_bootstraps(family: Family, context: ManagerContext) -> Controller:
    """The controller of a family's bootstrap objects."""
    return BootstrapProvider(family, context).controller
