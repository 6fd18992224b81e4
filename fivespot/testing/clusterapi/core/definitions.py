"""CustomResourceDefinitions of Machine and Cluster for a server without Cluster API.

They hold the part of the schema that the simulation and its users rely on. Cluster API's own definitions work as well.
"""

from __future__ import annotations

from typing import Any

from fivespot.testing.clusterapi.kinds import CORE_GROUP

__all__ = ["core_definitions"]

Json = dict[str, Any]

_ANYTHING: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NAME: Json = {"type": "string", "minLength": 1, "maxLength": 253}
_REFERENCE: Json = {
    "type": "object",
    "required": ["apiGroup", "kind", "name"],
    "properties": {"apiGroup": _NAME, "kind": _NAME, "name": _NAME},
}
_MACHINE: Json = {
    "type": "object",
    "required": ["clusterName", "bootstrap", "infrastructureRef"],
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {
        "clusterName": {"type": "string", "minLength": 1, "maxLength": 63},
        "bootstrap": {
            "type": "object",
            "properties": {"configRef": _REFERENCE, "dataSecretName": _NAME},
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.configRef) || has(self.dataSecretName)",
                    "message": "bootstrap needs a configRef or a dataSecretName",
                }
            ],
        },
        "infrastructureRef": _REFERENCE,
        "providerID": {"type": "string", "minLength": 1, "maxLength": 512},
    },
}
_CLUSTER: Json = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"paused": {"type": "boolean"}, "infrastructureRef": _REFERENCE, "controlPlaneRef": _REFERENCE},
}
_COLUMNS = {
    "Machine": (("Cluster", ".spec.clusterName"), ("Node", ".status.nodeRef.name"), ("Phase", ".status.phase")),
    "Cluster": (("Phase", ".status.phase"),),
}


def core_definitions() -> list[Json]:
    """Build the definitions of ``machines`` and ``clusters``, at v1beta2."""
    return [_definition("Machine", _MACHINE), _definition("Cluster", _CLUSTER)]


def _definition(kind: str, spec: Json) -> Json:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{CORE_GROUP}"},
        "spec": {
            "group": CORE_GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "categories": ["cluster-api"],
            },
            "conversion": {"strategy": "None"},
            "versions": [
                {
                    "name": "v1beta2",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "type": "string", "jsonPath": path} for name, path in _COLUMNS[kind]
                    ],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": {"spec": spec, "status": _ANYTHING},
                        }
                    },
                }
            ],
        },
    }
