"""The policy that bounds the manager's account, against a stolen token of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane, read_crds
from harness import MANAGER_USER, SERVICE_ACCOUNT, SYSTEM_NAMESPACE, install
from support import eventually, make_namespace
from support.machines import MACHINE, machine

pytestmark = pytest.mark.server

Json = dict[str, Any]

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
CAPI_MACHINE = ("cluster.x-k8s.io/v1beta2", "Machine")
BOOTSTRAP = ("bootstrap.cluster.x-k8s.io/v1beta1", "StandInBootstrap")
INFRASTRUCTURE = ("infrastructure.cluster.x-k8s.io/v1beta1", "StandInMachine")
LABEL = "5spot.finos.org/scheduled-machine"
UID = "5spot.finos.org/scheduled-machine-uid"
FINALIZER = "5spot.finos.org/scheduledmachine"


@pytest.fixture(scope="module")
def plane(module_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """A control plane of this module's own with everything installed, the policy in force."""
    plane = module_control_plane(crds=read_crds(MANIFESTS / "crds"), audit=False)
    install(plane)
    # Again: `install` leaves out what the server in memory does not have, and this module needs it.
    plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "admission"))
    return plane


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Api:
    return plane.api


@pytest.fixture(scope="module")
def thief(plane: ControlPlane) -> Iterator[Api]:
    """Whoever holds a token of the manager's ServiceAccount, outside of the manager."""
    token = plane.service_account_token(SYSTEM_NAMESPACE, SERVICE_ACCOUNT)
    with Api(plane.url, ca_file=plane.ca_file, token=token) as client:
        eventually(
            lambda: refusal(client, child(INFRASTRUCTURE, "probe", "default")) != "", what="the policy is in force"
        )
        yield client


@pytest.fixture
def namespace(admin: Api) -> str:
    return make_namespace(admin, "tenant")


def child(
    kind: tuple[str, str], name: str, namespace: str, *, label: str = "", uid: str = "", owner: Json | None = None
) -> Json:
    """An object with the marks that the test gives it."""
    metadata: Json = {"name": name, "namespace": namespace}
    if label:
        metadata["labels"] = {LABEL: label}
    if uid:
        metadata["annotations"] = {UID: uid}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    spec: Json = {}
    if kind == CAPI_MACHINE:
        spec = {
            "clusterName": "prod",
            "bootstrap": {
                "configRef": {"apiGroup": BOOTSTRAP[0].partition("/")[0], "kind": "StandInBootstrap", "name": name}
            },
            "infrastructureRef": {
                "apiGroup": INFRASTRUCTURE[0].partition("/")[0],
                "kind": "StandInMachine",
                "name": name,
            },
        }
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}


def owner(name: str, uid: str = "2dd1f4b8-c1b5-4b36-bb0e-1c38c1d1d3ae", **changes: Any) -> Json:
    reference = {"apiVersion": MACHINE[0], "kind": MACHINE[1], "name": name, "uid": uid, "controller": True}
    return {**reference, **changes}


def refusal(api: Api, body: Json) -> str:
    """The policy's message against a create; empty if it admits it."""
    try:
        api.create(body, dry_run=True)
    except ApiError as error:
        return policy_message(error)
    return ""


def policy_message(error: ApiError) -> str:
    message: str = error.body["message"]
    assert "ValidatingAdmissionPolicy 'scheduledmachine-controller'" in message, message
    return message


@pytest.mark.parametrize("kind", [BOOTSTRAP, INFRASTRUCTURE, CAPI_MACHINE], ids=lambda kind: kind[1])
@pytest.mark.parametrize(
    "marks",
    [
        {},
        {"label": "m"},
        {"uid": "u"},
        {"label": "other", "uid": "u"},
        {"label": "other", "uid": "u", "owner": owner("m")},
    ],
    ids=lambda marks: "+".join(marks) or "none",
)
def test_nothing_is_created_without_the_marks(thief: Api, namespace: str, kind: tuple[str, str], marks: Json) -> None:
    assert "creates only objects with the marks" in refusal(thief, child(kind, "m", namespace, **marks))


@pytest.mark.parametrize(
    "reference",
    [
        None,
        owner("other"),
        owner("m", kind="MachineSet", apiVersion="cluster.x-k8s.io/v1beta2"),
        owner("m", controller=False),
        owner("m", apiVersion="5spot.finos.org.example/v1"),
    ],
    ids=["none", "another name", "another kind", "no controller", "another group"],
)
def test_a_machine_is_created_for_a_scheduled_machine_only(thief: Api, namespace: str, reference: Json | None) -> None:
    body = child(CAPI_MACHINE, "m", namespace, label="m", uid="u", owner=reference)
    assert "for a Machine a ScheduledMachine as its controller" in refusal(thief, body)


def test_a_machine_for_a_scheduled_machine_that_does_not_exist_is_collected(
    thief: Api, admin: Api, namespace: str
) -> None:
    thief.create(child(CAPI_MACHINE, "m", namespace, label="m", uid="u", owner=owner("m")))
    eventually(lambda: admin.find(*CAPI_MACHINE, "m", namespace) is None, 60, what="the garbage collector deletes it")


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize("reference", ["bootstrap", "infrastructure", "none"])
def test_a_machine_refers_to_objects_of_its_own_name(thief: Api, namespace: str, version: str, reference: str) -> None:
    """Cluster API adopts what a Machine refers to, and deletes it with the Machine."""
    body = child(CAPI_MACHINE, "m", namespace, label="m", uid="u", owner=owner("m"))
    body["apiVersion"] = f"cluster.x-k8s.io/{version}"
    spec = body["spec"]
    references = {"bootstrap": spec["bootstrap"]["configRef"], "infrastructure": spec["infrastructureRef"]}
    if version == "v1beta1":
        for found in references.values():
            found |= {"apiVersion": f"{found.pop('apiGroup')}/v1beta1", "namespace": namespace}
    assert refusal(thief, body) == ""
    if reference == "none":
        spec["bootstrap"] = {"dataSecretName": "secret"}
    else:
        references[reference]["name"] = "theirs"
    assert "only Machines that refer to objects of their own name" in refusal(thief, body)
    if version == "v1beta1" and reference != "none":
        references[reference] |= {"name": "m", "namespace": "other"}
        assert "only Machines that refer to objects of their own name" in refusal(thief, body)


@pytest.mark.parametrize("kind", [BOOTSTRAP, INFRASTRUCTURE, CAPI_MACHINE], ids=lambda kind: kind[1])
def test_nothing_is_created_that_cannot_be_deleted(thief: Api, namespace: str, kind: tuple[str, str]) -> None:
    body = child(kind, "m", namespace, label="m", uid="u", owner=owner("m"))
    body["metadata"]["finalizers"] = ["example.com/stuck"]
    assert "no object with a finalizer" in refusal(thief, body)


def test_what_the_manager_makes_passes(thief: Api, namespace: str) -> None:
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        assert refusal(thief, child(kind, "m", namespace, label="m", uid="u")) == ""
    assert refusal(thief, child(CAPI_MACHINE, "m", namespace, label="m", uid="u", owner=owner("m"))) == ""


@pytest.mark.parametrize("kind", [BOOTSTRAP, INFRASTRUCTURE, CAPI_MACHINE], ids=lambda kind: kind[1])
@pytest.mark.parametrize("marks", [{}, {"label": "other"}], ids=["no mark", "the label of another"])
def test_objects_of_tenants_are_not_deleted(
    thief: Api, admin: Api, namespace: str, kind: tuple[str, str], marks: Json
) -> None:
    admin.create(child(kind, "theirs", namespace, **marks))
    with pytest.raises(ApiError) as caught:
        thief.delete(*kind, "theirs", namespace)
    assert "changes and deletes only objects with a mark" in policy_message(caught.value)
    assert admin.find(*kind, "theirs", namespace) is not None
    with pytest.raises(ApiError) as together:
        thief.request("DELETE", f"/apis/{kind[0]}/namespaces/{namespace}/{kind[1].lower()}s")
    assert together.value.status == 403


@pytest.mark.parametrize("marks", [{"label": "ours"}, {"uid": "u"}], ids=["5-Spot's mark", "our mark"])
@pytest.mark.parametrize("kind", [BOOTSTRAP, INFRASTRUCTURE, CAPI_MACHINE], ids=lambda kind: kind[1])
def test_objects_with_a_mark_are_deleted(
    thief: Api, admin: Api, namespace: str, kind: tuple[str, str], marks: Json
) -> None:
    admin.create(child(kind, "ours", namespace, **marks))
    thief.delete(*kind, "ours", namespace)
    assert admin.find(*kind, "ours", namespace) is None


def test_a_machine_is_ours_by_its_owner_too(thief: Api, admin: Api, namespace: str) -> None:
    made = admin.create(machine("ours", namespace))
    admin.create(child(CAPI_MACHINE, "ours", namespace, owner=owner("ours", made["metadata"]["uid"])))
    thief.patch(*CAPI_MACHINE, "ours", namespace, {"metadata": {"labels": {LABEL: "ours"}}})
    thief.delete(*CAPI_MACHINE, "ours", namespace)


def test_a_machine_of_somebody_else_cannot_be_marked(thief: Api, admin: Api, namespace: str) -> None:
    admin.create(child(CAPI_MACHINE, "theirs", namespace))
    for change in (
        {"metadata": {"labels": {LABEL: "theirs"}}},
        {"metadata": {"annotations": {UID: "u"}}},
        {"metadata": {"ownerReferences": [owner("theirs")]}},
    ):
        with pytest.raises(ApiError) as caught:
            thief.patch(*CAPI_MACHINE, "theirs", namespace, change)
        assert "changes and deletes only objects with a mark" in policy_message(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"providerID": "cloud://stolen"}},
        {"spec": {"clusterName": "other"}},
        {"spec": {"version": "v1.0.0"}},
        {"spec": {"bootstrap": {"dataSecretName": "stolen"}}},
        {"spec": {"infrastructureRef": {"name": "other"}}},
        {"spec": {"failureDomain": "other"}},
        {"spec": {"readinessGates": [{"conditionType": "Never"}]}},
        {"metadata": {"labels": {"cluster.x-k8s.io/set-name": "workers"}}},
        {"metadata": {"labels": {"team": None}}},
        {"metadata": {"annotations": {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/stuck": ""}}},
        {"metadata": {"annotations": {"note": "changed"}}},
        {"metadata": {"finalizers": ["example.com/stuck"]}},
        {"metadata": {"ownerReferences": []}},
    ],
    ids=str,
)
def test_a_machine_of_ours_cannot_be_made_another(thief: Api, admin: Api, namespace: str, change: Json) -> None:
    made = admin.create(machine("ours", namespace))
    body = child(CAPI_MACHINE, "ours", namespace, label="ours", uid="u", owner=owner("ours", made["metadata"]["uid"]))
    body["metadata"]["labels"]["team"] = body["metadata"]["annotations"]["note"] = "theirs"
    admin.create(body)
    with pytest.raises(ApiError) as caught:
        thief.patch(*CAPI_MACHINE, "ours", namespace, change)
    assert "nothing of an existing object but a Machine's marks and drain settings" in policy_message(caught.value)


def test_the_drain_of_a_machine_of_ours_can_be_set(thief: Api, admin: Api, namespace: str) -> None:
    admin.create(child(CAPI_MACHINE, "ours", namespace, label="ours", uid="u"))
    annotations = {
        "machine.cluster.x-k8s.io/exclude-node-draining": "",
        "5spot.finos.org/drain-excluded-by": "killSwitch",
    }
    change = {"metadata": {"annotations": annotations}, "spec": {"deletion": {"nodeDrainTimeoutSeconds": 60}}}
    stored = thief.patch(*CAPI_MACHINE, "ours", namespace, change)
    assert stored["spec"]["deletion"] == {"nodeDrainTimeoutSeconds": 60}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spec": {"killSwitch": True}}, "does not change the spec"),
        ({"spec": {"enabled": False}}, "does not change the spec"),
        ({"spec": {"infrastructureSpec": {"spec": {"size": "huge"}}}}, "does not change the spec"),
        ({"metadata": {"labels": {"a": "b"}}}, "nothing of a ScheduledMachine's metadata but its own finalizer"),
        ({"metadata": {"annotations": {"a": "b"}}}, "nothing of a ScheduledMachine's metadata but its own finalizer"),
        ({"metadata": {"ownerReferences": [owner("x")]}}, "metadata but its own finalizer"),
        ({"metadata": {"finalizers": ["example.com/hold", "example.com/stuck"]}}, "metadata but its own finalizer"),
        ({"metadata": {"finalizers": []}}, "metadata but its own finalizer"),
    ],
    ids=lambda value: str(next(iter(value.values()))) if isinstance(value, dict) else "",
)
def test_a_scheduled_machine_is_not_changed(thief: Api, admin: Api, namespace: str, change: Json, message: str) -> None:
    body = machine("theirs", namespace)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    admin.create(body)
    with pytest.raises(ApiError) as caught:
        thief.patch(*MACHINE, "theirs", namespace, change)
    assert message in policy_message(caught.value)
    with_ours = {"metadata": {"finalizers": ["example.com/hold", FINALIZER]}}
    assert thief.patch(*MACHINE, "theirs", namespace, with_ours)["metadata"]["finalizers"][-1] == FINALIZER
    thief.patch(*MACHINE, "theirs", namespace, {"metadata": {"finalizers": ["example.com/hold"]}})
    thief.patch_status(*MACHINE, "theirs", namespace, {"phase": "Active"})
    admin.patch(*MACHINE, "theirs", namespace, {"metadata": {"finalizers": []}})


def test_no_other_account_is_bounded(thief: Api, admin: Api, namespace: str) -> None:
    assert MANAGER_USER == "system:serviceaccount:5spot-system:5spot-controller", "the policy names it"
    unmarked = child(INFRASTRUCTURE, "m", namespace)
    assert refusal(thief, unmarked) != ""
    admin.create(unmarked)
    admin.delete(*INFRASTRUCTURE, "m", namespace)
