"""Reports the outcome of a run: at most one status patch, then events, metrics and the plan for ``/debug/plans``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import structlog

from fivespot.api import Reason
from fivespot.runtime import Key, ManagerContext, NotFoundError, Object, ObjectRef, Result, merge_diff
from fivespot.runtime.objects import field_writer
from fivespot.runtime.telemetry import EventNote

from .metrics import MachineMetrics
from .plan import Plan, Want
from .snapshot import Snapshot
from .sources import CONTROLLER, SCHEDULED_MACHINES
from .status import (
    build_status,
    machine_progress_only,
    provider_text_only,
    schedule_edited,
    status_events,
    text_only,
)
from .timings import Timings

__all__ = ["MachineStatusWriter"]


_EVENT_LIMIT = 1024
_SWITCHES: Final = ((Want.KILLED, "killSwitch", "on", "off"), (Want.DISABLED, "enabled", "false", "true"))

_log = structlog.get_logger("fivespot.scheduledmachine")


class MachineStatusWriter:
    """The only writer of status and events of ScheduledMachines, which also computes the next run."""

    def __init__(self, context: ManagerContext, metrics: MachineMetrics, timings: Timings) -> None:
        self._client = context.client
        self._clock = context.clock
        self._rng = context.rng
        self._settings = context.settings
        self._events = context.events
        self._plans = context.plans
        self._metrics = metrics
        self._timings = timings
        # State of this process; each entry is removed with its object.
        self._written: dict[Key, float] = {}
        self._overdue: dict[Key, str] = {}

    def forget(self, key: Key) -> None:
        self._written.pop(key, None)
        self._overdue.pop(key, None)
        self._metrics.forget(key)
        self._plans.forget(CONTROLLER, key)

    async def write(self, obj: Object, s: Snapshot, plan: Plan, *, let_go: bool = False) -> Result:
        """Report the current state in at most one status write.

        :param let_go: the finalizer was removed, so there may be no object left to write to.
        :raises ConflictError: the object has changed.
        """
        key = obj.key
        self._metrics.evaluated(s, plan)
        self._note(key, plan)
        self._count_overdue(key, s, plan)
        if let_go:
            self._record(s, list(plan.events))
            return Result(phase=plan.phase.value)
        # Before the status write: a run that is interrupted in between repeats it, and its token prevents a second
        # event.
        self._record(s, [event for event in plan.events if event.once])
        wake = self._seconds_to(s, plan)
        if plan.quiet:
            _log.debug("waiting", why=plan.why_waiting)
            return Result(requeue_after=wake, phase=plan.phase.value)
        new = build_status(s, plan)
        change = merge_diff(s.stored.raw, new)
        if change and not self._settings.dry_run:
            held = self._wait_to_write(key, s, plan, new)
            if held > 0:
                wake = held if wake is None else min(wake, held)
            else:
                if not await self._patch(key, obj, s, plan, change):
                    # The cache will show that it is gone; in case it does not, the key is requeued.
                    wake = self._timings.next_look if wake is None else min(wake, self._timings.next_look)
                self._record(s, [event for event in status_events(s, plan, new) if not event.once])
        return Result(requeue_after=wake, phase=plan.phase.value)

    async def announce(self, obj: Object, s: Snapshot, plan: Plan) -> Object:
        """Write the status of a plan before its steps are carried out; return the object after the write.

        Where nothing changes it is a dry run, which also fails if the object is not as it was read.

        :raises NotFoundError: the object is gone.
        :raises ConflictError: the object has changed.
        """
        new = build_status(s, plan)
        change = merge_diff(s.stored.raw, new)
        self._record(s, [event for event in plan.events if event.once])
        if not change:
            await self._send(obj.key, obj, change, dry_run=True)
            return obj
        written = await self._send(obj.key, obj, change)
        self._after_write(obj.key, s, plan, written)
        self._record(s, [event for event in status_events(s, plan, new) if not event.once])
        return written

    def record_failure(self, obj: Object, message: str) -> None:
        """Record an event where no status can be written."""
        regarding = ObjectRef.of(SCHEDULED_MACHINES, obj)
        self._events.note(
            regarding, EventNote(reason=Reason.RECONCILE_FAILED, message=message[:_EVENT_LIMIT], warning=True)
        )

    def _count_overdue(self, key: Key, s: Snapshot, plan: Plan) -> None:
        if plan.overdue and self._overdue.get(key) != s.head.uid:
            self._overdue[key] = s.head.uid
            self._metrics.overdue()

    async def _patch(self, key: Key, obj: Object, s: Snapshot, plan: Plan, change: dict[str, Any]) -> bool:
        """Write the status; False if the object is gone."""
        try:
            written = await self._send(key, obj, change)
        except NotFoundError:
            return False
        self._after_write(key, s, plan, written)
        return True

    async def _send(self, key: Key, obj: Object, change: dict[str, Any], *, dry_run: bool = False) -> Object:
        return await self._client.patch_status(SCHEDULED_MACHINES, obj.head, change, dry_run=dry_run)

    def _after_write(self, key: Key, s: Snapshot, plan: Plan, written: Object) -> None:
        self._record(s, list(_switches(s, plan, written)))
        self._metrics.status_written(s, plan)
        self._written[key] = self._clock.monotonic()
        if plan.phase.value != s.stored.phase:
            _log.info(
                "phase changed",
                before=s.stored.phase or None,
                after=plan.phase.value,
                reason=plan.reason,
                why=plan.message,
            )

    def _wait_to_write(self, key: Key, s: Snapshot, plan: Plan, new: dict[str, Any]) -> float:
        """A3, B5.2: seconds for which a change of displayed values alone still has to wait."""
        last = self._written.get(key)
        if last is None:
            return 0.0
        old = s.stored.raw
        if provider_text_only(old, new):
            edited = schedule_edited(s, old)
            interval = self._timings.edit_interval if edited else self._timings.display_interval
        elif plan.repeated and text_only(old, new):
            interval = self._timings.display_interval
        elif not plan.steps and not plan.events and machine_progress_only(old, new):
            interval = self._timings.mirror_interval
        else:
            return 0.0
        return last + interval - self._clock.monotonic()

    def _seconds_to(self, s: Snapshot, plan: Plan) -> float | None:
        waits = []
        if plan.wake is not None:
            # A wall clock that reads slightly before the boundary must not make the key run twice.
            waits.append(max((plan.wake - s.now + timedelta(milliseconds=1)).total_seconds(), 0.0))
        if plan.recheck:
            jitter = self._timings.unresolved_jitter
            waits.append(self._timings.unresolved_recheck * (1 + self._rng.uniform(-jitter, jitter)))
        if not waits and not plan.settled:
            # B8.5: what it waits for may happen without an event, or the event may be lost.
            waits.append(self._timings.next_look * (1 + self._rng.uniform(0, self._timings.unresolved_jitter)))
        return min(waits) if waits else None

    def _record(self, s: Snapshot, events: list[EventNote]) -> None:
        if not events:
            return
        regarding = ObjectRef.of(SCHEDULED_MACHINES, s.head)
        for event in events:
            self._events.note(regarding, event)

    def _note(self, key: Key, plan: Plan) -> None:
        steps = [type(step).__name__ for step in plan.steps]
        if not steps and not self._settings.dry_run:
            self._plans.forget(CONTROLLER, key)
            return
        shown = {"wanted": plan.want.value, "phase": plan.phase.value, "reason": plan.reason, "steps": steps}
        self._plans.note(CONTROLLER, key, shown | {"message": plan.message or plan.why_waiting})
        if steps and self._settings.dry_run:
            _log.info("would act", steps=steps, phase=plan.phase.value, reason=plan.reason, why=plan.message)


def _switches(s: Snapshot, plan: Plan, written: Object) -> Iterator[EventNote]:
    """B8.4: yield an event for each switch that began or ceased to decide, with who set it.

    :param written: the server's answer to the status write; caches do not keep who wrote a field.
    """
    before = s.stored.scheduled_reason
    if plan.want.value == before:
        return
    for want, field, on, off in _SWITCHES:
        if want is plan.want or want.value == before:
            writer = field_writer(written.decode(), "spec", field)
            if writer is not None:
                message = f"spec.{field} is {on if want is plan.want else off}, {writer}"
                yield EventNote(reason=Reason.SWITCHED, message=message, warning=False)
