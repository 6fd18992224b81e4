"""Objects of realistic size for benchmarks: about 3 kB each, a third of it managedFields."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["encoded_machine", "machine"]

Json = dict[str, Any]


def machine(number: int, version: int) -> Json:
    """A Cluster API Machine in good health.

    :param version: its resourceVersion; the generation follows it.
    """
    fields: Json = {f"f:field{index}": {".": {}, "f:value": {}} for index in range(28)}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": f"worker-{number:05}",
            "namespace": f"team-{number % 50}",
            "uid": f"5f0b6c1e-0000-4000-8000-{number:012}",
            "resourceVersion": str(version),
            "generation": version,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"cluster.x-k8s.io/cluster-name": "prod", "team": f"team-{number % 50}"},
            "annotations": {"example.com/note": "x" * 120},
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": [
                {"apiVersion": "example.com/v1", "kind": "Owner", "name": "o", "uid": "u", "controller": True}
            ],
            "managedFields": [{"manager": "manager", "operation": "Update", "fieldsV1": {"f:spec": fields}}],
        },
        "spec": {"clusterName": "prod", "providerID": f"stand-in://{number}", "notes": ["y" * 60] * 8},
        "status": {
            "phase": "Running",
            "nodeRef": {"name": f"node-{number}"},
            "conditions": [
                {"type": f"Condition{index}", "status": "True", "reason": "Fine", "message": "z" * 40}
                for index in range(5)
            ],
        },
    }


def encoded_machine(number: int, version: int) -> bytes:
    """The same as the JSON that a server sends."""
    return msgspec.json.encode(machine(number, version))
