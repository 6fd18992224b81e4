"""A7, A10, A12, A14: provider kinds that are missing, broken, upgraded, removed and installed again."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane
from controlplane.audit import STARTED, select
from harness import MANAGER_USER, ManagerProcess
from harness.providers import PROVIDER_GROUP, ProviderKind, provider_crd
from support import eventually
from support.rbac import as_account, grant
from support.scenario import Scenario

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")

MakeKind = Callable[..., ProviderKind]


@pytest.mark.contract("A7", "A12")
def test_each_thing_that_is_missing_is_named_in_turn_until_the_machine_is_made(
    api: Api, namespace: str, manager: ManagerProcess, own_provider: MakeKind
) -> None:
    provider = own_provider()
    scenario = Scenario(api, namespace, provider)
    scenario.create()
    condition = scenario.wait_condition("SpotScheduleResolved", "False", "ProviderCRDNotInstalled")
    assert provider.kind in condition["message"]
    assert PROVIDER_GROUP in condition["message"]
    scenario.wait_phase("Inactive", "ProviderCRDNotInstalled")
    provider.install()
    condition = scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    assert f"{provider.kind}/hours does not exist in namespace {namespace}" in condition["message"]
    # Not ready besides: the missing verdict comes first.
    provider.create(namespace, conditions=[{"type": "Ready", "status": "False"}])
    scenario.wait_condition("SpotScheduleResolved", "False", "StatusActiveMissing")
    scenario.active(True)
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotReady")
    assert scenario.child(("cluster.x-k8s.io/v1beta2", "Machine")) is None, "never resolved means inactive"
    provider.ready(namespace, ready="True")
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")
    scenario.wait_made()


@pytest.fixture
def broken(api: Api) -> Iterator[Callable[[str], str]]:
    """Creates a provider kind that misses one requirement of *installed*; its name."""
    made: list[str] = []

    def create(body: dict[str, Any]) -> str:
        api.create(body)
        made.append(body["metadata"]["name"])
        return made[-1]

    def make(problem: str) -> str:
        kind = f"Broken{secrets.token_hex(3).capitalize()}"
        body = provider_crd(kind)
        if problem == "is not namespaced":
            body["spec"]["scope"] = "Cluster"
        elif problem == "serves no version":
            body["spec"]["versions"][0]["served"] = False
        elif problem == "is being deleted":
            body["metadata"]["finalizers"] = ["example.com/held"]
        elif problem == "is not established":
            rival = provider_crd(f"Rival{secrets.token_hex(3).capitalize()}")
            wait_established(api, create(rival))
            body["spec"]["names"]["singular"] = rival["spec"]["names"]["singular"]
        name = create(body)
        if problem == "is being deleted":
            wait_established(api, name)
            api.delete(*CRD, name)
        return kind

    yield make
    for name in made:
        api.patch(*CRD, name, None, {"metadata": {"finalizers": None}})
        with contextlib.suppress(Exception):
            api.delete(*CRD, name, missing_ok=True)


def wait_established(api: Api, name: str) -> None:
    def established() -> bool:
        conditions = api.get(*CRD, name).get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    eventually(established, what=f"{name} is established")


@pytest.mark.contract("A7")
@pytest.mark.parametrize(
    "problem", ["is not namespaced", "serves no version", "is being deleted", "is not established"]
)
def test_a_definition_that_is_there_but_not_installed_tells_what_it_misses(
    scenario: Scenario, broken: Callable[[str], str], problem: str
) -> None:
    kind = broken(problem)
    scenario.create(schedule={"apiVersion": f"{PROVIDER_GROUP}/v1alpha1", "kind": kind, "name": "hours"})
    condition = scenario.wait_condition("SpotScheduleResolved", "False", "ProviderCRDNotInstalled")

    def told() -> bool:
        message = scenario.condition("SpotScheduleResolved")["message"]
        assert f"{kind.lower()}s.{PROVIDER_GROUP}" in message
        assert problem in message, message
        return True

    # Of a definition that was created this instant the server may not have said everything yet.
    eventually(told, what=f"{problem}, not {condition['message']}")
    scenario.wait_phase("Inactive", "ProviderCRDNotInstalled")


@pytest.mark.contract("A7", "A12")
def test_a_definition_that_is_repaired_resolves_at_once(
    api: Api, namespace: str, manager: ManagerProcess, own_provider: MakeKind
) -> None:
    provider = own_provider(versions=("v1", "v2"), served=("v1",))
    provider.install()
    provider.create(namespace, active=True)
    scenario = Scenario(api, namespace, provider)
    scenario.create()
    scenario.wait_made()
    versions = provider.definition["spec"]["versions"]
    unserved = [{**version, "served": False} for version in versions]
    provider.change({"spec": {"versions": unserved}})
    condition = scenario.wait_condition("SpotScheduleResolved", "False", "ProviderCRDNotInstalled")
    assert "serves no version" in condition["message"]
    assert "deletionTimestamp" not in scenario.machine()["metadata"]
    # Upgraded: the version that was served before is not served any more.
    provider.change({"spec": {"versions": [{**version, "served": version["name"] == "v2"} for version in versions]}})
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved", timeout=30)
    provider.version = "v2"
    provider.wait_served()
    eventually(lambda: provider_says(scenario, active=False), what="the new version is served")
    scenario.wait_gone()


def provider_says(scenario: Scenario, *, active: bool) -> bool:
    try:
        scenario.active(active)
    except ApiError as error:
        raise AssertionError(str(error)) from None
    return True


@pytest.mark.contract("A10")
def test_any_served_version_resolves_also_one_that_the_reference_does_not_name(
    api: Api, namespace: str, manager: ManagerProcess, own_provider: MakeKind
) -> None:
    provider = own_provider(versions=("v1alpha1", "v1beta1"))
    provider.install()
    provider.create(namespace, active=True)
    scenario = Scenario(api, namespace, provider)
    scenario.create(schedule=provider.reference(version="v1alpha1"))
    stranger = Scenario(api, namespace, provider, name="stranger")
    stranger.create(schedule=provider.reference(version="v7"))
    scenario.wait_made()
    stranger.wait_made()
    machine = scenario.machine()["metadata"]["uid"]
    # v1alpha1 is retired while the machine is up: the reference still names it.
    versions = [{**v, "served": v["name"] == "v1beta1"} for v in provider.definition["spec"]["versions"]]
    provider.change({"spec": {"versions": versions}})
    provider.version = "v1beta1"
    eventually(lambda: retired(api, provider, "v1alpha1"), what="v1alpha1 is retired")
    eventually(lambda: provider_says(scenario, active=True), what="v1beta1 is served")
    scenario.active(False)
    scenario.wait_gone()
    stranger.wait_gone()
    scenario.active(True)
    scenario.wait_made()
    assert scenario.machine()["metadata"]["uid"] != machine
    for each in (scenario, stranger):
        each.wait_condition("SpotScheduleResolved", "True", "Resolved")


def retired(api: Api, provider: ProviderKind, version: str) -> bool:
    plural = provider.definition["spec"]["names"]["plural"]
    try:
        api.request("GET", f"/apis/{PROVIDER_GROUP}/{version}/{plural}")
    except ApiError as error:
        return error.status == 404
    return False


@pytest.mark.contract("A12")
def test_a_kind_removed_and_installed_again_holds_and_then_decides(
    api: Api, namespace: str, manager: ManagerProcess, own_provider: MakeKind, provider: ProviderKind
) -> None:
    process = manager.pid
    kind = own_provider()
    kind.install()
    kind.create(namespace, active=True)
    scenario = Scenario(api, namespace, kind)
    scenario.create()
    provider.create(namespace, active=True)
    other = Scenario(api, namespace, provider, name="other")
    other.create()
    scenario.wait_made()
    other.wait_made()
    machine = scenario.machine()["metadata"]["uid"]
    undisturbed = other.wait_phase("Active")
    kind.remove()
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderCRDNotInstalled")
    assert scenario.wait_phase("Active", "ProviderCRDNotInstalled")["inSchedule"] is True
    kind.install()
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    kind.create(namespace, active=True)
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")
    found = scenario.machine()["metadata"]
    assert found["uid"] == machine, "held from before the removal until after it"
    assert "deletionTimestamp" not in found
    # Once more, and this time the schedule has ended meanwhile.
    kind.remove()
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderCRDNotInstalled")
    kind.install()
    kind.create(namespace, active=False)
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert other.status == undisturbed, "machines of other kinds take no notice"
    assert manager.pid == process
    assert manager.exit_code is None


@pytest.mark.contract("A12")
def test_a_kind_comes_back_under_another_version_and_plural(
    api: Api, namespace: str, manager: ManagerProcess, own_provider: MakeKind
) -> None:
    provider = own_provider()
    provider.install()
    provider.create(namespace, active=True)
    scenario = Scenario(api, namespace, provider)
    scenario.create()
    scenario.wait_made()
    provider.remove()
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderCRDNotInstalled")
    renewed = provider_crd(provider.kind, ("v2",))
    plural = f"{provider.kind.lower()}es"
    renewed["metadata"]["name"] = f"{plural}.{PROVIDER_GROUP}"
    renewed["spec"]["names"]["plural"] = plural
    provider.definition, provider.version = renewed, "v2"
    provider.install()
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
    # By kubectl's way, since the test's own client remembers the plural of before.
    path = f"/apis/{PROVIDER_GROUP}/v2/namespaces/{namespace}/{plural}"
    body = {"apiVersion": provider.api_version, "kind": provider.kind, "metadata": {"name": "hours"}, "spec": {}}
    api.request("POST", path, body)
    merge = "application/merge-patch+json"
    api.request("PATCH", f"{path}/hours/status", {"status": {"active": False}}, content_type=merge)
    scenario.wait_gone()
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")


@pytest.mark.contract("A14")
def test_a_third_partys_provider_needs_its_definition_its_controller_and_rights_for_itself(
    api: Api, namespace: str, manager: ManagerProcess, own_provider: MakeKind, control_plane: ControlPlane
) -> None:
    since = control_plane.audit_log.mark()
    provider = own_provider()
    provider.install()
    plural = provider.definition["spec"]["names"]["plural"]
    metadata = {"name": "vendor", "namespace": namespace}
    rules = [
        {"apiGroups": [PROVIDER_GROUP], "resources": [plural], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [PROVIDER_GROUP], "resources": [f"{plural}/status"], "verbs": ["patch"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "Role", "name": "vendor"}
    subject = {"kind": "ServiceAccount", "name": "vendor", "namespace": namespace}
    binding = {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "roleRef": role, "subjects": [subject]}
    grant(
        api,
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
            {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
            {**binding, "metadata": metadata},
        ],
    )
    provider.create(namespace)
    scenario = Scenario(api, namespace, provider)
    scenario.create()
    scenario.wait_condition("SpotScheduleResolved", "False", "StatusActiveMissing")
    path = f"/apis/{provider.api_version}/namespaces/{namespace}/{plural}/hours/status"
    with as_account(control_plane, namespace, "vendor") as vendor:
        vendor.request("PATCH", path, {"status": {"active": True}}, content_type="application/merge-patch+json")
    scenario.wait_made()
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")
    stages = ("ResponseComplete", STARTED)
    asked = select(control_plane.audit(since=since, stages=stages), user=MANAGER_USER, resource=plural)
    assert {event["verb"] for event in asked} <= {"get", "list", "watch"}
    assert asked
    # A server answers 404 before it serves a new kind, and 429 before it can be watched; lacking a right it says 403.
    assert {event["responseStatus"]["code"] for event in asked} - {404, 429} == {200}
