"""Puts an evaluation in words. Nothing is decided here, and nothing of an embedded spec is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from fivespot.api import ConditionType, Phase, Reason
from fivespot.cli.why.judge import Evaluated
from fivespot.cli.why.live import Unread
from fivespot.cli.why.remedies import Remedy, remedies
from fivespot.contract import PROVIDER_UNREADABLE, Unreadable, Unresolved, clean
from fivespot.controllers.scheduledmachine.cluster_api import Known
from fivespot.controllers.scheduledmachine.instants import read_instant
from fivespot.controllers.scheduledmachine.plan import (
    CreateChildren,
    DeleteChildren,
    DeleteMachine,
    DropFinalizer,
    PatchMachine,
    Step,
    Want,
)
from fivespot.controllers.scheduledmachine.snapshot import Snapshot
from fivespot.runtime import find_condition

__all__ = ["Explanation", "Next", "Rung", "Said", "ScheduleFacts", "Settled", "explain"]

_TEXT: Final = 2048
"""Bytes of the longest text that is shown; a status message may have half of it."""


class Settled(StrEnum):
    """The answer in one word."""

    AS_WANTED = "AsWanted"
    NOT_AS_WANTED = "NotAsWanted"
    CANNOT_TELL = "CannotTell"


@dataclass(frozen=True, slots=True)
class Rung:
    """One of the parties that may decide, in order of precedence."""

    name: str
    state: str
    decides: bool


@dataclass(frozen=True, slots=True)
class ScheduleFacts:
    """The visible facts about the schedule.

    :param resolved: None when it could not be read.
    :param since: the last change of its verdict, by its status.
    :param next_change: the next change, by its status.
    """

    name: str
    resolved: bool | None
    active: bool | None
    reason: str
    message: str
    since: datetime | None
    next_change: datetime | None


@dataclass(frozen=True, slots=True)
class Next:
    """A coming event; ``at`` is None if its time is unknown."""

    at: datetime | None
    what: str


@dataclass(frozen=True, slots=True)
class Said:
    """A condition, or another statement of status."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reasoning for one machine.

    :param up: whether the machine is wanted; None if unknown.
    :param since: the time from which that holds, if status has it.
    :param due: the controller's next steps; phase, reason and message are those that it reports then.
    :param reported: its last report, if that differs from the evaluation of the current objects, or if that is
        unknown.
    :param also: other relevant conditions.
    """

    machine: str
    settled: Settled
    headline: str
    up: bool | None
    decided_by: str
    because: str
    since: datetime | None
    precedence: tuple[Rung, ...]
    schedule: ScheduleFacts
    phase: str
    reason: str
    message: str
    node: str
    due: tuple[str, ...]
    next: tuple[Next, ...]
    reported: Said | None
    also: tuple[Said, ...]
    remedies: tuple[Remedy, ...]
    unread: tuple[Unread, ...]
    at: datetime


def explain(j: Evaluated) -> Explanation:
    """Explain a judgement."""
    s, plan = j.snapshot, j.plan
    ready, scheduled = _said(j.status, ConditionType.READY), _said(j.status, ConditionType.SCHEDULED)
    schedule = _schedule(j)
    settled = _settled(j, ready)
    doubt = settled is Settled.CANNOT_TELL
    reported = not plan.quiet and not j.unanswered
    message = plan.message if reported else (j.unanswered or _unreadable(s) or plan.why_waiting)
    machine = s.machine
    return Explanation(
        machine=f"{s.head.namespace}/{s.head.name}",
        settled=settled,
        headline=clean(_headline(j, settled, message), _TEXT),
        up=None
        if doubt and _by_schedule(plan.want) and isinstance(s.world.resolution, Unreadable)
        else not plan.want.down,
        decided_by="Deletion" if s.head.deleting else plan.want.value,
        because="the ScheduledMachine is being deleted" if s.head.deleting else scheduled.message,
        since=read_instant(s.head.deletion_timestamp) if s.head.deleting else _earlier(scheduled.since, s.now),
        precedence=tuple(_precedence(j, schedule)),
        schedule=schedule,
        phase=plan.phase.value if reported else "",
        reason=ready.reason if reported else "",
        message=clean(message, _TEXT),
        node=machine.node if machine is not None else "",
        due=tuple(_step(s, step) for step in plan.steps),
        next=tuple(_next(j, schedule)),
        reported=_reported(j, ready, settled),
        also=tuple(_also(j.status)),
        remedies=tuple(remedies(j)),
        unread=j.unread,
        at=s.now,
    )


def _settled(j: Evaluated, ready: Said) -> Settled:
    s, plan = j.snapshot, j.plan
    unsure = isinstance(s.world.resolution, Unreadable) and _by_schedule(plan.want) and not s.head.deleting
    if j.unanswered or plan.quiet or unsure:
        return Settled.CANNOT_TELL
    if s.head.deleting:
        return Settled.NOT_AS_WANTED
    return Settled.AS_WANTED if ready.status == "True" else Settled.NOT_AS_WANTED


def _by_schedule(want: Want) -> bool:
    return want in (Want.ACTIVE, Want.INACTIVE)


def _headline(j: Evaluated, settled: Settled, message: str) -> str:
    s, plan = j.snapshot, j.plan
    name = f"{s.head.namespace}/{s.head.name}"
    wanted = "down" if plan.want.down else "up"
    resolution = s.world.resolution
    if settled is Settled.CANNOT_TELL:
        return f"cannot tell whether {name} is as wanted: {message or _unreadable(s)}"
    if settled is Settled.AS_WANTED:
        node = f", and its node {s.machine.node} is ready" if s.machine is not None else f": {plan.message}"
        return f"{name} is as wanted: {wanted}{node}" if s.machine else f"{name} is as wanted: {wanted}, {plan.message}"
    if s.head.deleting:
        return f"{name} is being deleted: {message}"
    if plan.stalled:
        return f"{name} is stuck on the way {wanted}: {message}"
    if isinstance(resolution, Unresolved) and _by_schedule(plan.want):
        held = f"the last verdict is held ({wanted})" if plan.verdict.known else "there has never been a verdict"
        return f"{name} is {_where(s)}, and its schedule gives no verdict; {held}: {resolution.message}"
    if isinstance(resolution, Unresolved):
        return f"{name} is {_where(s)} whatever its schedule says, which gives no verdict: {resolution.message}"
    if plan.steps:
        return f"{name} is on the way {wanted}: now to {', '.join(_step(s, step) for step in plan.steps)}"
    return f"{name} is on the way {wanted}: {message}"


def _earlier(instant: datetime | None, now: datetime) -> datetime | None:
    """A condition that status does not have yet would be of this moment, which says nothing."""
    return instant if instant is not None and instant < now.replace(microsecond=0) else None


def _where(s: Snapshot) -> str:
    return "down" if s.machine is None else "up"


def _unreadable(s: Snapshot) -> str:
    resolution = s.world.resolution
    return resolution.why if isinstance(resolution, Unreadable) else ""


# Parts ----------------------------------------------------------------------------------------------------------------


def _schedule(j: Evaluated) -> ScheduleFacts:
    resolution = j.snapshot.world.resolution
    name = str(j.snapshot.spec.schedule)
    if isinstance(resolution, Unreadable):
        return ScheduleFacts(name, None, None, PROVIDER_UNREADABLE, clean(resolution.why, _TEXT), None, None)
    display = resolution.display
    since = read_instant(display.last_transition_time)
    if isinstance(resolution, Unresolved):
        return ScheduleFacts(name, False, None, resolution.reason, clean(resolution.message, _TEXT), since, None)
    return ScheduleFacts(name, True, resolution.active, display.reason, display.message, since, j.announced)


def _precedence(j: Evaluated, schedule: ScheduleFacts) -> Iterator[Rung]:
    s, want = j.snapshot, j.plan.want
    deleting = s.head.deleting
    if deleting:
        yield Rung("deletion of the ScheduledMachine", "asked for", True)
    yield Rung("spec.killSwitch", "on" if s.spec.kill_switch else "off", not deleting and want is Want.KILLED)
    cluster = s.world.cluster
    state = {Known.NO: "does not exist", Known.UNKNOWN: "not read", Known.YES: "exists"}[cluster.exists]
    state = "is being deleted" if cluster.deleting else "is paused" if cluster.paused else state
    yield Rung(f"Cluster {s.spec.cluster}", state, not deleting and want is Want.CLUSTER_DELETING)
    yield Rung("spec.enabled", "true" if s.spec.enabled else "false", not deleting and want is Want.DISABLED)
    if schedule.resolved:
        state = "active" if schedule.active else "not active"
    elif schedule.resolved is None:
        state = "not read"
    elif j.plan.verdict.known:
        state = f"no verdict; held: {'active' if j.plan.verdict.active else 'not active'}"
    else:
        state = "no verdict, and never was one: not active"
    yield Rung(schedule.name, state, not deleting and _by_schedule(want))


def _step(s: Snapshot, step: Step) -> str:
    match step:
        case CreateChildren():
            made = [slot.value for slot in step.slots]
            return f"create {', '.join([*(f'the {what} object' for what in made), 'the Machine'])}"
        case PatchMachine():
            what = "annotations" if step.annotations else "labels" if step.labels else "the drain timeout"
            return f"set {what} of Machine {step.machine.head.name}"
        case DeleteMachine():
            return f"delete Machine {step.machine.head.name}"
        case DeleteChildren():
            return f"delete {', '.join(str(child) for child in step.children)}"
        case DropFinalizer():
            return f"let go of ScheduledMachine {s.head.name}"


def _next(j: Evaluated, schedule: ScheduleFacts) -> Iterator[Next]:
    s, plan = j.snapshot, j.plan
    if plan.reason == Reason.DELETION_RATE_LIMITED:
        yield Next(plan.next_cleanup, "the deletion has its turn: only so many may begin in a minute")
    elif plan.next_cleanup is not None:
        yield Next(plan.next_cleanup, "the grace period ends: the machine is drained and deleted")
    elif s.creation_hold is not None:
        yield Next(None, "created as soon as the administrator's limits allow it")
    elif plan.reason == "ReplacementDelayed" and plan.wake is not None:
        yield Next(plan.wake, f"replacement {plan.replaced.count} is created")
    elif j.remembered and plan.phase is Phase.ERROR:
        yield Next(None, "will be retried within 5 min, and at once when something changes that could help")
    elif s.head.deleting and plan.wake is not None and not plan.overdue:
        yield Next(plan.wake, "the deletion has taken too long: a Warning is sent")
    elif plan.want is Want.ACTIVE and plan.replaced.count and plan.wake is not None:
        yield Next(plan.wake, "it has been ready for long enough: losses of its machine are forgotten")
    if _by_schedule(plan.want) and not s.head.deleting:
        yield from _by_the_schedule(j, schedule)


def _by_the_schedule(j: Evaluated, schedule: ScheduleFacts) -> Iterator[Next]:
    s, plan = j.snapshot, j.plan
    if schedule.resolved is False:
        yield Next(None, "looked at again on every change, and every minute")
    at = schedule.next_change
    if not schedule.resolved or at is None or at <= s.now:
        return
    if schedule.active:
        grace = int(s.spec.grace.total_seconds())
        kept = f"kept for {grace} s (gracefulShutdownTimeout), then " if grace else ""
        yield Next(at, f"{schedule.name} ends: the machine is {kept}drained and deleted")
    elif plan.next_cleanup is not None and at < plan.next_cleanup:
        yield Next(at, f"{schedule.name} begins again before the grace period ends: the machine then stays as it is")
    else:
        yield Next(at, f"{schedule.name} begins: the machine is created")


def _reported(j: Evaluated, ready: Said, settled: Settled) -> Said | None:
    """Return the controller's last report if it differs from its present evaluation, or if that is unknown."""
    s, stored = j.snapshot, j.snapshot.stored.raw
    if not s.stored.phase:
        return Said("", "", "", "no controller has reported on it yet")
    before = _said(stored, ConditionType.READY)
    same = s.stored.phase == j.plan.phase.value and (before.status, before.reason) == (ready.status, ready.reason)
    if same and settled is not Settled.CANNOT_TELL:
        return None
    message = stored.get("message")
    shown = clean(message, _TEXT) if isinstance(message, str) else ""
    return Said(clean(s.stored.phase, 64), before.status, before.reason, shown or before.message, before.since)


def _also(status: Mapping[str, Any]) -> Iterator[Said]:
    for type_, news in (
        (ConditionType.PAUSED, ("True",)),
        (ConditionType.UP_TO_DATE, ("False", "Unknown")),
        (ConditionType.UNSUPPORTED_FIELDS, ("True",)),
    ):
        found = _said(status, type_)
        if found.status in news:
            yield found


def _said(status: Mapping[str, Any], type_: str) -> Said:
    found: Mapping[str, Any] = find_condition(status.get("conditions"), type_) or {}

    def text(name: str) -> str:
        value = found.get(name)
        return clean(value, _TEXT) if isinstance(value, str) else ""

    return Said(type_, text("status"), text("reason"), text("message"), read_instant(found.get("lastTransitionTime")))
