"""Mutants of the product, each as small as a plausible mistake; the checker has to detect all of them.

Each takes a :class:`pytest.MonkeyPatch` and replaces a decision, a precondition or a write of the shipped code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from fivespot.api import names
from fivespot.contract import EffectiveVerdict, Resolved, effective_verdict
from fivespot.controllers.scheduledmachine import (
    act,
    children,
    decide_down,
    decide_up,
    observe,
    reconciler,
    status_writer,
)
from fivespot.controllers.scheduledmachine import decide as deciding
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.decide_down import DRAIN_AGAIN
from fivespot.controllers.scheduledmachine.plan import (
    DeleteChildren,
    DeleteMachine,
    DropFinalizer,
    PatchMachine,
    Plan,
)
from fivespot.controllers.scheduledmachine.refusals import Refusals
from fivespot.controllers.scheduledmachine.snapshot import Snapshot
from fivespot.controllers.scheduledmachine.status import build_status
from fivespot.controllers.scheduledmachine.status_writer import MachineStatusWriter
from fivespot.providers.sdk import Verdict, broken_status
from fivespot.providers.sdk import reconciler as provider_reconciler
from fivespot.providers.sdk.decider import Decider
from fivespot.providers.sdk.status_writer import StatusWriter
from fivespot.runtime import (
    Client,
    Key,
    Object,
    Resource,
    ensure_finalizer,
    merge_patch,
    remove_finalizer,
)
from fivespot.runtime.client import Request, Response, client
from fivespot.runtime.client.requests import delete_request
from fivespot.runtime.manager.leader_gate import LeaderGate
from fivespot.runtime.manager.lease import Candidate
from fivespot.runtime.objects import rfc3339

from .invariants import Invariant

__all__ = ["MUTANTS", "Mutant"]

Mutant = Callable[[pytest.MonkeyPatch], None]


def _plans(patch: pytest.MonkeyPatch, change: Callable[[Snapshot, Plan], Plan]) -> None:
    """Change the decisions."""
    patch.setattr(reconciler, "decide", lambda s: change(s, decide(s)))


def unresolved_is_inactive(patch: pytest.MonkeyPatch) -> None:
    def forget(resolution: Any, *rest: Any, **more: Any) -> EffectiveVerdict:
        found = effective_verdict(resolution, *rest, **more)
        return found if isinstance(resolution, Resolved) else replace(found, active=False, may_begin=True)

    patch.setattr(deciding, "effective_verdict", forget)


def _wanted_as_if(patch: pytest.MonkeyPatch, **spec: Any) -> None:
    want = deciding._want

    def ignore(s: Snapshot, verdict: EffectiveVerdict) -> Any:
        return want(replace(s, spec=replace(s.spec, **spec)), verdict)

    patch.setattr(deciding, "_want", ignore)


def disabled_is_ignored(patch: pytest.MonkeyPatch) -> None:
    _wanted_as_if(patch, enabled=True)


def grace_is_skipped(patch: pytest.MonkeyPatch) -> None:
    grace = decide_down._grace

    def skip(s: Snapshot, *rest: Any) -> Plan:
        return grace(replace(s, spec=replace(s.spec, grace=timedelta(0))), *rest)

    patch.setattr(decide_down, "_grace", skip)


def replacement_backoff_is_off(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide_up, "_brake", lambda s, replaced: None)


def foreign_objects_are_adopted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(observe, "child_is_ours", lambda *_, **__: True)


def children_lack_the_uid(patch: pytest.MonkeyPatch) -> None:
    build = children.build_embedded

    def forget(*rest: Any, **given: Any) -> dict[str, Any]:
        body = build(*rest, **given)
        del body["metadata"]["annotations"][names.ANNOTATION_UID]
        return body

    patch.setattr(act, "build_embedded", forget)


def machines_are_created_twice(patch: pytest.MonkeyPatch) -> None:
    create = act.StepRunner._create

    async def twice(self: act.StepRunner, s: Snapshot, obj: Object, step: Any, machines: Resource, *rest: Any) -> None:
        await create(self, s, obj, step, machines, *rest)
        body = children.build_machine(obj.decode(), machines.version)
        body["metadata"]["name"] += "-again"
        # Two Machines with the same bootstrap object would compete for it forever.
        body["metadata"]["annotations"][names.ANNOTATION_PAUSED] = "true"
        await self._client.create(machines, body)

    patch.setattr(act.StepRunner, "_create", twice)


def finalizer_is_missing(patch: pytest.MonkeyPatch) -> None:
    async def skip(client: Any, resource: Resource, obj: Any, finalizer: str) -> Any:
        return obj

    patch.setattr(reconciler, "ensure_finalizer", skip)


def finalizer_is_removed_first(patch: pytest.MonkeyPatch) -> None:
    def drop(s: Snapshot, plan: Plan) -> Plan:
        return replace(plan, steps=(DropFinalizer(),), ask=None) if s.head.deleting else plan

    _plans(patch, drop)


def children_are_deleted_with_the_machine(patch: pytest.MonkeyPatch) -> None:
    def at_once(s: Snapshot, plan: Plan) -> Plan:
        going = any(isinstance(step, DeleteMachine) for step in plan.steps)
        return replace(plan, steps=(*plan.steps, DeleteChildren(s.ours))) if going and s.ours else plan

    _plans(patch, at_once)


def leftovers_are_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide_down, "_leftovers", decide_down._settled)


def drain_has_no_timeout(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(children, "drain_settings", lambda seconds, version: ({}, {}))


def killed_machines_are_drained(patch: pytest.MonkeyPatch) -> None:
    def drain(s: Snapshot, plan: Plan) -> Plan:
        return replace(plan, steps=tuple(step for step in plan.steps if not isinstance(step, PatchMachine)))

    _plans(patch, drain)


def pause_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Snapshot, "paused", False)


def leader_never_steps_down(patch: pytest.MonkeyPatch) -> None:
    confirm = Candidate._confirm

    def stay(self: Candidate, renewed: str, sent_at: float) -> None:
        confirm(self, renewed, sent_at)
        self.lead_until = math.inf

    patch.setattr(Candidate, "_confirm", stay)
    patch.setattr(Candidate, "ours", property(lambda self: self.claimed))


def leader_gate_is_open(patch: pytest.MonkeyPatch) -> None:
    async def send(self: LeaderGate, request: Request) -> Response:
        return await self._transport.request(request)

    patch.setattr(LeaderGate, "request", send)


def deletes_have_no_precondition(patch: pytest.MonkeyPatch) -> None:
    def bare(*rest: Any, **more: Any) -> Any:
        return replace(delete_request(*rest, **more), body=None)

    patch.setattr(client, "delete_request", bare)


def status_has_no_precondition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(client, "merge_patch", lambda change, head: merge_patch(change))


def spec_is_edited(patch: pytest.MonkeyPatch) -> None:
    async def edit(client: Client, resource: Resource, obj: Any, finalizer: str) -> Any:
        obj = await ensure_finalizer(client, resource, obj, finalizer)
        return await client.patch(resource, obj.key, merge_patch({"spec": {"priority": 60}}, obj.head))

    patch.setattr(reconciler, "ensure_finalizer", edit)


def schedules_are_deleted_too(patch: pytest.MonkeyPatch) -> None:
    switches = Resource(names.PROVIDER_GROUP, names.PROVIDER_VERSION, "manualschedules", "ManualSchedule")

    async def remove_both(client: Client, resource: Resource, obj: Any, finalizer: str) -> Any:
        found = await client.get(switches, obj.key)
        await client.delete(switches, obj.key, uid=found.head.uid)
        return await remove_finalizer(client, resource, obj, finalizer)

    patch.setattr(act, "remove_finalizer", remove_both)


def _verdicts(patch: pytest.MonkeyPatch, *, ahead: timedelta, wake: timedelta) -> None:
    """Shift the time at which schedules are evaluated, and the time of their next evaluation."""
    decide = Decider.decide_now

    def shifted(self: Decider[Any], prepared: Any, at: datetime, context: Any) -> Any:
        found = decide(self, prepared, at + ahead, context)
        if not isinstance(found, Verdict) or found.until is None:
            return found
        return replace(found, until=found.until + wake)

    patch.setattr(Decider, "decide_now", shifted)


def schedules_open_early(patch: pytest.MonkeyPatch) -> None:
    _verdicts(patch, ahead=timedelta(minutes=2), wake=timedelta(minutes=-2))


def schedules_open_late(patch: pytest.MonkeyPatch) -> None:
    _verdicts(patch, ahead=timedelta(0), wake=timedelta(minutes=2))


def no_verdict_is_inactive(patch: pytest.MonkeyPatch) -> None:
    def closed(*rest: Any, **more: Any) -> dict[str, Any]:
        return {**broken_status(*rest, **more), "active": False}

    patch.setattr(provider_reconciler, "broken_status", closed)


def kill_switch_is_ignored(patch: pytest.MonkeyPatch) -> None:
    _wanted_as_if(patch, kill_switch=False)


def timers_are_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MachineStatusWriter, "_seconds_to", lambda *_: None)


def _status(patch: pytest.MonkeyPatch, change: Callable[[Snapshot, dict[str, Any]], None]) -> None:
    """Change the reported status."""

    def changed(s: Snapshot, plan: Plan) -> dict[str, Any]:
        status = build_status(s, plan)
        change(s, status)
        return status

    patch.setattr(status_writer, "build_status", changed)


def every_machine_is_ready(patch: pytest.MonkeyPatch) -> None:
    _status(patch, lambda s, status: status.update(ready=True))


def no_machine_is_ready(patch: pytest.MonkeyPatch) -> None:
    _status(patch, lambda s, status: status.update(ready=False))


def every_phase_is_final(patch: pytest.MonkeyPatch) -> None:
    _status(patch, lambda s, status: status.update(phase="Active" if status["inSchedule"] else "Inactive"))


def condition_times_follow_the_clock(patch: pytest.MonkeyPatch) -> None:
    def move(s: Snapshot, status: dict[str, Any]) -> None:
        for condition in status["conditions"]:
            condition["lastTransitionTime"] = rfc3339(s.now)

    _status(patch, move)


def status_is_always_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(status_writer, "merge_diff", lambda old, new: new)


def status_contains_the_time(patch: pytest.MonkeyPatch) -> None:
    _status(patch, lambda s, status: status.update(message=f"looked at {s.now:%H:%M}"))
    patch.setattr(MachineStatusWriter, "_seconds_to", lambda *_: 60.0)


def grace_begins_anew_in_every_run(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Snapshot, "shutdown_begun", None)


def a_refused_step_is_never_tried_again(patch: pytest.MonkeyPatch) -> None:
    note = Refusals.note

    def for_ever(self: Refusals, key: Key, *rest: Any, **more: Any) -> Any:
        found = note(self, key, *rest, **more)
        lasting = replace(found, due=found.due + 1e6)
        self._found[key] = (lasting, self._found[key][1])
        return lasting

    patch.setattr(Refusals, "note", for_ever)
    patch.setattr(reconciler, "fingerprint", lambda s: "")


def the_drain_stays_excluded_after_the_kill_switch(patch: pytest.MonkeyPatch) -> None:
    def keep(s: Snapshot, plan: Plan) -> Plan:
        undone = {step for step in plan.steps if isinstance(step, PatchMachine) and step.annotations == DRAIN_AGAIN}
        return replace(plan, steps=tuple(step for step in plan.steps if step not in undone))

    _plans(patch, keep)


def the_generation_is_not_reported(patch: pytest.MonkeyPatch) -> None:
    _status(patch, lambda s, status: status.update(observedGeneration=1))


def the_machine_is_named_after_its_end(patch: pytest.MonkeyPatch) -> None:
    def keep(s: Snapshot, status: dict[str, Any]) -> None:
        known = s.stored.raw.get("machineRef")
        if status.get("machineRef") is None and known is not None:
            status["machineRef"] = known

    _status(patch, keep)


def the_next_cleanup_is_not_taken_back(patch: pytest.MonkeyPatch) -> None:
    def keep(s: Snapshot, status: dict[str, Any]) -> None:
        known = s.stored.raw.get("nextCleanup")
        if known is not None:
            status["nextCleanup"] = known

    _status(patch, keep)


def another_leaders_lease_is_released(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Candidate, "ours", property(lambda self: self.claimed))


def a_provider_reports_once(patch: pytest.MonkeyPatch) -> None:
    write = StatusWriter.write

    async def first(self: StatusWriter, obj: Object, *rest: Any) -> bool:
        if "active" in (obj.decode().get("status") or {}):
            return True
        return await write(self, obj, *rest)

    patch.setattr(StatusWriter, "write", first)


MUTANTS: tuple[tuple[Mutant, Invariant, int], ...] = (
    (machines_are_created_twice, Invariant.ONE_MACHINE, 2),
    (disabled_is_ignored, Invariant.WANTED, 6),
    (unresolved_is_inactive, Invariant.GRACE, 4),
    (grace_is_skipped, Invariant.GRACE, 2),
    (replacement_backoff_is_off, Invariant.BRAKE, 4),
    (foreign_objects_are_adopted, Invariant.FOREIGN, 2),
    (children_lack_the_uid, Invariant.MARKED, 2),
    (finalizer_is_missing, Invariant.FINALIZER_FIRST, 2),
    (finalizer_is_removed_first, Invariant.FINALIZER_LAST, 4),
    (children_are_deleted_with_the_machine, Invariant.ORDER, 2),
    (drain_has_no_timeout, Invariant.DRAIN, 2),
    (killed_machines_are_drained, Invariant.DRAIN, 1),
    (leftovers_are_kept, Invariant.FINALIZER_LAST, 6),
    (pause_is_ignored, Invariant.PAUSED, 2),
    (leader_never_steps_down, Invariant.LEASE, 1),
    (leader_gate_is_open, Invariant.LEASE, 1),
    (deletes_have_no_precondition, Invariant.PRECONDITION, 2),
    (status_has_no_precondition, Invariant.PRECONDITION, 2),
    (spec_is_edited, Invariant.SPEC, 2),
    (schedules_are_deleted_too, Invariant.RIGHTS, 2),
    (schedules_open_early, Invariant.EARLY, 2),
    (no_verdict_is_inactive, Invariant.EARLY, 2),
    (schedules_open_late, Invariant.LATE, 1),
    (kill_switch_is_ignored, Invariant.WANTED, 4),
    (timers_are_dropped, Invariant.LATE, 2),
    (every_machine_is_ready, Invariant.STATUS, 2),
    (every_phase_is_final, Invariant.STATUS, 2),
    (condition_times_follow_the_clock, Invariant.TIMES, 2),
    (status_is_always_written, Invariant.EMPTY, 2),
    (no_machine_is_ready, Invariant.SETTLED, 2),
    (status_contains_the_time, Invariant.REST, 2),
    (grace_begins_anew_in_every_run, Invariant.LATE, 2),
    (a_refused_step_is_never_tried_again, Invariant.LATE, 6),
    (the_drain_stays_excluded_after_the_kill_switch, Invariant.LATE, 2),
    (the_generation_is_not_reported, Invariant.SETTLED, 2),
    (the_machine_is_named_after_its_end, Invariant.STATUS, 2),
    (the_next_cleanup_is_not_taken_back, Invariant.SETTLED, 2),
    (another_leaders_lease_is_released, Invariant.LEASE, 1),
    (a_provider_reports_once, Invariant.LATE, 2),
)
"""Each mutant with the invariant that it violates and one of the tests' seeds that shows it."""
