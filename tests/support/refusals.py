"""Ways in which a server refuses what the manager asks: admission, quota, webhooks that are down, missing rights.

All but the rights and conversion are limited to one namespace. Each is in force when the `with` block begins, and gone
at its end. On the real server they are what they say; on the one in memory a script gives the same answers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from controlplane import Api, ApiError
from harness import MANAGER_USER
from harness.wait import eventually

from .cluster import CLUSTER_NAME, unique_name
from .embedded.request_faults import FORBIDDEN, RequestFaults, conversion_failed, denied, over_quota, webhook_failed

Json = dict[str, Any]

_ADMISSION = "admissionregistration.k8s.io/v1"
_ROLE = ("rbac.authorization.k8s.io/v1", "ClusterRole", "5spot-scheduledmachine-controller")
_MACHINES = {"apiGroups": ["cluster.x-k8s.io"], "apiVersions": ["*"], "resources": ["machines"]}
_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_CORE: Json = {"group": "cluster.x-k8s.io", "resource": "machines"}
QUOTA = "count/machines.cluster.x-k8s.io"
DEAD_WEBHOOK: Json = {
    "strategy": "Webhook",
    # Nobody listens on port 1.
    "webhook": {"clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"]},
}


def request_faults_of(api: Api) -> RequestFaults | None:
    """Return the request faults of the embedded server; None for a real one."""
    found: RequestFaults | None = getattr(api, "request_faults", None)
    return found


def foreign(kind: tuple[str, str], namespace: str, name: str = "web", **metadata: Any) -> Json:
    """An object of one of the three kinds of children that somebody else made."""
    spec: Json = {}
    if kind[1] == "Machine":
        reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "StandInMachine", "name": "somewhere"}
        spec = {
            "clusterName": CLUSTER_NAME,
            "bootstrap": {"dataSecretName": "none"},
            "infrastructureRef": reference,
        }
    return {
        "apiVersion": kind[0],
        "kind": kind[1],
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": spec,
    }


@contextlib.contextmanager
def machines_refused(api: Api, namespace: str, operation: str, message: str) -> Iterator[None]:
    """An admission policy that refuses to CREATE (or DELETE: there must be a Machine ``web``) Machines."""
    if (faults := request_faults_of(api)) is not None:
        with faults.put(denied(message), verb=operation.lower(), namespace=namespace, **_CORE):
            yield
        return
    name = unique_name("refuse")
    scope = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {**scope, "resourceRules": [{**_MACHINES, "operations": [operation]}]},
        "validations": [{"expression": "false", "message": message}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    kinds = {"ValidatingAdmissionPolicy": policy, "ValidatingAdmissionPolicyBinding": binding}
    for kind, spec in kinds.items():
        api.create({"apiVersion": _ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
    try:
        eventually(lambda: message in _tried(api, namespace, operation), 30, what="the policy is in force")
        yield
    finally:
        for kind in kinds:
            api.delete(_ADMISSION, kind, name)
        eventually(lambda: message not in _tried(api, namespace, operation), 30, what="the policy is gone")


@contextlib.contextmanager
def webhook_down(api: Api, namespace: str) -> Iterator[None]:
    """A webhook for the creation of Machines that cannot be reached, as Cluster API's own while it restarts."""
    if (faults := request_faults_of(api)) is not None:
        with faults.put(webhook_failed(), verb="create", namespace=namespace, **_CORE):
            yield
        return
    name = unique_name("down")
    webhook = {
        "name": "machines.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/validate"},
        "failurePolicy": "Fail",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{**_MACHINES, "operations": ["CREATE"]}],
        "sideEffects": "None",
        "timeoutSeconds": 1,
    }
    kind = "ValidatingWebhookConfiguration"
    api.create({"apiVersion": _ADMISSION, "kind": kind, "metadata": {"name": name}, "webhooks": [webhook]})
    try:
        eventually(lambda: "webhook" in _tried(api, namespace, "CREATE"), 30, what="the webhook is asked")
        yield
    finally:
        api.delete(_ADMISSION, kind, name)
        eventually(lambda: "webhook" not in _tried(api, namespace, "CREATE"), 30, what="it is asked no more")


def machine_quota(api: Api, namespace: str, machines: int) -> None:
    """Allow so many Machines in the namespace, and wait until that is in force.

    The test plays the quota controller, which does not run: admission goes by what status says.
    """
    if (faults := request_faults_of(api)) is not None:
        faults.standing.pop(f"quota of {namespace}", lambda: None)()
        if machines == 0:
            down = faults.add(over_quota(QUOTA), verb="create", namespace=namespace, **_CORE)
            faults.standing[f"quota of {namespace}"] = down
        return
    if api.find("v1", "ResourceQuota", "machines", namespace) is None:
        metadata = {"name": "machines", "namespace": namespace}
        api.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {QUOTA: "0"}}})
    api.patch("v1", "ResourceQuota", "machines", namespace, {"spec": {"hard": {QUOTA: str(machines)}}})
    status = {"hard": {QUOTA: str(machines)}, "used": {QUOTA: "0"}}
    api.patch_status("v1", "ResourceQuota", "machines", namespace, status)
    refused = machines == 0
    eventually(
        lambda: ("exceeded quota" in _tried(api, namespace, "CREATE")) is refused, 30, what="the quota is in force"
    )


@contextlib.contextmanager
def right_missing(api: Api, verb: str, group: str, resource: str) -> Iterator[Callable[[], None]]:
    """The manager's role without one verb on a group: for a server of the test's own. Gives back what restores it."""
    if (faults := request_faults_of(api)) is not None:
        with faults.put(FORBIDDEN, manager_only=True, verb=verb, group=group, resource=resource) as down:
            yield down
        return
    before = api.get(*_ROLE)["rules"]
    rules = [
        {**rule, "apiGroups": [each], "verbs": [v for v in rule["verbs"] if (v, each) != (verb, group)]}
        for rule in before
        for each in rule["apiGroups"]
    ]

    def restore() -> None:
        api.patch(*_ROLE, None, {"rules": before})
        eventually(lambda: _allowed(api, verb, group, resource), 30, what="the right is back")

    api.patch(*_ROLE, None, {"rules": rules})
    try:
        eventually(lambda: not _allowed(api, verb, group, resource), 30, what="the right is gone")
        yield restore
    finally:
        restore()


def conversion_dies(api: Api, definition: str, *, stored: str = "", **changes: Any) -> Callable[[], None]:
    """Change a definition, and have its objects converted by a webhook that nobody answers; gives what ends that.

    :param stored: the version that all objects are stored at, which needs no conversion; "" if they are of another one.
    :param changes: of the definition's spec, at the same moment.
    """
    plural, _, group = definition.partition(".")
    faults = request_faults_of(api)
    if faults is None:
        api.patch(*_CRD, definition, None, {"spec": {**changes, "conversion": DEAD_WEBHOOK}})

        def restore() -> None:
            api.patch(*_CRD, definition, None, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})

        return restore
    down = faults.add(conversion_failed(group, plural, stored), group=group, resource=plural)
    if changes:
        api.patch(*_CRD, definition, None, {"spec": changes})
    return down


def _allowed(api: Api, verb: str, group: str, resource: str) -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": "default"}
    review = {"spec": {"user": MANAGER_USER, "resourceAttributes": attributes}}
    allowed: bool = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"][
        "allowed"
    ]
    return allowed


def _tried(api: Api, namespace: str, operation: str) -> str:
    """Return the server's error for the same request as a dry run by an administrator; empty if it is admitted."""
    try:
        if operation == "CREATE":
            api.create(foreign(("cluster.x-k8s.io/v1beta2", "Machine"), namespace, "probe"), dry_run=True)
        else:
            path = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace}/machines/web"
            api.request("DELETE", path, {"dryRun": ["All"]})
    except ApiError as error:
        return str(error)
    return ""
