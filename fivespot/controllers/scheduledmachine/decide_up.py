"""Decisions while the machine is wanted (contract B1.1-B1.8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from fivespot.api import Phase, Reason, names
from fivespot.contract import EffectiveVerdict
from fivespot.runtime.telemetry import EventNote

from .cluster_api import Known, MachineView
from .common_plans import ask, child_in, error, invalid, known_refusal, search_needed, unprepared, unreadable, waiting
from .decide_down import DRAIN_AGAIN
from .instants import whole_second
from .plan import CreateChildren, DeleteChildren, DeleteMachine, PatchMachine, Plan, Question, Want
from .snapshot import Child, Slot, Snapshot
from .stored_status import ReplacementCount

__all__ = ["decide_up"]

# The same message for a Machine that was just created and one that was found, so that the run after a creation writes
# nothing.
_WAITING_FOR_NODE = "waiting for the machine's node to be ready"


def decide_up(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan:
    """Return the plan for a machine that should exist."""
    capi = s.world.capi
    if capi.installed is Known.UNKNOWN:
        return waiting(s, verdict, want, capi.why)
    if capi.installed is Known.NO or not capi.version:
        remedy = capi.why or "Cluster API is not installed: install version 1.9 or newer"
        return error(s, verdict, want, Reason.MACHINE_CREATION_FAILED, remedy, stalled=True)
    if s.world.machine_known is Known.UNKNOWN:
        return waiting(s, verdict, want, s.world.machine_why or "Machines are not read yet")
    machine = s.machine
    if machine is not None:
        if machine.deleting:
            return _deleting(s, verdict, want, machine)
        if machine.remediate:
            return _replace(
                s,
                verdict,
                machine,
                Reason.REMEDIATING,
                "a MachineHealthCheck found the machine unhealthy; it is deleted and replaced",
                "Remediated",
            )
        missing = _missing(s, machine)
        if missing and verdict.may_begin:
            # Caches are not of one instant: the Machine may have been provisioned long before the object was deleted.
            # The version that the deletion carries tells the two apart.
            message = f"{missing} was deleted before the machine was provisioned; the Machine is deleted and replaced"
            return _replace(s, verdict, machine, Reason.MACHINE_DELETING, message, "Lost")
        return _active(s, verdict, want, machine)
    if s.world.machine is not None:
        message = (
            f"Machine {s.head.namespace}/{s.head.name} exists and is not controlled by this ScheduledMachine: "
            "delete it, or create the ScheduledMachine under another name"
        )
        return error(s, verdict, want, Reason.MACHINE_CREATION_FAILED, message, stalled=True)
    return _absent(s, verdict, want)


def _deleting(s: Snapshot, verdict: EffectiveVerdict, want: Want, machine: MachineView) -> Plan:
    # B1.3: the name is free only once the Machine is gone, whoever deleted it.
    requested = s.stored.shutdown_requested
    if requested is None and machine.head.uid == s.cancelled_uid:
        # B5.5: this controller sent the deletion before the shutdown was cancelled.
        requested = whole_second(s.now)
    own_shutdown = requested is not None
    replaced, counted = (s.stored.replaced, False) if own_shutdown else _count(s, machine.head.uid)
    return Plan(
        want,
        verdict,
        Phase.SHUTTING_DOWN,
        Reason.MACHINE_DELETING,
        _with_details("the Machine is being deleted; a new one is created once it is gone", machine.deleting_message),
        machine=machine,
        bootstrap=child_in(s, Slot.BOOTSTRAP),
        infrastructure=child_in(s, Slot.INFRASTRUCTURE),
        shutdown_requested=requested,
        replaced=replaced,
        replacement="Deleted" if counted else "",
    )


def _missing(s: Snapshot, machine: MachineView) -> str:
    """B1.6: name the object that the Machine cannot start without and that nobody will recreate; "" if none is
    missing. When a name is reused at once, Cluster API may adopt the new objects for the previous Machine as long as
    it has not seen that one go, and they are deleted with it.
    """
    template_of = {machine.bootstrap: s.spec.bootstrap, machine.infrastructure: s.spec.infrastructure}
    needed = {"": template_of, "Pending": template_of, "Provisioning": {machine.infrastructure: s.spec.infrastructure}}
    if machine.provider_id or machine.node or s.world.children_known is not Known.YES:
        return ""
    # While its kind is not served, nothing is known about an object.
    if s.world.templates.usable is not Known.YES:
        return ""
    present = {child.group_kind for child in s.world.children}
    for ref, template in needed.get(machine.phase, {}).items():
        readable = ref is not None and template is not None and ref.group_kind == template.group_kind
        if ref is not None and readable and ref.name == s.head.name and ref.group_kind not in present:
            return f"{ref.group_kind.kind} {ref.name}"
    return ""


def _replace(
    s: Snapshot,
    verdict: EffectiveVerdict,
    machine: MachineView,
    reason: Reason,
    message: str,
    replacement: str,
) -> Plan:
    """Delete the Machine; the creation of the next one may be delayed (B7)."""
    want = Want.ACTIVE
    refused = known_refusal(s, verdict, want)
    if refused is not None:
        return refused
    replaced, counted = _count(s, machine.head.uid)
    return Plan(
        want,
        verdict,
        Phase.SHUTTING_DOWN,
        reason,
        message,
        steps=(DeleteMachine(machine),),
        machine=machine,
        bootstrap=child_in(s, Slot.BOOTSTRAP),
        infrastructure=child_in(s, Slot.INFRASTRUCTURE),
        replaced=replaced,
        replacement=replacement if counted else "",
    )


def _active(s: Snapshot, verdict: EffectiveVerdict, want: Want, machine: MachineView) -> Plan:
    replaced, wake = s.stored.replaced, None
    if replaced.count and machine.ready:
        # B7.1: only lasting readiness resets the replacement delay.
        since = max(filter(None, (machine.ready_since, replaced.last)), default=s.now)
        calm = min(since, s.now) + timedelta(seconds=s.timings.replacement_reset)
        replaced, wake = (ReplacementCount(), None) if s.now >= calm else (replaced, calm)
    steps: tuple[PatchMachine, ...] = ()
    if machine.head.labels.get(names.LABEL_MACHINE) != s.head.name:
        # B2.2: a lost label is restored.
        refused = known_refusal(s, verdict, want)
        if refused is not None:
            return refused
        steps = (PatchMachine(machine, labels=((names.LABEL_MACHINE, s.head.name),)),)
    if names.ANNOTATION_DRAIN_EXCLUDED_BY in machine.head.annotations and unprepared(s) is None:
        # The kill switch was cleared before the machine was deleted, so the drain is allowed again.
        steps = (*steps, PatchMachine(machine, annotations=DRAIN_AGAIN, optional=True))
    if machine.ready:
        reason, message = Reason.MACHINE_READY, "the machine is up and its node is ready"
    else:
        details = machine.ready_message or machine.ready_reason
        reason, message = Reason.MACHINE_CREATED, _with_details(_WAITING_FOR_NODE, details)
    return Plan(
        want,
        verdict,
        Phase.ACTIVE,
        reason,
        message,
        steps=steps,
        settled=machine.ready,
        machine=machine,
        bootstrap=child_in(s, Slot.BOOTSTRAP),
        infrastructure=child_in(s, Slot.INFRASTRUCTURE),
        replaced=replaced,
        wake=wake,
    )


def _absent(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan:
    refused = invalid(s, verdict, want)
    if refused is not None:
        return refused
    lost = _lost(s)
    if lost is None:
        return ask(s, verdict, want, Question.MACHINE_GONE)
    replaced, events = lost
    plan = _create(s, verdict, want, replaced)
    if events and not plan.quiet:
        plan = replace(plan, replacement="Lost", events=events + plan.events)
    return replace(plan, replaced=replaced)


def _lost(s: Snapshot) -> tuple[ReplacementCount, tuple[EventNote, ...]] | None:
    """B1.6: return the replacement count after the loss; None when the API server must be asked first."""
    uid = s.stored.machine_uid
    own_shutdown = s.stored.shutdown_requested is not None or uid == s.cancelled_uid
    if not uid or own_shutdown or s.stored.replaced.uid == uid:
        return s.stored.replaced, ()
    if uid not in s.answers.gone:
        return None
    replaced, _ = _count(s, uid)
    message = f"Machine {s.head.name} ({uid}) is gone and was not deleted by this controller; it is replaced"
    return replaced, (EventNote(reason=Reason.MACHINE_LOST, message=message, warning=True, once=uid),)


def _create(s: Snapshot, verdict: EffectiveVerdict, want: Want, replaced: ReplacementCount) -> Plan:
    world = s.world
    if world.children_error:
        return error(s, verdict, want, Reason.MACHINE_CREATION_FAILED, world.children_why, stalled=True)
    if world.children_known is Known.UNKNOWN:
        return waiting(s, verdict, want, world.children_why)
    if search_needed(s):
        return ask(s, verdict, want, Question.LEFTOVERS)
    ready, unusable = _leftovers(s)
    base = _pending(s, verdict, want)
    # B1.21: a shutdown lasts until its leftovers are gone.
    if unusable or ready:
        base = replace(base, shutdown_requested=s.stored.shutdown_requested)
    if unusable:
        # B1.5
        refused = known_refusal(s, verdict, want)
        if refused is not None:
            return refused
        if not verdict.may_begin and s.stored.shutdown_requested is None:
            return unreadable(s, base)
        begun = tuple(child for child in unusable if not child.deleting)
        if s.unseen_machines(child.machine_uid for child in begun):
            return ask(s, verdict, want, Question.MACHINE_GONE)
        listed = ", ".join(str(child) for child in unusable)
        return replace(
            base,
            reason=Reason.WAITING_FOR_DELETION,
            message=f"waiting for the deletion of what an earlier machine left behind: {listed}",
            steps=(DeleteChildren(begun),) if begun else (),
        )
    if world.cluster.exists is Known.UNKNOWN:
        return waiting(s, verdict, want, world.cluster.why)
    if world.cluster.exists is Known.NO:
        message = f"Cluster {s.head.namespace}/{s.spec.cluster} does not exist; the machine is created when it does"
        return replace(base, reason=Reason.CLUSTER_NOT_FOUND, message=message)
    if world.templates.usable is Known.UNKNOWN:
        return waiting(s, verdict, want, world.templates.why)
    wanted = {s.spec.bootstrap, s.spec.infrastructure}
    kinds = {template.group_kind for template in wanted if template is not None}
    foreign = [child for child in world.children if not child.ours and child.group_kind in kinds]
    if foreign:
        listed = ", ".join(str(child) for child in foreign)
        remedy = "delete it, or create the ScheduledMachine under another name"
        message = f"{listed} exists and is not controlled by this ScheduledMachine: {remedy}"
        return error(s, verdict, want, Reason.MACHINE_CREATION_FAILED, message, stalled=True)
    if world.templates.usable is Known.NO:
        return error(s, verdict, want, Reason.MACHINE_CREATION_FAILED, world.templates.why, stalled=True)  # B2.4
    if not verdict.may_begin:
        return unreadable(s, base)
    # Checked before the delay: B2.7 refuses and delays at once, and the remedy is what a person needs to read.
    refused = known_refusal(s, verdict, want)
    if refused is not None:
        return refused
    braked = _brake(s, replaced)
    if braked is not None:
        message = f"replacement {replaced.count} is created at {braked:%Y-%m-%dT%H:%M:%SZ}; each loss doubles the delay"
        return replace(base, reason="ReplacementDelayed", message=message, wake=braked)
    if s.creation_hold is not None:
        # B8.4
        hold = s.creation_hold
        return replace(base, reason=hold.reason, message=hold.message, wake=hold.until, recheck=hold.until is None)
    missing = tuple(slot for slot in Slot if slot not in {child.slot for child in ready})
    return replace(
        base,
        phase=Phase.ACTIVE,
        reason=Reason.MACHINE_CREATED,
        message=_WAITING_FOR_NODE,
        steps=(CreateChildren(missing, rehearse=s.spec.tainted),),
        shutdown_requested=None,
    )


def _pending(s: Snapshot, verdict: EffectiveVerdict, want: Want) -> Plan:
    return Plan(
        want,
        verdict,
        Phase.PENDING,
        Reason.AWAITING_SCHEDULE,
        "",
        bootstrap=child_in(s, Slot.BOOTSTRAP),
        infrastructure=child_in(s, Slot.INFRASTRUCTURE),
        replaced=s.stored.replaced,
    )


def _leftovers(s: Snapshot) -> tuple[tuple[Child, ...], tuple[Child, ...]]:
    """Return our objects without a Machine: those that a new Machine can use (B1.4), and the others."""
    templates = {Slot.BOOTSTRAP: s.spec.bootstrap, Slot.INFRASTRUCTURE: s.spec.infrastructure}
    ready: list[Child] = []
    unusable: list[Child] = []
    for child in s.ours:
        template = templates[child.slot]
        current = template is not None and child.group_kind == template.group_kind
        current = current and child.template_hash == s.spec.template_hash
        usable = current and not child.deleting and not child.head.owners
        (ready if usable else unusable).append(child)
    return tuple(ready), tuple(unusable)


def _brake(s: Snapshot, replaced: ReplacementCount) -> datetime | None:
    if not replaced.count or replaced.last is None:
        return None
    due = replaced.last + s.timings.replacement_delay(replaced.count)
    return due if due > s.now else None


def _count(s: Snapshot, uid: str) -> tuple[ReplacementCount, bool]:
    """Count a replacement once per Machine."""
    before = s.stored.replaced
    if before.uid == uid:
        return before, False
    return ReplacementCount(before.count + 1, whole_second(s.now), uid), True


def _with_details(text: str, details: str) -> str:
    return f"{text}: {details}" if details else text
