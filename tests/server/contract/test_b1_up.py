"""B1.1-B1.5: a machine that is wanted, from nothing, from a Machine, from what an earlier one left."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from support import eventually
from support.machines import infrastructure
from support.manager import MANAGER_USER
from support.observing import writes
from support.refusing import webhook_down
from support.scene import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scene

OTHER_INFRASTRUCTURE = ("infrastructure.cluster.x-k8s.io/v1beta1", "OtherMachine")


def uids(scene: Scene) -> dict[str, str | None]:
    found = {kind[1]: scene.child(kind) for kind in CHILDREN}
    return {kind: child["metadata"]["uid"] if child else None for kind, child in found.items()}


@pytest.mark.contract("B1.1")
def test_a_wanted_machine_is_created_and_reported_active(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.active(True)
    scene.wait_made()
    status = scene.wait_phase("Active", "MachineCreated")
    made = {kind[1]: scene.child(kind) for kind in CHILDREN}
    machine = made[MACHINES[1]]
    assert machine is not None
    owner = machine["metadata"]["ownerReferences"]
    assert [(o["kind"], o["uid"], o["controller"], o["blockOwnerDeletion"]) for o in owner] == [
        ("ScheduledMachine", scene.get()["metadata"]["uid"], True, True)
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
def test_the_machine_comes_last_and_pending_is_never_written(scene: Scene, control_plane: ControlPlane) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    mark = control_plane.audit_log.mark()
    scene.active(True)
    scene.wait_phase("Active", "MachineCreated")
    made = select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="create", namespace=scene.namespace)
    made = [event for event in made if event["objectRef"]["resource"] != "events"]
    times = {e["objectRef"]["resource"]: (e["requestReceivedTimestamp"], e["stageTimestamp"]) for e in made}
    assert sorted(times) == ["machines", "standinbootstraps", "standinmachines"]
    begun = times["machines"][0]
    assert begun >= max(times["standinbootstraps"][1], times["standinmachines"][1]), "it would refer to nothing"

    def reports() -> list[dict[str, Any]]:
        return [e for e in writes(control_plane, mark, scene.namespace) if e["verb"] == "patch"]

    # What is written is seen a moment before the log has it.
    assert len(eventually(reports, what="the report in the log")) == 1, "one report, of Active"


@pytest.mark.contract("B1.1")
def test_a_run_that_cannot_finish_says_pending_and_why(scene: Scene, control_plane: ControlPlane) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    with webhook_down(scene.api, scene.namespace):
        scene.active(True)
        status = scene.wait_phase("Pending", "MachineCreationFailed")
        assert "failed calling webhook" in status["message"]
        assert scene.condition("Reconciling")["status"] == "True"
        assert scene.condition("Stalled") == {}, "it may pass by itself"
        reused = uids(scene)
        assert (reused["StandInBootstrap"] is not None, reused["Machine"]) == (True, None)
        assert status["bootstrapRef"]["uid"] == reused["StandInBootstrap"]
    scene.wait_made(30)
    scene.wait_phase("Active", "MachineCreated")
    assert scene.condition("Reconciling")["reason"] == "MachineCreated"
    assert {**uids(scene), "Machine": None} == reused, "the next run takes up where this one stopped"


@pytest.mark.contract("B1.2")
def test_the_state_of_the_machine_is_mirrored(scene: Scene, control_plane: ControlPlane) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.wait_phase("Active", "MachineCreated")
    scene.api.patch(*MACHINES, scene.name, scene.namespace, {"spec": {"providerID": "standin://1"}})
    scene.node_ready(node="node-7")
    scene.wait_condition("MachineReady", "True", "MachineReady")
    status = scene.wait_phase("Active", "MachineReady")
    assert (status["ready"], status["providerID"]) == (True, "standin://1")
    assert (status["nodeRef"]["kind"], status["nodeRef"]["name"]) == ("Node", "node-7")
    scene.node_ready(ready=False)
    scene.wait_condition("MachineReady", "False", "NodeNotReady")
    assert scene.wait_phase("Active", "MachineCreated")["ready"] is False
    # What others note on the Machine is none of our business; the change after it shows that it was passed over.
    mark = control_plane.audit_log.mark()
    scene.api.patch(*MACHINES, scene.name, scene.namespace, {"metadata": {"labels": {"team": "blue"}}})
    scene.node_ready()
    scene.wait_condition("MachineReady", "True")
    # What is written is seen a moment before the log has it.
    written = eventually(lambda: writes(control_plane, mark, scene.namespace), what="the report in the log")
    assert len(written) == 1


@pytest.mark.contract("B1.3", "B1.4", "B7.1")
def test_a_machine_deleted_by_other_hands_is_replaced_after_a_wait(scene: Scene, control_plane: ControlPlane) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.wait_phase("Active")
    before = uids(scene)
    scene.hold_machine()
    mark = control_plane.audit_log.mark()
    scene.api.delete(*MACHINES, scene.name, scene.namespace)
    status = scene.wait_phase("ShuttingDown", "MachineDeleting")
    assert "shutdownRequestedTime" not in status, "nobody wanted it down"
    deleting = {
        "type": "Deleting",
        "status": "True",
        "reason": "DrainingNode",
        "message": "Drain not completed yet",
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    }
    scene.api.patch_status(*MACHINES, scene.name, scene.namespace, {"conditions": [deleting]})
    eventually(lambda: "Drain not completed yet" in scene.status["message"], what="what the deletion waits for")
    assert scene.status["replacements"]["uid"] == before["Machine"]
    scene.let_machine_go()
    status = scene.wait_phase("Pending", "ReplacementDelayed")
    assert status["replacements"]["count"] == 1
    assert "machineRef" not in status
    scene.wait_made(40)
    status = scene.wait_phase("Active", "MachineCreated")
    after = uids(scene)
    assert after.pop("Machine") != before.pop("Machine")
    assert after == before, "what was left, unowned and up to date, is used again"
    assert status["replacements"]["count"] == 1
    written = writes(control_plane, mark, scene.namespace)
    assert [e for e in written if e["verb"] == "delete"] == []
    assert len([e for e in written if e["verb"] == "create"]) == 1


@pytest.mark.contract("B1.3", "B1.4", "B1.21")
def test_wanted_again_while_our_own_shutdown_goes_on_it_comes_back_without_a_wait(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    before = uids(scene)
    scene.hold_machine()
    scene.active(False)
    begun = scene.wait_phase("ShuttingDown", "NodeDraining")["shutdownRequestedTime"]
    scene.active(True)
    status = scene.wait_phase("ShuttingDown", "MachineDeleting")
    assert status["shutdownRequestedTime"] == begun, "the DELETE cannot be taken back"
    scene.let_machine_go()
    scene.wait_made()
    status = scene.wait_phase("Active", "MachineCreated")
    scene.assert_never_braked()
    assert "shutdownRequestedTime" not in status
    assert "replacements" not in status
    assert scene.events("MachineLost") == []
    after = uids(scene)
    assert after["Machine"] != before["Machine"]
    assert {**after, "Machine": None} == {**before, "Machine": None}


@pytest.mark.contract("B1.5", "B1.21")
def test_leftovers_of_an_older_template_go_before_a_machine_is_made_from_the_new_one(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    hold(scene, INFRASTRUCTURE)
    scene.active(False)
    begun = scene.wait_phase("ShuttingDown", "NodeDraining")["shutdownRequestedTime"]
    scene.edit(infrastructureSpec=infrastructure(kind="OtherMachine"))
    scene.active(True)
    scene.wait_phase("ShuttingDown", "MachineDeleting")
    scene.let_machine_go()
    status = scene.wait_phase("Pending", "WaitingForDeletion")
    assert "StandInMachine" in status["message"]
    assert status["shutdownRequestedTime"] == begun, "kept until the leftovers are gone too"
    eventually(lambda: scene.child(BOOTSTRAP) is None, what="what was made from the old template is deleted")
    assert scene.child(MACHINES) is None
    assert scene.child(OTHER_INFRASTRUCTURE) is None
    release(scene, INFRASTRUCTURE)
    eventually(lambda: scene.child(MACHINES), what="a new Machine")
    status = scene.wait_phase("Active", "MachineCreated")
    assert "shutdownRequestedTime" not in status
    assert scene.child(INFRASTRUCTURE) is None
    new = scene.child(OTHER_INFRASTRUCTURE)
    assert new is not None
    assert status["infrastructureRef"]["uid"] == new["metadata"]["uid"]


@pytest.mark.contract("B1.5")
def test_a_leftover_that_a_gone_machine_owned_is_not_used_again(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    machine, old = scene.machine(), uids(scene)
    owner = {
        "apiVersion": MACHINES[0],
        "kind": MACHINES[1],
        "name": scene.name,
        "uid": machine["metadata"]["uid"],
        "controller": True,
    }
    # What Cluster API does to a bootstrap object: it adopts it, and cleans up after itself.
    adopted = {"metadata": {"ownerReferences": [owner], "finalizers": ["bootstrap.example.com/held"]}}
    scene.api.patch(*BOOTSTRAP, scene.name, scene.namespace, adopted)
    scene.active(False)
    scene.wait_phase("ShuttingDown", "NodeDraining")
    scene.active(True)
    scene.wait_phase("ShuttingDown", "MachineDeleting")
    scene.let_machine_go()
    status = scene.wait_phase("Pending", "WaitingForDeletion")
    assert "StandInBootstrap" in status["message"]
    left = scene.child(BOOTSTRAP)
    assert left is not None
    assert "deletionTimestamp" in left["metadata"]
    infrastructure_left = scene.child(INFRASTRUCTURE)
    assert infrastructure_left is not None
    assert "deletionTimestamp" not in infrastructure_left["metadata"], "this one can be used again"
    release(scene, BOOTSTRAP)
    scene.wait_made()
    scene.wait_phase("Active", "MachineCreated")
    new = uids(scene)
    assert new["StandInBootstrap"] != old["StandInBootstrap"]
    assert new["StandInMachine"] == old["StandInMachine"]


@pytest.mark.contract("B1.2", "B1.10")
def test_a_template_kind_edited_while_active_waits_for_the_next_activation_and_leaks_nothing(
    scene: Scene,
) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    before = uids(scene)
    scene.edit(infrastructureSpec=infrastructure(kind="OtherMachine"))
    scene.wait_condition("UpToDate", "False", "TemplateChanged")
    assert scene.status["phase"] == "Active"
    assert uids(scene) == before
    assert scene.child(OTHER_INFRASTRUCTURE) is None
    scene.active(False)
    scene.wait_gone()
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.active(True)
    eventually(lambda: scene.child(MACHINES), what="a new Machine")
    scene.wait_condition("UpToDate", "True")
    assert scene.machine()["spec"]["infrastructureRef"]["kind"] == "OtherMachine"
    assert scene.child(OTHER_INFRASTRUCTURE) is not None
    assert scene.child(INFRASTRUCTURE) is None
    scene.active(False)
    eventually(lambda: scene.child(OTHER_INFRASTRUCTURE) is None, what="the new kind is cleaned up as well")


def hold(scene: Scene, kind: tuple[str, str]) -> None:
    """Keep an object from going when it is deleted."""
    patch = {"metadata": {"finalizers": ["example.com/held"]}}
    scene.api.patch(*kind, scene.name, scene.namespace, patch)


def release(scene: Scene, kind: tuple[str, str]) -> None:
    scene.api.patch(*kind, scene.name, scene.namespace, {"metadata": {"finalizers": None}})
