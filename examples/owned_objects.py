"""Owned objects: a Fleet has as many ConfigMaps as its spec says; missing ones are made, those too many removed.

Shows a kind of one's own, children with an owner reference, and an index to find them by. Try it::

    python examples/owned_objects.py --kubeconfig ~/.kube/config &
    kubectl apply -f - <<< '{"apiVersion": "example.com/v1", "kind": "Fleet",
                             "metadata": {"name": "north"}, "spec": {"size": 3}}'
    kubectl delete configmap north-1   # it comes back
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field

from fivespot.runtime import (
    CRDS,
    DONE,
    METADATA,
    Change,
    Client,
    Controller,
    Key,
    Manager,
    ManagerContext,
    Object,
    Resource,
    Result,
    Selector,
    owner_of,
    owner_reference,
    run,
)
from fivespot.runtime.crd import CrdVersion, crd
from fivespot.runtime.objects import Exists

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
FLEETS = Resource("example.com", "v1", "fleets", "Fleet")
LABEL = "example.com/fleet"
BY_OWNER = "owner"


class FleetSpec(BaseModel):
    size: Annotated[int, Field(ge=0, le=100)]


class Fleet(BaseModel):
    """So many ships."""

    spec: FleetSpec


def ship(fleet: Object, name: str) -> dict[str, Any]:
    owners = [owner_reference(FLEETS, fleet)]
    metadata = {"name": name, "labels": {LABEL: fleet.key.name}, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class FleetReconciler:
    def __init__(self, context: ManagerContext, namespace: str) -> None:
        self.client = context.client
        self.fleets = context.cache.informer(FLEETS, namespace=namespace)
        # Whether a ship exists is all that is asked, so its contents need not be read or kept.
        self.ships = context.cache.informer(
            CONFIG_MAPS, namespace=namespace, selector=Selector(Exists(LABEL)), projection=METADATA
        )
        self.ships.add_index(BY_OWNER, owner_uids)

    async def reconcile(self, key: Key) -> Result:
        fleet = self.fleets.get(key)
        if fleet is None or fleet.head.deleting:
            return DONE  # Kubernetes' garbage collector removes what a deleted object owned.
        wanted = {f"{key.name}-{number}" for number in range(fleet.read(Fleet).spec.size)}
        # What this process wrote is in the cache already: no ship is made twice because the cache is behind.
        owned = {obj.key.name: obj for obj in self.ships.by_index(BY_OWNER, fleet.head.uid)}
        for name in sorted(wanted - owned.keys()):
            # The name is fixed. If somebody else has it, AlreadyExistsError has the key tried again, ever more slowly.
            await self.client.create(CONFIG_MAPS, ship(fleet, name), namespace=key.namespace)
        for name in sorted(owned.keys() - wanted):
            await self.client.delete(CONFIG_MAPS, owned[name].key, uid=owned[name].head.uid)
        return DONE


def owner_uids(change: Change) -> Iterable[str]:
    return [owner.uid for owner in change.head.owners if owner.controller]


async def install(client: Client) -> None:
    """Most programs leave this to whoever deploys them."""
    body = crd(group="example.com", kind="Fleet", plural="fleets", singular="fleet", versions=[CrdVersion("v1", Fleet)])
    await client.apply(CRDS, Key("", FLEETS.qualified), body, force=True)


def build(namespace: str, context: ManagerContext) -> Controller:
    reconciler = FleetReconciler(context, namespace)
    controller = context.controller("fleet", reconciler)
    controller.watches(reconciler.fleets)
    controller.watches(reconciler.ships, owner_of(FLEETS.group_kind, controller_only=True))
    return controller


def main() -> None:
    parser = argparse.ArgumentParser(description="Keeps the ships of fleets.")
    parser.add_argument("--kubeconfig")
    parser.add_argument("--namespace", default="default")
    args = parser.parse_args()

    def setup(manager: Manager) -> None:
        manager.add_runnable("definition", partial(install, manager.context.client), may_end=True)
        manager.add(partial(build, args.namespace))

    run(setup, name="fleet-example", kubeconfig=args.kubeconfig, log_format="text")


if __name__ == "__main__":
    main()
