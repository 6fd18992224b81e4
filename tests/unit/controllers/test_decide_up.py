"""B1.1-B1.8, B2.4, B6.1: what is done while the machine is wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fivespot.api import Phase, Reason, names
from fivespot.contract import Resolution
from fivespot.controllers.scheduledmachine.cluster_api import ClusterApi, Known
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.plan import (
    CreateChildren,
    DeleteChildren,
    DeleteMachine,
    PatchMachine,
    Question,
)
from fivespot.controllers.scheduledmachine.snapshot import Answers, Child, Slot, TemplateState
from fivespot.runtime import OwnerReference
from unit.controllers.build import (
    BOOTSTRAP,
    DOWN,
    INFRASTRUCTURE,
    NO_CAPI,
    NO_CLUSTER,
    OLD_INFRASTRUCTURE,
    UNKNOWN_CAPI,
    UNKNOWN_CLUSTER,
    UP,
    adopted,
    at,
    child,
    condition,
    controller,
    judged,
    machine,
    machine_ref,
    ready_machine,
    ref,
    refusal,
    snapshot,
    spec,
    steps,
    stored_status,
)

BOTH = (child(Slot.BOOTSTRAP), child(Slot.INFRASTRUCTURE))


# B1.1 -----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.1")
def test_all_three_are_created_and_the_phase_is_active_at_once() -> None:
    plan, stored = judged(snapshot(UP))
    assert plan.steps == (CreateChildren((Slot.BOOTSTRAP, Slot.INFRASTRUCTURE), rehearse=False),)
    assert (plan.phase, plan.reason) == (Phase.ACTIVE, Reason.MACHINE_CREATED)
    assert condition(stored, "Ready") == ("False", "MachineCreated")
    assert condition(stored, "Reconciling") == ("True", "MachineCreated")


@pytest.mark.contract("B2.7")
def test_with_taints_the_machine_is_rehearsed_before_anything_else() -> None:
    assert steps(decide(snapshot(UP, spec=spec(tainted=True))), CreateChildren)[0].rehearse


@pytest.mark.contract("B1.1")
def test_creation_ends_a_shutdown_in_the_same_report() -> None:
    s = snapshot(UP, children=BOTH, stored=stored_status(shutdownRequestedTime=at(hours=1)))
    plan = decide(s)
    assert steps(plan, CreateChildren)
    assert plan.shutdown_requested is None


# B1.2 -----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.2")
def test_a_ready_machine_is_mirrored_and_settled() -> None:
    plan, stored = judged(snapshot(UP, machine=ready_machine()))
    assert plan.steps == ()
    assert plan.settled
    assert (stored["phase"], stored["ready"]) == ("Active", True)
    assert (stored["providerID"], stored["nodeRef"]["name"]) == ("x://1", "node-1")
    assert stored["machineRef"] == machine_ref()
    assert stored["lastScheduledTime"] == at(hours=1)
    assert condition(stored, "Ready") == condition(stored, "MachineReady") == ("True", "MachineReady")
    assert condition(stored, "Reconciling") is None


@pytest.mark.contract("B1.2")
def test_a_machine_without_ready_node_is_active_and_says_what_it_waits_for() -> None:
    s = snapshot(UP, machine=machine(phase="Running", ready_reason="NotReady", ready_message="node has no kubelet"))
    plan, stored = judged(s)
    assert (plan.phase, plan.reason, plan.settled) == (Phase.ACTIVE, Reason.MACHINE_CREATED, False)
    assert "node has no kubelet" in plan.message
    assert stored["ready"] is False
    assert condition(stored, "MachineReady") == ("False", "NotReady")


@pytest.mark.contract("B2.2")
def test_a_lost_label_is_put_back() -> None:
    found = ready_machine(labels={})
    assert decide(snapshot(UP, machine=found)).steps == (PatchMachine(found, labels=((names.LABEL_MACHINE, "web-1"),)),)


@pytest.mark.contract("B1.7")
def test_a_label_that_may_not_be_put_back_is_not_tried_at_every_event() -> None:
    plan = decide(snapshot(UP, machine=ready_machine(labels={}), refusal=refusal()))
    assert (plan.phase, plan.steps) == (Phase.ERROR, ())


@pytest.mark.contract("B2.4")
def test_a_template_edited_while_active_changes_nothing_but_the_report() -> None:
    plan, stored = judged(snapshot(UP, machine=ready_machine(), spec=spec(template_hash="f" * 16)))
    assert (plan.steps, plan.settled) == ((), True)
    assert condition(stored, "UpToDate") == ("False", "TemplateChanged")


# B1.3 -----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.3")
def test_a_machine_that_someone_deletes_is_waited_for_and_counted_once() -> None:
    s = snapshot(
        UP, machine=machine(deleting=True, deleting_message="draining"), stored=stored_status(machineRef=machine_ref())
    )
    plan, stored = judged(s)
    assert (plan.phase, plan.reason, plan.steps) == (Phase.SHUTTING_DOWN, Reason.MACHINE_DELETING, ())
    assert "draining" in plan.message
    assert (plan.replacement, plan.replaced.count, plan.replaced.uid) == ("Deleted", 1, "m-1")
    again = decide(snapshot(UP, machine=machine(deleting=True), stored=stored_status(stored)))
    assert (again.replacement, again.replaced) == ("", plan.replaced)


@pytest.mark.contract("B1.3")
def test_a_machine_of_our_own_shutdown_is_not_a_replacement_and_the_shutdown_is_remembered() -> None:
    s = snapshot(UP, machine=machine(deleting=True), stored=stored_status(shutdownRequestedTime=at(minutes=9)))
    plan, stored = judged(s)
    assert (plan.replacement, plan.replaced.count) == ("", 0)
    assert stored["shutdownRequestedTime"] == at(minutes=9)


# B1.4, B1.5 -----------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.4")
@pytest.mark.parametrize(
    ("left", "missing"),
    [
        (BOTH, ()),
        ((BOTH[0],), (Slot.INFRASTRUCTURE,)),
        ((BOTH[1],), (Slot.BOOTSTRAP,)),
    ],
)
def test_leftovers_made_from_the_current_template_are_reused(
    left: tuple[Child, ...], missing: tuple[Slot, ...]
) -> None:
    assert decide(snapshot(UP, children=left)).steps == (CreateChildren(missing, rehearse=False),)


@pytest.mark.contract("B1.5")
@pytest.mark.parametrize(
    "left",
    [
        child(Slot.INFRASTRUCTURE, made_from="f" * 16),
        child(Slot.INFRASTRUCTURE, made_from=""),
        child(Slot.INFRASTRUCTURE, owner=controller("Machine", "gone")),
        child(Slot.INFRASTRUCTURE, owner=OwnerReference("cluster.x-k8s.io/v1beta2", "Machine", "web-1", "gone")),
        child(Slot.INFRASTRUCTURE, resource=OLD_INFRASTRUCTURE),
    ],
    ids=["older-template", "no-hash", "controlled", "owned", "another-kind"],
)
def test_any_other_leftover_is_deleted_and_waited_for(left: Child) -> None:
    plan = decide(snapshot(UP, children=(BOTH[0], left), answers=Answers(gone=frozenset({"gone"}))))
    assert (plan.phase, plan.reason) == (Phase.PENDING, Reason.WAITING_FOR_DELETION)
    assert plan.steps == (DeleteChildren((left,)),)
    assert str(left) in plan.message


@pytest.mark.contract("B1.5")
@pytest.mark.parametrize("resolution", [UP, DOWN], ids=["up", "down"])
def test_what_a_machine_has_adopted_is_deleted_only_when_the_server_says_that_it_is_gone(
    resolution: Resolution,
) -> None:
    """The answer to its creation was lost, and its cache may be behind that of what it was made from."""
    s = snapshot(resolution, children=adopted("m-2"), stored=stored_status(shutdownRequestedTime=at(minutes=1)))
    plan = decide(s)
    assert (plan.ask, plan.quiet, plan.steps) == (Question.MACHINE_GONE, True, ())
    another = decide(replace(s, answers=Answers(gone=frozenset({"m-1"}))))
    assert another.ask is Question.MACHINE_GONE
    assert steps(decide(replace(s, answers=Answers(gone=frozenset({"m-2"})))), DeleteChildren)
    owner = controller("Machine", "m-2")
    going = tuple(child(slot, owner=owner, deleting=True) for slot in Slot)
    assert decide(replace(s, world=replace(s.world, children=going))).ask is None, "nothing is left to be spared"


@pytest.mark.contract("B2.2")
def test_what_a_foreign_machine_that_is_seen_controls_is_no_question() -> None:
    foreign = machine(ours=False)
    left = child(Slot.INFRASTRUCTURE, owner=controller("Machine", foreign.head.uid))
    assert decide(snapshot(DOWN, machine=foreign, children=(left,))).steps == (DeleteChildren((left,)),)


@pytest.mark.contract("B1.5")
def test_a_leftover_that_is_going_is_waited_for_without_another_delete() -> None:
    plan = decide(snapshot(UP, children=(child(Slot.INFRASTRUCTURE, deleting=True),)))
    assert (plan.phase, plan.reason, plan.steps) == (Phase.PENDING, Reason.WAITING_FOR_DELETION, ())


@pytest.mark.contract("B1.21")
def test_a_shutdown_is_remembered_until_its_leftovers_are_gone_though_up_is_wanted_again() -> None:
    going = (child(Slot.INFRASTRUCTURE, deleting=True),)
    s = snapshot(
        UP, children=going, stored=stored_status(shutdownRequestedTime=at(minutes=9), machineRef=machine_ref())
    )
    plan, stored = judged(s)
    assert (plan.replacement, plan.events) == ("", ())
    assert stored["shutdownRequestedTime"] == at(minutes=9)
    gone, stored = judged(snapshot(UP, stored=stored_status(stored)))
    assert gone.replaced.count == 0
    assert steps(gone, CreateChildren)
    assert "shutdownRequestedTime" not in stored


@pytest.mark.contract("B2.3")
def test_of_two_leftovers_in_one_place_status_names_the_one_that_spec_does_not() -> None:
    older = child(Slot.INFRASTRUCTURE, uid="old", resource=OLD_INFRASTRUCTURE)
    _, stored = judged(snapshot(UP, children=(*BOTH, older)))
    assert stored["infrastructureRef"]["kind"] == "OldMachine"


# B1.6 -----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.6")
def test_the_server_is_asked_before_a_machine_counts_as_lost() -> None:
    plan = decide(snapshot(UP, stored=stored_status(machineRef=machine_ref())))
    assert (plan.ask, plan.quiet, plan.steps) == (Question.MACHINE_GONE, True, ())


@pytest.mark.contract("B1.6")
def test_a_lost_machine_is_told_once_and_recreated_under_the_brake() -> None:
    s = snapshot(UP, stored=stored_status(machineRef=machine_ref()), answers=Answers(gone=frozenset({"m-1"})))
    plan, stored = judged(s)
    assert (plan.phase, plan.steps, plan.replacement) == (Phase.PENDING, (), "Lost")
    (event,) = plan.events
    assert (event.reason, event.warning, event.once) == (Reason.MACHINE_LOST, True, "m-1")
    assert plan.wake is not None
    assert (plan.wake - s.now).total_seconds() == 10
    again = decide(snapshot(UP, stored=stored_status(stored)))
    assert (again.events, again.replacement, again.replaced.count) == ((), "", 1)


@pytest.mark.contract("B1.6")
def test_a_machine_that_we_shut_down_ourselves_is_not_lost() -> None:
    s = snapshot(UP, stored=stored_status(machineRef=machine_ref(), shutdownRequestedTime=at(minutes=9)))
    plan = decide(s)
    assert (plan.ask, plan.events) == (None, ())
    assert steps(plan, CreateChildren)


# B1.7 -----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.7")
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"machine": machine(ours=False)}, "Machine team-a/web-1"),
        ({"children": (child(Slot.BOOTSTRAP, ours=False),)}, "StandInBootstrap"),
        ({"templates": TemplateState(Known.NO, "kind Infra of group x is not installed: install it")}, "install it"),
        ({"capi": NO_CAPI}, "install 1.9 or newer"),
        ({"capi": ClusterApi(Known.YES, why="Machines are served at v1alpha4")}, "v1alpha4"),
        ({"children_error": True, "children_why": "Infra objects cannot be read: 403"}, "403"),
    ],
    ids=["foreign-machine", "foreign-child", "unknown-kind", "no-capi", "capi-version", "forbidden"],
)
def test_what_is_in_the_way_of_creation_is_an_error_with_its_remedy(changes: dict[str, Any], named: str) -> None:
    plan, stored = judged(snapshot(UP, **({"children": ()} | changes)))
    assert (plan.phase, plan.reason, plan.steps) == (Phase.ERROR, Reason.MACHINE_CREATION_FAILED, ())
    assert named in plan.message
    assert plan.wake is not None
    assert condition(stored, "Stalled") == ("True", "MachineCreationFailed")
    assert condition(stored, "Ready") == ("False", "MachineCreationFailed")
    assert condition(stored, "Reconciling") is None


@pytest.mark.contract("B1.7")
def test_a_foreign_object_of_a_kind_that_only_status_names_is_not_in_the_way() -> None:
    foreign = child(Slot.INFRASTRUCTURE, ours=False, resource=OLD_INFRASTRUCTURE)
    assert steps(decide(snapshot(UP, children=(foreign,))), CreateChildren)


@pytest.mark.contract("B1.7")
def test_a_refused_creation_waits_until_it_is_due_and_is_then_tried_again() -> None:
    plan, stored = judged(snapshot(UP, refusal=refusal(due=1060.0)))
    assert (plan.phase, plan.message, plan.steps) == (Phase.ERROR, "quota exceeded", ())
    assert plan.wake is not None
    assert (plan.wake - snapshot().now).total_seconds() == 60
    assert condition(stored, "Reconciling") == ("True", "MachineCreationFailed")
    assert condition(stored, "Stalled") is None
    assert steps(decide(snapshot(UP, refusal=refusal(due=1000.0))), CreateChildren)


# B1.8 -----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.8")
def test_a_machine_marked_by_a_health_check_is_deleted_and_counted() -> None:
    s = snapshot(UP, machine=ready_machine(remediate=True))
    plan, stored = judged(s)
    assert (plan.phase, plan.reason, plan.replacement) == (Phase.SHUTTING_DOWN, Reason.REMEDIATING, "Remediated")
    assert [step.machine.head.uid for step in steps(plan, DeleteMachine)] == ["m-1"]
    assert len(plan.steps) == 1
    again = decide(snapshot(UP, machine=machine(deleting=True), stored=stored_status(stored)))
    assert (again.replaced.count, again.replacement) == (1, "")
    gone = decide(snapshot(UP, stored=stored_status(stored)))
    assert (gone.reason, gone.steps) == ("ReplacementDelayed", ())


@pytest.mark.contract("B1.8")
def test_a_refused_deletion_is_not_repeated_before_it_is_due() -> None:
    plan = decide(snapshot(UP, machine=ready_machine(remediate=True), refusal=refusal()))
    assert (plan.phase, plan.steps) == (Phase.ERROR, ())


# B1.17 ----------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.17")
def test_an_invalid_object_without_machine_is_an_error() -> None:
    plan, stored = judged(snapshot(UP, spec=spec(problems=("spec.clusterName: is required",))))
    assert (plan.phase, plan.reason, plan.steps) == (Phase.ERROR, Reason.REFERENCES_INVALID, ())
    assert "spec.clusterName" in plan.message
    assert condition(stored, "Stalled") == ("True", "ReferencesInvalid")


@pytest.mark.contract("B1.17")
def test_an_invalid_object_keeps_the_machine_it_has() -> None:
    plan = decide(snapshot(UP, machine=ready_machine(), spec=spec(problems=("broken",), bootstrap=None)))
    assert (plan.phase, plan.settled, plan.steps) == (Phase.ACTIVE, True, ())


# B2.3, B6.1, and what is not known yet --------------------------------------------------------------------------


@pytest.mark.contract("B2.3")
@pytest.mark.parametrize(
    ("stored", "fresh", "asks"),
    [
        (None, False, True),
        (None, True, False),
        ({"phase": "Active", "spotSchedule": {"resolved": True, "active": True}}, False, True),
        ({"bootstrapRef": ref(BOOTSTRAP)}, False, False),
        ({"infrastructureRef": ref(INFRASTRUCTURE)}, False, False),
    ],
    ids=["lost-status", "first-seen", "existing-5-spot", "bootstrap-named", "infrastructure-named"],
)
def test_leftovers_are_searched_by_label_only_where_status_names_none(stored: Any, fresh: bool, asks: bool) -> None:
    plan = decide(snapshot(UP, stored=stored_status(stored or {}), fresh=fresh))
    assert (plan.ask is Question.LEFTOVERS) is asks
    searched = decide(snapshot(UP, stored=stored_status(stored or {}), fresh=fresh, answers=Answers(searched=True)))
    assert steps(searched, CreateChildren)


@pytest.mark.contract("B6.1")
def test_without_cluster_nothing_is_created_and_that_passes_by_itself() -> None:
    plan, stored = judged(snapshot(UP, cluster=NO_CLUSTER))
    assert (plan.phase, plan.reason, plan.steps) == (Phase.PENDING, Reason.CLUSTER_NOT_FOUND, ())
    assert condition(stored, "Reconciling") == ("True", "ClusterNotFound")
    assert condition(stored, "Stalled") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"capi": UNKNOWN_CAPI},
        {"machine_known": Known.UNKNOWN},
        {"children_known": Known.UNKNOWN, "children_why": "not listed yet"},
        {"cluster": UNKNOWN_CLUSTER},
        {"templates": TemplateState(Known.UNKNOWN, "not fetched yet")},
    ],
    ids=["capi", "machines", "children", "clusters", "templates"],
)
def test_what_is_not_known_yet_is_waited_for_without_a_word(changes: dict[str, Any]) -> None:
    plan = decide(snapshot(UP, **changes))
    assert (plan.steps, plan.quiet, plan.recheck) == ((), True, True)
    assert plan.why_waiting


def test_a_running_machine_is_mirrored_though_its_children_are_not_read_and_their_references_stay() -> None:
    s = snapshot(
        UP,
        machine=ready_machine(),
        children=(),
        children_known=Known.UNKNOWN,
        cluster=UNKNOWN_CLUSTER,
        stored=stored_status(bootstrapRef=ref(BOOTSTRAP), infrastructureRef=ref(INFRASTRUCTURE)),
    )
    plan, stored = judged(s)
    assert plan.settled
    assert (stored["bootstrapRef"], stored["infrastructureRef"]) == (ref(BOOTSTRAP), ref(INFRASTRUCTURE))


def test_status_names_the_children_at_the_version_of_the_template() -> None:
    _, stored = judged(snapshot(UP, machine=ready_machine(), children=adopted()))
    assert stored["bootstrapRef"] == ref(BOOTSTRAP, "bootstrap-1")
    assert stored["infrastructureRef"] == ref(INFRASTRUCTURE, "infrastructure-1")
