"""A Cluster that makes Machines move: what it takes for one, in the order in which it has to be created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from fivespot.runtime import Client, Resource, find_condition

from .kinds import CORE_GROUP, SIMULATED, KindFamily
from .views import CLUSTER_LABEL

__all__ = ["CoreVersion", "cluster_bodies", "cluster_resource", "create_cluster", "is_usable"]

CoreVersion = Literal["v1beta1", "v1beta2"]
"""A version of Cluster API's own kinds, of which 1.11 and newer serve both."""

Json = dict[str, Any]

_SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_USABLE: Final = ("ControlPlaneInitialized", "RemoteConnectionProbe")


def cluster_resource(version: CoreVersion = "v1beta2") -> Resource:
    """Where Clusters are found."""
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
    """The kubeconfig Secret, the infrastructure, the control plane, and the Cluster that refers to both.

    The Secret comes first: Cluster API tries a connection that failed again only every 30 seconds. It carries the
    Cluster's label, without which Cluster API does not see it. The control plane is one that others manage: without
    any, Cluster API watches no Nodes, and neither drains nor deletes them.

    :param kubeconfig: of the workload cluster, as text, with a token or a client certificate in it.
    :param host: of the workload cluster's API server, with ``port``; shown, not used.
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
    """Create what :func:`cluster_bodies` describes, in order.

    :raises AlreadyExistsError: a part of it is there.
    """
    secret, infrastructure, control_plane, cluster = bodies
    await client.create(_SECRETS, secret)
    await client.create(family.cluster, infrastructure)
    await client.create(family.control_plane, control_plane)
    version = cluster["apiVersion"].rpartition("/")[2]
    await client.create(cluster_resource(version), cluster)


def is_usable(cluster: Mapping[str, Any]) -> bool:
    """Whether Machines of a Cluster find their Nodes: its control plane is initialized, and Cluster API reaches it.

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
