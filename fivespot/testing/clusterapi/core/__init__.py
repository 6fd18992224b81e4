"""A simulated core of Cluster API: Clusters and Machines at v1beta2, where the real core manager cannot run.

It simulates what a controller on top of Cluster API observes: adoption, the phases and conditions of a Machine, the
order of a deletion with hooks, drain and volumes, and pausing. It has no MachineSets, no webhooks and no v1beta1. The
workload cluster is the management cluster. The same tests run against it and against the real core manager.
"""

from __future__ import annotations

from functools import partial

from fivespot.runtime import CRDS, Client, Key, Manager

from .clusters import build_core_clusters
from .definitions import core_definitions
from .machines import CLUSTERS, MACHINES, CoreSettings, build_core_machines

__all__ = ["CLUSTERS", "MACHINES", "CoreSettings", "add_core", "core_definitions", "install_core_definitions"]


def add_core(manager: Manager, settings: CoreSettings | None = None) -> None:
    """Add the simulated core to a manager. Its definitions may be installed later."""
    manager.add(build_core_clusters)
    manager.add(partial(build_core_machines, settings or CoreSettings()))


async def install_core_definitions(client: Client) -> None:
    """Create or update the definitions of Machines and Clusters."""
    for definition in core_definitions():
        await client.apply(CRDS, Key("", definition["metadata"]["name"]), definition, force=True)
