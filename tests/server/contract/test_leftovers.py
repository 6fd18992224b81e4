"""B2.3: what is to be deleted is never derived from spec, so that nothing leaks when a template's kind changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane import Api, ControlPlane
from controlplane.audit import select
from harness import MANAGER_USER, ManagerProcess, install
from harness.providers import ProviderKind
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
from support.measurements import writes
from support.refusals import foreign
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

Json = dict[str, Any]

OTHER_TEMPLATES = {
    "bootstrapSpec": bootstrap(kind="OtherBootstrap"),
    "infrastructureSpec": infrastructure(kind="OtherMachine"),
}
OLD_CHILDREN = (BOOTSTRAP, INFRASTRUCTURE)
NEW_CHILDREN = (OTHER_BOOTSTRAP, OTHER_INFRASTRUCTURE)


def lose_status(scenario: Scenario) -> None:
    """Remove the status, as a restore from a backup does."""
    nothing = dict.fromkeys(scenario.status)
    scenario.api.patch_status(*MACHINE, scenario.name, scenario.namespace, nothing)


@pytest.mark.contract("B2.3")
@pytest.mark.parametrize("when", ["while up", "while draining"])
def test_a_kind_that_changes_leaks_nothing(scenario: Scenario, when: str) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    old = {kind: scenario.child(kind) for kind in OLD_CHILDREN}
    if when == "while draining":
        scenario.active(False)
        scenario.wait_phase("ShuttingDown", "NodeDraining")
    scenario.edit(**OTHER_TEMPLATES)
    if when == "while up":
        scenario.wait_condition("UpToDate", "False", "TemplateChanged")
        scenario.wait_phase("Active", "MachineCreated")
        scenario.active(False)
        scenario.wait_phase("ShuttingDown", "NodeDraining")
    # Until the Machine is gone nothing beside it goes, and nothing new comes.
    assert {kind: scenario.child(kind) for kind in OLD_CHILDREN} == old
    wait_absent(scenario, *NEW_CHILDREN)
    status = scenario.status
    assert status["bootstrapRef"]["kind"] == "StandInBootstrap"
    assert status["infrastructureRef"]["kind"] == "StandInMachine"
    scenario.let_machine_go()
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.active(True)
    wait_present(scenario, MACHINES, *NEW_CHILDREN)
    scenario.wait_phase("Active", "MachineCreated")
    wait_absent(scenario, *OLD_CHILDREN)
    scenario.active(False)
    wait_absent(scenario, MACHINES, *NEW_CHILDREN)
    status = scenario.wait_phase("Inactive", "ScheduleInactive")
    assert not {"machineRef", "bootstrapRef", "infrastructureRef"} & set(status)


@pytest.mark.contract("B1.5", "B2.3")
def test_wanted_again_after_a_change_of_kind_the_old_objects_go_before_new_ones_come(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    scenario.edit(**OTHER_TEMPLATES)
    scenario.active(True)
    scenario.wait_phase("ShuttingDown", "MachineDeleting")
    mark = control_plane.audit_log.mark()
    scenario.let_machine_go()
    wait_present(scenario, MACHINES, *NEW_CHILDREN)
    wait_absent(scenario, *OLD_CHILDREN)
    order = [
        (event["verb"], event["objectRef"]["resource"])
        for event in writes(control_plane, mark, scenario.namespace)
        if event["objectRef"]["resource"] != "scheduledmachines"
    ]
    assert set(order[:2]) == {("delete", "standinbootstraps"), ("delete", "standinmachines")}
    assert set(order[2:4]) == {("create", "otherbootstraps"), ("create", "othermachines")}
    assert order[4:] == [("create", "machines")]


@pytest.mark.contract("B2.3")
def test_leftovers_that_neither_a_machine_nor_status_names_are_found_by_label(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    uid = scenario.get()["metadata"]["uid"]
    for attempt in range(2):
        mark = control_plane.audit_log.mark()
        for kind in NEW_CHILDREN:
            body = foreign(kind, scenario.namespace, labels={LABEL: "web"}, annotations={UID: uid})
            scenario.api.create(body)
        lose_status(scenario)
        wait_absent(scenario, *NEW_CHILDREN)
        scenario.wait_phase("Inactive", "ScheduleInactive")
        deleted = select(writes(control_plane, mark, scenario.namespace), verbs="delete")
        assert {e["objectRef"]["resource"] for e in deleted} == {"otherbootstraps", "othermachines"}, attempt
    # Once per loss: with a status of ours in place nobody searches.
    mark = control_plane.audit_log.mark()
    scenario.edit(priority=7)
    generation = scenario.get()["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="the edit was seen")
    assert not select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="list", namespace=scenario.namespace)


# A manager that was away --------------------------------------------------------------------------------------------


class Away:
    """Machines on a server of their own, prepared while no manager runs."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api: Api = plane.api
        self.provider = ProviderKind(plane.api, "Played")
        self.provider.install()

    def scenario(self, what: str, *, active: bool) -> Scenario:
        namespace = make_namespace(self.api, what)
        self.provider.create(namespace, active=active)
        return Scenario(self.api, namespace, self.provider)

    def taken_over(self, what: str, **spec: Any) -> Scenario:
        """A machine that is up, with all that the existing 5-Spot leaves of it, and no more."""
        scenario = self.scenario(what, active=True)
        body = machine("web", scenario.namespace, schedule=self.provider.reference(), **spec)
        # Cluster API's finalizer is on the Machine, 5-Spot's is the same as ours.
        body["metadata"]["finalizers"] = ["5spot.finos.org/scheduledmachine"]
        owner = self.api.create(body)
        label = {LABEL: "web", "cluster.x-k8s.io/cluster-name": "prod"}
        for kind in OLD_CHILDREN:
            self.api.create(foreign(kind, scenario.namespace, labels=label))
        made = foreign(MACHINES, scenario.namespace, labels=label, ownerReferences=[controller_reference(owner)])
        for field, kind in (("configRef", BOOTSTRAP), ("infrastructureRef", INFRASTRUCTURE)):
            reference = {"apiGroup": kind[0].partition("/")[0], "kind": kind[1], "name": "web"}
            if field == "configRef":
                made["spec"]["bootstrap"] = {field: reference}
            else:
                made["spec"][field] = reference
        self.api.create(made)
        scenario.hold_machine()
        places = {
            field: {"apiVersion": kind[0], "kind": kind[1], "name": "web", "namespace": scenario.namespace}
            for field, kind in zip(("machineRef", "bootstrapRef", "infrastructureRef"), CHILDREN, strict=True)
        }
        resolved = {"resolved": True, "active": True, "reason": "Resolved"}
        status = {"phase": "Active", "message": "Machine is active", "spotSchedule": resolved, **places}
        self.api.patch_status(*MACHINE, "web", scenario.namespace, status)
        return scenario


NO_DRAIN = {
    "machine.cluster.x-k8s.io/exclude-node-draining",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
}


@pytest.mark.long
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
    up = away.scenario("up", active=True)
    down = away.scenario("down", active=True)
    with ManagerProcess(plane) as manager:
        for scenario in (up, down):
            scenario.create()
            scenario.wait_made()
        kept = {scenario.namespace: scenario.machine()["metadata"]["uid"] for scenario in (drained, at_once, wiped)}
        for scenario in (drained, at_once, wiped):
            scenario.wait_condition("UpToDate", "Unknown", "NoTemplateHash")
            status = scenario.wait_phase("Active", "MachineCreated")
            for field, kind in zip(("machineRef", "bootstrapRef", "infrastructureRef"), CHILDREN, strict=True):
                child = scenario.child(kind)
                assert child is not None
                assert status[field]["uid"] == child["metadata"]["uid"], "taken over as it is"
        manager.kill()
        # Status lost, Machine lost, and the template names other kinds by now.
        for scenario in (up, down):
            scenario.edit(**OTHER_TEMPLATES)
            lose_status(scenario)
            scenario.api.delete(*MACHINES, "web", scenario.namespace)
        down.active(False)
        mark = plane.audit_log.mark()
        manager.start()
        wait_absent(up, *OLD_CHILDREN, timeout=30)
        wait_present(up, MACHINES, *NEW_CHILDREN)
        wait_absent(down, MACHINES, *OLD_CHILDREN, timeout=30)
        down.wait_phase("Inactive", "ScheduleInactive")
        for scenario in (drained, at_once, wiped):
            assert scenario.machine()["metadata"]["uid"] == kept[scenario.namespace]
            assert writes(plane, mark, scenario.namespace) == [], "a restart changes nothing"
            adopt(scenario)
            scenario.active(False)
            scenario.wait_phase("ShuttingDown", "NodeDraining")
        # B2.5: said before the DELETE, since the one who made it said nothing about draining.
        seconds = {drained: 90, wiped: 300}
        for scenario in (drained, at_once, wiped):
            sent = select(writes(plane, mark, scenario.namespace), resource="machines")
            assert [event["verb"] for event in sent] == ["patch", "delete"]
            found = scenario.machine()
            annotations = set(found["metadata"].get("annotations", {}))
            limits = found["spec"].get("deletion", {})
            if scenario is at_once:
                assert annotations >= NO_DRAIN
                assert "nodeDrainTimeoutSeconds" not in limits
            else:
                assert not annotations & NO_DRAIN
                limit = seconds[scenario]
                assert (limits["nodeDrainTimeoutSeconds"], limits["nodeVolumeDetachTimeoutSeconds"]) == (limit, limit)
            scenario.let_machine_go()
        for scenario in (drained, at_once, wiped):
            scenario.wait_gone(30)
            scenario.wait_phase("Inactive", "ScheduleInactive")
        assert manager.exit_code is None
