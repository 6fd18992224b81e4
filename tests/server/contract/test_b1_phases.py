"""B1: phases, as the real server shows them."""

from __future__ import annotations

from support.scene import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scene


def test_b1_1_a_wanted_machine_is_created_and_reported_active(scene: Scene) -> None:
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


def test_b1_10_b1_11_b1_12_a_machine_out_of_schedule_is_deleted_and_then_what_is_left(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    scene.active(False)
    scene.wait_phase("ShuttingDown", "NodeDraining")
    assert scene.machine()["metadata"]["deletionTimestamp"]
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        child = scene.child(kind)
        assert child is not None
        assert "deletionTimestamp" not in child["metadata"], "deleting it now would switch Cluster API's drain off"
    scene.let_machine_go()
    scene.wait_gone()
    scene.wait_phase("Inactive", "ScheduleInactive")
