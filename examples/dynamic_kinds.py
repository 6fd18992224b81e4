"""Dynamic kinds: informers for whatever kinds an API group has, while they come and go.

The ConfigMap ``inventory`` counts the objects of every namespaced kind of a group. Nobody tells this program which
kinds there are: their CustomResourceDefinitions do. Try it::

    python examples/dynamic_kinds.py --kubeconfig ~/.kube/config --group example.com &
    kubectl get configmap inventory -o yaml --watch
"""

from __future__ import annotations

import argparse
from functools import partial

from fivespot.runtime import (
    DONE,
    METADATA,
    Controller,
    Informer,
    InformerSource,
    Key,
    KindUnknown,
    ManagerContext,
    Resource,
    Result,
    Selector,
    run,
)
from fivespot.runtime.objects import Exists

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
LABEL = "example.com/inventory"


class Inventory:
    def __init__(self, context: ManagerContext, group: str, namespace: str) -> None:
        self.client = context.client
        self.cache = context.cache
        self.group = group
        self.key = Key(namespace, "inventory")
        self.counted: dict[Resource, tuple[Informer, InformerSource]] = {}
        self.inventories = context.cache.informer(CONFIG_MAPS, namespace=namespace, selector=Selector(Exists(LABEL)))
        self.controller = context.controller("inventory", self, workers=1)
        self.controller.watches(self.inventories)
        self.controller.enqueue(self.key)
        context.cache.kinds.subscribe(self.kinds_changed)
        context.cache.kinds.watch_group(group)
        self.kinds_changed(group)

    def kinds_changed(self, group: str) -> None:
        """Open an informer for each kind that came, and let go of those that went."""
        kinds = self.cache.kinds.in_group(self.group)
        if group != self.group or isinstance(kinds, KindUnknown):
            return  # Not to know is no verdict: what is open stays open.
        wanted = {kind.resource() for kind in kinds if kind.usable and kind.namespaced}
        for resource in wanted - self.counted.keys():
            informer = self.cache.informer(resource, namespace=self.key.namespace, projection=METADATA)
            informer.on_status(lambda _: self.controller.enqueue(self.key))
            # It must not hold back the start: a kind of somebody else may be unreadable for years.
            source = self.controller.watches(informer, lambda _: (self.key,), gate=False)
            self.counted[resource] = (informer, source)
        for resource in self.counted.keys() - wanted:
            informer, source = self.counted.pop(resource)
            source.close()
            informer.release()
        self.controller.enqueue(self.key)

    async def reconcile(self, key: Key) -> Result:
        if key != self.key or isinstance(self.cache.kinds.in_group(self.group), KindUnknown):
            return DONE  # kinds_changed asks for another run when it is known.
        data = {
            resource.kind: str(len(informer)) if informer.synced else "unknown"
            for resource, (informer, _) in self.counted.items()
        }
        present = self.inventories.get(key)
        if present is None or present.decode().get("data", {}) != data:
            metadata = {"name": key.name, "labels": {LABEL: ""}}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            # Server-side apply: what this program said before and does not say any more is removed.
            await self.client.apply(CONFIG_MAPS, key, body, force=True)
        return DONE


def build(group: str, namespace: str, context: ManagerContext) -> Controller:
    return Inventory(context, group, namespace).controller


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts the objects of every kind of a group.")
    parser.add_argument("--kubeconfig")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--group", required=True)
    args = parser.parse_args()
    run(
        lambda manager: manager.add(partial(build, args.group, args.namespace)),
        name="inventory-example",
        kubeconfig=args.kubeconfig,
        log_format="text",
    )


if __name__ == "__main__":
    main()
