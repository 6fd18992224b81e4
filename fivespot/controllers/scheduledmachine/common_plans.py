"""The plans that several decisions share."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from fivespot.api import ConditionType, Phase, Reason
from fivespot.contract import EffectiveVerdict
from fivespot.runtime import find_condition

from .cluster_api import Known
from .plan import Plan, Question, Want
from .snapshot import Child, Refusal, Slot, Snapshot
from .stored_status import StoredStatus

__all__ = [
    "ask",
    "child_in",
    "error",
    "invalid",
    "is_our_status",
    "known_refusal",
    "search_needed",
    "undecided",
    "unprepared",
    "unreadable",
    "waiting",
]


def waiting(s: Snapshot, verdict: EffectiveVerdict, want: Want, why: str) -> Plan:
    """Do and report nothing until a cache has synced; the key is enqueued then."""
    return Plan(
        want,
        verdict,
        Phase.PENDING,
        Reason.AWAITING_SCHEDULE,
        "",
        quiet=True,
        machine=s.machine,
        shutdown_requested=s.stored.shutdown_requested,
        replaced=s.stored.replaced,
        recheck=True,
        why_waiting=why,
    )


def ask(s: Snapshot, verdict: EffectiveVerdict, want: Want, question: Question) -> Plan:
    """Ask the API server before anything is decided."""
    return Plan(
        want,
        verdict,
        Phase.PENDING,
        Reason.AWAITING_SCHEDULE,
        "",
        quiet=True,
        ask=question,
        replaced=s.stored.replaced,
        why_waiting=question.value,
    )


def error(
    s: Snapshot,
    verdict: EffectiveVerdict,
    want: Want,
    reason: str,
    message: str,
    *,
    stalled: bool,
    wake: float | None = None,
) -> Plan:
    """Report an error. ``wake`` is the wait in seconds before the next run, None for the longest one."""
    seconds = s.timings.refusal_cap if wake is None else wake
    unfinished = s.machine is not None or bool(s.ours) or s.world.machine_known is Known.UNKNOWN
    return Plan(
        want,
        verdict,
        Phase.ERROR,
        reason,
        message,
        stalled=stalled,
        machine=s.machine,
        bootstrap=child_in(s, Slot.BOOTSTRAP),
        infrastructure=child_in(s, Slot.INFRASTRUCTURE),
        shutdown_requested=s.stored.shutdown_requested if unfinished else None,
        replaced=s.stored.replaced,
        wake=s.now + timedelta(seconds=seconds),
    )


def invalid(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan | None:
    """B1.17: return the error of a spec that no machine can be created from; None for a valid one."""
    if s.spec.bootstrap is not None and s.spec.infrastructure is not None and not s.spec.problems:
        return None
    problems = "; ".join(s.spec.problems[:3]) or "bootstrapSpec or infrastructureSpec names no kind"
    return error(s, verdict, want, Reason.REFERENCES_INVALID, problems, stalled=True)


def unreadable(s: Snapshot, plan: Plan) -> Plan:
    """A15: withhold the steps of a plan that rests on an unreadable schedule, and report that once it has lasted."""
    return replace(
        plan,
        reason=Reason.AWAITING_SCHEDULE,
        message="waiting for the schedule to become readable",
        steps=(),
        quiet=s.unreadable_for < s.timings.unreadable_limit,
        why_waiting="the schedule is not readable",
    )


def unprepared(s: Snapshot) -> Refusal | None:
    """Return the refusal of an optional step whose next try is not due."""
    refusal = s.refusal
    return refusal if refusal is not None and refusal.optional and s.monotonic < refusal.due else None


def undecided(s: Snapshot, verdict: EffectiveVerdict, want: Want, message: str, *, stalled: bool = False) -> Plan:
    """Report that nothing can be concluded about the machine; status keeps its last known state."""
    before = {phase.value: phase for phase in Phase}.get(s.stored.phase)
    if stalled:
        phase = Phase.ERROR
    elif s.head.deleting or want.down:
        phase = Phase.SHUTTING_DOWN
    else:
        phase = before if before is not None and s.world.machine_known is Known.UNKNOWN else Phase.PENDING
    return Plan(
        want,
        verdict,
        phase,
        Reason.RECONCILE_FAILED,
        message,
        stalled=stalled,
        machine=s.machine,
        bootstrap=child_in(s, Slot.BOOTSTRAP),
        infrastructure=child_in(s, Slot.INFRASTRUCTURE),
        shutdown_requested=s.stored.shutdown_requested,
        replaced=s.stored.replaced,
        recheck=True,
        undecided=True,
    )


def child_in(s: Snapshot, slot: Slot) -> Child | None:
    """Return our object in one of the two slots; of several, one that only status refers to."""
    templates = {t.group_kind for t in (s.spec.bootstrap, s.spec.infrastructure) if t is not None}
    candidates = [child for child in s.ours if child.slot is slot]
    return min(candidates, key=lambda child: child.group_kind in templates, default=None)


def known_refusal(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan | None:
    """Return the error of a refused step whose next try is not due."""
    refusal = s.refusal
    if refusal is None or refusal.optional or s.monotonic >= refusal.due:
        return None
    return error(
        s,
        verdict,
        want,
        refusal.reason,
        refusal.message,
        stalled=refusal.stalled,
        wake=refusal.due - s.monotonic,
    )


def search_needed(s: Snapshot) -> bool:
    """B2.3: whether leftovers can only be found by a list by label over every kind.

    So it is when status was lost, or was written by 5-Spot and names no children.
    """
    stored = s.stored
    if s.fresh or s.answers.searched or stored.bootstrap is not None or stored.infrastructure is not None:
        return False
    return not is_our_status(stored)


def is_our_status(stored: StoredStatus) -> bool:
    """Whether this controller wrote the status, so that children which it does not name do not exist.

    A status with an error proves nothing, because it may have been written before anything could be searched; nor does
    one of a run without a conclusion.
    """
    ready = find_condition(stored.raw.get("conditions"), ConditionType.READY) or {}
    if ready.get("reason") == Reason.RECONCILE_FAILED:
        return False
    return (
        stored.phase not in ("", Phase.ERROR) and stored.schedule is not None and stored.schedule.reference is not None
    )
