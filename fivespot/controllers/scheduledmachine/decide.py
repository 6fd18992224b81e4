"""Decides what is to be done for one ScheduledMachine. Pure: a snapshot goes in, a plan comes out.

The phase is never an input: it follows from what is wanted and what exists, so every phase recovers once its cause is
gone. Ids such as B1.10 in comments are those of the contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from fivespot.api import Phase, Reason, names
from fivespot.contract import (
    PROVIDER_NOT_FOUND,
    STATUS_ACTIVE_MISSING,
    EffectiveVerdict,
    Unreadable,
    Unresolved,
    effective_verdict,
)

from .cluster_api import Known
from .common_plans import unprepared, unreadable, waiting
from .decide_down import decide_down
from .decide_up import decide_up
from .instants import whole_second
from .plan import CreateChildren, DropFinalizer, PatchMachine, Plan, Want
from .snapshot import Snapshot

__all__ = ["decide", "wanted"]

_WHILE_RECREATED = (PROVIDER_NOT_FOUND, STATUS_ACTIVE_MISSING)


def decide(s: Snapshot) -> Plan:
    """Return the plan for one ScheduledMachine at the instant of its snapshot."""
    s = _with_brake_in_reach(s)
    verdict, want = wanted(s)
    plan = (decide_down if want.down or s.head.deleting else decide_up)(s, verdict, want)
    plan = _hold_when_unreadable(s, plan)
    plan = _respect_pause(s, plan)
    plan = _respect_stop(s, plan)
    plan = _bridge_recreation(s, plan)
    plan = _retry_preparation(s, plan)
    if plan.recheck or not isinstance(s.world.resolution, Unresolved | Unreadable):
        return plan
    return replace(plan, recheck=True)


def wanted(s: Snapshot) -> tuple[EffectiveVerdict, Want]:
    """Return the effective verdict, and what is wanted after precedence."""
    verdict = _effective(s)
    return verdict, _want(s, verdict)


def _with_brake_in_reach(s: Snapshot) -> Snapshot:
    """B7: count a replacement delay that begins in the future (the wall clock was set back) from now."""
    replaced = s.stored.replaced
    if replaced.last is None or replaced.last <= s.now + timedelta(seconds=1):
        return s
    return replace(s, stored=replace(s.stored, replaced=replace(replaced, last=whole_second(s.now))))


def _effective(s: Snapshot) -> EffectiveVerdict:
    made_for = None
    machine = s.machine
    if machine is not None:
        made_for = machine.head.annotations.get(names.ANNOTATION_SCHEDULE_REF, "")
    return effective_verdict(s.world.resolution, s.stored.schedule, s.spec.schedule, machine_made_for=made_for)


def _want(s: Snapshot, verdict: EffectiveVerdict) -> Want:
    if s.spec.kill_switch:
        return Want.KILLED
    if s.world.cluster.deleting:
        return Want.CLUSTER_DELETING
    if not s.spec.enabled:
        return Want.DISABLED
    return Want.ACTIVE if verdict.active else Want.INACTIVE


def _hold_when_unreadable(s: Snapshot, plan: Plan) -> Plan:
    """A15: report an unreadable schedule only once that has lasted, so that a restart writes nothing."""
    if not isinstance(s.world.resolution, Unreadable) or s.head.deleting:
        return plan
    lasting = s.unreadable_for >= s.timings.unreadable_limit
    if not lasting:
        due = s.now + timedelta(seconds=s.timings.unreadable_limit - s.unreadable_for)
        plan = replace(plan, wake=min(plan.wake or due, due))
    decided_without_schedule = plan.want not in (Want.ACTIVE, Want.INACTIVE)
    if plan.verdict.known or decided_without_schedule or plan.steps:
        return plan
    if not lasting:
        return replace(plan, quiet=True, why_waiting=s.world.resolution.why)
    if plan.phase is Phase.INACTIVE:
        return replace(unreadable(s, plan), phase=Phase.PENDING, settled=False)
    return plan


def _bridge_recreation(s: Snapshot, plan: Plan) -> Plan:
    """A8: a schedule that is deleted and created again is not reported as missing in between."""
    resolution, left = s.world.resolution, s.timings.recreation - s.unresolved_for
    if not isinstance(resolution, Unresolved) or resolution.reason not in _WHILE_RECREATED or left <= 0:
        return plan
    shown = s.stored.raw.get("spotSchedule")
    reported = not isinstance(shown, Mapping) or shown.get("resolved") is not True
    if reported or plan.steps or plan.events or plan.ask is not None or s.head.deleting or not plan.verdict.known:
        return plan
    due = s.now + timedelta(seconds=left)
    return replace(plan, quiet=True, why_waiting=resolution.message, wake=min(plan.wake or due, due))


def _retry_preparation(s: Snapshot, plan: Plan) -> Plan:
    """Wake when a refused preparation is due: a run in between replaces the wake-up that the refusal asked for."""
    refused = unprepared(s)
    if refused is None:
        return plan
    due = s.now + timedelta(seconds=refused.due - s.monotonic)
    return replace(plan, wake=min(plan.wake or due, due))


def _respect_pause(s: Snapshot, plan: Plan) -> Plan:
    """B6.2: while paused, create, change and delete nothing; only killSwitch acts."""
    if plan.want is Want.KILLED:
        return _killed_while_paused(s, plan) if s.paused else plan
    if not s.paused:
        unsure = s.world.cluster.exists is Known.UNKNOWN and s.world.capi.installed is not Known.NO
        if plan.steps and unsure:
            unknown = waiting(s, plan.verdict, plan.want, f"whether the Cluster is paused: {s.world.cluster.why}")
            return replace(unknown, events=plan.events, overdue=plan.overdue, wake=plan.wake)
        return plan
    held = tuple(step for step in plan.steps if not isinstance(step, PatchMachine))
    plan = replace(plan, steps=(), paused=True)
    if not held:
        return plan
    if any(isinstance(step, CreateChildren) for step in held):
        plan = replace(plan, phase=Phase.PENDING)
    what = "letting go of it" if any(isinstance(step, DropFinalizer) for step in held) else "acting"
    return replace(plan, reason="Paused", message=f"paused: {what} waits until it is resumed", settled=False)


def _respect_stop(s: Snapshot, plan: Plan) -> Plan:
    """B8.4: while everything is stopped, create and delete nothing; only killSwitch acts."""
    if not s.stopped or plan.want is Want.KILLED:
        return plan
    held = [step for step in plan.steps if not isinstance(step, PatchMachine)]
    plan = replace(plan, steps=tuple(step for step in plan.steps if step not in held), stopped=True)
    if not held:
        return plan
    if any(isinstance(step, CreateChildren) for step in held):
        plan = replace(plan, phase=Phase.PENDING)
    # Preparing a deletion that is not sent would only disturb the machine.
    return replace(plan, steps=(), reason=Reason.STOPPED, message=s.stopped, settled=False)


def _killed_while_paused(s: Snapshot, plan: Plan) -> Plan:
    if s.machine is None:
        return replace(plan, paused=True)
    if not s.world.cluster.paused and not s.machine.paused:
        # The annotation on the ScheduledMachine means nothing to Cluster API.
        return replace(plan, paused=True)
    what = f"Cluster {s.spec.cluster}" if s.world.cluster.paused else f"Machine {s.machine.head.name}"
    message = f"{plan.message}; {what} is paused, so Cluster API does not remove the machine until it is resumed"
    return replace(plan, paused=True, message=message)
