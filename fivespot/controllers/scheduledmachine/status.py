"""Turns a plan and the results of its steps into status, events and the next wake-up. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from fivespot.api import ConditionType, Phase, Reason, names
from fivespot.contract import (
    PROVIDER_NOT_READY,
    PROVIDER_UNREADABLE,
    RESOLVED,
    Display,
    Resolved,
    Unreadable,
    Unresolved,
)
from fivespot.runtime import Condition, ForbiddenError, find_condition, set_conditions
from fivespot.runtime.objects import ConditionStatus, rfc3339
from fivespot.runtime.telemetry import EventNote

from .cluster_api import Known, MachineView
from .common_plans import child_in, undecided
from .decide_down import overdue, reference_changed
from .plan import CreateChildren, DeleteChildren, DeleteMachine, DropFinalizer, Plan, Want
from .snapshot import Child, Slot, Snapshot

__all__ = [
    "RefusedStep",
    "after_failure",
    "after_refusal",
    "build_status",
    "machine_progress_only",
    "provider_text_only",
    "schedule_edited",
    "status_events",
    "text_only",
]

_MESSAGE_LIMIT: Final = 1024
_SHOWING: Final = (PROVIDER_NOT_READY, PROVIDER_UNREADABLE)
_DISPLAY_FIELDS: Final = ("message", "providerGeneration", "lastTransitionTime")
_MIRRORING: Final = (Phase.ACTIVE.value, Phase.SHUTTING_DOWN.value)
_MIRRORED: Final = ("message", "nodeRef", "providerID", "ready")
_AWAITED: Final = ("ready", "nodeRef", "providerID")
_TELLING: Final = (ConditionType.READY, ConditionType.RECONCILING)


@dataclass(frozen=True, slots=True)
class RefusedStep:
    """A step that the API server refused.

    :param cause: the step and the kind of refusal, without the server's message; two refusals of one cause are the
        same problem.
    """

    reason: str
    message: str
    stalled: bool
    cause: str = ""


def after_refusal(s: Snapshot, plan: Plan, refused: RefusedStep, seconds: float) -> Plan:
    """Return the plan after the server refused one of its steps; the next try comes after ``seconds``."""
    due = s.now + timedelta(seconds=seconds)
    return replace(
        plan,
        phase=Phase.ERROR,
        reason=refused.reason,
        message=refused.message,
        stalled=refused.stalled,
        settled=False,
        wake=min(plan.wake or due, due),
        repeated=True,
    )


def after_failure(s: Snapshot, plan: Plan, error: Exception) -> Plan:
    """Return the plan after a failure ended it early; ``s`` includes what was done until then."""
    message = f"will be retried: {error}"
    if plan.ask is not None or plan.quiet:
        verdict, want = plan.verdict, plan.want
        # Only a person can grant a right; other failures may be transient.
        failed = undecided(s, verdict, want, message, stalled=isinstance(error, ForbiddenError))
        return replace(failed, events=plan.events, overdue=plan.overdue, wake=plan.wake, repeated=True)
    if s.head.deleting:
        plan = overdue(s, plan)
    phase, reason = plan.phase, plan.reason
    if any(isinstance(step, CreateChildren) for step in plan.steps):
        phase, reason = Phase.PENDING, Reason.MACHINE_CREATION_FAILED
    elif any(isinstance(step, DeleteMachine | DeleteChildren) for step in plan.steps):
        reason = Reason.MACHINE_DELETION_FAILED
        phase = Phase.SHUTTING_DOWN
    elif any(isinstance(step, DropFinalizer) for step in plan.steps):
        phase, reason = Phase.SHUTTING_DOWN, Reason.RECONCILE_FAILED
        message = f"the finalizer cannot be removed; {message}"
    return replace(
        plan,
        steps=(),
        phase=phase,
        reason=reason,
        message=message,
        settled=False,
        repeated=True,
        machine=s.machine,
        bootstrap=child_in(s, Slot.BOOTSTRAP),
        infrastructure=child_in(s, Slot.INFRASTRUCTURE),
    )


def build_status(s: Snapshot, plan: Plan) -> dict[str, Any]:
    """Return the whole ``status`` that is true once the plan is carried out."""
    machine = plan.machine
    status: dict[str, Any] = {
        "phase": plan.phase.value,
        "message": _message(plan),
        "observedGeneration": s.head.generation,
        "inSchedule": plan.verdict.active,
        "ready": machine is not None and machine.ready,
        "lastScheduledTime": s.stored.raw.get("lastScheduledTime"),
        "spotSchedule": _spot_schedule(s, plan),
    }
    if machine is not None:
        status["machineRef"] = {
            "apiVersion": machine.api_version,
            "kind": "Machine",
            "name": machine.head.name,
            "namespace": machine.head.namespace,
            "uid": machine.head.uid,
        }
        status["lastScheduledTime"] = machine.head.creation_timestamp or status["lastScheduledTime"]
        status["providerID"] = machine.provider_id or None
        if machine.node:
            status["nodeRef"] = {"apiVersion": "v1", "kind": "Node", "name": machine.node}
            if machine.node_uid:
                status["nodeRef"]["uid"] = machine.node_uid
    elif plan.undecided or (s.world.machine_known is Known.UNKNOWN and not plan.nothing_left):
        status["machineRef"] = s.stored.raw.get("machineRef")
    # B5.2: Cluster API deletes the other two while the Machine goes; reporting each would cost two more writes.
    going = machine is not None and machine.deleting
    for field, child in (("bootstrapRef", plan.bootstrap), ("infrastructureRef", plan.infrastructure)):
        if child is not None:
            status[field] = _reference(s, child)
        elif going or plan.undecided or (s.world.children_known is Known.UNKNOWN and not plan.nothing_left):
            status[field] = s.stored.raw.get(field)
    if plan.shutdown_requested is not None:
        status["shutdownRequestedTime"] = rfc3339(plan.shutdown_requested)
    if plan.next_cleanup is not None:
        status["nextCleanup"] = rfc3339(plan.next_cleanup)
    if plan.replaced.count and plan.replaced.last is not None:
        status["replacements"] = {
            "count": plan.replaced.count,
            "lastTime": rfc3339(plan.replaced.last),
            "uid": plan.replaced.uid,
        }
    status["conditions"] = _conditions(s, plan)
    return {name: value for name, value in status.items() if value is not None}


def _message(plan: Plan) -> str:
    # The suffix changes the status, so that the event of an overdue deletion is sent with it.
    return plan.message[:_MESSAGE_LIMIT] + ("; the deletion takes longer than it should" if plan.overdue else "")


def provider_text_only(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """A3: whether only displayed values of the provider differ, which are written at most every few minutes."""
    # Compared first because most changes differ here; the rest is more expensive.
    same = old.get("phase") == new.get("phase") and old.get("message") == new.get("message")
    return same and _without_display(old) == _without_display(new)


def schedule_edited(s: Snapshot, old: Mapping[str, Any]) -> bool:
    """A3: whether the shown values are those of an edited schedule, whose controller has seen the edit."""
    display = getattr(s.world.resolution, "display", None)
    if not isinstance(display, Display) or display.observed_generation != display.generation:
        return False
    shown = old.get("spotSchedule")
    return isinstance(shown, Mapping) and shown.get("providerGeneration") != display.generation


def text_only(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether only messages differ: the server may describe the same problem differently each time."""
    return _without_texts(old) == _without_texts(new)


def machine_progress_only(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """B5.2: whether only values mirrored from a Machine in transition differ, which Cluster API changes in quick
    succession.

    Not among them is what people and tools wait for: the phase, a reason, the status of a condition other than
    MachineReady, MachineReady when it becomes true, and the addresses of a machine that is ready.
    """
    if new.get("phase") not in _MIRRORING or not new.get("machineRef"):
        return False
    if old.get("phase") != new.get("phase"):
        return False
    if new.get("ready") is True and any(old.get(name) != new.get(name) for name in _AWAITED):
        return False
    return _without_mirror(old) == _without_mirror(new)


def status_events(s: Snapshot, plan: Plan, new: Mapping[str, Any]) -> list[EventNote]:
    """B4.7: return the events of this run: a change of phase, and a resolution lost or regained."""
    events = list(plan.events)
    if plan.phase.value != s.stored.phase:
        warning = plan.phase is Phase.ERROR
        events.append(EventNote(reason=plan.reason, message=plan.message[:_MESSAGE_LIMIT], warning=warning))
    resolved = find_condition(new.get("conditions"), ConditionType.SPOT_SCHEDULE_RESOLVED)
    before = find_condition(s.stored.raw.get("conditions"), ConditionType.SPOT_SCHEDULE_RESOLVED)
    if resolved is not None and resolved["status"] != (before or {}).get("status", "True"):
        lost = resolved["status"] != "True"
        message = resolved["message"] or f"{s.spec.schedule} gives a verdict again"
        events.append(EventNote(reason=resolved["reason"], message=message, warning=lost))
    old_fields = find_condition(s.stored.raw.get("conditions"), ConditionType.UNSUPPORTED_FIELDS)
    if s.spec.unsupported and old_fields is None:
        events.append(EventNote(reason="UnsupportedFields", message=_unsupported(s), warning=True))
    return events


def _reference(s: Snapshot, child: Child) -> dict[str, Any]:
    api_version = child.resource.api_version
    for template in (s.spec.bootstrap, s.spec.infrastructure):
        if template is not None and template.group_kind == child.group_kind:
            api_version = f"{template.group_kind.group}/{template.version}"
    return {
        "apiVersion": api_version,
        "kind": child.group_kind.kind,
        "name": child.head.name,
        "namespace": child.head.namespace,
        "uid": child.head.uid,
    }


def _quiet(s: Snapshot) -> bool:
    """A15: whether the provider is unreadable, but not for long enough to report it."""
    return isinstance(s.world.resolution, Unreadable) and s.unreadable_for < s.timings.unreadable_limit


def _spot_schedule(s: Snapshot, plan: Plan) -> dict[str, Any] | None:
    resolution, before = s.world.resolution, s.stored.raw.get("spotSchedule")
    if _quiet(s):
        return before if isinstance(before, dict) else None
    shown: dict[str, Any] = {
        "resolved": isinstance(resolution, Resolved),
        "reason": _resolution_reason(s),
        "reference": {"kind": s.spec.schedule.kind, "name": s.spec.schedule.name},
    }
    if plan.verdict.known:
        shown["active"] = plan.verdict.active
    elif (changed := reference_changed(s)) is not None:
        shown["referenceChangedTime"] = rfc3339(changed)
    if isinstance(resolution, Unreadable):
        shown["message"] = resolution.why[:_MESSAGE_LIMIT]
        return shown
    display: Display = resolution.display
    if isinstance(resolution, Unresolved):
        shown["message"] = resolution.message[:_MESSAGE_LIMIT]
    elif display.reason or display.message:
        shown["message"] = f"{display.reason}: {display.message}" if display.message else display.reason
    if display.observed_generation is not None:
        shown["providerGeneration"] = display.observed_generation
    if display.last_transition_time:
        shown["lastTransitionTime"] = display.last_transition_time
    return shown


def _resolution_reason(s: Snapshot) -> str:
    resolution = s.world.resolution
    if isinstance(resolution, Resolved):
        return RESOLVED
    return resolution.reason if isinstance(resolution, Unresolved) else PROVIDER_UNREADABLE


def _conditions(s: Snapshot, plan: Plan) -> list[dict[str, Any]]:
    existing = s.stored.raw.get("conditions")
    wanted = [_ready(s, plan), _machine_ready(plan)]
    absent: list[str] = []
    wanted += _schedule_conditions(s, plan)
    moving = not plan.settled and not plan.stalled
    optional = {
        ConditionType.RECONCILING: Condition("Reconciling", "True", plan.reason, plan.message) if moving else None,
        ConditionType.STALLED: Condition("Stalled", "True", plan.reason, plan.message) if plan.stalled else None,
        ConditionType.UP_TO_DATE: _up_to_date(s, plan.machine),
        ConditionType.PAUSED: _paused(s, plan),
        ConditionType.UNSUPPORTED_FIELDS: (
            Condition("UnsupportedFields", "True", "NotActedOn", _unsupported(s)) if s.spec.unsupported else None
        ),
    }
    for type_, condition in optional.items():
        if condition is None:
            absent.append(type_)
        else:
            wanted.append(condition)
    wanted = [c if len(c.message) <= _MESSAGE_LIMIT else replace(c, message=c.message[:_MESSAGE_LIMIT]) for c in wanted]
    return set_conditions(existing, wanted, absent=absent, generation=s.head.generation, now=s.now)


def _schedule_conditions(s: Snapshot, plan: Plan) -> list[Condition]:
    resolution = s.world.resolution
    decided = plan.want is not Want.ACTIVE and plan.want is not Want.INACTIVE
    existing = s.stored.raw.get("conditions")
    conditions = []
    if isinstance(resolution, Resolved):
        conditions.append(Condition(ConditionType.SPOT_SCHEDULE_RESOLVED, "True", RESOLVED))
    elif isinstance(resolution, Unresolved):
        conditions.append(
            Condition(ConditionType.SPOT_SCHEDULE_RESOLVED, "False", resolution.reason, resolution.message)
        )
    elif not _quiet(s):
        conditions.append(
            Condition(ConditionType.SPOT_SCHEDULE_RESOLVED, "Unknown", PROVIDER_UNREADABLE, resolution.why)
        )
    else:
        conditions += _kept(existing, ConditionType.SPOT_SCHEDULE_RESOLVED)
    who = {
        Want.KILLED: "spec.killSwitch is on",
        Want.CLUSTER_DELETING: f"Cluster {s.spec.cluster} is being deleted",
        Want.DISABLED: "spec.enabled is false",
        Want.INACTIVE: f"{s.spec.schedule} says that the machine is not wanted",
        Want.ACTIVE: f"{s.spec.schedule} says that the machine is wanted",
    }[plan.want]
    if not isinstance(resolution, Resolved) and not decided:
        who = "the last known verdict is held" if plan.verdict.known else f"{s.spec.schedule} has never given a verdict"
    status: ConditionStatus = "False" if plan.want.down else "True"
    scheduled = Condition(ConditionType.SCHEDULED, status, plan.want.value, who)
    # A15: while the schedule cannot be read, the last message stays.
    kept = _kept(existing, ConditionType.SCHEDULED) if isinstance(resolution, Unreadable) else []
    if any((c.status, c.reason) == (scheduled.status, scheduled.reason) for c in kept):
        scheduled = kept[0]
    return [*conditions, scheduled]


def _ready(s: Snapshot, plan: Plan) -> Condition:
    resolution = s.world.resolution
    if plan.undecided and not plan.stalled:
        return Condition(ConditionType.READY, "Unknown", plan.reason, plan.message)
    if isinstance(resolution, Unresolved):
        return Condition(ConditionType.READY, "False", resolution.reason, resolution.message)
    if isinstance(resolution, Unreadable):
        if not _quiet(s):
            return Condition(ConditionType.READY, "Unknown", PROVIDER_UNREADABLE, resolution.why)
        unresolved = find_condition(s.stored.raw.get("conditions"), ConditionType.SPOT_SCHEDULE_RESOLVED)
        kept = _kept(s.stored.raw.get("conditions"), ConditionType.READY)
        if kept and unresolved is not None and unresolved.get("status") != "True":
            return kept[0]
    return Condition(ConditionType.READY, "True" if plan.settled else "False", plan.reason, plan.message)


def _machine_ready(plan: Plan) -> Condition:
    machine = plan.machine
    if machine is None:
        return Condition(ConditionType.MACHINE_READY, "False", "NoMachine", "there is no machine")
    if machine.ready:
        return Condition(ConditionType.MACHINE_READY, "True", Reason.MACHINE_READY, "the machine's node is ready")
    details = machine.ready_message or "the machine's node is not ready yet"
    return Condition(ConditionType.MACHINE_READY, "False", machine.ready_reason or "MachineNotReady", details)


def _up_to_date(s: Snapshot, machine: MachineView | None) -> Condition | None:
    if machine is None:
        return None
    made_from = machine.head.annotations.get(names.ANNOTATION_TEMPLATE_HASH)
    if made_from is None:
        message = "the Machine was not created by this controller and does not say from which template"
        return Condition(ConditionType.UP_TO_DATE, "Unknown", Reason.NO_TEMPLATE_HASH, message)
    if made_from == s.spec.template_hash:
        return Condition(ConditionType.UP_TO_DATE, "True", "UpToDate")
    message = "the spec was edited since; the change takes effect with the next activation"
    return Condition(ConditionType.UP_TO_DATE, "False", Reason.TEMPLATE_CHANGED, message)


def _paused(s: Snapshot, plan: Plan) -> Condition | None:
    if plan.stopped:
        return Condition(ConditionType.PAUSED, "True", Reason.STOPPED, s.stopped)
    return Condition(ConditionType.PAUSED, "True", "Paused", _pause_message(s)) if plan.paused else None


def _pause_message(s: Snapshot) -> str:
    if s.world.cluster.paused:
        return f"Cluster {s.spec.cluster} is paused"
    return "annotation cluster.x-k8s.io/paused is set"


def _unsupported(s: Snapshot) -> str:
    return f"accepted and kept, but not acted on: {', '.join(s.spec.unsupported)}"


def _kept(existing: object, type_: str) -> list[Condition]:
    found = find_condition(existing, type_)
    if found is None:
        return []
    return [Condition(type_, found.get("status", "Unknown"), found.get("reason", ""), found.get("message", ""))]


def _without_texts(status: Mapping[str, Any]) -> dict[str, Any]:
    bare = {name: value for name, value in status.items() if name != "message"}
    bare["conditions"] = [
        {name: value for name, value in entry.items() if name != "message"}
        for entry in bare.get("conditions") or ()
        if isinstance(entry, Mapping)
    ]
    return bare


def _without_display(status: Mapping[str, Any]) -> dict[str, Any]:
    bare = dict(status)
    spot = bare.get("spotSchedule")
    if isinstance(spot, Mapping):
        bare["spotSchedule"] = {name: value for name, value in spot.items() if name not in _DISPLAY_FIELDS}
    conditions = bare.get("conditions")
    if isinstance(conditions, list):
        bare["conditions"] = [_without_words(entry) for entry in conditions if isinstance(entry, Mapping)]
    return bare


def _without_mirror(status: Mapping[str, Any]) -> dict[str, Any]:
    bare = {name: value for name, value in _without_display(status).items() if name not in _MIRRORED}
    bare["conditions"] = [
        {name: value for name, value in entry.items() if name != "message" or entry.get("type") not in _TELLING}
        for entry in bare.get("conditions") or ()
        if isinstance(entry, Mapping) and entry.get("type") != ConditionType.MACHINE_READY
    ]
    return bare


def _without_words(entry: Mapping[str, Any]) -> dict[str, Any]:
    # Messages of the provider, or about failures to read it, only occur in these two conditions.
    shown = entry.get("type") == ConditionType.SPOT_SCHEDULE_RESOLVED or (
        entry.get("type") == ConditionType.READY and entry.get("reason") in _SHOWING
    )
    return {name: value for name, value in entry.items() if not (shown and name == "message")}
