"""Derive the rights that providers need, as RBAC rules and as objects that grant them."""

from __future__ import annotations

from typing import Any, Final

from fivespot.api.names import PROVIDER_GROUP, SYSTEM_NAMESPACE
from fivespot.runtime import Resource

from .definition import Provider

__all__ = ["rbac_manifests", "rbac_rules"]

Rule = dict[str, list[str]]

_READ: Final = ("get", "list", "watch")
_RBAC: Final = "rbac.authorization.k8s.io"


def rbac_rules(*providers: Provider[Any]) -> list[Rule]:
    """The rules that a ServiceAccount needs for these providers.

    They are meant for one ClusterRole, or for a Role in each namespace that is served (except for
    CustomResourceDefinitions, which belong to no namespace).
    """
    rules: list[Rule] = []
    own = sorted({provider.plural for provider in providers})
    schedules = any(provider.reads_schedules for provider in providers)
    rules.append(_rule(PROVIDER_GROUP, ["*"] if schedules else own, _READ))
    rules.append(_rule(PROVIDER_GROUP, [f"{plural}/status" for plural in own], ("patch",)))
    others = {read for provider in providers for read in provider.reads if isinstance(read, Resource)}
    rules += [
        _rule(resource.group, [resource.plural], _READ)
        for resource in sorted(others, key=lambda resource: (resource.group, resource.plural))
        if resource.group != PROVIDER_GROUP or not (schedules or resource.plural in own)
    ]
    if schedules:
        # Which kinds of schedules are installed, in which versions.
        rules.append(_rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ))
    rules.append(_rule("events.k8s.io", ["events"], ("create", "patch")))
    return rules


def rbac_manifests(
    *providers: Provider[Any], name: str, namespace: str = SYSTEM_NAMESPACE, account: str = ""
) -> list[dict[str, Any]]:
    """Roles and bindings that give a ServiceAccount these rights, and those on its leader election Lease.

    :param name: the name of the roles, such as ``week-provider``.
    :param namespace: of the ServiceAccount and the Lease.
    :param account: the ServiceAccount; by default ``name``.
    """
    subject = {"kind": "ServiceAccount", "name": account or name, "namespace": namespace}
    lease: list[Rule] = [
        _rule("coordination.k8s.io", ["leases"], ("create",)),
        {**_rule("coordination.k8s.io", ["leases"], ("get", "update")), "resourceNames": [f"{name}-leader"]},
    ]
    return [
        {**_head("ClusterRole", name), "rules": rbac_rules(*providers)},
        {**_head("ClusterRoleBinding", name), **_binding("ClusterRole", name, subject)},
        {**_head("Role", f"{name}-leader", namespace), "rules": lease},
        {**_head("RoleBinding", f"{name}-leader", namespace), **_binding("Role", f"{name}-leader", subject)},
    ]


def _rule(group: str, resources: list[str], verbs: tuple[str, ...]) -> Rule:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def _head(kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata}


def _binding(kind: str, name: str, subject: dict[str, str]) -> dict[str, Any]:
    return {"roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name}, "subjects": [subject]}
