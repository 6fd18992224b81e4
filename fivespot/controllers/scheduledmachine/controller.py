"""The ScheduledMachine reconciler: one object down the corridor, once per run."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import structlog

from fivespot.api import names
from fivespot.contract import Unreadable
from fivespot.runtime.cache import Informer, KindState, KindUnknown
from fivespot.runtime.errors import (
    ApiError,
    ConflictError,
    FivespotError,
    ForbiddenError,
    NotFoundError,
    TransportError,
)
from fivespot.runtime.manager import ManagerContext
from fivespot.runtime.objects import Key, Object, Resource, Selector, merge_diff, merge_patch
from fivespot.runtime.reconcile import DONE, Result, ensure_finalizer
from fivespot.runtime.telemetry import ObjectRef

from .act import Actor, Outcome
from .brake import DeletionBrake
from .decide import decide
from .instants import whole_second
from .memory import Replaced, StatusMemory, read_memory
from .metrics import MachineMetrics
from .model import Answers, Child, Slot, Snapshot
from .observe import MACHINE_KIND, Observer, named_kinds
from .ownership import child_is_ours
from .plan import Ask, CreateChildren, DeleteChildren, DeleteMachine, Notice, Plan, Want
from .refusals import Refusals, fingerprint
from .report import apply_refusal, apply_trouble, build_status, display_only, phase_notices
from .sources import SCHEDULED_MACHINES
from .spec import SpecView, read_spec
from .timings import Timings
from .wait import remembers

__all__ = ["CONTROLLER", "MachineReconciler"]

CONTROLLER = "scheduledmachine"
_ROUNDS = 4
"""Decisions in one run: enough to ask a question, delete leftovers and go on, and few enough never to spin."""

_log = structlog.get_logger("fivespot.scheduledmachine")


class MachineReconciler:
    """Brings the machine of one ScheduledMachine to what its schedule says.

    :param machines: the informer of ScheduledMachines.
    """

    def __init__(
        self,
        context: ManagerContext,
        machines: Informer,
        observer: Observer,
        metrics: MachineMetrics,
        timings: Timings,
    ) -> None:
        self._client = context.client
        self._clock = context.clock
        self._chance = context.chance
        self._settings = context.settings
        self._events = context.events
        self._plans = context.plans
        self._kinds = context.cache.kinds
        self._machines = machines
        self._observer = observer
        self._metrics = metrics
        self._timings = timings
        self._actor = Actor(context.client, SCHEDULED_MACHINES)
        self._refusals = Refusals(timings, context.chance)
        self._brake = DeletionBrake(context.settings.max_deletions_per_minute)
        # Small memories of this process; each entry goes with its object.
        self._specs: dict[Key, tuple[str, int, SpecView]] = {}
        self._unreadable: dict[Key, float] = {}
        self._displayed: dict[Key, float] = {}
        self._swept: dict[Key, str] = {}
        self._overdue: dict[Key, str] = {}

    async def reconcile(self, key: Key) -> Result:
        obj = self._machines.get(key)
        if obj is None:
            self.forget(key)
            return DONE
        begun = self._clock.monotonic()
        try:
            result = await self._run(key, obj)
        except ConflictError:
            raise
        except FivespotError as error:
            phase = read_memory(obj.decode()).phase or "Pending"
            self._metrics.finished(
                phase, self._clock.monotonic() - begun, failed=True, error=type(error).__name__.removesuffix("Error")
            )
            raise
        self._metrics.finished(result.phase or "Pending", self._clock.monotonic() - begun)
        return result

    def priority(self, key: Key) -> int:
        """B5.4: ``spec.priority`` as last read."""
        found = self._specs.get(key)
        return found[2].priority if found is not None else 50

    def forget(self, key: Key) -> None:
        """The object is gone, and with it all that was remembered of it."""
        memories: tuple[dict[Key, Any], ...] = (
            self._specs,
            self._unreadable,
            self._displayed,
            self._swept,
            self._overdue,
        )
        for memory in memories:
            memory.pop(key, None)
        self._refusals.forget(key)
        self._brake.release(key)
        self._metrics.forget(key)
        self._plans.forget(CONTROLLER, key)

    # One run -----------------------------------------------------------------------------------------------------

    async def _run(self, key: Key, obj: Object) -> Result:
        if obj.head.deleting and names.FINALIZER not in obj.head.finalizers:
            return DONE
        fresh = False
        body = obj.decode()
        snapshot = self._snapshot(key, obj, body)
        if self._needs_finalizer(snapshot):
            fresh = not snapshot.memory.phase
            try:
                obj = await ensure_finalizer(self._client, SCHEDULED_MACHINES, obj, names.FINALIZER)
            except NotFoundError:
                return DONE
            body = obj.decode()
            snapshot = self._snapshot(key, obj, body, fresh=fresh)
        if fresh:
            self._swept[key] = obj.head.uid
        elif remembers(snapshot.memory):
            # Should this status be lost in its turn, another sweep is due.
            self._swept.pop(key, None)
        answers = Answers(swept=self._swept.get(key) == obj.head.uid)
        notices: list[Notice] = []
        for _ in range(_ROUNDS):
            snapshot = replace(snapshot, answers=answers)
            plan = self._decide(key, snapshot)
            if plan.ask is not None:
                answers, snapshot = await self._answer(plan.ask, snapshot, answers)
                continue
            try:
                outcome = await self._act(snapshot, obj, plan)
            except (ApiError, TransportError) as error:
                await self._report_trouble(key, obj, body, snapshot, plan, error)
                raise
            plan = self._conclude(snapshot, plan, outcome)
            if not self._goes_on(plan, outcome):
                return await self._report(key, obj, body, snapshot, plan, outcome, notices)
            notices += plan.notices
            snapshot = self._snapshot(key, obj, body, fresh=fresh)
        raise ConflictError(0, "", "the world kept changing", request=f"reconcile {key}")

    def _decide(self, key: Key, s: Snapshot) -> Plan:
        """The plan, with the brake on deletions asked only for one that would begin a deletion by schedule."""
        plan = decide(s)
        braked = plan.want in (Want.INACTIVE, Want.DISABLED) and not s.head.deleting
        if not braked or not any(isinstance(step, DeleteMachine) for step in plan.steps):
            self._brake.release(key)
            return plan
        wait = self._brake.wait(key, s.monotonic)
        return decide(replace(s, deletion_wait=wait)) if wait > 0 else plan

    def _snapshot(self, key: Key, obj: Object, body: dict[str, Any], *, fresh: bool = False) -> Snapshot:
        spec, memory = self._spec(key, obj, body), read_memory(body)
        world = self._observer.look(obj.head, spec, memory)
        now, monotonic = self._clock.now(), self._clock.monotonic()
        unreadable_for = 0.0
        if isinstance(world.reading, Unreadable):
            unreadable_for = monotonic - self._unreadable.setdefault(key, monotonic)
        else:
            self._unreadable.pop(key, None)
        snapshot = Snapshot(
            now=now,
            monotonic=monotonic,
            head=obj.head,
            spec=spec,
            memory=memory,
            world=world,
            timings=self._timings,
            unreadable_for=unreadable_for,
            fresh=fresh,
            force_finalizer=self._settings.force_finalizer_on_timeout,
        )
        if key not in self._refusals:
            return snapshot
        return replace(snapshot, refusal=self._refusals.current(key, fingerprint(snapshot)))

    def _spec(self, key: Key, obj: Object, body: dict[str, Any]) -> SpecView:
        found = self._specs.get(key)
        if found is not None and found[:2] == (obj.head.uid, obj.head.generation):
            return found[2]
        spec = read_spec(body)
        self._specs[key] = (obj.head.uid, obj.head.generation, spec)
        return spec

    def _needs_finalizer(self, s: Snapshot) -> bool:
        return (
            not s.head.deleting
            and names.FINALIZER not in s.head.finalizers
            and not s.paused
            and not self._settings.dry_run
        )

    async def _answer(self, question: Ask, s: Snapshot, answers: Answers) -> tuple[Answers, Snapshot]:
        if question is Ask.MACHINE_GONE:
            uid = s.memory.machine_uid
            machines = self._machine_resource(s)
            try:
                found = await self._client.get(machines, Key(s.head.namespace, s.head.name), metadata_only=True)
            except NotFoundError as error:
                if error.reason != "NotFound":
                    # Not "no such object" but "no such resource": that says nothing about the Machine.
                    raise ConflictError(0, "", "Machines are not served", request=error.request) from error
                return replace(answers, gone=answers.gone | {uid}), s
            if found.head.uid == uid:
                raise ConflictError(0, "", "the cache of Machines is behind", request=f"read Machine {found.key}")
            return replace(answers, gone=answers.gone | {uid}), s
        found_children = await self._sweep(s)
        self._swept[Key(s.head.namespace, s.head.name)] = s.head.uid
        known = {(child.group_kind, child.head.uid) for child in s.world.children}
        extra = tuple(c for c in found_children if (c.group_kind, c.head.uid) not in known)
        world = replace(s.world, children=s.world.children + extra)
        return replace(answers, swept=True), replace(s, world=world)

    async def _sweep(self, s: Snapshot) -> list[Child]:
        """B2.3: list by label every kind that a child can have; used once per object whose status was lost."""
        template = {gk for _, gk, _ in named_kinds(s.spec, s.memory, None)}
        selector = Selector.labels({names.LABEL_MACHINE: s.head.name})
        found: list[Child] = []
        for slot, groups in (
            (Slot.BOOTSTRAP, names.BOOTSTRAP_GROUPS),
            (Slot.INFRASTRUCTURE, names.INFRASTRUCTURE_GROUPS),
        ):
            for group in groups:
                self._kinds.watch_group(group)
                states = self._kinds.in_group(group)
                if isinstance(states, KindUnknown):
                    # What cannot be searched may hold leftovers; nothing is concluded before it can.
                    raise ConflictError(0, "", states.why, request=f"search {group} for what is left of {s.head.name}")
                for state in states:
                    if not state.namespaced or not state.served or state.resource().group_kind in template:
                        continue
                    found += await self._list_ours(s, slot, state, selector)
        return found

    async def _list_ours(self, s: Snapshot, slot: Slot, state: KindState, selector: Selector) -> list[Child]:
        resource = state.resource()
        try:
            objects = await self._client.list(resource, s.head.namespace, selector=selector, metadata_only=True)
        except (ForbiddenError, NotFoundError) as error:
            _log.warning("a kind could not be searched for leftovers", kind=str(resource), error=str(error))
            return []
        return [
            Child(slot, resource, found.head, ours=True)
            for found in objects
            if child_is_ours(
                found.head, resource.group_kind, owner_uid=s.head.uid, owner_name=s.head.name, machine=s.machine
            )
        ]

    async def _act(self, s: Snapshot, obj: Object, plan: Plan) -> Outcome:
        if not plan.steps or self._settings.dry_run:
            return Outcome(vanished=False)
        machines = None if not s.world.capi.version else self._machine_resource(s)
        return await self._actor.act(s, obj, plan, machines, self._template_resources(s))

    def _machine_resource(self, s: Snapshot) -> Resource:
        state = self._observer.machine_state()
        if state is None or s.world.capi.version not in state.served:
            raise ConflictError(0, "", "Cluster API changed under way", request=f"use {MACHINE_KIND}")
        return state.resource(s.world.capi.version)

    def _template_resources(self, s: Snapshot) -> dict[Slot, Resource]:
        resources = {}
        for slot, template in ((Slot.BOOTSTRAP, s.spec.bootstrap), (Slot.INFRASTRUCTURE, s.spec.infrastructure)):
            state = self._observer.template_resource(template) if template is not None else None
            if state is not None and template is not None and template.version in state.served:
                resources[slot] = state.resource(template.version)
        return resources

    def _conclude(self, s: Snapshot, plan: Plan, outcome: Outcome) -> Plan:
        key = Key(s.head.namespace, s.head.name)
        if outcome.refused is None:
            if plan.steps:
                self._refusals.forget(key)
            return replace(
                plan,
                machine=outcome.machine or plan.machine,
                bootstrap=outcome.children.get(Slot.BOOTSTRAP, plan.bootstrap),
                infrastructure=outcome.children.get(Slot.INFRASTRUCTURE, plan.infrastructure),
            )
        # What was created before the refusal is in the caches by now and must not count as a change.
        after = replace(s, world=self._observer.look(s.head, s.spec, s.memory))
        seconds = self._refusals.note(key, outcome.refused, fingerprint(after), s.monotonic)
        self._metrics.refused(outcome.refused.reason)
        plan = apply_refusal(after, plan, outcome.refused, seconds)
        if any(isinstance(step, CreateChildren) for step in plan.steps):
            plan = replace(
                plan,
                bootstrap=outcome.children.get(Slot.BOOTSTRAP, plan.bootstrap),
                infrastructure=outcome.children.get(Slot.INFRASTRUCTURE, plan.infrastructure),
            )
        if outcome.taints_lost:
            count = plan.replaced.count + 1
            replaced = Replaced(count, whole_second(s.now), outcome.taints_lost)
            plan = replace(plan, replaced=replaced, replacement="TaintsLost")
        return plan

    @staticmethod
    def _goes_on(plan: Plan, outcome: Outcome) -> bool:
        """Whether the steps already led to another world that should be judged before anything is said."""
        only_leftovers = bool(plan.steps) and all(isinstance(step, DeleteChildren) for step in plan.steps)
        return only_leftovers and outcome.refused is None and outcome.vanished

    # Reporting ---------------------------------------------------------------------------------------------------

    async def _report(
        self,
        key: Key,
        obj: Object,
        body: dict[str, Any],
        s: Snapshot,
        plan: Plan,
        outcome: Outcome,
        notices: list[Notice],
    ) -> Result:
        plan = replace(plan, notices=(*notices, *plan.notices))
        self._metrics.evaluated(s, plan)
        self._note(key, plan)
        if plan.overdue and self._overdue.get(key) != s.head.uid:
            self._overdue[key] = s.head.uid
            self._metrics.overdue()
        if outcome.let_go:
            self._tell(s, list(plan.notices))
            return Result(phase=plan.phase.value)
        wake = self._seconds_to(s, plan)
        if not plan.report:
            _log.debug("waiting", why=plan.why_waiting)
            return Result(requeue_after=wake, phase=plan.phase.value)
        new = build_status(s, plan)
        change = merge_diff(s.memory.raw, new)
        if change and not self._settings.dry_run:
            held = self._display_wait(key, s.memory, new)
            if held > 0:
                wake = held if wake is None else min(wake, held)
            else:
                await self._write(key, obj, s, plan, change)
                self._tell(s, phase_notices(s, plan, new))
        return Result(requeue_after=wake, phase=plan.phase.value)

    async def _report_trouble(
        self, key: Key, obj: Object, body: dict[str, Any], s: Snapshot, plan: Plan, error: ApiError | TransportError
    ) -> None:
        """B1.1: a run that does not finish says so. The next comes after a back-off, or at once after a conflict."""
        if isinstance(error, ConflictError):
            return
        after = replace(s, world=self._observer.look(s.head, s.spec, s.memory))
        # A server in trouble may not take the report either; the first error is the one to be raised.
        with contextlib.suppress(ApiError, TransportError):
            await self._report(key, obj, body, after, apply_trouble(after, plan, error), Outcome(), [])

    async def _write(self, key: Key, obj: Object, s: Snapshot, plan: Plan, change: dict[str, Any]) -> None:
        patch = merge_patch({"status": change}, obj.head)
        try:
            await self._client.patch(SCHEDULED_MACHINES, key, patch, subresource="status")
        except NotFoundError:
            return
        self._metrics.reported(s, plan)
        self._displayed[key] = self._clock.monotonic()
        if plan.phase.value != s.memory.phase:
            _log.info(
                "phase changed",
                before=s.memory.phase or None,
                after=plan.phase.value,
                reason=plan.reason,
                why=plan.message,
            )

    def _display_wait(self, key: Key, memory: StatusMemory, new: dict[str, Any]) -> float:
        """A3: seconds that a change of shown values alone still has to wait."""
        if not display_only(memory.raw, new):
            return 0.0
        last = self._displayed.get(key)
        if last is None:
            return 0.0
        return last + self._timings.display_interval - self._clock.monotonic()

    def _seconds_to(self, s: Snapshot, plan: Plan) -> float | None:
        waits = []
        if plan.wake is not None:
            # A wall clock that stands a hair before the boundary must not make the key run twice.
            waits.append(max((plan.wake - s.now + timedelta(milliseconds=1)).total_seconds(), 0.0))
        if plan.recheck:
            jitter = self._timings.unresolved_jitter
            waits.append(self._timings.unresolved_recheck * (1 + self._chance.uniform(-jitter, jitter)))
        return min(waits) if waits else None

    def _tell(self, s: Snapshot, notices: list[Notice]) -> None:
        regarding = ObjectRef(names.API_VERSION, names.KIND, s.head.namespace, s.head.name, s.head.uid)
        for notice in notices:
            self._events.event(
                regarding,
                type="Warning" if notice.warning else "Normal",
                reason=notice.reason,
                message=notice.message,
                once=notice.once,
            )

    def _note(self, key: Key, plan: Plan) -> None:
        steps = [type(step).__name__ for step in plan.steps]
        if not steps and not self._settings.dry_run:
            self._plans.forget(CONTROLLER, key)
            return
        shown = {"wanted": plan.want.value, "phase": plan.phase.value, "reason": plan.reason, "steps": steps}
        self._plans.note(CONTROLLER, key, shown | {"message": plan.message or plan.why_waiting})
        if steps and self._settings.dry_run:
            _log.info("would act", steps=steps, phase=plan.phase.value, reason=plan.reason, why=plan.message)
