"""B1.7: a creation that cannot be: who is in the way, what to do, and when it is tried again."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane import Api, ControlPlane, stand_in_crds
from controlplane.audit import select
from harness import MANAGER_USER
from support import eventually
from support.children import wait_read
from support.machines import bootstrap
from support.measurements import writes
from support.refusals import foreign, machine_quota, machines_refused
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def attempts(plane: ControlPlane, since: int, namespace: str, resource: str = "machines") -> int:
    """Count the manager's attempts to create an object."""
    made = select(plane.audit(since=since), user=MANAGER_USER, verbs="create", namespace=namespace)
    return len(select(made, resource=resource))


@pytest.mark.contract("B1.7")
@pytest.mark.parametrize("kind", CHILDREN, ids=[kind[1] for kind in CHILDREN])
def test_a_name_that_a_foreign_object_has_is_an_error_until_that_is_gone(
    scenario: Scenario, control_plane: ControlPlane, kind: tuple[str, str]
) -> None:
    # Our label alone makes nothing ours.
    body = foreign(kind, scenario.namespace, labels={"5spot.finos.org/scheduled-machine": "web"})
    theirs = scenario.api.create(body)
    # Where the flip is seen first, a creation is tried before the name turns out to be taken.
    wait_read(scenario, kind)
    mark = control_plane.audit_log.mark()
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.active(True)
    status = scenario.wait_phase("Error", "MachineCreationFailed")
    assert kind[1] in status["message"], "the object"
    assert "not controlled by" in status["message"], "the cause"
    assert "delete it, or create the ScheduledMachine under another name" in status["message"], "the remedy"
    assert scenario.condition("Stalled")["status"] == "True"
    assert scenario.condition("Reconciling") == {}
    assert [scenario.child(other) for other in CHILDREN if other != kind] == [None, None]
    # Not wanted any more, it is nothing to us.
    scenario.active(False)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert scenario.condition("Stalled") == {}
    scenario.active(True)
    scenario.wait_phase("Error", "MachineCreationFailed")
    found = scenario.child(kind)
    assert found is not None
    assert found["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"], "never touched"
    written = [event["verb"] for event in writes(control_plane, mark, scenario.namespace)]
    assert set(written) == {"patch"}, "reports, and not one try"
    scenario.api.delete(*kind, scenario.name, scenario.namespace)
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")
    assert scenario.condition("Stalled") == {}


@pytest.mark.contract("B1.7")
def test_a_foreign_object_that_comes_while_the_machine_is_up_changes_nothing(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    # Somebody takes the bootstrap object away and puts one of their own there.
    scenario.api.delete(*BOOTSTRAP, scenario.name, scenario.namespace)
    theirs = scenario.api.create(foreign(BOOTSTRAP, scenario.namespace))
    scenario.active(False)
    eventually(
        lambda: scenario.child(MACHINES) is None and scenario.child(INFRASTRUCTURE) is None, what="ours are gone"
    )
    scenario.wait_phase("Inactive", "ScheduleInactive")
    found = scenario.child(BOOTSTRAP)
    assert found is not None
    assert found["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]


@pytest.mark.contract("B1.7")
def test_an_admission_rule_in_the_way_is_quoted_and_asked_again_only_on_a_relevant_change(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    words = "machines need a cost centre"
    mark = control_plane.audit_log.mark()
    with machines_refused(scenario.api, scenario.namespace, "CREATE", words):
        scenario.active(True)
        status = scenario.wait_phase("Error", "MachineCreationFailed")
        assert words in status["message"], "the cause"
        assert f"create machines.cluster.x-k8s.io {scenario.namespace}/web" in status["message"], "the object"
        assert status["message"].endswith("; ask whoever runs that admission rule"), "the remedy"
        assert scenario.condition("Stalled")["status"] == "True"
        assert eventually(lambda: scenario.events("MachineCreationFailed"), what="an event")[0]["type"] == "Warning"
        made = scenario.child(BOOTSTRAP)
        assert made is not None, "what was made before the refusal stays for the next try"
        assert status["bootstrapRef"]["uid"] == made["metadata"]["uid"]
        # A change elsewhere, which causes a run: no try. The words of the provider are such a change.
        generation = scenario.get()["metadata"]["generation"]
        scenario.provider.status(scenario.namespace, observedGeneration=7)
        scenario.api.patch(*BOOTSTRAP, scenario.name, scenario.namespace, {"metadata": {"labels": {"seen": "yes"}}})
        # A change of the spec: a try, at once.
        scenario.edit(priority=51)
        eventually(lambda: attempts(control_plane, mark, scenario.namespace) == 2, what="a second try")
        eventually(lambda: scenario.status["observedGeneration"] == generation + 1, what="the second answer is told")
        # Not wanted: what was made goes away. Wanted again: tried again.
        scenario.active(False)
        scenario.wait_gone()
        scenario.wait_phase("Inactive", "ScheduleInactive")
        scenario.active(True)
        scenario.wait_phase("Error", "MachineCreationFailed")
        assert attempts(control_plane, mark, scenario.namespace) == 3
    scenario.edit(priority=52)
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")
    assert scenario.condition("Stalled") == {}
    assert attempts(control_plane, mark, scenario.namespace) == 4
    assert attempts(control_plane, mark, scenario.namespace, "standinbootstraps") == 2, (
        "once for each time it was wanted"
    )


@pytest.mark.contract("B1.7")
def test_a_quota_in_the_way_may_pass_by_itself_and_does_not_stall(scenario: Scenario) -> None:
    machine_quota(scenario.api, scenario.namespace, 0)
    scenario.create()
    scenario.active(True)
    status = scenario.wait_phase("Error", "MachineCreationFailed")
    assert "exceeded quota: machines" in status["message"], "the cause"
    assert f"create machines.cluster.x-k8s.io {scenario.namespace}/web" in status["message"], "the object"
    assert "raise the quota" in status["message"], "the remedy"
    assert scenario.condition("Reconciling")["status"] == "True"
    assert scenario.condition("Stalled") == {}
    machine_quota(scenario.api, scenario.namespace, 1)
    scenario.edit(priority=51)
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")


@pytest.fixture
def late_kind(api: Api) -> Iterator[dict[str, Any]]:
    """The definition of a bootstrap kind that is not installed yet; it is removed at the end."""
    definition = copy.deepcopy(next(c for c in stand_in_crds() if c["spec"]["names"]["kind"] == "StandInBootstrap"))
    kind = f"Late{secrets.token_hex(3).capitalize()}"
    plural = f"{kind.lower()}s"
    definition["metadata"]["name"] = f"{plural}.{definition['spec']['group']}"
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    definition["spec"]["names"] = names
    yield definition
    api.delete(*CRD, definition["metadata"]["name"], missing_ok=True)


@pytest.mark.contract("B1.7")
def test_a_kind_that_is_not_installed_is_an_error_until_it_is(
    scenario: Scenario, late_kind: dict[str, Any], control_plane: ControlPlane
) -> None:
    kind = late_kind["spec"]["names"]["kind"]
    mark = control_plane.audit_log.mark()
    scenario.create(bootstrapSpec=bootstrap(kind=kind))
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.active(True)
    status = scenario.wait_phase("Error", "MachineCreationFailed")
    assert f"kind {kind} of group bootstrap.cluster.x-k8s.io is not installed" in status["message"]
    assert "install its provider, or correct the spec" in status["message"]
    assert scenario.condition("Stalled")["status"] == "True"
    assert scenario.child(INFRASTRUCTURE) is None, "nothing is created before all can be"
    assert attempts(control_plane, mark, scenario.namespace) == 0
    scenario.api.create(late_kind)
    eventually(lambda: scenario.child(MACHINES), what="the Machine, as soon as the kind is there")
    scenario.wait_phase("Active", "MachineCreated")
    assert scenario.condition("Stalled") == {}
    assert scenario.machine()["spec"]["bootstrap"]["configRef"]["kind"] == kind
    scenario.active(False)
    late = ("bootstrap.cluster.x-k8s.io/v1beta1", kind)
    eventually(lambda: scenario.child(late) is None and scenario.child(MACHINES) is None, what="all of it is gone")
