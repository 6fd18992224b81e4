"""Objects of the simulated kinds, for tests to vary."""

from __future__ import annotations

import json
from typing import Any

from fivespot.runtime import Object

Json = dict[str, Any]


def obj(name: str = "web", *, spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Object:
    """Any object in namespace ``prod``."""
    body = {
        "metadata": {"name": name, "namespace": "prod", "uid": "0a1b2c3d-4e5f", "resourceVersion": "1", **metadata},
        "spec": spec or {},
        "status": status or {},
    }
    return Object.parse(json.dumps(body).encode())


def owned_by(kind: str, name: str = "web", group: str = "cluster.x-k8s.io") -> list[Json]:
    """Owner references that name one owner, which is the controller."""
    return [{"apiVersion": f"{group}/v1beta2", "kind": kind, "name": name, "uid": "m-1", "controller": True}]
