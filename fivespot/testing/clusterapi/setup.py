"""Install the simulated kinds, add their providers to a manager, and create a Cluster whose Machines progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal

from fivespot.runtime import CRDS, Client, Key, Manager, Resource, find_condition

from .kinds import CORE_GROUP, SIMULATED, KindFamily
from .providers import build_bootstraps, build_clusters, build_control_planes, build_machines
from .views import CLUSTER_LABEL
from .workload import Workload, build_kubelet

__all__ = [
    "CoreVersion",
    "add_providers",
    "cluster_bodies",
    "cluster_resource",
    "create_cluster",
    "install_definitions",
    "is_usable",
]

CoreVersion = Literal["v1beta1", "v1beta2"]
"""API version of Cluster API's own kinds; 1.11 and newer serve both."""
Json = dict[str, Any]
_SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_USABLE: Final = ("ControlPlaneInitialized", "RemoteConnectionProbe")


def add_providers(
    manager: Manager,
    families: Iterable[KindFamily] = (SIMULATED,),
    *,
    kubelet: bool = True,
    workload: Workload | None = None,
) -> None:
    """Add the four providers of each family to a manager.

    Their CustomResourceDefinitions may be installed later, with :func:`install_definitions`.

    :param kubelet: also simulate the kubelet of simulated Nodes, in the management cluster.
    :param workload: workload cluster of each Cluster; None if it is the management cluster.
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
            await client.apply(CRDS, Key("", definition["metadata"]["name"]), definition, force=True)


def cluster_resource(version: CoreVersion = "v1beta2") -> Resource:
    """The resource of Clusters at a version."""
    return Resource(CORE_GROUP, version, "clusters", "Cluster")


def cluster_bodies(
    namespace: str,
    name: str,
    *,
    kubeconfig: str,
    host: str = "127.0.0.1",
    port: int = 6443,
    family: KindFamily = SIMULATED,
    version: CoreVersion = "v1beta2",
) -> list[Json]:
    """Build the kubeconfig Secret, the infrastructure, the control plane and the Cluster, in the order of creation.

    The Secret comes first because Cluster API retries a failed connection only every 30 seconds, and it carries the
    Cluster's label, without which Cluster API does not see it. The control plane is managed externally: without one
    Cluster API watches no Nodes, and neither drains nor deletes them.

    :param kubeconfig: kubeconfig of the workload cluster, as text, with a token or a client certificate.
    :param host: host of the workload cluster's API server, with ``port``; displayed, not used.
    """
    metadata = {"name": name, "namespace": namespace, "labels": {CLUSTER_LABEL: name}}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, "name": f"{name}-kubeconfig"},
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"value": kubeconfig},
    }
    endpoint = {"host": host, "port": port}
    infrastructure = _body(family.cluster, metadata, {"controlPlaneEndpoint": endpoint})
    control_plane = _body(family.control_plane, metadata, {})
    spec = {
        "infrastructureRef": _reference(family.cluster, namespace, name, version),
        "controlPlaneRef": _reference(family.control_plane, namespace, name, version),
    }
    return [secret, infrastructure, control_plane, _body(cluster_resource(version), metadata, spec)]


async def create_cluster(client: Client, bodies: list[Json], family: KindFamily = SIMULATED) -> None:
    """Create the objects of :func:`cluster_bodies`, in order.

    :raises AlreadyExistsError: one of them exists.
    """
    secret, infrastructure, control_plane, cluster = bodies
    await client.create(_SECRETS, secret)
    await client.create(family.cluster, infrastructure)
    await client.create(family.control_plane, control_plane)
    version = cluster["apiVersion"].rpartition("/")[2]
    await client.create(cluster_resource(version), cluster)


def is_usable(cluster: Mapping[str, Any]) -> bool:
    """Whether Machines of a Cluster can find their Nodes: its control plane is initialized and reachable.

    :param cluster: as read at either version.
    """
    status = cluster.get("status") or {}
    newer = (status.get("v1beta2") or {}).get("conditions")
    conditions = newer if newer is not None else status.get("conditions")
    found = [find_condition(conditions, type_) for type_ in _USABLE]
    return all(condition is not None and condition.get("status") == "True" for condition in found)


def _body(resource: Resource, metadata: Json, spec: Json) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": dict(metadata), "spec": spec}


def _reference(resource: Resource, namespace: str, name: str, version: CoreVersion) -> Json:
    if version == "v1beta1":
        return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "namespace": namespace}
    return {"apiGroup": resource.group, "kind": resource.kind, "name": name}
