"""Takes rights away from the manager on a server of the test's own, and gives them back.

On the real server by its roles; on the one in memory a script gives the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from controlplane import Api, ControlPlane
from controlplane.api import ApiError
from harness import SERVICE_ACCOUNT, SYSTEM_NAMESPACE
from harness.providers import PROVIDER_GROUP
from harness.wait import eventually

from .embedded import EmbeddedControlPlane
from .embedded.request_faults import FORBIDDEN
from .refusals import request_faults_of

_ROLE = ("rbac.authorization.k8s.io/v1", "ClusterRole")
_DEFINITIONS = "apiextensions.k8s.io"
_SHIPPED = {"timebasedspotschedules", "capitalmarketsschedules", "manualschedules"}


def may_read_providers(api: Api, plurals: Sequence[str]) -> None:
    """The provider kinds that the manager may read from now on (`*` for the whole group, as shipped)."""
    if request_faults_of(api) is not None:
        known = {*plurals, *_SHIPPED}
        _forbid(api, PROVIDER_GROUP, None if "*" in plurals else lambda resource: resource not in known)
        return
    _set_resources(api, "5spot-scheduledmachine-controller", PROVIDER_GROUP, list(plurals))
    # A ManualSchedule follows any other schedule, so its controller reads the whole group as well.
    _set_resources(api, "5spot-manualschedule-controller", PROVIDER_GROUP, [*plurals, "manualschedules"])
    wanted = [plural for plural in plurals if plural != "*"] or ["any"]
    eventually(lambda: all(_allowed(api, PROVIDER_GROUP, plural) for plural in wanted), what="the new rights count")
    if "*" not in plurals:
        eventually(lambda: not _allowed(api, PROVIDER_GROUP, "any"), what="the old rights do not count")


def may_read_definitions(api: Api, *, allowed: bool) -> None:
    """Whether the manager may read CustomResourceDefinitions from now on."""
    if request_faults_of(api) is not None:
        _forbid(api, _DEFINITIONS, None if allowed else lambda resource: True)
        return
    _set_resources(api, "5spot-runtime", _DEFINITIONS, ["customresourcedefinitions"] if allowed else ["none"])
    plural = "customresourcedefinitions"
    eventually(lambda: _allowed(api, _DEFINITIONS, plural) is allowed, what="the new rights count")


def may_not_write_events(api: Api) -> None:
    """From now on the manager may write no Events."""
    group = "events.k8s.io"
    if request_faults_of(api) is not None:
        _forbid(api, group, lambda resource: True)
        return
    role = (*_ROLE, "5spot-runtime")
    rules = [rule for rule in api.get(*role)["rules"] if rule["apiGroups"] != [group]]
    api.patch(*role, None, {"rules": rules})
    eventually(lambda: not _allowed(api, group, "events", "create"), what="the old rights do not count")


def grant(api: Api, bodies: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Create accounts with their roles; what was created. In memory there are no roles: every account may do all.

    Returns when the rights count: whoever acts before that is refused, which some tests would find in the audit log.
    """
    rbac = _ROLE[0]
    made = [body for body in bodies if request_faults_of(api) is None or body["apiVersion"] != rbac]
    for body in made:
        api.create(body)
    for binding in (body for body in made if body["kind"] in {"ClusterRoleBinding", "RoleBinding"}):
        for review in _reviews(binding, made):
            eventually(lambda review=review: _reviewed(api, review), what=f"{review} counts")  # type: ignore[misc]
    return made


def _reviews(binding: dict[str, Any], made: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One question for each right that a binding gives to an account by a role that was made with it."""
    named = (binding["roleRef"]["kind"], binding["roleRef"]["name"])
    place = {"namespace": binding["metadata"]["namespace"]} if binding["kind"] == "RoleBinding" else {}
    [role] = [body for body in made if (body["kind"], body["metadata"]["name"]) == named]
    return [
        {
            "user": f"system:serviceaccount:{subject['namespace']}:{subject['name']}",
            "resourceAttributes": {
                **place,
                "verb": verb,
                "group": group,
                "resource": resource.partition("/")[0],
                "subresource": resource.partition("/")[2],
                "name": rule.get("resourceNames", [""])[0],
            },
        }
        for subject in binding["subjects"]
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]


def as_account(plane: ControlPlane, namespace: str, name: str) -> Api:
    """A client that acts as an account."""
    given: object = plane
    if isinstance(given, EmbeddedControlPlane):
        return given.api_of(f"system:serviceaccount:{namespace}:{name}")
    return Api(plane.url, ca_file=plane.ca_file, token=plane.service_account_token(namespace, name))


def _forbid(api: Api, group: str, unknown: Callable[[str], bool] | None) -> None:
    """From now on, instead of what was forbidden of the group before, the resources that a function chooses."""
    faults = request_faults_of(api)
    assert faults is not None
    faults.standing.pop(group, lambda: None)()
    if unknown is not None:
        faults.standing[group] = faults.add(
            FORBIDDEN, manager_only=True, group=group, applies=lambda seen: unknown(seen.resource)
        )


def _set_resources(api: Api, role: str, group: str, resources: list[str]) -> None:
    rules: list[dict[str, Any]] = api.get(*_ROLE, role)["rules"]
    [position] = [
        number for number, rule in enumerate(rules) if rule["apiGroups"] == [group] and "list" in rule["verbs"]
    ]
    operation = {"op": "replace", "path": f"/rules/{position}/resources", "value": resources}
    api.patch(*_ROLE, role, None, [operation], how="json")


def _allowed(api: Api, group: str, plural: str, verb: str = "list") -> bool:
    attributes = {"group": group, "resource": plural, "verb": verb}
    user = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{SERVICE_ACCOUNT}"
    return _reviewed(api, {"user": user, "resourceAttributes": attributes})


def _reviewed(api: Api, question: dict[str, Any]) -> bool:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": question}
    try:
        answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    except ApiError as error:
        raise AssertionError(str(error)) from None
    found: bool = answer["status"]["allowed"]
    return found
