"""The manifests on the real API server: what installs, what people see, and what the controller may do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import Api, ControlPlane, KubectlFailed
from support import eventually, make_namespace
from support.machines import MACHINE, machine, schedule

Json = dict[str, Any]

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"


def holds(stored: Any, given: Any) -> bool:
    """Whether all that was given is stored; the server may have added to objects."""
    if isinstance(given, dict):
        return isinstance(stored, dict) and all(holds(stored.get(key), value) for key, value in given.items())
    if isinstance(given, list):
        return len(stored) == len(given) and all(map(holds, stored, given))
    return bool(stored == given)


@pytest.mark.parametrize("path", sorted((MANIFESTS / "examples").iterdir()), ids=lambda path: path.stem)
def test_examples_pass_a_strict_apply_twice(
    kubectl: Callable[..., str], api: Api, namespace: str, path: Path, tmp_path: Path
) -> None:
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    for document in documents:
        document["metadata"]["namespace"] = namespace
    moved = tmp_path / path.name
    moved.write_text(yaml.safe_dump_all(documents))
    kubectl("apply", "--validate=strict", "-f", str(moved))
    assert "configured" not in kubectl("apply", "--validate=strict", "-f", str(moved)), "a second apply changes nothing"
    kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "--dry-run=server", "-f", str(moved))
    for document in documents:
        stored = api.get(document["apiVersion"], document["kind"], document["metadata"]["name"], namespace)["spec"]
        assert holds(stored, document["spec"])


def test_explain_shows_what_the_fields_mean(kubectl: Callable[..., str]) -> None:
    def explained(what: str) -> str:
        try:
            return kubectl("explain", what)
        except KubectlFailed as error:
            # A new kind reaches the published OpenAPI documents some seconds after it is served, each by itself.
            raise AssertionError(str(error)) from None

    shown = eventually(lambda: explained("scheduledmachine.spec"), 30, what="the kind is published")
    assert "The schedule that decides when the machine exists." in shown
    assert "gracefulShutdownTimeout\t<string>" in shown
    shown = eventually(lambda: explained("sm.status.spotSchedule.active"), 30, what="its short name is known")
    assert "The last verdict of the schedule" in shown
    shown = eventually(lambda: explained("tbss.spec.hoursOfDay"), 30, what="the other kind is published")
    assert "runs until 17:59" in shown


@pytest.fixture(scope="module")
def installed(request: pytest.FixtureRequest, module_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """A control plane of this module's own with everything that `kubectl apply -k manifests` installs; in memory, with
    the definitions."""
    aggregation = ["clusterrole-aggregation-controller", "validatingadmissionpolicy-status-controller"]
    embedded = request.config.getoption("--server") == "embedded"
    plane = module_control_plane(audit=False, **({} if embedded else {"controllers": aggregation}))
    # The definitions exist already, created by another field manager, and are taken over.
    what = ("-f", str(MANIFESTS / "crds")) if embedded else ("-k", str(MANIFESTS))
    plane.kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", *what)
    return plane


def test_get_shows_the_columns_that_people_know(installed: ControlPlane) -> None:
    """On a server without a manager, which would put the status right that is written here."""
    kubectl, api = installed.kubectl, installed.api
    namespace = make_namespace(api, "columns")
    api.create(machine("sample", namespace))
    api.create(schedule("sample", namespace, {"timezone": "Europe/Berlin"}))
    ready = {"type": "Ready", "status": "False", "reason": "GracePeriodActive", "message": "m"}
    status = {
        "phase": "ShuttingDown",
        "ready": True,
        "inSchedule": False,
        "conditions": [ready],
        "message": "on its way",
    }
    api.patch_status(*MACHINE, "sample", namespace, status)
    narrow = [line.split() for line in kubectl("get", "sm", "-n", namespace).splitlines()]
    assert narrow[0] == ["NAME", "PHASE", "READY", "INSCHEDULE", "ENABLED", "SCHEDULE", "KILLSWITCH", "AGE"]
    assert narrow[1][:7] == ["sample", "ShuttingDown", "true", "false", "true", "TimeBasedSpotSchedule", "false"]
    wide = kubectl("get", "sm", "-n", namespace, "-o", "wide")
    assert "GracePeriodActive" in wide
    assert "on its way" in wide
    assert kubectl("get", "tbss", "-n", namespace).splitlines()[0].split() == (
        ["NAME", "ACTIVE", "ENABLED", "TIMEZONE", "NEXTTRANSITION", "AGE"]
    )


@pytest.mark.server
def test_everything_applies_strictly_and_again_without_a_change(installed: ControlPlane) -> None:
    def versions() -> dict[str, str]:
        kinds = "deployment,service,pdb,networkpolicy,role,rolebinding,serviceaccount"
        listed = yaml.safe_load(installed.kubectl("get", kinds, "-n", "5spot-system", "-o", "json"))["items"]
        assert len(listed) == 7
        return {f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in listed}

    before = versions()
    installed.kubectl("apply", "--server-side", "--validate=strict", "-k", str(MANIFESTS))
    assert versions() == before


@pytest.mark.server
@pytest.mark.parametrize("name", ["scheduledmachine-validation", "scheduledmachine-controller"])
def test_the_policies_type_check_against_the_definitions(installed: ControlPlane, name: str) -> None:
    def checked() -> Json:
        policy = installed.api.get("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", name)
        status: Json = policy.get("status", {})
        return status if status.get("observedGeneration") == policy["metadata"]["generation"] else {}

    status = eventually(checked, what="the policy is type-checked")
    assert status.get("typeChecking", {}) == {}


RIGHTS = [
    ("patch", "5spot.finos.org", "scheduledmachines/status", "any/any", True),
    ("update", "5spot.finos.org", "scheduledmachines/finalizers", "any/any", True),
    ("update", "5spot.finos.org", "scheduledmachines", "any/any", False),
    ("delete", "5spot.finos.org", "scheduledmachines", "any/any", False),
    ("create", "cluster.x-k8s.io", "machines", "any/", True),
    ("update", "cluster.x-k8s.io", "machines", "any/any", False),
    ("deletecollection", "cluster.x-k8s.io", "machines", "any/", False),
    ("get", "cluster.x-k8s.io", "clusters", "any/any", False),
    ("watch", "cluster.x-k8s.io", "clusters", "/", True),
    ("create", "infrastructure.cluster.x-k8s.io", "whatever", "any/", True),
    ("patch", "infrastructure.cluster.x-k8s.io", "whatever", "any/any", False),
    ("create", "bootstrap.cluster.x-k8s.io", "whatever", "any/", True),
    ("create", "other.example", "whatever", "any/", False),
    ("list", "spotschedules.5spot.finos.org", "whatever", "/", True),
    ("patch", "spotschedules.5spot.finos.org", "whatever/status", "any/any", False),
    ("patch", "spotschedules.5spot.finos.org", "timebasedspotschedules/status", "any/any", True),
    ("patch", "spotschedules.5spot.finos.org", "timebasedspotschedules", "any/any", False),
    ("patch", "spotschedules.5spot.finos.org", "capitalmarketsschedules/status", "any/any", True),
    ("patch", "spotschedules.5spot.finos.org", "capitalmarketsschedules", "any/any", False),
    ("create", "events.k8s.io", "events", "any/", True),
    ("get", "", "secrets", "any/any", False),
    ("list", "", "pods", "/", False),
    ("get", "", "nodes", "/any", False),
    ("get", "coordination.k8s.io", "leases", "5spot-system/5spot-leader", True),
    ("update", "coordination.k8s.io", "leases", "5spot-system/other", False),
    ("create", "coordination.k8s.io", "leases", "5spot-system/", True),
    ("create", "coordination.k8s.io", "leases", "any/", False),
]


@pytest.mark.server
def test_the_service_account_may_do_its_work_and_no_more(installed: ControlPlane) -> None:
    def allowed(verb: str, group: str, resource: str, where: str) -> bool:
        plain, _, subresource = resource.partition("/")
        namespace, _, name = where.partition("/")
        attributes = {"verb": verb, "group": group, "resource": plain, "subresource": subresource}
        review = installed.api.create(
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "metadata": {},
                "spec": {
                    "user": "system:serviceaccount:5spot-system:5spot-controller",
                    "groups": ["system:serviceaccounts", "system:authenticated"],
                    "resourceAttributes": {**attributes, "namespace": namespace, "name": name},
                },
            }
        )
        return review["status"].get("allowed", False) is True

    def as_listed() -> bool:
        told = [
            (verb, group, resource, where, allowed(verb, group, resource, where))
            for verb, group, resource, where, _ in RIGHTS
        ]
        assert told == RIGHTS
        return True

    eventually(as_listed, what="the roles count")


@pytest.mark.server
def test_a_labelled_role_adds_kinds_of_another_group(installed: ControlPlane) -> None:
    installed.api.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "more", "labels": {"5spot.finos.org/aggregate-to-controller": "true"}},
            "rules": [{"apiGroups": ["infra.example"], "resources": ["things"], "verbs": ["create"]}],
        }
    )

    def aggregated() -> bool:
        role = installed.api.get("rbac.authorization.k8s.io/v1", "ClusterRole", "5spot-additional-kinds")
        return any(rule["apiGroups"] == ["infra.example"] for rule in role.get("rules") or ())

    eventually(aggregated, what="the role's rules are aggregated")
    # The aggregated rules are not the manifest's: applying again must neither conflict nor take them away.
    installed.kubectl("apply", "--server-side", "-k", str(MANIFESTS))
    assert aggregated()
