"""B6.2: while paused everything is resolved and reported, and nothing of ours is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fivespot.api import Phase, names
from fivespot.controllers.scheduledmachine.cluster_api import ClusterView, Known
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.plan import DeleteMachine, DropFinalizer
from fivespot.controllers.scheduledmachine.snapshot import Slot, Snapshot
from unit.controllers.build import (
    DOWN,
    LOST,
    NO_CAPI,
    UNKNOWN_CLUSTER,
    UP,
    at,
    child,
    condition,
    head,
    judged,
    machine,
    ready_machine,
    snapshot,
    spec,
    steps,
    stored_status,
)

PAUSED = {names.ANNOTATION_PAUSED: ""}
OVER = stored_status(active=False, shutdownRequestedTime=at(hours=1))


def by_cluster(s: Snapshot) -> Snapshot:
    return replace(s, world=replace(s.world, cluster=ClusterView(Known.YES, paused=True)))


def by_annotation(s: Snapshot) -> Snapshot:
    return replace(s, head=head(deleted=s.head.deletion_timestamp, annotations=PAUSED))


@pytest.fixture(params=[by_cluster, by_annotation])
def pause(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.contract("B6.2")
@pytest.mark.parametrize(
    "s",
    [
        snapshot(UP),
        snapshot(UP, children=(child(Slot.BOOTSTRAP, made_from="old"),)),
        snapshot(UP, machine=ready_machine(labels={})),
        snapshot(UP, machine=ready_machine(remediate=True)),
        snapshot(DOWN, machine=ready_machine(), stored=OVER),
        snapshot(DOWN, children=(child(Slot.BOOTSTRAP),)),
        snapshot(DOWN, head=head(deleted=at()), machine=machine()),
        snapshot(DOWN, head=head(deleted=at())),
        snapshot(DOWN, head=head(deleted=at(days=1)), force_finalizer=True, machine=machine(deleting=True)),
    ],
    ids=["create", "clean", "label", "remediate", "delete", "leftovers", "deletion", "finalizer", "forced"],
)
def test_no_step_is_taken_while_paused(pause: Any, s: Snapshot) -> None:
    assert decide(s).steps
    plan, stored = judged(pause(s))
    assert (plan.steps, plan.paused) == ((), True)
    assert condition(stored, "Paused") == ("True", "Paused")


@pytest.mark.contract("B6.2")
def test_a_machine_is_paused_by_its_own_annotation() -> None:
    annotations = machine().head.annotations | PAUSED
    s = snapshot(DOWN, machine=ready_machine(annotations=annotations), stored=OVER)
    assert (decide(s).steps, decide(s).paused) == ((), True)
    foreign = snapshot(UP, machine=machine(ours=False, annotations=PAUSED))
    assert not decide(foreign).paused


@pytest.mark.contract("B6.2")
def test_what_waits_for_the_pause_says_so(pause: Any) -> None:
    plan = decide(pause(snapshot(UP)))
    assert (plan.phase, plan.reason, plan.settled) == (Phase.PENDING, "Paused", False)
    plan = decide(pause(snapshot(DOWN, machine=ready_machine(), stored=OVER)))
    assert (plan.phase, plan.reason, plan.settled) == (Phase.SHUTTING_DOWN, "Paused", False)


@pytest.mark.contract("B6.2")
def test_while_paused_the_schedule_is_resolved_and_the_machine_mirrored(pause: Any) -> None:
    _, stored = judged(pause(snapshot(LOST, machine=ready_machine())))
    assert condition(stored, "SpotScheduleResolved") == ("False", "ProviderNotFound")
    assert (stored["ready"], stored["phase"]) == (True, "Active")
    plan = decide(pause(snapshot(UP, machine=ready_machine())))
    assert (plan.settled, plan.reason) == (True, "MachineReady")


@pytest.mark.contract("B6.2")
def test_grace_counts_while_paused(pause: Any) -> None:
    plan = decide(pause(snapshot(DOWN, machine=ready_machine())))
    assert (plan.reason, plan.next_cleanup is not None) == ("GracePeriodActive", True)


@pytest.mark.contract("B6.2")
def test_the_kill_switch_alone_acts(pause: Any) -> None:
    killed = pause(snapshot(UP, machine=ready_machine(), spec=spec(kill_switch=True)))
    assert steps(decide(killed), DeleteMachine)


@pytest.mark.contract("B6.2")
def test_a_condition_of_a_pause_that_is_over_goes() -> None:
    stored = judged(by_cluster(snapshot(UP, machine=ready_machine())))[1]
    _, later = judged(snapshot(UP, machine=ready_machine(), stored=stored_status(stored)))
    assert condition(later, "Paused") is None


@pytest.mark.contract("B6.2")
def test_before_clusters_are_read_nothing_of_ours_is_touched() -> None:
    s = snapshot(DOWN, machine=ready_machine(), stored=OVER, cluster=UNKNOWN_CLUSTER)
    plan = decide(s)
    assert (plan.steps, plan.quiet) == ((), True)
    assert decide(replace(s, spec=spec(kill_switch=True))).steps


@pytest.mark.contract("B3.3")
def test_an_overdue_deletion_is_told_though_clusters_cannot_be_read() -> None:
    s = snapshot(DOWN, head=head(deleted=at(days=1)), machine=machine(), cluster=UNKNOWN_CLUSTER)
    plan = decide(s)
    assert (plan.steps, plan.overdue, len(plan.events)) == ((), True, 1)


@pytest.mark.contract("B3.4")
def test_without_cluster_api_there_is_no_pause_to_wait_for() -> None:
    s = snapshot(DOWN, head=head(deleted=at()), capi=NO_CAPI, cluster=UNKNOWN_CLUSTER)
    assert decide(s).steps == (DropFinalizer(),)
