"""Takes rights away from the manager on a server of the test's own, and gives them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controlplane import Api
from controlplane.api import ApiError

from .manager import SERVICE_ACCOUNT, SYSTEM_NAMESPACE
from .providers import PROVIDER_GROUP
from .waiting import eventually

_ROLE = ("rbac.authorization.k8s.io/v1", "ClusterRole")
_DEFINITIONS = "apiextensions.k8s.io"


def may_read_providers(api: Api, plurals: Sequence[str]) -> None:
    """The provider kinds that the manager may read from now on (`*` for the whole group, as shipped)."""
    _set_resources(api, "5spot-scheduledmachine-controller", PROVIDER_GROUP, list(plurals))
    # A ManualSchedule follows any other schedule, so its controller reads the whole group as well.
    _set_resources(api, "5spot-manualschedule-controller", PROVIDER_GROUP, [*plurals, "manualschedules"])
    wanted = [plural for plural in plurals if plural != "*"] or ["any"]
    eventually(lambda: all(_allowed(api, PROVIDER_GROUP, plural) for plural in wanted), what="the new rights count")
    if "*" not in plurals:
        eventually(lambda: not _allowed(api, PROVIDER_GROUP, "any"), what="the old rights do not count")


def may_read_definitions(api: Api, *, allowed: bool) -> None:
    """Whether the manager may read CustomResourceDefinitions from now on."""
    _set_resources(api, "5spot-runtime", _DEFINITIONS, ["customresourcedefinitions"] if allowed else ["none"])
    plural = "customresourcedefinitions"
    eventually(lambda: _allowed(api, _DEFINITIONS, plural) is allowed, what="the new rights count")


def _set_resources(api: Api, role: str, group: str, resources: list[str]) -> None:
    rules: list[dict[str, Any]] = api.get(*_ROLE, role)["rules"]
    [position] = [
        number for number, rule in enumerate(rules) if rule["apiGroups"] == [group] and "list" in rule["verbs"]
    ]
    operation = {"op": "replace", "path": f"/rules/{position}/resources", "value": resources}
    api.patch(*_ROLE, role, None, [operation], how="json")


def _allowed(api: Api, group: str, plural: str) -> bool:
    attributes = {"group": group, "resource": plural, "verb": "list"}
    user = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{SERVICE_ACCOUNT}"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    try:
        answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    except ApiError as error:
        raise AssertionError(str(error)) from None
    found: bool = answer["status"]["allowed"]
    return found
