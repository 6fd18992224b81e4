"""A simulated core of Cluster API: Clusters and Machines at v1beta2, where the real core manager cannot run.

It plays what a controller on top of Cluster API sees of it: adoption, the phases and conditions of a Machine, the order
of a deletion with hooks, drain and volumes, and what pauses it. It knows no MachineSets, no webhooks and no v1beta1.
The workload cluster is the management cluster. The same tests run against it and against the real one.
"""

from __future__ import annotations

from functools import partial

from fivespot.runtime import Client, Key, Manager, Resource

from .clusters import build_core_clusters
from .definitions import core_definitions
from .machines import CLUSTERS, MACHINES, CoreSettings, build_core_machines

__all__ = ["CLUSTERS", "MACHINES", "CoreSettings", "add_core", "core_definitions", "install_core_definitions"]

_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


def add_core(manager: Manager, settings: CoreSettings | None = None) -> None:
    """Have a manager run the simulated core. Its definitions may be installed later."""
    manager.add(build_core_clusters)
    manager.add(partial(build_core_machines, settings or CoreSettings()))


async def install_core_definitions(client: Client) -> None:
    """Create the definitions of Machines and Clusters, or update those that were made here before."""
    for definition in core_definitions():
        await client.apply(_CRDS, Key("", definition["metadata"]["name"]), definition, force=True)
