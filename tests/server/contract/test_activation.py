"""B1.1-B1.5: a machine that is wanted, from nothing, from a Machine, from what an earlier one left."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from harness import MANAGER_USER
from support import eventually
from support.machines import infrastructure
from support.measurements import writes
from support.refusals import webhook_down
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

OTHER_INFRASTRUCTURE = ("infrastructure.cluster.x-k8s.io/v1beta1", "OtherMachine")


def uids(scenario: Scenario) -> dict[str, str | None]:
    found = {kind[1]: scenario.child(kind) for kind in CHILDREN}
    return {kind: child["metadata"]["uid"] if child else None for kind, child in found.items()}


@pytest.mark.contract("B1.1")
def test_a_wanted_machine_is_created_and_reported_active(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.active(True)
    scenario.wait_made()
    status = scenario.wait_phase("Active", "MachineCreated")
    made = {kind[1]: scenario.child(kind) for kind in CHILDREN}
    machine = made[MACHINES[1]]
    assert machine is not None
    owner = machine["metadata"]["ownerReferences"]
    assert [(o["kind"], o["uid"], o["controller"], o["blockOwnerDeletion"]) for o in owner] == [
        ("ScheduledMachine", scenario.get()["metadata"]["uid"], True, True)
    ]
    assert machine["spec"]["bootstrap"]["configRef"] == {
        "apiGroup": "bootstrap.cluster.x-k8s.io",
        "kind": "StandInBootstrap",
        "name": "web",
    }
    for kind, field in ((BOOTSTRAP, "bootstrapRef"), (INFRASTRUCTURE, "infrastructureRef"), (MACHINES, "machineRef")):
        child = made[kind[1]]
        assert child is not None
        assert status[field]["uid"] == child["metadata"]["uid"]


@pytest.mark.contract("B1.1")
def test_the_machine_comes_last_and_pending_is_never_written(scenario: Scenario, control_plane: ControlPlane) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    mark = control_plane.audit_log.mark()
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    made = select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="create", namespace=scenario.namespace)
    made = [event for event in made if event["objectRef"]["resource"] != "events"]
    times = {e["objectRef"]["resource"]: (e["requestReceivedTimestamp"], e["stageTimestamp"]) for e in made}
    assert sorted(times) == ["machines", "standinbootstraps", "standinmachines"]
    begun = times["machines"][0]
    assert begun >= max(times["standinbootstraps"][1], times["standinmachines"][1]), "it would refer to nothing"

    def reports() -> list[dict[str, Any]]:
        return [e for e in writes(control_plane, mark, scenario.namespace) if e["verb"] == "patch"]

    # What is written is seen a moment before the log has it.
    assert len(eventually(reports, what="the report in the log")) == 1, "one report, of Active"


@pytest.mark.contract("B1.1")
def test_a_run_that_cannot_finish_says_pending_and_why(scenario: Scenario, control_plane: ControlPlane) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    with webhook_down(scenario.api, scenario.namespace):
        scenario.active(True)
        status = scenario.wait_phase("Pending", "MachineCreationFailed")
        assert "failed calling webhook" in status["message"]
        assert scenario.condition("Reconciling")["status"] == "True"
        assert scenario.condition("Stalled") == {}, "it may pass by itself"
        reused = uids(scenario)
        assert (reused["StandInBootstrap"] is not None, reused["Machine"]) == (True, None)
        assert status["bootstrapRef"]["uid"] == reused["StandInBootstrap"]
    scenario.wait_made(30)
    scenario.wait_phase("Active", "MachineCreated")
    assert scenario.condition("Reconciling")["reason"] == "MachineCreated"
    assert {**uids(scenario), "Machine": None} == reused, "the next run takes up where this one stopped"


@pytest.mark.contract("B1.2")
def test_the_state_of_the_machine_is_mirrored(scenario: Scenario, control_plane: ControlPlane) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")
    scenario.api.patch(*MACHINES, scenario.name, scenario.namespace, {"spec": {"providerID": "standin://1"}})
    scenario.node_ready(node="node-7")
    scenario.wait_condition("MachineReady", "True", "MachineReady")
    status = scenario.wait_phase("Active", "MachineReady")
    assert (status["ready"], status["providerID"]) == (True, "standin://1")
    assert (status["nodeRef"]["kind"], status["nodeRef"]["name"]) == ("Node", "node-7")
    scenario.node_ready(ready=False)
    scenario.wait_condition("MachineReady", "False", "NodeNotReady")
    assert scenario.wait_phase("Active", "MachineCreated")["ready"] is False
    # What others note on the Machine is none of our business; the change after it shows that it was passed over.
    mark = control_plane.audit_log.mark()
    scenario.api.patch(*MACHINES, scenario.name, scenario.namespace, {"metadata": {"labels": {"team": "blue"}}})
    scenario.node_ready()
    scenario.wait_condition("MachineReady", "True")
    # What is written is seen a moment before the log has it.
    written = eventually(lambda: writes(control_plane, mark, scenario.namespace), what="the report in the log")
    assert len(written) == 1


@pytest.mark.long
@pytest.mark.contract("B1.3", "B1.4", "B7.1")
def test_a_machine_deleted_by_other_hands_is_replaced_after_a_wait(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    before = uids(scenario)
    scenario.hold_machine()
    mark = control_plane.audit_log.mark()
    scenario.api.delete(*MACHINES, scenario.name, scenario.namespace)
    status = scenario.wait_phase("ShuttingDown", "MachineDeleting")
    assert "shutdownRequestedTime" not in status, "nobody wanted it down"
    deleting = {
        "type": "Deleting",
        "status": "True",
        "reason": "DrainingNode",
        "message": "Drain not completed yet",
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    }
    scenario.api.patch_status(*MACHINES, scenario.name, scenario.namespace, {"conditions": [deleting]})
    eventually(lambda: "Drain not completed yet" in scenario.status["message"], what="what the deletion waits for")
    assert scenario.status["replacements"]["uid"] == before["Machine"]
    scenario.let_machine_go()
    status = scenario.wait_phase("Pending", "ReplacementDelayed")
    assert status["replacements"]["count"] == 1
    assert "machineRef" not in status
    scenario.wait_made(40)
    status = scenario.wait_phase("Active", "MachineCreated")
    after = uids(scenario)
    assert after.pop("Machine") != before.pop("Machine")
    assert after == before, "what was left, unowned and up to date, is used again"
    assert status["replacements"]["count"] == 1
    written = writes(control_plane, mark, scenario.namespace)
    assert [e for e in written if e["verb"] == "delete"] == []
    assert len([e for e in written if e["verb"] == "create"]) == 1


@pytest.mark.contract("B1.3", "B1.4", "B1.21")
def test_wanted_again_while_our_own_shutdown_changed_world_it_comes_back_without_a_wait(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    before = uids(scenario)
    scenario.hold_machine()
    scenario.active(False)
    begun = scenario.wait_phase("ShuttingDown", "NodeDraining")["shutdownRequestedTime"]
    scenario.active(True)
    status = scenario.wait_phase("ShuttingDown", "MachineDeleting")
    assert status["shutdownRequestedTime"] == begun, "the DELETE cannot be taken back"
    scenario.let_machine_go()
    scenario.wait_made()
    status = scenario.wait_phase("Active", "MachineCreated")
    scenario.assert_never_braked()
    assert "shutdownRequestedTime" not in status
    assert "replacements" not in status
    assert scenario.events("MachineLost") == []
    after = uids(scenario)
    assert after["Machine"] != before["Machine"]
    assert {**after, "Machine": None} == {**before, "Machine": None}


@pytest.mark.contract("B1.5", "B1.21")
def test_leftovers_of_an_older_template_go_before_a_machine_is_made_from_the_new_one(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    hold(scenario, INFRASTRUCTURE)
    scenario.active(False)
    begun = scenario.wait_phase("ShuttingDown", "NodeDraining")["shutdownRequestedTime"]
    scenario.edit(infrastructureSpec=infrastructure(kind="OtherMachine"))
    scenario.active(True)
    scenario.wait_phase("ShuttingDown", "MachineDeleting")
    scenario.let_machine_go()
    status = scenario.wait_phase("Pending", "WaitingForDeletion")
    assert "StandInMachine" in status["message"]
    assert status["shutdownRequestedTime"] == begun, "kept until the leftovers are gone too"
    eventually(lambda: scenario.child(BOOTSTRAP) is None, what="what was made from the old template is deleted")
    assert scenario.child(MACHINES) is None
    assert scenario.child(OTHER_INFRASTRUCTURE) is None
    release(scenario, INFRASTRUCTURE)
    eventually(lambda: scenario.child(MACHINES), what="a new Machine")
    status = scenario.wait_phase("Active", "MachineCreated")
    assert "shutdownRequestedTime" not in status
    assert scenario.child(INFRASTRUCTURE) is None
    new = scenario.child(OTHER_INFRASTRUCTURE)
    assert new is not None
    assert status["infrastructureRef"]["uid"] == new["metadata"]["uid"]


@pytest.mark.contract("B1.5")
def test_a_leftover_that_a_gone_machine_owned_is_not_used_again(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    machine, old = scenario.machine(), uids(scenario)
    owner = {
        "apiVersion": MACHINES[0],
        "kind": MACHINES[1],
        "name": scenario.name,
        "uid": machine["metadata"]["uid"],
        "controller": True,
    }
    # What Cluster API does to a bootstrap object: it adopts it, and cleans up after itself.
    adopted = {"metadata": {"ownerReferences": [owner], "finalizers": ["bootstrap.example.com/held"]}}
    scenario.api.patch(*BOOTSTRAP, scenario.name, scenario.namespace, adopted)
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    scenario.active(True)
    scenario.wait_phase("ShuttingDown", "MachineDeleting")
    scenario.let_machine_go()
    status = scenario.wait_phase("Pending", "WaitingForDeletion")
    assert "StandInBootstrap" in status["message"]
    left = scenario.child(BOOTSTRAP)
    assert left is not None
    assert "deletionTimestamp" in left["metadata"]
    infrastructure_left = scenario.child(INFRASTRUCTURE)
    assert infrastructure_left is not None
    assert "deletionTimestamp" not in infrastructure_left["metadata"], "this one can be used again"
    release(scenario, BOOTSTRAP)
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")
    new = uids(scenario)
    assert new["StandInBootstrap"] != old["StandInBootstrap"]
    assert new["StandInMachine"] == old["StandInMachine"]


@pytest.mark.contract("B1.2", "B1.10")
def test_a_template_kind_edited_while_active_waits_for_the_next_activation_and_leaks_nothing(
    scenario: Scenario,
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    before = uids(scenario)
    scenario.edit(infrastructureSpec=infrastructure(kind="OtherMachine"))
    scenario.wait_condition("UpToDate", "False", "TemplateChanged")
    assert scenario.status["phase"] == "Active"
    assert uids(scenario) == before
    assert scenario.child(OTHER_INFRASTRUCTURE) is None
    scenario.active(False)
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.active(True)
    eventually(lambda: scenario.child(MACHINES), what="a new Machine")
    scenario.wait_condition("UpToDate", "True")
    assert scenario.machine()["spec"]["infrastructureRef"]["kind"] == "OtherMachine"
    assert scenario.child(OTHER_INFRASTRUCTURE) is not None
    assert scenario.child(INFRASTRUCTURE) is None
    scenario.active(False)
    eventually(lambda: scenario.child(OTHER_INFRASTRUCTURE) is None, what="the new kind is cleaned up as well")


def hold(scenario: Scenario, kind: tuple[str, str]) -> None:
    """Keep an object from going when it is deleted."""
    patch = {"metadata": {"finalizers": ["example.com/held"]}}
    scenario.api.patch(*kind, scenario.name, scenario.namespace, patch)


def release(scenario: Scenario, kind: tuple[str, str]) -> None:
    scenario.api.patch(*kind, scenario.name, scenario.namespace, {"metadata": {"finalizers": None}})
