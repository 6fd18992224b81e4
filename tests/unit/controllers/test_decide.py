"""A5-A15, B1.22, B1.23: what the schedule's word, or its silence, leads to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fivespot.api import Phase, Reason, names
from fivespot.contract import Resolution, Unresolved
from fivespot.controllers.scheduledmachine.cluster_api import ClusterView, Known
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.plan import CreateChildren, DeleteChildren, DeleteMachine, Want
from fivespot.controllers.scheduledmachine.snapshot import Slot, Snapshot
from unit.controllers.build import (
    BLIND,
    DOWN,
    HOURS,
    LOST,
    NOW,
    OTHER,
    UP,
    after,
    at,
    child,
    condition,
    entries,
    judged,
    machine,
    ready_machine,
    snapshot,
    spec,
    status,
    steps,
    stored_status,
)

NEVER = stored_status(status(active=None))
REFERENCES_OTHER = spec(schedule=OTHER)


# Precedence -----------------------------------------------------------------------------------------------------


@pytest.mark.contract("A6")
@pytest.mark.parametrize("resolution", [UP, DOWN, LOST, BLIND], ids=["up", "down", "lost", "blind"])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("cluster_deleting", [True, False])
def test_the_kill_switch_beats_everything(resolution: Resolution, enabled: bool, cluster_deleting: bool) -> None:
    cluster = ClusterView(Known.YES, deleting=cluster_deleting, paused=True)
    plan = decide(
        snapshot(resolution, spec=spec(kill_switch=True, enabled=enabled), cluster=cluster, machine=machine())
    )
    assert plan.want is Want.KILLED
    assert steps(plan, DeleteMachine)


@pytest.mark.contract("A6")
@pytest.mark.parametrize("resolution", [UP, DOWN, LOST, BLIND], ids=["up", "down", "lost", "blind"])
def test_disabled_beats_the_schedule(resolution: Resolution) -> None:
    plan = decide(snapshot(resolution, spec=spec(enabled=False), machine=ready_machine()))
    assert (plan.want, plan.reason) == (Want.DISABLED, Reason.GRACE_PERIOD_ACTIVE)


@pytest.mark.contract("A4", "A9")
@pytest.mark.parametrize(("resolution", "want"), [(UP, Want.ACTIVE), (DOWN, Want.INACTIVE)])
def test_a_verdict_counts_whatever_was_held(resolution: Resolution, want: Want) -> None:
    for held in (True, False, None):
        plan, stored = judged(snapshot(resolution, stored=stored_status(active=held)))
        assert plan.want is want
        assert condition(stored, "SpotScheduleResolved") == ("True", "Resolved")
        assert stored["inSchedule"] is (want is Want.ACTIVE)


# Unresolved -----------------------------------------------------------------------------------------------------


@pytest.mark.contract("A8")
@pytest.mark.parametrize("held", [True, False])
def test_the_last_verdict_is_held_and_the_trouble_is_loud(held: bool) -> None:
    plan, stored = judged(snapshot(LOST, stored=stored_status(active=held), machine=ready_machine() if held else None))
    assert (plan.want.down, plan.steps, plan.settled, plan.recheck) == (not held, (), True, True)
    assert condition(stored, "SpotScheduleResolved") == condition(stored, "Ready") == ("False", "ProviderNotFound")
    assert stored["spotSchedule"] == {
        "resolved": False,
        "reason": "ProviderNotFound",
        "message": LOST.message,
        "active": held,
        "reference": {"kind": HOURS.kind, "name": HOURS.name},
    }


@pytest.mark.contract("A8")
def test_a_held_verdict_still_creates_and_still_takes_away() -> None:
    assert steps(decide(snapshot(LOST, stored=stored_status(active=True))), CreateChildren)
    over = stored_status(active=False, shutdownRequestedTime=at(minutes=5))
    assert steps(decide(snapshot(LOST, stored=over, machine=machine())), DeleteMachine)


@pytest.mark.contract("A8")
def test_never_resolved_means_inactive() -> None:
    for remembered in (NEVER, stored_status({"phase": "Pending"})):
        plan, stored = judged(replace(snapshot(LOST, stored=remembered), fresh=True))
        assert (plan.phase, plan.want) == (Phase.INACTIVE, Want.INACTIVE)
        assert "active" not in stored["spotSchedule"]
        assert stored["inSchedule"] is False


@pytest.mark.contract("A8")
def test_a_resolved_schedule_needs_no_recheck() -> None:
    assert not decide(snapshot(UP, machine=ready_machine())).recheck
    assert not decide(snapshot(DOWN)).recheck


# Changed references ---------------------------------------------------------------------------------------------


@pytest.mark.contract("B1.22")
def test_another_reference_does_not_inherit_and_grace_is_at_least_five_minutes() -> None:
    s = snapshot(LOST, spec=replace(REFERENCES_OTHER, grace=timedelta(0)), machine=ready_machine())
    plan, stored = judged(s)
    assert (plan.want, plan.steps, plan.next_cleanup) == (Want.INACTIVE, (), NOW + timedelta(minutes=5))
    (event,) = plan.events
    assert (event.reason, event.warning) == (Reason.SCHEDULE_REFERENCE_UNRESOLVED, True)
    assert "2026-11-30T09:05:00Z" in event.message
    assert event.once == f"m-1/{OTHER}"
    assert stored["spotSchedule"]["reference"] == {"kind": OTHER.kind, "name": OTHER.name}
    assert "active" not in stored["spotSchedule"]


@pytest.mark.contract("B1.22")
def test_a_longer_grace_stays_as_it_is() -> None:
    plan = decide(snapshot(LOST, spec=replace(REFERENCES_OTHER, grace=timedelta(hours=1)), machine=machine()))
    assert plan.next_cleanup == NOW + timedelta(hours=1)


@pytest.mark.contract("B1.22")
@pytest.mark.parametrize("made_for", [str(HOURS), ""], ids=["made-for-the-first", "taken-over"])
def test_a_reference_that_never_resolved_stays_so_in_the_runs_that_follow(made_for: str) -> None:
    # The Machine says for whom it was made, or nothing at all; neither overrules what status now says.
    annotations = {names.ANNOTATION_SCHEDULE_REF: made_for} if made_for else {}
    s = snapshot(LOST, spec=REFERENCES_OTHER, machine=ready_machine(annotations=annotations))
    for _ in range(3):
        plan = decide(s)
        assert (plan.want, plan.verdict.known, plan.next_cleanup) == (
            Want.INACTIVE,
            False,
            NOW + timedelta(minutes=5),
        )
        s = after(s, plan)


@pytest.mark.contract("B1.22")
def test_the_least_grace_does_not_fall_away_when_the_reference_cannot_be_read_any_more() -> None:
    s = snapshot(LOST, spec=replace(REFERENCES_OTHER, grace=timedelta(0)), machine=ready_machine())
    s = after(s, decide(s))
    blind = replace(s, world=replace(s.world, resolution=BLIND), now=NOW + timedelta(minutes=1), unreadable_for=60.0)
    plan = decide(blind)
    assert (plan.steps, plan.next_cleanup) == ((), NOW + timedelta(minutes=5))
    assert steps(decide(replace(blind, now=NOW + timedelta(minutes=5))), DeleteMachine)


@pytest.mark.contract("B1.22")
def test_a_reference_that_resolves_within_grace_keeps_the_machine() -> None:
    s = snapshot(LOST, spec=REFERENCES_OTHER, machine=ready_machine())
    s = after(s, decide(s))
    plan = decide(replace(s, world=replace(s.world, resolution=UP)))
    assert (plan.phase, plan.shutdown_requested) == (Phase.ACTIVE, None)


@pytest.mark.contract("B1.22")
def test_the_least_grace_is_for_the_schedules_account_only() -> None:
    off = replace(REFERENCES_OTHER, grace=timedelta(0), enabled=False)
    assert steps(decide(snapshot(LOST, spec=off, machine=ready_machine())), DeleteMachine)


@pytest.mark.contract("B1.23")
@pytest.mark.parametrize(
    ("stored", "annotations", "held"),
    [
        ({}, {names.ANNOTATION_SCHEDULE_REF: str(HOURS)}, True),
        ({}, {}, True),
        ({}, {names.ANNOTATION_SCHEDULE_REF: str(OTHER)}, False),
        ({"phase": "Active", "spotSchedule": {"resolved": False}}, {}, True),
        (status(None, active=False), {}, False),
        (status(None, active=True), {}, True),
    ],
    ids=["restored", "restored-taken-over", "made-for-another", "5-spot-unresolved", "5-spot-down", "5-spot-up"],
)
def test_what_is_held_when_status_was_lost_or_is_the_existing_5_spots(
    stored: dict[str, Any], annotations: dict[str, str], held: bool
) -> None:
    plan = decide(snapshot(LOST, stored=stored_status(stored), machine=ready_machine(annotations=annotations)))
    assert plan.verdict.active is held
    assert (plan.phase is Phase.ACTIVE) is held


# Unreadable -----------------------------------------------------------------------------------------------------


def blind(seconds: float = 60.0, **changes: Any) -> Snapshot:
    return snapshot(BLIND, unreadable_for=seconds, **changes)


@pytest.mark.contract("A15")
@pytest.mark.parametrize("seconds", [0.0, 29.9, 30.0, 3600.0])
def test_nothing_is_created_for_a_schedule_that_cannot_be_read(seconds: float) -> None:
    plan = decide(blind(seconds))
    assert plan.steps == ()
    assert plan.quiet is (seconds < 30)
    assert decide(blind(seconds, spec=spec(tainted=True), children=(child(Slot.BOOTSTRAP),))).steps == ()


@pytest.mark.contract("A15")
def test_an_old_leftover_is_not_deleted_to_make_room_either() -> None:
    assert decide(blind(children=(child(Slot.BOOTSTRAP, made_from="old"),))).steps == ()


@pytest.mark.contract("A15")
@pytest.mark.parametrize(
    "remembered", [NEVER, stored_status(active=False), stored_status({})], ids=["never", "down", "lost"]
)
@pytest.mark.parametrize("seconds", [0.0, 3600.0])
def test_no_deletion_is_begun_for_a_schedule_that_cannot_be_read(remembered: Any, seconds: float) -> None:
    other = REFERENCES_OTHER if remembered.schedule is None else spec()
    with_machine = decide(blind(seconds, stored=remembered, machine=ready_machine(), spec=other))
    assert (with_machine.steps, with_machine.shutdown_requested) == ((), None)
    left = (child(Slot.BOOTSTRAP), child(Slot.INFRASTRUCTURE))
    assert decide(blind(seconds, stored=remembered, children=left, fresh=True)).steps == ()


@pytest.mark.contract("A15")
def test_a_shutdown_already_begun_changed_world() -> None:
    begun = stored_status(active=False, shutdownRequestedTime=at(minutes=5))
    assert steps(decide(blind(stored=begun, machine=machine())), DeleteMachine)
    assert steps(decide(blind(stored=begun, children=(child(Slot.BOOTSTRAP),))), DeleteChildren)
    early = stored_status(active=False, shutdownRequestedTime=at(minutes=4))
    assert decide(blind(stored=early, machine=machine())).next_cleanup == NOW + timedelta(minutes=1)


@pytest.mark.contract("B5.3")
def test_what_was_held_over_a_restart_deletes_nothing_before_the_schedule_had_time_to_be_read() -> None:
    begun = stored_status(active=False, shutdownRequestedTime=at(minutes=5))
    early = blind(0.0, stored=begun, machine=machine())
    plan = decide(early)
    assert (plan.steps, plan.quiet, plan.wake) == ((), True, NOW + timedelta(seconds=30))
    assert decide(replace(early, world=replace(early.world, resolution=UP))).phase is Phase.ACTIVE
    assert steps(decide(replace(early, world=replace(early.world, resolution=DOWN))), DeleteMachine)
    assert steps(decide(replace(early, unreadable_for=30.0)), DeleteMachine)
    # Nobody asks the schedule about these.
    for spec_now in (replace(early.spec, kill_switch=True), replace(early.spec, enabled=False)):
        assert steps(decide(replace(early, spec=spec_now)), DeleteMachine)


@pytest.mark.contract("A15")
def test_a_running_machine_is_held_and_reported_only_once_it_has_lasted() -> None:
    before = stored_status(
        conditions=entries(
            ("Ready", "True", "MachineReady"),
            ("SpotScheduleResolved", "True", "Resolved"),
            ("Scheduled", "True", "ScheduleActive"),
        )
    )
    plan, stored = judged(blind(29.0, stored=before, machine=ready_machine()))
    assert (plan.phase, plan.settled, plan.steps, plan.recheck) == (Phase.ACTIVE, True, (), True)
    assert plan.wake == NOW + timedelta(seconds=1)
    assert condition(stored, "Ready") == ("True", "MachineReady")
    assert condition(stored, "SpotScheduleResolved") == ("True", "Resolved")
    assert stored["spotSchedule"] == before.raw["spotSchedule"]
    _, stored = judged(blind(30.0, stored=before, machine=ready_machine()))
    assert condition(stored, "Ready") == ("Unknown", "ProviderUnreadable")
    assert condition(stored, "SpotScheduleResolved") == ("Unknown", "ProviderUnreadable")
    assert condition(stored, "Scheduled") == ("True", "ScheduleActive")
    assert stored["spotSchedule"]["active"] is True


@pytest.mark.contract("A15")
def test_a_restart_keeps_an_unresolved_report_as_it_was() -> None:
    before = stored_status(
        conditions=entries(
            ("Ready", "False", "ProviderNotFound"), ("SpotScheduleResolved", "False", "ProviderNotFound")
        )
    )
    _, stored = judged(blind(1.0, stored=before, machine=ready_machine()))
    assert condition(stored, "Ready") == condition(stored, "SpotScheduleResolved") == ("False", "ProviderNotFound")


@pytest.mark.contract("A15")
@pytest.mark.parametrize("changed", [False, True], ids=["new-object", "changed-reference"])
def test_nothing_is_said_about_a_new_reference_before_it_has_lasted(changed: bool) -> None:
    remembered = stored_status() if changed else stored_status({})
    off = replace(REFERENCES_OTHER, enabled=False)
    _, stored = judged(blind(1.0, spec=off, stored=remembered, fresh=not changed))
    assert stored.get("spotSchedule") == remembered.raw.get("spotSchedule")
    assert condition(stored, "SpotScheduleResolved") is None
    assert decide(blind(1.0, spec=REFERENCES_OTHER, stored=remembered, fresh=not changed)).quiet


@pytest.mark.contract("A15")
def test_a_schedule_that_was_never_read_is_pending_not_inactive() -> None:
    plan, stored = judged(blind(31.0, stored=NEVER))
    assert (plan.phase, plan.settled, plan.quiet) == (Phase.PENDING, False, False)
    assert condition(stored, "Ready") == ("Unknown", "ProviderUnreadable")


@pytest.mark.contract("A15")
def test_what_does_not_depend_on_the_schedule_changed_world() -> None:
    assert steps(decide(blind(spec=spec(kill_switch=True), machine=machine())), DeleteMachine)
    assert steps(decide(blind(cluster=ClusterView(Known.YES, deleting=True), machine=machine())), DeleteMachine)
    assert decide(blind(spec=spec(enabled=False), machine=machine())).reason == Reason.GRACE_PERIOD_ACTIVE


@pytest.mark.contract("A15")
def test_the_switch_that_was_cleared_meanwhile_is_not_reported_any_longer() -> None:
    before = stored_status(active=True, conditions=entries(("Scheduled", "False", "KillSwitchActivated")))
    _, stored = judged(blind(60.0, stored=before))
    assert condition(stored, "Scheduled") == ("True", "ScheduleActive")


@pytest.mark.contract("A15")
def test_a_reason_to_be_unresolved_is_never_made_of_a_failure_to_read() -> None:
    for seconds in (0.0, 60.0):
        _, stored = judged(blind(seconds, machine=ready_machine()))
        found = condition(stored, "SpotScheduleResolved")
        assert found is None or found == ("Unknown", "ProviderUnreadable")


@pytest.mark.contract("A7")
def test_the_reason_of_an_unresolved_reference_is_the_one_reported() -> None:
    for reason in ("ProviderCRDNotInstalled", "ProviderNotFound", "StatusActiveMissing", "ProviderNotReady"):
        _, stored = judged(snapshot(Unresolved(reason, "why"), machine=ready_machine()))
        assert condition(stored, "SpotScheduleResolved") == condition(stored, "Ready") == ("False", reason)
