"""B1.9-B1.21, B2.5, B2.6, B6.1: what is done while the machine is not wanted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fivespot.api import Phase, Reason
from fivespot.contract import Resolution
from fivespot.controllers.scheduledmachine.children import EXCLUDE_DRAIN, EXCLUDE_VOLUMES
from fivespot.controllers.scheduledmachine.cluster_api import ClusterApi, ClusterView, Known
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.plan import (
    CreateChildren,
    DeleteChildren,
    DeleteMachine,
    PatchMachine,
    Question,
    Want,
)
from fivespot.controllers.scheduledmachine.snapshot import Answers, Child, Slot, Snapshot
from unit.controllers.build import (
    BOOTSTRAP,
    DOWN,
    NO_CAPI,
    NO_CLUSTER,
    NOW,
    OLD_INFRASTRUCTURE,
    UNKNOWN_CAPI,
    UP,
    after,
    at,
    child,
    condition,
    judged,
    machine,
    ready_machine,
    ref,
    refusal,
    snapshot,
    spec,
    steps,
    stored_status,
)

NO_DRAIN = ((EXCLUDE_DRAIN, ""), (EXCLUDE_VOLUMES, ""))
NO_DRAIN_BY_KILL = (*NO_DRAIN, ("5spot.finos.org/drain-excluded-by", "killSwitch"))
KILL = spec(kill_switch=True)
OFF = spec(enabled=False)
DELETING_CLUSTER = ClusterView(Known.YES, deleting=True)
LEFT = (child(Slot.BOOTSTRAP), child(Slot.INFRASTRUCTURE, deleting=True))


def down(resolution: Resolution = DOWN, **changes: Any) -> Snapshot:
    return snapshot(resolution, **changes)


# Grace ----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.9", "B1.20")
@pytest.mark.parametrize(
    ("changes", "want"), [({}, Want.INACTIVE), ({"resolution": UP, "spec": OFF}, Want.DISABLED)], ids=["b1_9", "b1_20"]
)
def test_grace_begins_and_is_timed(changes: dict[str, Any], want: Want) -> None:
    plan, stored = judged(down(**changes, machine=ready_machine()))
    assert (plan.want, plan.phase, plan.reason) == (want, Phase.SHUTTING_DOWN, Reason.GRACE_PERIOD_ACTIVE)
    assert plan.steps == ()
    assert plan.wake == NOW + timedelta(minutes=5)
    assert (stored["shutdownRequestedTime"], stored["nextCleanup"]) == (at(), at(minutes=-5))
    assert condition(stored, "Ready") == ("False", "GracePeriodActive")


@pytest.mark.contract("B1.9")
def test_wanted_again_during_grace_nothing_was_touched() -> None:
    plan, stored = judged(
        snapshot(UP, machine=ready_machine(), stored=stored_status(shutdownRequestedTime=at(minutes=2)))
    )
    assert (plan.phase, plan.steps, plan.settled) == (Phase.ACTIVE, (), True)
    assert not {"shutdownRequestedTime", "nextCleanup"} & set(stored)


@pytest.mark.contract("B1.21")
def test_grace_counts_from_when_down_was_first_wanted_whatever_wants_it_now() -> None:
    begun = stored_status(shutdownRequestedTime=at(minutes=4))
    for s in (down(stored=begun), down(UP, spec=OFF, stored=begun)):
        plan = decide(replace(s, world=replace(s.world, machine=ready_machine())))
        assert plan.wake == NOW + timedelta(minutes=1)
        assert plan.shutdown_requested == NOW - timedelta(minutes=4)


@pytest.mark.contract("B1.21")
def test_an_edited_timeout_moves_the_end_of_grace() -> None:
    begun = stored_status(shutdownRequestedTime=at(minutes=4))
    later = decide(down(machine=ready_machine(), stored=begun, spec=spec(grace=timedelta(hours=1))))
    assert later.next_cleanup == NOW + timedelta(minutes=56)
    over = decide(down(machine=ready_machine(), stored=begun, spec=spec(grace=timedelta(minutes=3))))
    assert steps(over, DeleteMachine)


@pytest.mark.contract("B1.21")
def test_a_start_in_the_future_restarts_grace() -> None:
    plan = decide(down(machine=ready_machine(), stored=stored_status(shutdownRequestedTime=at(hours=-9))))
    assert plan.shutdown_requested == NOW
    assert plan.next_cleanup == NOW + timedelta(minutes=5)


@pytest.mark.contract("B1.21")
def test_grace_does_not_restart_at_every_run_because_status_holds_whole_seconds() -> None:
    s = replace(down(machine=ready_machine()), now=NOW + timedelta(milliseconds=1))
    plan = decide(s)
    assert plan.shutdown_requested == NOW + timedelta(seconds=1)
    assert decide(after(s, plan)).shutdown_requested == plan.shutdown_requested


@pytest.mark.contract("B5.2")
@pytest.mark.parametrize("fraction", [0, 1, 999_999])
def test_without_grace_the_machine_goes_in_the_first_run(fraction: int) -> None:
    s = down(machine=ready_machine(), spec=spec(grace=timedelta(0)))
    plan, stored = judged(replace(s, now=NOW + timedelta(microseconds=fraction)))
    assert steps(plan, DeleteMachine)
    assert "nextCleanup" not in stored


@pytest.mark.contract("B1.21", "B7.1")
def test_a_machine_that_went_while_it_was_not_wanted_is_no_loss_when_it_is_wanted_again() -> None:
    # Deleted by a person, before this controller requested anything itself.
    _, stored = judged(down(machine=machine(deleting=True)))
    assert stored["shutdownRequestedTime"] == at()
    plan = decide(snapshot(UP, stored=stored_status(stored), answers=Answers(gone=frozenset({"m-1"}))))
    assert steps(plan, CreateChildren)
    assert (plan.replaced.count, plan.events) == (0, ())


# Drain and delete -----------------------------------------------------------------------------------------------

OVER = stored_status(shutdownRequestedTime=at(minutes=5))


@pytest.mark.contract("B1.10")
def test_after_grace_the_machine_alone_is_deleted_with_drain() -> None:
    plan, stored = judged(down(machine=ready_machine(), stored=OVER))
    (step,) = plan.steps
    assert isinstance(step, DeleteMachine)
    assert step.machine.head.uid == "m-1"
    assert (plan.phase, plan.reason) == (Phase.SHUTTING_DOWN, Reason.NODE_DRAINING)
    assert "nextCleanup" not in stored
    assert stored["shutdownRequestedTime"] == at(minutes=5)


@pytest.mark.contract("B1.10")
def test_a_deleting_machine_is_waited_for_and_says_what_holds_it() -> None:
    plan = decide(down(machine=machine(deleting=True, deleting_message="PDB web"), stored=OVER))
    assert (plan.phase, plan.steps) == (Phase.SHUTTING_DOWN, ())
    assert "PDB web" in plan.message


@pytest.mark.contract("B1.11")
def test_leftovers_are_deleted_at_once() -> None:
    plan = decide(down(children=LEFT))
    assert (plan.phase, plan.reason) == (Phase.SHUTTING_DOWN, Reason.DELETING_LEFTOVERS)
    assert plan.steps == (DeleteChildren((LEFT[0],)),)


@pytest.mark.contract("B2.3")
def test_leftovers_of_kinds_that_spec_no_longer_names_are_deleted() -> None:
    older = child(Slot.INFRASTRUCTURE, resource=OLD_INFRASTRUCTURE)
    assert decide(down(children=(older,))).steps == (DeleteChildren((older,)),)


@pytest.mark.contract("B2.2")
def test_what_is_foreign_is_not_touched_and_not_waited_for() -> None:
    foreign: tuple[Child, ...] = (child(Slot.BOOTSTRAP, ours=False), child(Slot.INFRASTRUCTURE, ours=False))
    for s in (down(children=foreign), down(machine=machine(ours=False), children=foreign, spec=KILL)):
        plan = decide(s)
        assert (plan.steps, plan.nothing_left) == ((), True)


@pytest.mark.contract("B1.12", "B1.13", "B1.15", "B6.1")
@pytest.mark.parametrize(
    ("changes", "phase", "reason"),
    [
        ({}, "Inactive", "ScheduleInactive"),
        ({"resolution": UP, "spec": OFF}, "Disabled", "ScheduleDisabled"),
        ({"resolution": UP, "spec": KILL}, "Terminated", "KillSwitchActivated"),
        ({"resolution": UP, "cluster": DELETING_CLUSTER}, "Inactive", "ClusterDeleting"),
    ],
    ids=["b1_12", "b1_13", "b1_15", "b6_1"],
)
def test_with_nothing_left_it_is_settled(changes: dict[str, Any], phase: str, reason: str) -> None:
    leftover = stored_status(
        machineRef={"uid": "m-1"}, bootstrapRef=ref(BOOTSTRAP), shutdownRequestedTime=at(minutes=9)
    )
    plan, stored = judged(down(**changes, stored=leftover))
    assert (plan.steps, plan.settled, plan.wake) == ((), True, None)
    assert (stored["phase"], stored["ready"]) == (phase, False)
    assert condition(stored, "Ready") == ("True", reason)
    assert condition(stored, "Scheduled") == ("False", reason)
    assert condition(stored, "MachineReady") == ("False", "NoMachine")
    assert not {"machineRef", "bootstrapRef", "shutdownRequestedTime", "nextCleanup"} & set(stored)


@pytest.mark.contract("B1.15")
def test_clearing_the_switch_lets_the_schedule_decide_again() -> None:
    stored = judged(down(UP, spec=KILL))[1]
    assert decide(snapshot(UP, stored=stored_status(stored))).phase is Phase.ACTIVE


# Kill switch ----------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.14", "B2.6")
def test_the_kill_switch_knows_neither_grace_nor_drain() -> None:
    plan = decide(down(UP, machine=ready_machine(), spec=KILL))
    assert plan.steps == (
        PatchMachine(ready_machine(), annotations=NO_DRAIN_BY_KILL, optional=True),
        DeleteMachine(ready_machine()),
    )
    assert (plan.phase, plan.reason, plan.next_cleanup) == (Phase.SHUTTING_DOWN, Reason.KILL_SWITCH_ACTIVATED, None)


@pytest.mark.contract("B2.6")
def test_a_machine_that_is_already_deleting_stops_draining_when_killed() -> None:
    plan = decide(down(UP, machine=machine(deleting=True), spec=KILL))
    assert plan.steps == (PatchMachine(machine(deleting=True), annotations=NO_DRAIN_BY_KILL, optional=True),)
    told = machine(deleting=True, annotations=dict(NO_DRAIN), deleting_message="WaitingForPreDrainHook: x")
    again = decide(down(UP, machine=told, spec=KILL))
    assert again.steps == ()
    assert "WaitingForPreDrainHook" in again.message


@pytest.mark.contract("B1.14")
def test_leftovers_of_a_killed_machine_go_at_once() -> None:
    plan = decide(down(UP, children=LEFT, spec=KILL))
    assert (plan.reason, plan.steps) == (Reason.KILL_SWITCH_ACTIVATED, (DeleteChildren((LEFT[0],)),))


# Cluster --------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B6.1")
def test_a_cluster_being_deleted_takes_its_machine_without_grace_but_with_drain() -> None:
    plan = decide(snapshot(UP, machine=ready_machine(), cluster=DELETING_CLUSTER))
    assert plan.steps == (DeleteMachine(ready_machine()),)
    assert plan.want is Want.CLUSTER_DELETING


@pytest.mark.contract("B6.1")
def test_a_machine_goes_also_when_its_cluster_is_gone() -> None:
    assert steps(decide(down(machine=ready_machine(), stored=OVER, cluster=NO_CLUSTER)), DeleteMachine)


# Take-over ------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B2.5")
@pytest.mark.parametrize(
    ("found", "drain", "patch"),
    [
        ({"has_drain_timeout": False}, 300, PatchMachine(machine(), drain_seconds=300, optional=True)),
        ({"has_drain_timeout": True}, 300, None),
        ({"has_drain_timeout": False}, 0, PatchMachine(machine(), annotations=NO_DRAIN, optional=True)),
        ({"has_drain_timeout": True}, 0, PatchMachine(machine(), annotations=NO_DRAIN, optional=True)),
    ],
)
def test_a_machine_taken_over_is_told_how_to_drain_before_it_is_deleted(
    found: dict[str, Any], drain: int, patch: PatchMachine | None
) -> None:
    taken = machine(annotations={}, **found)
    s = down(machine=taken, stored=OVER, spec=spec(drain_timeout=timedelta(seconds=drain)))
    wanted = () if patch is None else (replace(patch, machine=taken),)
    assert decide(s).steps == (*wanted, DeleteMachine(taken))


@pytest.mark.contract("B2.5")
def test_a_machine_of_ours_is_not_patched_before_its_deletion() -> None:
    s = down(machine=machine(has_drain_timeout=False), stored=OVER, spec=spec(drain_timeout=timedelta(0)))
    assert [type(step) for step in decide(s).steps] == [DeleteMachine]


# Trouble --------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.16")
@pytest.mark.parametrize("changes", [{"spec": KILL}, {"stored": OVER}, {"children": LEFT, "machine": None}])
def test_a_refused_deletion_waits_until_it_is_due(changes: dict[str, Any]) -> None:
    fields = {"machine": ready_machine()} | changes
    plan, stored = judged(down(**fields, refusal=refusal(reason="MachineDeletionFailed", stalled=True)))
    assert (plan.phase, plan.reason, plan.steps) == (Phase.ERROR, Reason.MACHINE_DELETION_FAILED, ())
    assert condition(stored, "Stalled") == ("True", "MachineDeletionFailed")
    assert decide(down(**fields, refusal=refusal(due=999.0))).steps


@pytest.mark.contract("B1.17")
@pytest.mark.parametrize("changes", [{}, {"resolution": UP, "spec": OFF}, {"cluster": DELETING_CLUSTER}])
def test_an_invalid_object_with_nothing_left_is_an_error_also_when_down(changes: dict[str, Any]) -> None:
    s = down(**changes)
    plan = decide(replace(s, spec=replace(s.spec, problems=("spec.clusterName: is required",))))
    assert (plan.phase, plan.reason, plan.stalled) == (Phase.ERROR, Reason.REFERENCES_INVALID, True)


@pytest.mark.contract("B1.17")
def test_an_invalid_object_is_still_shut_down() -> None:
    broken = spec(problems=("broken",), bootstrap=None, infrastructure=None)
    assert steps(decide(down(machine=ready_machine(), stored=OVER, spec=broken)), DeleteMachine)
    assert steps(decide(down(children=LEFT, spec=broken)), DeleteChildren)
    killed = decide(down(spec=replace(broken, kill_switch=True)))
    assert killed.phase is Phase.TERMINATED


@pytest.mark.contract("B3.4")
def test_without_cluster_api_there_is_nothing_to_take_away() -> None:
    plan = decide(down(capi=NO_CAPI, children_known=Known.UNKNOWN))
    assert (plan.phase, plan.settled) == (Phase.INACTIVE, True)


@pytest.mark.parametrize(
    "changes",
    [{"capi": UNKNOWN_CAPI}, {"machine_known": Known.UNKNOWN}, {"children_known": Known.UNKNOWN}],
    ids=["capi", "machines", "children"],
)
def test_nothing_counts_as_gone_before_it_was_looked_for(changes: dict[str, Any]) -> None:
    plan = decide(down(**changes))
    assert (plan.steps, plan.settled, plan.quiet) == ((), False, True)


def test_a_version_of_machines_that_is_not_known_is_an_error_and_forgets_nothing() -> None:
    remembered = stored_status(machineRef={"uid": "m-1"}, shutdownRequestedTime=at(minutes=9))
    capi = ClusterApi(Known.YES, why="Machines are served at v1alpha4")
    plan, stored = judged(down(capi=capi, machine_known=Known.UNKNOWN, stored=remembered))
    assert (plan.phase, plan.reason, plan.stalled) == (Phase.ERROR, Reason.MACHINE_DELETION_FAILED, True)
    assert (stored["machineRef"], stored["shutdownRequestedTime"]) == ({"uid": "m-1"}, at(minutes=9))


@pytest.mark.contract("B2.3")
def test_a_lost_status_is_made_up_for_by_a_search_before_anything_counts_as_gone() -> None:
    assert decide(down(stored=stored_status({}))).ask is Question.LEFTOVERS


def test_a_kind_that_may_not_be_read_is_an_error_only_if_something_of_it_may_exist() -> None:
    denied: dict[str, Any] = {
        "children_known": Known.UNKNOWN,
        "children_error": True,
        "children_why": "Infra objects cannot be read: 403",
    }
    assert decide(down(**denied)).settled
    named = decide(down(**denied, stored=stored_status(bootstrapRef=ref(BOOTSTRAP))))
    assert (named.phase, named.reason, named.stalled) == (Phase.ERROR, Reason.MACHINE_DELETION_FAILED, True)
    assert decide(down(**denied, stored=stored_status({}), fresh=True)).settled


@pytest.mark.contract("B1.14")
def test_what_can_be_seen_goes_though_another_kind_may_not_be_read() -> None:
    s = down(
        children=LEFT[:1],
        children_known=Known.UNKNOWN,
        children_error=True,
        children_why="403",
        stored=stored_status(infrastructureRef=ref(OLD_INFRASTRUCTURE)),
        spec=KILL,
    )
    plan, stored = judged(s)
    assert plan.steps == (DeleteChildren(LEFT[:1]),)
    gone = decide(replace(after(s, plan), world=replace(s.world, children=())))
    assert stored["infrastructureRef"]["kind"] == "OldMachine"
    assert (gone.phase, gone.message) == (Phase.ERROR, "403")


@pytest.mark.contract("B2.3")
def test_an_error_that_was_reported_before_the_search_does_not_stand_in_for_it() -> None:
    s = down(stored=stored_status({}), children_known=Known.UNKNOWN, children_error=True, children_why="403")
    plan = decide(s)
    assert (plan.phase, plan.quiet) == (Phase.ERROR, False)
    told = after(s, plan)
    assert decide(told).phase is Phase.ERROR
    readable = replace(told.world, children_known=Known.YES, children_error=False)
    assert decide(replace(told, world=readable)).ask is Question.LEFTOVERS
