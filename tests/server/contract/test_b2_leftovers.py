"""B2.3: what is to be deleted is never derived from spec, so that nothing leaks when a template's kind changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane import Api, ControlPlane
from controlplane.audit import select
from support import eventually, make_namespace
from support.children import (
    LABEL,
    OTHER_BOOTSTRAP,
    OTHER_INFRASTRUCTURE,
    UID,
    adopt,
    controller_reference,
    wait_absent,
    wait_present,
)
from support.machines import MACHINE, bootstrap, infrastructure, machine
from support.manager import MANAGER_USER, ManagerProcess, install
from support.observing import writes
from support.providers import ProviderKind
from support.refusing import foreign
from support.scene import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scene

Json = dict[str, Any]

OTHER_TEMPLATES = {
    "bootstrapSpec": bootstrap(kind="OtherBootstrap"),
    "infrastructureSpec": infrastructure(kind="OtherMachine"),
}
OLD_CHILDREN = (BOOTSTRAP, INFRASTRUCTURE)
NEW_CHILDREN = (OTHER_BOOTSTRAP, OTHER_INFRASTRUCTURE)


def lose_status(scene: Scene) -> None:
    """What a restore from a backup does."""
    nothing = dict.fromkeys(scene.status)
    scene.api.patch_status(*MACHINE, scene.name, scene.namespace, nothing)


@pytest.mark.contract("B2.3")
@pytest.mark.parametrize("when", ["while up", "while draining"])
def test_a_kind_that_changes_leaks_nothing(scene: Scene, when: str) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    old = {kind: scene.child(kind) for kind in OLD_CHILDREN}
    if when == "while draining":
        scene.active(False)
        scene.wait_phase("ShuttingDown", "NodeDraining")
    scene.edit(**OTHER_TEMPLATES)
    if when == "while up":
        scene.wait_condition("UpToDate", "False", "TemplateChanged")
        scene.wait_phase("Active", "MachineCreated")
        scene.active(False)
        scene.wait_phase("ShuttingDown", "NodeDraining")
    # Until the Machine is gone nothing beside it goes, and nothing new comes.
    assert {kind: scene.child(kind) for kind in OLD_CHILDREN} == old
    wait_absent(scene, *NEW_CHILDREN)
    status = scene.status
    assert status["bootstrapRef"]["kind"] == "StandInBootstrap"
    assert status["infrastructureRef"]["kind"] == "StandInMachine"
    scene.let_machine_go()
    scene.wait_gone()
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.active(True)
    wait_present(scene, MACHINES, *NEW_CHILDREN)
    scene.wait_phase("Active", "MachineCreated")
    wait_absent(scene, *OLD_CHILDREN)
    scene.active(False)
    wait_absent(scene, MACHINES, *NEW_CHILDREN)
    status = scene.wait_phase("Inactive", "ScheduleInactive")
    assert not {"machineRef", "bootstrapRef", "infrastructureRef"} & set(status)


@pytest.mark.contract("B1.5", "B2.3")
def test_wanted_again_after_a_change_of_kind_the_old_objects_go_before_new_ones_come(
    scene: Scene, control_plane: ControlPlane
) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    scene.active(False)
    scene.wait_phase("ShuttingDown", "NodeDraining")
    scene.edit(**OTHER_TEMPLATES)
    scene.active(True)
    scene.wait_phase("ShuttingDown", "MachineDeleting")
    mark = control_plane.audit_log.mark()
    scene.let_machine_go()
    wait_present(scene, MACHINES, *NEW_CHILDREN)
    wait_absent(scene, *OLD_CHILDREN)
    order = [
        (event["verb"], event["objectRef"]["resource"])
        for event in writes(control_plane, mark, scene.namespace)
        if event["objectRef"]["resource"] != "scheduledmachines"
    ]
    assert set(order[:2]) == {("delete", "standinbootstraps"), ("delete", "standinmachines")}
    assert set(order[2:4]) == {("create", "otherbootstraps"), ("create", "othermachines")}
    assert order[4:] == [("create", "machines")]


@pytest.mark.contract("B2.3")
def test_leftovers_that_neither_a_machine_nor_status_names_are_found_by_label(
    scene: Scene, control_plane: ControlPlane
) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    uid = scene.get()["metadata"]["uid"]
    for attempt in range(2):
        mark = control_plane.audit_log.mark()
        for kind in NEW_CHILDREN:
            body = foreign(kind, scene.namespace, labels={LABEL: "web"}, annotations={UID: uid})
            scene.api.create(body)
        lose_status(scene)
        wait_absent(scene, *NEW_CHILDREN)
        scene.wait_phase("Inactive", "ScheduleInactive")
        deleted = select(writes(control_plane, mark, scene.namespace), verbs="delete")
        assert {e["objectRef"]["resource"] for e in deleted} == {"otherbootstraps", "othermachines"}, attempt
    # Once per loss: with a status of ours in place nobody searches.
    mark = control_plane.audit_log.mark()
    scene.edit(priority=7)
    generation = scene.get()["metadata"]["generation"]
    eventually(lambda: scene.status["observedGeneration"] == generation, what="the edit was seen")
    assert not select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="list", namespace=scene.namespace)


# A manager that was away --------------------------------------------------------------------------------------------


class Away:
    """Machines on a server of their own, prepared while no manager runs."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api: Api = plane.api
        self.provider = ProviderKind(plane.api, "Played")
        self.provider.install()

    def scene(self, what: str, *, active: bool) -> Scene:
        namespace = make_namespace(self.api, what)
        self.provider.create(namespace, active=active)
        return Scene(self.api, namespace, self.provider)

    def taken_over(self, what: str, **spec: Any) -> Scene:
        """A machine that is up, with all that the existing 5-Spot leaves of it, and no more."""
        scene = self.scene(what, active=True)
        body = machine("web", scene.namespace, schedule=self.provider.reference(), **spec)
        # Cluster API's finalizer is on the Machine, 5-Spot's is the same as ours.
        body["metadata"]["finalizers"] = ["5spot.finos.org/scheduledmachine"]
        owner = self.api.create(body)
        label = {LABEL: "web", "cluster.x-k8s.io/cluster-name": "prod"}
        for kind in OLD_CHILDREN:
            self.api.create(foreign(kind, scene.namespace, labels=label))
        made = foreign(MACHINES, scene.namespace, labels=label, ownerReferences=[controller_reference(owner)])
        for field, kind in (("configRef", BOOTSTRAP), ("infrastructureRef", INFRASTRUCTURE)):
            reference = {"apiGroup": kind[0].partition("/")[0], "kind": kind[1], "name": "web"}
            if field == "configRef":
                made["spec"]["bootstrap"] = {field: reference}
            else:
                made["spec"][field] = reference
        self.api.create(made)
        scene.hold_machine()
        places = {
            field: {"apiVersion": kind[0], "kind": kind[1], "name": "web", "namespace": scene.namespace}
            for field, kind in zip(("machineRef", "bootstrapRef", "infrastructureRef"), CHILDREN, strict=True)
        }
        resolved = {"resolved": True, "active": True, "reason": "Resolved"}
        status = {"phase": "Active", "message": "Machine is active", "spotSchedule": resolved, **places}
        self.api.patch_status(*MACHINE, "web", scene.namespace, status)
        return scene


NO_DRAIN = {
    "machine.cluster.x-k8s.io/exclude-node-draining",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
}


@pytest.mark.contract("B2.2", "B2.3", "B2.5")
@pytest.mark.timeout(240)
def test_machines_of_5_spot_are_taken_over_and_lost_ones_are_cleaned_up(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    away = Away(plane)
    # B2.2: ours by label and by being referred to, without our mark.
    drained = away.taken_over("drained", nodeDrainTimeout="90s", gracefulShutdownTimeout="0s")
    at_once = away.taken_over("at-once", nodeDrainTimeout="0s", gracefulShutdownTimeout="0s")
    wiped = away.taken_over("wiped", gracefulShutdownTimeout="0s")
    lose_status(wiped)
    up = away.scene("up", active=True)
    down = away.scene("down", active=True)
    with ManagerProcess(plane) as manager:
        for scene in (up, down):
            scene.create()
            scene.wait_made()
        kept = {scene.namespace: scene.machine()["metadata"]["uid"] for scene in (drained, at_once, wiped)}
        for scene in (drained, at_once, wiped):
            scene.wait_condition("UpToDate", "Unknown", "NoTemplateHash")
            status = scene.wait_phase("Active", "MachineCreated")
            for field, kind in zip(("machineRef", "bootstrapRef", "infrastructureRef"), CHILDREN, strict=True):
                child = scene.child(kind)
                assert child is not None
                assert status[field]["uid"] == child["metadata"]["uid"], "taken over as it is"
        manager.kill()
        # Status lost, Machine lost, and the template names other kinds by now.
        for scene in (up, down):
            scene.edit(**OTHER_TEMPLATES)
            lose_status(scene)
            scene.api.delete(*MACHINES, "web", scene.namespace)
        down.active(False)
        mark = plane.audit_log.mark()
        manager.start()
        wait_absent(up, *OLD_CHILDREN, timeout=30)
        wait_present(up, MACHINES, *NEW_CHILDREN)
        wait_absent(down, MACHINES, *OLD_CHILDREN, timeout=30)
        down.wait_phase("Inactive", "ScheduleInactive")
        for scene in (drained, at_once, wiped):
            assert scene.machine()["metadata"]["uid"] == kept[scene.namespace]
            assert writes(plane, mark, scene.namespace) == [], "a restart changes nothing"
            adopt(scene)
            scene.active(False)
            scene.wait_phase("ShuttingDown", "NodeDraining")
        # B2.5: said before the DELETE, since the one who made it said nothing about draining.
        seconds = {drained: 90, wiped: 300}
        for scene in (drained, at_once, wiped):
            sent = select(writes(plane, mark, scene.namespace), resource="machines")
            assert [event["verb"] for event in sent] == ["patch", "delete"]
            found = scene.machine()
            annotations = set(found["metadata"].get("annotations", {}))
            limits = found["spec"].get("deletion", {})
            if scene is at_once:
                assert annotations >= NO_DRAIN
                assert "nodeDrainTimeoutSeconds" not in limits
            else:
                assert not annotations & NO_DRAIN
                limit = seconds[scene]
                assert (limits["nodeDrainTimeoutSeconds"], limits["nodeVolumeDetachTimeoutSeconds"]) == (limit, limit)
            scene.let_machine_go()
        for scene in (drained, at_once, wiped):
            scene.wait_gone(30)
            scene.wait_phase("Inactive", "ScheduleInactive")
        assert manager.exit_code is None
