"""Decisions while the machine is not wanted (contract B1.9-B1.17, B3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from fivespot.api import Phase, Reason, names
from fivespot.contract import EffectiveVerdict, Unreadable, Unresolved
from fivespot.runtime.telemetry import EventNote

from .children import EXCLUDE_DRAIN, EXCLUDE_VOLUMES
from .cluster_api import Known, MachineView
from .common_plans import ask, child_in, error, invalid, known_refusal, search_needed, unprepared, unreadable, waiting
from .instants import read_instant, whole_second
from .plan import DeleteChildren, DeleteMachine, DropFinalizer, PatchMachine, Plan, Question, Step, Want
from .snapshot import Slot, Snapshot

__all__ = ["DRAIN_AGAIN", "FINALIZER_TIMEOUT", "decide_down", "overdue", "reference_changed"]

FINALIZER_TIMEOUT = "FinalizerCleanupTimeout"

_ORPHAN = "orphan"
"""The garbage collector's finalizer for deletion with ``--cascade=orphan``, which keeps the dependents."""

_NO_DRAIN: Final = ((EXCLUDE_DRAIN, ""), (EXCLUDE_VOLUMES, ""))
_NO_DRAIN_BY_KILL: Final = (*_NO_DRAIN, (names.ANNOTATION_DRAIN_EXCLUDED_BY, "killSwitch"))
DRAIN_AGAIN: Final = ((EXCLUDE_DRAIN, None), (EXCLUDE_VOLUMES, None), (names.ANNOTATION_DRAIN_EXCLUDED_BY, None))
"""Annotations that undo those of the kill switch, for a machine that outlives it."""
_SETTLED = {
    Want.KILLED: (Phase.TERMINATED, "the kill switch is on; clear it to let the schedule decide again"),
    Want.CLUSTER_DELETING: (Phase.INACTIVE, "the Cluster is being deleted"),
    Want.DISABLED: (Phase.DISABLED, "disabled by spec.enabled"),
    Want.INACTIVE: (Phase.INACTIVE, "outside the schedule"),
}


def decide_down(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan:
    """Return the plan for a machine that should not exist, or whose ScheduledMachine is being deleted."""
    plan = _take_away(s, verdict, want)
    if not s.head.deleting or any(isinstance(step, DropFinalizer) for step in plan.steps):
        return plan
    return overdue(s, plan)


def _take_away(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan:
    if s.head.deleting and _ORPHAN in s.head.finalizers:
        # Decided when the deletion is first seen: later the collector has removed the owner reference from the
        # Machine, or is about to, and a cache cannot tell which.
        return replace(_settled(s, verdict, want), message="deleted with --cascade=orphan; the machine stays")
    capi = s.world.capi
    if capi.installed is Known.NO:
        # B3.4: without Cluster API there can be no children.
        return _settled(s, verdict, want)
    if capi.installed is Known.YES and not capi.version:
        return error(s, verdict, want, Reason.MACHINE_DELETION_FAILED, capi.why, stalled=True)
    if capi.installed is Known.UNKNOWN or s.world.machine_known is Known.UNKNOWN:
        return waiting(s, verdict, want, capi.why or s.world.machine_why or "Machines are not read yet")
    machine = s.machine
    if machine is None:
        disowned = _disowned(s, verdict, want)
        return disowned if disowned is not None else _leftovers(s, verdict, want)
    if machine.deleting:
        return _draining(s, verdict, want, machine)
    refused = known_refusal(s, verdict, want)
    if refused is not None:
        return refused
    if _without_grace(s, want):
        return _delete(s, verdict, want, machine, s.shutdown_begun or whole_second(s.now))
    return _grace(s, verdict, want, machine)


def _without_grace(s: Snapshot, want: Want) -> bool:
    return s.head.deleting or want in (Want.KILLED, Want.CLUSTER_DELETING)


def _must_not_begin(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> bool:
    """A15: a shutdown that has begun goes on, but an unreadable schedule begins none."""
    on_its_account = want is Want.INACTIVE and not s.head.deleting
    return on_its_account and not verdict.may_begin and s.stored.shutdown_requested is None


def _not_read_yet(s: Snapshot, want: Want) -> bool:
    """A15, B5.3: whether the schedule may become readable in a moment, as after a start.

    A verdict from before a
    restart may be outdated, and the Machine may be wanted again.
    """
    resolution = s.world.resolution
    soon = isinstance(resolution, Unreadable) and s.unreadable_for < s.timings.unreadable_limit
    return want is Want.INACTIVE and soon


def _grace(s: Snapshot, verdict: EffectiveVerdict, want: Want, machine: MachineView) -> Plan:
    """B1.9, B1.20, B1.21: grace counts from the first decision to shut down."""
    if _must_not_begin(s, verdict, want):
        return replace(unreadable(s, _base(s, verdict, want, machine)), phase=Phase.ACTIVE)
    begun = s.shutdown_begun or whole_second(s.now)
    events: tuple[EventNote, ...] = ()
    never_resolved = want is Want.INACTIVE and not verdict.known
    grace, what = s.spec.grace, "gracefulShutdownTimeout"
    if s.shortest_grace > grace:
        grace, what = s.shortest_grace, "the manager's --shortest-grace"
    due = begun + grace
    if never_resolved:
        # B1.22: grace that began for another cause does not shorten the time since the reference was changed.
        due = max(due, (reference_changed(s) or begun) + timedelta(seconds=s.timings.reference_grace))
    if due <= begun or due <= s.now:
        if _not_read_yet(s, want):
            return replace(unreadable(s, _base(s, verdict, want, machine)), shutdown_requested=begun)
        return (_rate_limited if s.deletion_wait > 0 else _delete)(s, verdict, want, machine, begun)
    if never_resolved:
        events = (_unresolved_event(s, machine, due),)
    return replace(
        _base(s, verdict, want, machine),
        reason=Reason.GRACE_PERIOD_ACTIVE,
        message=f"the machine is kept until {due:%Y-%m-%dT%H:%M:%SZ} ({what}), then drained",
        shutdown_requested=begun,
        next_cleanup=due,
        events=events,
        wake=due,
    )


def reference_changed(s: Snapshot) -> datetime | None:
    """Return the time at which ``spec.schedule`` changed to a schedule that has never resolved, from status."""
    held = s.stored.schedule
    if held is None or held.reference is None:
        return None
    if held.reference != s.spec.schedule:
        return whole_second(s.now)
    changed = s.stored.reference_changed
    return changed if changed is None or changed <= s.now + timedelta(seconds=1) else whole_second(s.now)


def _disowned(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan | None:
    """Report a Machine that we created and that has lost our owner reference; nothing of it is deleted."""
    machine = s.disowned
    if machine is None or s.head.deleting:
        return None
    message = (
        f"Machine {s.head.namespace}/{s.head.name} is no longer controlled by this ScheduledMachine (its owner "
        "reference was removed) and is left alone: delete it, or put the owner reference back"
    )
    return error(s, verdict, want, Reason.MACHINE_DELETION_FAILED, message, stalled=True)


def _rate_limited(s: Snapshot, verdict: EffectiveVerdict, want: Want, machine: MachineView, begun: datetime) -> Plan:
    """B8.3: the limit applies neither to the kill switch nor to deletions by people."""
    turn = _expected_turn(s)
    message = (
        f"the deletion is expected to begin at {turn:%Y-%m-%dT%H:%M:%SZ}: the manager limits deletions per minute "
        "(--max-deletions-per-minute)"
    )
    return replace(
        _base(s, verdict, want, machine),
        reason=Reason.DELETION_RATE_LIMITED,
        message=message,
        shutdown_requested=begun,
        next_cleanup=turn,
        wake=s.now + timedelta(seconds=s.deletion_wait),
    )


def _expected_turn(s: Snapshot) -> datetime:
    """The instant that status shows already, unless it is off by more than a few seconds."""
    turn = whole_second(s.now + timedelta(seconds=s.deletion_wait))
    shown = read_instant(s.stored.raw.get("nextCleanup"))
    return shown if shown is not None and abs(shown - turn) <= timedelta(seconds=5) else turn


def _unresolved_event(s: Snapshot, machine: MachineView, due: datetime) -> EventNote:
    message = (
        f"spec.schedule now names {s.spec.schedule}, which has never resolved, so nothing wants the machine: "
        f"it is deleted at {due:%Y-%m-%dT%H:%M:%SZ} unless that schedule appears"
    )
    token = f"{machine.head.uid}/{s.spec.schedule}"
    return EventNote(reason=Reason.SCHEDULE_REFERENCE_UNRESOLVED, message=message, warning=True, once=token)


def _delete(s: Snapshot, verdict: EffectiveVerdict, want: Want, machine: MachineView, begun: datetime) -> Plan:
    # B1.10: only the Machine; deleting the others with it would prevent Cluster API's drain.
    steps: list[Step] = []
    patch = _before_delete(s, want, machine)
    if patch is not None:
        steps.append(patch)
    steps.append(DeleteMachine(machine))
    return replace(
        _base(s, verdict, want, machine),
        message=_drain_message(s, want, machine),
        steps=tuple(steps),
        shutdown_requested=begun,
    )


def _before_delete(s: Snapshot, want: Want, machine: MachineView) -> PatchMachine | None:
    if unprepared(s) is not None:
        return None
    if want is Want.KILLED:
        # B2.6
        return None if machine.excludes_drain else PatchMachine(machine, annotations=_NO_DRAIN_BY_KILL, optional=True)
    if names.ANNOTATION_DRAIN_EXCLUDED_BY in machine.head.annotations:
        # A drain that was excluded is not resumed half way.
        return None if machine.deleting else PatchMachine(machine, annotations=DRAIN_AGAIN, optional=True)
    taken_over = names.ANNOTATION_TEMPLATE_HASH not in machine.head.annotations
    if not taken_over or machine.excludes_drain:
        return None
    # B2.5: a Machine that 5-Spot created has no drain settings.
    if not s.spec.drains:
        return PatchMachine(machine, annotations=_NO_DRAIN, optional=True)
    if machine.has_drain_timeout:
        return None
    return PatchMachine(machine, drain_seconds=int(s.spec.drain_timeout.total_seconds()), optional=True)


def _draining(s: Snapshot, verdict: EffectiveVerdict, want: Want, machine: MachineView) -> Plan:
    # What could not be set before the deletion is set now: Cluster API rereads it at each step of the drain.
    patch = _before_delete(s, want, machine)
    steps: tuple[Step, ...] = (patch,) if patch is not None else ()
    return replace(
        _base(s, verdict, want, machine),
        message=_drain_message(s, want, machine),
        steps=steps,
        shutdown_requested=s.shutdown_begun or whole_second(s.now),
    )


def _drain_message(s: Snapshot, want: Want, machine: MachineView) -> str:
    if want is Want.KILLED:
        text = "the kill switch is on: the machine is deleted without drain"
    elif machine.excludes_drain or not s.spec.drains:
        text = "the machine is deleted without drain (nodeDrainTimeout is 0s)"
    else:
        text = f"the machine is drained and deleted; draining may take {int(s.spec.drain_timeout.total_seconds())} s"
    details = machine.deleting_message or machine.deleting_reason
    text = f"{text}: {details}" if details else text
    refused = unprepared(s)
    return f"{text}; the Machine could not be prepared for it: {refused.message}" if refused is not None else text


def _leftovers(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan:
    world = s.world
    may_exist = not s.fresh and (bool(s.stored.bootstrap or s.stored.infrastructure) or search_needed(s))
    if world.children_error and may_exist and not s.ours:
        reason = Reason.MACHINE_DELETION_FAILED
        return error(s, verdict, want, reason, world.children_why, stalled=True)
    if world.children_known is Known.UNKNOWN and not world.children_error:
        return waiting(s, verdict, want, world.children_why)
    if search_needed(s):
        return ask(s, verdict, want, Question.LEFTOVERS)
    if not s.ours:
        return _settled(s, verdict, want)
    refused = known_refusal(s, verdict, want)
    if refused is not None:
        return refused
    begun = tuple(child for child in s.ours if not child.deleting)
    if begun and _must_not_begin(s, verdict, want):
        return unreadable(s, _base(s, verdict, want, None))
    if s.unseen_machines(child.machine_uid for child in begun):
        return ask(s, verdict, want, Question.MACHINE_GONE)
    listed = ", ".join(str(child) for child in s.ours)
    return replace(
        _base(s, verdict, want, None),
        reason=Reason.KILL_SWITCH_ACTIVATED if want is Want.KILLED else Reason.DELETING_LEFTOVERS,
        message=f"the Machine is gone; waiting until {listed} is gone too",
        steps=(DeleteChildren(begun),) if begun else (),
        shutdown_requested=s.shutdown_begun or whole_second(s.now),
    )


def _settled(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan:
    if not s.head.deleting and want is not Want.KILLED:
        refused = invalid(s, verdict, want)
        if refused is not None:
            return refused
    phase, message = _SETTLED.get(want, (Phase.SHUTTING_DOWN, "all objects of the machine are gone"))
    if want is Want.INACTIVE and not verdict.known:
        message = _without_verdict(s)
    return Plan(
        want,
        verdict,
        phase,
        want.value,
        message,
        steps=(DropFinalizer(),) if s.head.deleting else (),
        settled=True,
        nothing_left=True,
        replaced=s.stored.replaced,
    )


def _without_verdict(s: Snapshot) -> str:
    resolution = s.world.resolution
    if isinstance(resolution, Unresolved):
        return f"not created, because the schedule has never given a verdict: {resolution.message}"
    return f"down, because {s.spec.schedule} has never given a verdict"


def _base(s: Snapshot, verdict: EffectiveVerdict, want: Want, machine: MachineView | None) -> Plan:
    return Plan(
        want,
        verdict,
        Phase.SHUTTING_DOWN,
        Reason.KILL_SWITCH_ACTIVATED if want is Want.KILLED else Reason.NODE_DRAINING,
        "",
        machine=machine,
        bootstrap=child_in(s, Slot.BOOTSTRAP),
        infrastructure=child_in(s, Slot.INFRASTRUCTURE),
        shutdown_requested=s.stored.shutdown_requested,
        replaced=s.stored.replaced,
    )


def overdue(s: Snapshot, plan: Plan) -> Plan:
    """B3.3: report an overdue deletion once, and force it only when the administrator asked for that."""
    begun = read_instant(s.head.deletion_timestamp) or s.now
    limit = timedelta(seconds=s.timings.deletion_limit) + 2 * s.spec.drain_timeout
    due = begun + limit
    if s.now < due:
        return replace(plan, wake=min(plan.wake or due, due))
    minutes = round(limit.total_seconds() / 60)
    what = plan.message or plan.why_waiting
    message = f"deletion has taken more than {minutes} min and still waits: {what}"
    event = EventNote(reason=FINALIZER_TIMEOUT, message=message, warning=True, once=s.head.uid)
    plan = replace(plan, events=(*plan.events, event), overdue=True)
    if not s.force_finalizer or any(isinstance(step, DropFinalizer) for step in plan.steps):
        return plan
    # Removing the finalizer must not depend on any step or answer of the plan.
    return replace(plan, ask=None, recheck=True, steps=(*plan.steps, DropFinalizer(forced=True)))
