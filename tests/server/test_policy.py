"""The admission policy by itself: on definitions that refuse nothing, so that each refusal is the policy's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import Api, ApiError, ControlPlane, read_crds
from support import eventually
from support.machines import MACHINE, bootstrap, infrastructure, machine, reference, taint, without_rules

pytestmark = pytest.mark.server

Json = dict[str, Any]

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
NAMESPACE = "default"


@pytest.fixture(scope="module")
def plane(module_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """A control plane of this module's own, with the policy in force."""
    loose = [without_rules(definition) for definition in read_crds(MANIFESTS / "crds")]
    plane = module_control_plane(crds=loose, audit=False)
    plane.kubectl("apply", "--validate=strict", "-f", str(MANIFESTS / "admission"))
    eventually(lambda: denial(plane.api, clusterName="") != "", what="the policy is in force")
    return plane


@pytest.fixture
def admin(plane: ControlPlane) -> Api:
    return plane.api


@pytest.fixture(scope="module")
def limited(plane: ControlPlane) -> Iterator[Callable[[Json], Api]]:
    """Makes users who may do all with ScheduledMachines and create Machines in the namespace, and besides only what the
    test says."""
    clients: list[Api] = []

    def make(rule: Json, *, with_machines: bool = True) -> Api:
        name = f"user-{len(clients)}"
        metadata = {"name": name, "namespace": NAMESPACE}
        group = "rbac.authorization.k8s.io"
        own = {
            "apiGroups": ["5spot.finos.org"],
            "resources": ["scheduledmachines", "scheduledmachines/status"],
            "verbs": ["*"],
        }
        machines = {"apiGroups": ["cluster.x-k8s.io"], "resources": ["machines"], "verbs": ["create"]}
        rules = [own, *([machines] if with_machines else []), *([rule] if rule else [])]
        subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
        plane.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        plane.api.create({"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules})
        plane.api.create(
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
                "subjects": [subject],
            }
        )
        client = Api(plane.url, ca_file=plane.ca_file, token=plane.service_account_token(NAMESPACE, name))
        clients.append(client)
        eventually(lambda: may_list(client), what="the role is in force")
        return client

    yield make
    for client in clients:
        client.close()


def may_list(client: Api) -> bool:
    try:
        client.list(*MACHINE, NAMESPACE)
    except ApiError:
        return False
    return True


@pytest.fixture(scope="module")
def outsider(limited: Callable[[Json], Api]) -> Api:
    """A user who may write ScheduledMachines and may not create what they embed."""
    return limited({})


def denial(api: Api, **changes: Any) -> str:
    """Return the policy's message against a create; empty if it admits it."""
    try:
        api.create(machine("sample", NAMESPACE, **changes), dry_run=True)
    except ApiError as error:
        message: str = error.body["message"]
        assert "ValidatingAdmissionPolicy 'scheduledmachine-validation'" in message, message
        return message
    return ""


DENIED: dict[str, tuple[Json, str]] = {
    "empty cluster name": ({"clusterName": ""}, "spec.clusterName must be"),
    "long cluster name": ({"clusterName": "a" * 64}, "spec.clusterName must be"),
    "cluster name": ({"clusterName": "-a"}, "spec.clusterName must be"),
    "grace": ({"gracefulShutdownTimeout": "5 minutes"}, "spec.gracefulShutdownTimeout must be a whole number"),
    "compound grace": ({"gracefulShutdownTimeout": "1h30m"}, "spec.gracefulShutdownTimeout must be a whole number"),
    "grace over a day": ({"gracefulShutdownTimeout": "25h"}, "spec.gracefulShutdownTimeout must be at most 24h"),
    "grace over all bounds": ({"gracefulShutdownTimeout": "9" * 40 + "h"}, "must be at most 24h"),
    "drain": ({"nodeDrainTimeout": ""}, "spec.nodeDrainTimeout must be a whole number"),
    "drain over a day": ({"nodeDrainTimeout": "86401s"}, "spec.nodeDrainTimeout must be at most 24h"),
    "schedule group": (
        {"schedule": reference(apiVersion="batch/v1")},
        "spec.schedule.apiVersion must be of the group spotschedules.5spot.finos.org",
    ),
    "core bootstrap": ({"bootstrapSpec": bootstrap("v1", kind="Secret")}, "core versions are refused"),
    "bootstrap group": ({"bootstrapSpec": bootstrap("apps/v1")}, "spec.bootstrapSpec.apiVersion must be of the group"),
    "infrastructure group in bootstrap": (
        {"bootstrapSpec": bootstrap("infrastructure.cluster.x-k8s.io/v1beta1")},
        "spec.bootstrapSpec.apiVersion must be of the group",
    ),
    "bootstrap kind": ({"bootstrapSpec": bootstrap(kind="")}, "spec.bootstrapSpec.kind must not be empty"),
    "bootstrap name": (
        {"bootstrapSpec": bootstrap(metadata={"name": "x"})},
        "spec.bootstrapSpec.metadata.name and .namespace must not be set",
    ),
    "core infrastructure": ({"infrastructureSpec": infrastructure("v1")}, "core versions are refused"),
    "infrastructure group": (
        {"infrastructureSpec": infrastructure("apps/v1")},
        "spec.infrastructureSpec.apiVersion must be of the group",
    ),
    "infrastructure kind": (
        {"infrastructureSpec": infrastructure(kind="")},
        "spec.infrastructureSpec.kind must not be empty",
    ),
    "infrastructure namespace": (
        {"infrastructureSpec": infrastructure(metadata={"namespace": "x"})},
        "spec.infrastructureSpec.metadata.name and .namespace must not be set",
    ),
    "reserved label": ({"machineTemplate": {"labels": {"kubernetes.io/os": "x"}}}, "reserved prefixes"),
    "reserved annotation": ({"machineTemplate": {"annotations": {"5spot.finos.org/x": ""}}}, "reserved prefixes"),
    "reserved embedded label": (
        {"bootstrapSpec": bootstrap(metadata={"labels": {"cluster.x-k8s.io/x": ""}})},
        "reserved prefixes",
    ),
    "reserved embedded annotation": (
        {"infrastructureSpec": infrastructure(metadata={"annotations": {"k8s.io/x": ""}})},
        "reserved prefixes",
    ),
    **{
        f"power {key}": (
            {"machineTemplate": {field: {key: ""}}},
            f"nodes, deletions or topologies: {key}; an administrator",
        )
        for field, key in (
            ("annotations", "pre-drain.delete.hook.machine.cluster.x-k8s.io/wait"),
            ("annotations", "pre-terminate.delete.hook.machine.cluster.x-k8s.io"),
            ("annotations", "pre-terminate.delete.hook.machine.cluster.x-k8s.io/wait"),
            ("labels", "node-restriction.kubernetes.io/pci"),
            ("labels", "fips.node-restriction.kubernetes.io/level"),
            ("labels", "node-role.kubernetes.io/control-plane"),
            ("labels", "node-role.kubernetes.io/master"),
            ("labels", "topology.cluster.x-k8s.io/owned"),
        )
    },
    "power in an embedded object": (
        {"infrastructureSpec": infrastructure(metadata={"labels": {"topology.cluster.x-k8s.io/owned": ""}})},
        "topology.cluster.x-k8s.io/owned; an administrator",
    ),
    "taint key": ({"nodeTaints": [taint("a b")]}, "keys must be qualified names"),
    "long taint key": ({"nodeTaints": [taint(f"{'a' * 200}.{'b' * 51}/c")]}, "keys must be qualified names"),
    "long taint name": ({"nodeTaints": [taint("a" * 64)]}, "keys must be qualified names"),
    "taint value": ({"nodeTaints": [taint("a", value="x" * 64)]}, "values must be at most 63"),
    **{
        f"taint {prefix}": ({"nodeTaints": [taint(f"{prefix}x")]}, "keys must not begin with the reserved prefixes")
        for prefix in (
            "5spot.finos.org/",
            "kubernetes.io/",
            "node.kubernetes.io/",
            "node-role.kubernetes.io/",
            "node.cloudprovider.kubernetes.io/",
            "node.cluster.x-k8s.io/",
        )
    },
    "taint twice": ({"nodeTaints": [taint("a", value="b"), taint("a")]}, "must not occur with the same effect twice"),
}


@pytest.mark.contract("B2.4")
@pytest.mark.parametrize(("changes", "part"), DENIED.values(), ids=DENIED.keys())
def test_each_rule_denies_with_the_field_named(admin: Api, changes: Json, part: str) -> None:
    assert part in denial(admin, **changes)


ALLOWED: dict[str, Json] = {
    "no more than required": {},
    "k0smotron": {
        "bootstrapSpec": bootstrap("k0smotron.io/v1beta1"),
        "infrastructureSpec": infrastructure("k0smotron.io/v1"),
    },
    "no grace, no drain": {"gracefulShutdownTimeout": "0s", "nodeDrainTimeout": "24h"},
    "ordinary keys": {
        "machineTemplate": {"labels": {"node-role.kubernetes.io/build": ""}, "annotations": {"a": "b"}},
        "bootstrapSpec": bootstrap(metadata={"labels": {"a": "b"}, "annotations": {"example.com/a": "b"}}),
        "infrastructureSpec": infrastructure(metadata={"labels": {}}),
    },
    "taints": {"nodeTaints": [taint(f"{'a' * 189}.b/{'c' * 61}"), taint("a"), taint("a", "NoExecute", value="x" * 63)]},
    "many taints": {"nodeTaints": [taint(f"example.com/k{n}") for n in range(64)]},
}


@pytest.mark.parametrize("changes", ALLOWED.values(), ids=ALLOWED.keys())
def test_what_keeps_the_rules_passes(admin: Api, changes: Json) -> None:
    assert denial(admin, **changes) == ""


def test_nobody_gets_through_a_machine_what_rbac_denies_them(outsider: Api) -> None:
    message = denial(outsider)
    assert "you may not create standinbootstraps.bootstrap.cluster.x-k8s.io in namespace default" in message


@pytest.mark.parametrize(
    ("group", "resource", "missing"),
    [
        (
            "bootstrap.cluster.x-k8s.io",
            "standinbootstraps",
            "spec.infrastructureSpec: you may not create",
        ),
        (
            "infrastructure.cluster.x-k8s.io",
            "standinmachines",
            "spec.bootstrapSpec: you may not create",
        ),
    ],
)
def test_both_embedded_objects_are_checked(
    limited: Callable[[Json], Api], group: str, resource: str, missing: str
) -> None:
    user = limited({"apiGroups": [group], "resources": [resource], "verbs": ["create"]})
    assert missing in denial(user)


def test_a_user_with_both_rights_passes_and_only_in_that_namespace(limited: Callable[[Json], Api]) -> None:
    user = limited(
        {
            "apiGroups": ["bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"],
            "resources": ["standinbootstraps", "standinmachines"],
            "verbs": ["create"],
        }
    )
    assert denial(user) == ""
    assert "you may not create othermachines" in denial(user, infrastructureSpec=infrastructure(kind="OtherMachine"))


@pytest.fixture
def existing(admin: Api) -> Iterator[str]:
    """The name of a machine that an administrator made, with a finalizer."""
    body = machine("existing", NAMESPACE)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    admin.create(body)
    yield "existing"
    if admin.find(*MACHINE, "existing", NAMESPACE) is not None:
        admin.patch(*MACHINE, "existing", NAMESPACE, {"metadata": {"finalizers": None}})
        admin.delete(*MACHINE, "existing", NAMESPACE, missing_ok=True)


def test_a_changed_spec_is_judged_as_a_new_one(outsider: Api, admin: Api, existing: str) -> None:
    with pytest.raises(ApiError, match="you may not create") as caught:
        outsider.patch(*MACHINE, existing, NAMESPACE, {"spec": {"priority": 1}})
    assert caught.value.status == 403
    with pytest.raises(ApiError, match=r"spec\.nodeDrainTimeout must be"):
        admin.patch(*MACHINE, existing, NAMESPACE, {"spec": {"nodeDrainTimeout": "x"}})


def test_labels_finalizers_and_status_are_never_judged(outsider: Api, existing: str) -> None:
    outsider.patch(*MACHINE, existing, NAMESPACE, {"metadata": {"labels": {"a": "b"}}})
    outsider.patch(*MACHINE, existing, NAMESPACE, {"metadata": {"finalizers": ["example.com/hold", "example.com/b"]}})
    assert outsider.patch_status(*MACHINE, existing, NAMESPACE, {"phase": "Active"})["status"]["phase"] == "Active"


def test_an_object_being_deleted_is_never_judged(outsider: Api, admin: Api, existing: str) -> None:
    outsider.delete(*MACHINE, existing, NAMESPACE)
    assert "deletionTimestamp" in admin.get(*MACHINE, existing, NAMESPACE)["metadata"]
    outsider.patch(*MACHINE, existing, NAMESPACE, {"spec": {"killSwitch": True}})
    outsider.patch(*MACHINE, existing, NAMESPACE, {"metadata": {"finalizers": []}})
    assert admin.find(*MACHINE, existing, NAMESPACE) is None


def test_foreground_deletion_ends_with_the_policy_in_force(admin: Api, existing: str) -> None:
    admin.delete(*MACHINE, existing, NAMESPACE, propagation="Foreground")
    # The garbage collector takes its own finalizer off; ours is left.
    eventually(
        lambda: admin.get(*MACHINE, existing, NAMESPACE)["metadata"]["finalizers"] == ["example.com/hold"],
        timeout=40,
        what="the collector is done",
    )
    admin.patch(*MACHINE, existing, NAMESPACE, {"metadata": {"finalizers": []}})
    assert admin.find(*MACHINE, existing, NAMESPACE) is None


EMBEDDED = {
    "apiGroups": ["bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"],
    "resources": ["standinbootstraps", "standinmachines"],
    "verbs": ["create"],
}


def test_who_may_create_all_but_the_machine_is_refused(limited: Callable[..., Api]) -> None:
    user = limited(EMBEDDED, with_machines=False)
    assert "you may not create machines.cluster.x-k8s.io in namespace default" in denial(user)


STOPS: dict[str, Json] = {
    "kill switch": {"killSwitch": True},
    "disabled": {"enabled": False},
    "both": {"killSwitch": True, "enabled": False},
}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS.keys())
def test_stopping_is_allowed_to_everybody_who_may_write_the_object(
    outsider: Api, admin: Api, existing: str, stop: Json
) -> None:
    for how in ("merge", "apply", "replace"):
        before = admin.get(*MACHINE, existing, NAMESPACE)
        if how == "merge":
            outsider.patch(*MACHINE, existing, NAMESPACE, {"spec": stop})
        elif how == "apply":
            body = machine(existing, NAMESPACE, **stop)
            body["metadata"]["finalizers"] = before["metadata"]["finalizers"]
            path = f"/apis/{MACHINE[0]}/namespaces/{NAMESPACE}/scheduledmachines/{existing}"
            query = {"fieldManager": "test", "force": "true"}
            outsider.request("PATCH", path, body, query=query, content_type="application/apply-patch+yaml")
        else:
            outsider.replace({**before, "spec": {**before["spec"], **stop}})
        stored = admin.get(*MACHINE, existing, NAMESPACE)["spec"]
        assert {name: stored[name] for name in stop} == stop
        admin.patch(*MACHINE, existing, NAMESPACE, {"spec": {"killSwitch": False, "enabled": True}})


def test_a_stop_of_an_object_that_breaks_every_rule_is_allowed(plane: ControlPlane, outsider: Api, admin: Api) -> None:
    binding = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "scheduledmachine-validation")
    body = admin.get(*binding)
    admin.delete(*binding)
    wrong = machine("stored-before", NAMESPACE, nodeDrainTimeout="x", bootstrapSpec=bootstrap("v1", kind="Secret"))
    eventually(lambda: denial(admin, nodeDrainTimeout="x") == "", what="the policy is not in force")
    admin.create(wrong)
    metadata = {name: body["metadata"][name] for name in ("name", "labels")}
    admin.create({**{name: body[name] for name in ("apiVersion", "kind", "spec")}, "metadata": metadata})
    eventually(lambda: denial(admin, nodeDrainTimeout="x") != "", what="the policy is in force again")
    stopped = outsider.patch(*MACHINE, "stored-before", NAMESPACE, {"spec": {"killSwitch": True}})
    assert stopped["spec"]["killSwitch"] is True
    admin.delete(*MACHINE, "stored-before", NAMESPACE)


@pytest.mark.parametrize(
    "change",
    [
        {"killSwitch": True, "clusterName": "other"},
        {"killSwitch": True, "priority": 1},
        {"enabled": False, "machineTemplate": {"labels": {"a": "b"}}},
        {"killSwitch": True, "bootstrapSpec": bootstrap(kind="Other")},
        {"enabled": False, "schedule": reference(name="other")},
        {"killSwitch": True, "gracefulShutdownTimeout": "1s"},
        {"killSwitch": True, "nodeTaints": [taint("a")]},
    ],
    ids="+".join,
)
def test_more_than_a_stop_is_judged(outsider: Api, existing: str, change: Json) -> None:
    with pytest.raises(ApiError, match="you may not create"):
        outsider.patch(*MACHINE, existing, NAMESPACE, {"spec": change})


@pytest.mark.parametrize(
    ("stopped", "start"),
    [
        ({"killSwitch": True}, {"killSwitch": False}),
        ({"killSwitch": True}, {"killSwitch": None}),
        ({"enabled": False}, {"enabled": True}),
        ({"enabled": False}, {"enabled": None}),
        ({"killSwitch": True}, {"killSwitch": False, "enabled": False}),
        ({"enabled": False}, {"killSwitch": True, "enabled": True}),
    ],
)
def test_starting_again_is_judged(outsider: Api, admin: Api, existing: str, stopped: Json, start: Json) -> None:
    admin.patch(*MACHINE, existing, NAMESPACE, {"spec": stopped})
    with pytest.raises(ApiError, match="you may not create"):
        outsider.patch(*MACHINE, existing, NAMESPACE, {"spec": start})


def test_every_field_of_the_spec_is_compared_before_a_change_counts_as_a_stop() -> None:
    policy = yaml.safe_load((MANIFESTS / "admission" / "policy.yaml").read_text())
    [condition] = [found for found in policy["spec"]["matchConditions"] if found["name"] == "more-than-a-stop"]
    [definition] = [
        found
        for found in read_crds(MANIFESTS / "crds")
        if found["metadata"]["name"] == "scheduledmachines.5spot.finos.org"
    ]
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    compared = set(re.findall(r"object\.spec\.\??(\w+) == oldObject\.spec\.\??\1\b", condition["expression"]))
    assert compared == set(schema["properties"])


def test_an_administrator_permits_keys_by_name_and_by_prefix(plane: ControlPlane, admin: Api) -> None:
    policy = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "scheduledmachine-validation")
    variables = admin.get(*policy)["spec"]["variables"]
    [position] = [number for number, found in enumerate(variables) if found["name"] == "permittedKeys"]

    def permit(expression: str) -> None:
        change = {"op": "replace", "path": f"/spec/variables/{position}/expression", "value": expression}
        admin.patch(*policy, None, [change], how="json")

    def refused(*keys: str) -> bool:
        return "nodes, deletions or topologies" in denial(admin, machineTemplate={"labels": dict.fromkeys(keys, "")})

    permit("['node-restriction.kubernetes.io/', 'node-role.kubernetes.io/control-plane']")
    eventually(lambda: not refused("node-role.kubernetes.io/control-plane"), what="the key is permitted")
    assert not refused("node-restriction.kubernetes.io/pci", "node-role.kubernetes.io/control-plane")
    assert refused("node-role.kubernetes.io/master")
    assert refused("node-restriction.kubernetes.io/pci", "topology.cluster.x-k8s.io/owned")
    permit("[]")
    eventually(lambda: refused("node-role.kubernetes.io/control-plane"), what="nothing is permitted")
