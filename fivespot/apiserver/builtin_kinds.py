"""The built-in kinds."""

from __future__ import annotations

from typing import Any, Final

from .builtin_columns import COLUMNS
from .builtin_schemas import SCHEMAS
from .builtin_strategies import (
    DataStrategy,
    DisruptionBudgetStrategy,
    LeaseStrategy,
    NamespaceStrategy,
    NodeStrategy,
    PodStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from .certificates import SigningRequestStrategy
from .events import EventStrategy, NewEventStrategy, from_core_event, to_core_event
from .kinds import Served, ServedKind, Strategy
from .services import ServiceStrategy
from .workloads import DeploymentStrategy, ReplicaSetStrategy

__all__ = ["built_in_kinds"]

_ALL: Final = ("all",)
_SCALE: Final = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}


def _kind(
    group: str,
    version: str,
    name: str,
    plural: str,
    strategy: Strategy,
    *short: str,
    namespaced: bool = True,
    **options: Any,
) -> ServedKind:
    schema = SCHEMAS[name] if (f"{group}/{name}" not in SCHEMAS) else SCHEMAS[f"{group}/{name}"]
    served = Served.of(
        version, schema, status=options.pop("status", False), scale=options.pop("scale", None), columns=COLUMNS[name]
    )
    return ServedKind(
        group, name, plural, plural.removesuffix("s"), namespaced, {version: served}, version,
        short_names=short, strategy=strategy, **options,
    )  # fmt: skip


def built_in_kinds(definitions: Strategy) -> list[ServedKind]:
    """The kinds that every server has.

    :param definitions: the strategy of CustomResourceDefinitions.
    """
    return [
        _kind("", "v1", "Namespace", "namespaces", NamespaceStrategy(), "ns", namespaced=False, status=True),
        _kind("", "v1", "ConfigMap", "configmaps", DataStrategy(), "cm"),
        _kind("", "v1", "Secret", "secrets", SecretStrategy()),
        _kind("", "v1", "ServiceAccount", "serviceaccounts", ServiceAccountStrategy(), "sa"),
        _kind("", "v1", "Node", "nodes", NodeStrategy(), "no", namespaced=False, status=True),
        _kind("", "v1", "Pod", "pods", PodStrategy(), "po", status=True, categories=_ALL, generated=True),
        _kind("", "v1", "Event", "events", EventStrategy(), "ev"),
        _kind(
            "events.k8s.io",
            "v1",
            "Event",
            "events",
            NewEventStrategy(),
            "ev",
            stored_as=("", "events"),
            to_storage=to_core_event,
            from_storage=from_core_event,
        ),
        *(
            _kind(
                "apps",
                "v1",
                kind,
                plural,
                strategy,
                short,
                status=True,
                scale=_SCALE,
                generated=True,
                categories=_ALL,
            )
            for kind, plural, short, strategy in (
                ("Deployment", "deployments", "deploy", DeploymentStrategy()),
                ("ReplicaSet", "replicasets", "rs", ReplicaSetStrategy()),
            )
        ),
        _kind("", "v1", "Service", "services", ServiceStrategy(), "svc", status=True, categories=_ALL),
        _kind(
            "certificates.k8s.io",
            "v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
            SigningRequestStrategy(),
            "csr",
            namespaced=False,
            status=True,
        ),
        _kind("coordination.k8s.io", "v1", "Lease", "leases", LeaseStrategy()),
        _kind(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            DisruptionBudgetStrategy(),
            "pdb",
            status=True,
            generated=True,
        ),
        _kind(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            definitions,
            "crd",
            "crds",
            namespaced=False,
            status=True,
            generated=True,
            categories=("api-extensions",),
        ),
    ]
