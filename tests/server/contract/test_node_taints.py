"""B2.7: taints, rehearsed before anything is created, on a server that takes them and on three that do not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane, kubernetes_version
from controlplane.audit import select
from fivespot.testing.faults import Fault
from harness import MANAGER_USER
from support import eventually
from support.cluster import unique_name
from support.embedded.request_faults import EditedBody, denied
from support.machines import taint
from support.measurements import writes
from support.refusals import foreign, request_faults_of
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

Json = dict[str, Any]

needs_mutating_policies = pytest.mark.skipif(
    tuple(map(int, kubernetes_version().split("."))) < (1, 36), reason="served at v1 from Kubernetes 1.36"
)

ADMISSION = "admissionregistration.k8s.io/v1"
TAINTS = [taint("example.com/spot", value="yes"), taint("example.com/batch", "NoExecute")]
FORBIDDEN = "spec.taints: Forbidden: taints are not allowed to be set when the feature gate is disabled"
STRIP = {
    "patchType": "JSONPatch",
    "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/spec/taints'}]"},
}


@contextlib.contextmanager
def policy(api: Api, namespace: str, kind: str, spec: Json, in_force: Callable[[], bool]) -> Iterator[None]:
    """An admission policy for the creation of Machines with taints, in one namespace."""
    if (faults := request_faults_of(api)) is not None:
        with faults.put(scripted(spec), verb="create", group="cluster.x-k8s.io", resource="machines"):
            assert in_force()
            yield
        return
    name = unique_name("taints")
    scope = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    rule = {"apiGroups": ["cluster.x-k8s.io"], "apiVersions": ["*"], "resources": ["machines"]}
    conditions = [{"name": "tainted", "expression": "has(object.spec.taints)"}, *spec.pop("matchConditions", ())]
    body = {
        "failurePolicy": "Fail",
        "matchConstraints": {**scope, "resourceRules": [{**rule, "operations": ["CREATE"]}]},
        "matchConditions": conditions,
        **spec,
    }
    actions = {"validationActions": ["Deny"]} if kind.startswith("Validating") else {}
    bodies = {kind: body, f"{kind}Binding": {"policyName": name, **actions}}
    for each, content in bodies.items():
        api.create({"apiVersion": ADMISSION, "kind": each, "metadata": {"name": name}, "spec": content})
    try:
        eventually(in_force, 30, what="the policy is in force", poll=0.1)
        yield
    finally:
        for each in bodies:
            api.delete(ADMISSION, each, name)
        eventually(lambda: not in_force(), 30, what="the policy is gone", poll=0.1)


def scripted(spec: Json) -> Fault:
    """Return the fault that stands for such a policy on the embedded server."""
    if "mutations" in spec:
        return EditedBody(lambda machine: machine["spec"].pop("taints", None), dry_runs="matchConditions" not in spec)
    [validation] = spec["validations"]
    return replace(denied(validation["message"]), passes=lambda request: b'"taints"' not in request.body)


def tainted(namespace: str, name: str) -> Json:
    body = foreign(MACHINES, namespace, name)
    body["spec"]["taints"] = [{**TAINTS[0], "propagation": "Always"}]
    return body


def answered(api: Api, namespace: str, *, dry_run: bool = True) -> Json:
    """Return the taints that the server keeps of a Machine that an administrator creates."""
    try:
        return api.create(tainted(namespace, "probe"), dry_run=dry_run)
    except ApiError as error:
        return {"refused": str(error)}
    finally:
        api.delete(*MACHINES, "probe", namespace, missing_ok=True)


def creations(plane: ControlPlane, mark: int, namespace: str) -> list[str]:
    """Return the kinds that the manager created, in order, with ``rehearsal`` for a dry run."""
    return [
        f"{event['objectRef']['resource']}{' rehearsal' if 'dryRun=All' in event['requestURI'] else ''}"
        for event in select(writes(plane, mark, namespace), verbs="create")
    ]


@pytest.mark.contract("B2.7")
def test_taints_are_rehearsed_first_and_then_on_the_machine(scenario: Scenario, control_plane: ControlPlane) -> None:
    mark = control_plane.audit_log.mark()
    scenario.create(nodeTaints=TAINTS)
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")
    assert scenario.machine()["spec"]["taints"] == [{**each, "propagation": "Always"} for each in TAINTS]
    order = creations(control_plane, mark, scenario.namespace)
    assert order[0] == "machines rehearsal", "before anything else"
    assert sorted(order[1:3]) == ["standinbootstraps", "standinmachines"]
    assert order[3:] == ["machines"]


@pytest.mark.contract("B2.7")
def test_without_taints_nothing_is_rehearsed(scenario: Scenario, control_plane: ControlPlane) -> None:
    mark = control_plane.audit_log.mark()
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")
    assert sorted(creations(control_plane, mark, scenario.namespace)) == [
        "machines",
        "standinbootstraps",
        "standinmachines",
    ]


def unsupported(scenario: Scenario) -> None:
    """Wait for the error that says that taints are not supported, with its remedy."""
    status = scenario.wait_phase("Error", "NodeTaintsUnsupported")
    assert "MachineTaintPropagation" in status["message"]
    assert "remove spec.nodeTaints" in status["message"]
    assert scenario.condition("Stalled")["reason"] == "NodeTaintsUnsupported"


def rehearsed_only(scenario: Scenario, plane: ControlPlane, mark: int) -> None:
    assert set(creations(plane, mark, scenario.namespace)) == {"machines rehearsal"}
    assert [scenario.child(kind) for kind in CHILDREN] == [None, None, None]


@pytest.mark.contract("B2.7")
def test_a_server_that_refuses_taints_is_an_error_and_nothing_is_created(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    api, namespace = scenario.api, scenario.namespace
    validations = [{"expression": "false", "message": FORBIDDEN, "reason": "Invalid"}]
    mark = control_plane.audit_log.mark()
    with policy(
        api,
        namespace,
        "ValidatingAdmissionPolicy",
        {"validations": validations},
        lambda: FORBIDDEN in answered(api, namespace).get("refused", ""),
    ):
        scenario.create(nodeTaints=TAINTS)
        scenario.active(True)
        unsupported(scenario)
        assert FORBIDDEN in scenario.status["message"], "what the server said"
        rehearsed_only(scenario, control_plane, mark)
        # The other remedy.
        scenario.edit(nodeTaints=None)
        scenario.wait_made()
        assert "taints" not in scenario.machine()["spec"]
        scenario.wait_phase("Active", "MachineCreated")


@pytest.mark.contract("B2.7")
@needs_mutating_policies
def test_a_server_that_drops_taints_is_an_error_and_nothing_is_created(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    api, namespace = scenario.api, scenario.namespace
    mark = control_plane.audit_log.mark()
    with policy(
        api,
        namespace,
        "MutatingAdmissionPolicy",
        {"mutations": [STRIP], "reinvocationPolicy": "Never"},
        lambda: "taints" not in answered(api, namespace)["spec"],
    ):
        scenario.create(nodeTaints=TAINTS)
        scenario.active(True)
        unsupported(scenario)
        rehearsed_only(scenario, control_plane, mark)
    # The first remedy: the feature is turned on. No event tells of that; an edit asks again.
    scenario.edit(priority=51)
    scenario.wait_made()
    assert len(scenario.machine()["spec"]["taints"]) == 2


@pytest.mark.contract("B2.7", "B7.1")
@needs_mutating_policies
@pytest.mark.long
def test_a_machine_that_loses_its_taints_after_all_is_deleted_and_the_next_is_braked(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    api, namespace = scenario.api, scenario.namespace
    mark = control_plane.audit_log.mark()
    real = {"name": "no-rehearsal", "expression": "!request.dryRun"}
    with policy(
        api,
        namespace,
        "MutatingAdmissionPolicy",
        {"mutations": [STRIP], "reinvocationPolicy": "Never", "matchConditions": [real]},
        lambda: "taints" not in answered(api, namespace, dry_run=False)["spec"],
    ):
        scenario.create(nodeTaints=TAINTS)
        scenario.active(True)
        unsupported(scenario)
        eventually(lambda: scenario.child(MACHINES) is None, what="the machine without taints is gone")
        status = scenario.wait_phase("Error", "NodeTaintsUnsupported")
        assert status["replacements"]["count"] == 1
        assert "machineRef" not in status
        deleted = select(writes(control_plane, mark, namespace), verbs="delete", user=MANAGER_USER)
        assert [event["objectRef"]["resource"] for event in deleted] == ["machines"]
        kept = {kind: scenario.child(kind) for kind in (BOOTSTRAP, INFRASTRUCTURE)}
        mark = control_plane.audit_log.mark()
        # Within these ten seconds, which are not for waiting until the policy is gone.
        scenario.edit(priority=51)
        # B7: the first replacement waits ten seconds, whatever is edited.
        scenario.wait_phase("Pending", "ReplacementDelayed")
        assert creations(control_plane, mark, namespace) == []
    eventually(lambda: scenario.child(MACHINES) is not None, 20, what="the next try")
    assert len(scenario.machine()["spec"]["taints"]) == 2
    assert {kind: scenario.child(kind) for kind in kept} == kept, "what was left is used again"
    assert scenario.wait_phase("Active", "MachineCreated")["replacements"]["count"] == 1
