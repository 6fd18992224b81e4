"""Namespaces that hold what a ScheduledMachine needs to start: a Cluster named ``prod``."""

from __future__ import annotations

import re
import secrets
from typing import Any

from controlplane import Api

CLUSTER_NAME = "prod"

_LABEL_LENGTH = 63


def unique_name(base: str) -> str:
    """Return a valid, unused namespace name that includes its purpose."""
    slug = re.sub(r"[^a-z0-9]+", "-", base.lower()).strip("-") or "test"
    suffix = f"-{secrets.token_hex(3)}"
    return slug[: _LABEL_LENGTH - len(suffix)].rstrip("-") + suffix


def cluster_objects(namespace: str, name: str = CLUSTER_NAME) -> list[dict[str, Any]]:
    """A Cluster API Cluster and the infrastructure object that it refers to."""
    metadata = {"name": name, "namespace": namespace}
    return [
        {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "StandInCluster",
            "metadata": metadata,
            "spec": {},
        },
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": metadata,
            "spec": {
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "StandInCluster",
                    "name": name,
                }
            },
        },
    ]


def make_namespace(api: Api, base: str = "test", *, cluster: str | None = CLUSTER_NAME) -> str:
    """Create a namespace with a unique name and, by default, a Cluster in it; return the name."""
    name = unique_name(base)
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for body in cluster_objects(name, cluster) if cluster else ():
        api.create(body)
    return name
