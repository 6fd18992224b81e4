"""Puts the simulated providers into a manager."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from fivespot.runtime import Client, Key, Manager, Resource

from .kinds import SIMULATED, KindFamily
from .kubelet import build_kubelet
from .nodes import Workload
from .providers import build_bootstraps, build_clusters, build_control_planes, build_machines

__all__ = ["add_providers", "install_definitions"]

_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


def add_providers(
    manager: Manager,
    families: Iterable[KindFamily] = (SIMULATED,),
    *,
    kubelet: bool = True,
    workload: Workload | None = None,
) -> None:
    """Have a manager run the four providers of each family.

    Their definitions may be installed later; see :func:`install_definitions`.

    :param kubelet: also play the kubelet of simulated Nodes, in the management cluster.
    :param workload: the client of the workload cluster of a Cluster; None where that is the management cluster itself.
    """
    for family in families:
        manager.add(partial(build_clusters, family))
        manager.add(partial(build_control_planes, family))
        manager.add(partial(build_bootstraps, family))
        manager.add(partial(build_machines, family, workload))
    if kubelet:
        manager.add(build_kubelet)


async def install_definitions(client: Client, families: Iterable[KindFamily] = (SIMULATED,)) -> None:
    """Create or update the CustomResourceDefinitions of the families."""
    for family in families:
        for definition in family.definitions():
            await client.apply(_CRDS, Key("", definition["metadata"]["name"]), definition, force=True)
