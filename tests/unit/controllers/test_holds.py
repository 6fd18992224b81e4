"""B8.4: an administrator's stop, and the wait for the admission policy, as decisions and as what they are fed with."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fivespot.api import Phase, names
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.holds import CreationHold, Holds
from fivespot.controllers.scheduledmachine.plan import CreateChildren, DeleteMachine, DropFinalizer
from fivespot.controllers.scheduledmachine.snapshot import Slot, Snapshot
from fivespot.controllers.scheduledmachine.spec import SpecView
from fivespot.controllers.scheduledmachine.status import build_status
from fivespot.runtime import Object, find_condition
from unit.controllers.build import (
    DOWN,
    NOW,
    UP,
    at,
    child,
    head,
    machine,
    ready_machine,
    snapshot,
    spec,
    stored_status,
)

pytestmark = pytest.mark.contract("B8.4")

STOP = "stopped by annotation 5spot.finos.org/stop on Lease 5spot-system/5spot-leader: data centre"
OVER = stored_status(active=False, shutdownRequestedTime=at(hours=1))
KILLED = spec(kill_switch=True)


def stopped(s: Snapshot) -> Snapshot:
    return replace(s, stopped=STOP)


@pytest.mark.parametrize(
    "s",
    [
        snapshot(UP),
        snapshot(UP, children=(child(Slot.BOOTSTRAP, made_from="old"),)),
        snapshot(UP, machine=ready_machine(remediate=True)),
        snapshot(DOWN, machine=ready_machine(), stored=OVER),
        snapshot(DOWN, children=(child(Slot.BOOTSTRAP),)),
        replace(snapshot(DOWN), head=head(deleted=at(seconds=5))),
        replace(snapshot(UP, machine=ready_machine()), head=head(deleted=at(seconds=5))),
        replace(snapshot(UP, machine=ready_machine()), spec=spec(enabled=False, grace=timedelta())),
    ],
)
def test_nothing_is_created_or_deleted_while_everything_is_stopped(s: Snapshot) -> None:
    assert decide(s).steps
    plan = decide(stopped(s))
    assert plan.steps == ()
    assert (plan.reason, plan.message, plan.settled) == ("Stopped", STOP, False)
    status = build_status(stopped(s), plan)
    paused = find_condition(status["conditions"], "Paused")
    assert paused is not None
    assert (paused["status"], paused["reason"], paused["message"]) == ("True", "Stopped", STOP)


@pytest.mark.parametrize("s", [snapshot(UP, machine=ready_machine()), snapshot(UP, children=(child(Slot.BOOTSTRAP),))])
def test_the_kill_switch_acts_all_the_same(s: Snapshot) -> None:
    s = replace(s, spec=KILLED)
    assert decide(stopped(s)).steps == decide(s).steps != ()


def test_a_killed_machine_that_is_deleted_is_let_go() -> None:
    s = replace(snapshot(DOWN), spec=KILLED, head=head(deleted=at(seconds=5)))
    assert decide(stopped(s)).steps == (DropFinalizer(),)


def test_a_machine_that_is_as_wanted_stays_settled_and_shows_the_stop() -> None:
    s = stopped(snapshot(UP, machine=ready_machine()))
    plan = decide(s)
    assert (plan.phase, plan.settled) == (Phase.ACTIVE, True)
    assert find_condition(build_status(s, plan)["conditions"], "Paused") is not None


def test_grace_goes_on_and_the_deletion_waits() -> None:
    s = snapshot(DOWN, machine=ready_machine(), stored=stored_status(active=False, shutdownRequestedTime=at(hours=1)))
    held = decide(stopped(s))
    assert held.shutdown_requested is not None
    assert any(isinstance(step, DeleteMachine) for step in decide(s).steps), "at once when the stop ends"


def test_a_creation_that_is_held_back_says_why_and_until_when() -> None:
    until = NOW + timedelta(minutes=7)
    hold = CreationHold("ActivationRateLimited", "later", until)
    plan = decide(replace(snapshot(UP), creation_hold=hold))
    assert (plan.steps, plan.phase, plan.reason, plan.message, plan.wake) == (
        (),
        Phase.PENDING,
        "ActivationRateLimited",
        "later",
        until,
    )
    assert decide(replace(snapshot(UP), creation_hold=CreationHold("x", "y"))).recheck
    up = snapshot(UP, machine=machine())
    assert decide(replace(up, creation_hold=hold)) == decide(up), "what exists stays"


@pytest.mark.parametrize(
    ("own", "floor", "kept"),
    [(0, 0, 0), (0, 300, 300), (60, 300, 300), (600, 300, 600)],
)
def test_grace_is_at_least_the_administrators(own: int, floor: int, kept: int) -> None:
    graceful: SpecView = spec(grace=timedelta(seconds=own))
    s = replace(snapshot(DOWN, machine=ready_machine()), spec=graceful, shortest_grace=timedelta(seconds=floor))
    plan = decide(s)
    if not kept:
        assert any(isinstance(step, DeleteMachine) for step in plan.steps)
        return
    assert plan.next_cleanup == NOW + timedelta(seconds=kept)
    assert ("--shortest-grace" in plan.message) == (floor > own)
    killed = decide(replace(s, spec=replace(graceful, kill_switch=True)))
    assert any(isinstance(step, DeleteMachine) for step in killed.steps), "the kill switch knows no grace"


# What feeds them ----------------------------------------------------------------------------------------------------


def lease(stop: str | None = None, **metadata: Any) -> Object:
    annotations = {} if stop is None else {names.ANNOTATION_STOP: stop}
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "5spot-leader",
            "namespace": "5spot-system",
            "resourceVersion": "5",
            "uid": "u",
            "annotations": annotations,
            **metadata,
        },
    }
    return Object.parse(json.dumps(body).encode())


def test_the_annotation_stops_and_its_removal_ends_the_stop() -> None:
    holds, changes = Holds(), list[str]()
    holds.subscribe(lambda: changes.append(holds.stopped))
    assert holds.lease_observed(lease()) is None
    managed = [
        {"manager": "fivespot", "time": "2026-11-30T08:00:00Z", "fieldsV1": {"f:spec": {}}},
        {
            "manager": "kubectl-annotate",
            "time": "2026-11-30T08:59:00Z",
            "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{names.ANNOTATION_STOP}": {}}}},
        },
    ]
    begun = holds.lease_observed(lease("data\ncentre", managedFields=managed))
    assert begun is not None
    assert (begun.reason, begun.warning) == ("Stopped", True)
    assert begun.message == (
        f"nothing is created or deleted, kill switches excepted: {STOP} "
        "(set by kubectl-annotate at 2026-11-30T08:59:00Z)"
    )
    assert (holds.stopped, changes) == (STOP, [STOP])
    assert holds.lease_observed(lease("data centre")) is None, "nothing new"
    ended = holds.lease_observed(lease())
    assert ended is not None
    assert (ended.reason, holds.stopped, holds.stop_note(), changes) == ("Resumed", "", "", [STOP, ""])


@pytest.mark.parametrize("text", ["", "\x1b[31m", "x" * 100_000, "\u202etxt"])
def test_hostile_words_are_shown_short_and_clean(text: str) -> None:
    holds = Holds()
    holds.lease_observed(lease(text))
    assert holds.stopped.startswith("stopped by annotation")
    assert holds.stopped.isprintable()
    assert len(holds.stopped) < 400


@pytest.mark.parametrize("managed", ["x", [1], [{}], [{"fieldsV1": []}], [{"fieldsV1": {"f:metadata": 1}}]])
def test_managed_fields_of_any_shape_are_read(managed: Any) -> None:
    holds = Holds()
    holds.lease_observed(lease("x", managedFields=managed))
    assert holds.set_by == ""


def test_creations_wait_for_the_policy_only_where_it_is_required() -> None:
    assert Holds().creation is None
    holds, changes = Holds(require_policy=True), list[bool]()
    holds.subscribe(lambda: changes.append(holds.creation is None))
    assert holds.creation is not None
    assert "it is not known yet" in holds.creation.message
    unbound = {names.ADMISSION_POLICY: "it does not exist", "scheduledmachine-controller": ""}
    holds.policies_observed(unbound)
    assert holds.creation == CreationHold(
        "AdmissionPolicyMissing",
        "it does not exist; nothing is created until it is in force (--require-admission-policy)",
    )
    assert holds.policy_note() == "it does not exist"
    holds.policies_observed({names.ADMISSION_POLICY: "", "scheduledmachine-controller": "is gone"})
    after: CreationHold | None = holds.creation
    assert (after, holds.policy_note()) == (None, "is gone")
    assert changes == [False, True]
    assert list(holds.bound_readings()) == [((names.ADMISSION_POLICY,), 1.0), (("scheduledmachine-controller",), 0.0)]


def test_a_plan_with_a_hold_has_no_step() -> None:
    s = replace(snapshot(UP), creation_hold=CreationHold("x", "y"))
    assert not any(isinstance(step, CreateChildren) for step in decide(s).steps)
