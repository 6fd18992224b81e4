"""The ScheduledMachine reconciler: one object down the corridor, once per run."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import structlog

from fivespot.api import names
from fivespot.contract import Unreadable
from fivespot.runtime.cache import Informer
from fivespot.runtime.errors import (
    ApiError,
    ConflictError,
    FivespotError,
    NotFoundError,
    StaleReadError,
    TransportError,
)
from fivespot.runtime.manager import ManagerContext
from fivespot.runtime.objects import Key, Object, Resource
from fivespot.runtime.reconcile import DONE, Result, ensure_finalizer
from fivespot.runtime.telemetry import EventNote

from .act import StepResults, StepRunner
from .common_plans import is_our_status
from .decide import decide
from .deletion_limiter import DeletionLimiter
from .instants import whole_second
from .live_lookup import LiveLookup
from .metrics import MachineMetrics
from .observe import MACHINE_KIND, Observer
from .plan import CreateChildren, DeleteChildren, DeleteMachine, Plan, Want
from .refusals import Refusals, fingerprint
from .settings import MachineSettings
from .snapshot import Answers, Slot, Snapshot
from .sources import SCHEDULED_MACHINES
from .spec import SpecView, read_spec
from .status import after_failure, after_refusal, build_status
from .status_writer import CONTROLLER, MachineStatusWriter
from .stored_status import Replacements, read_stored_status
from .timings import Timings

__all__ = ["CONTROLLER", "MachineReconciler"]

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
        settings: MachineSettings,
    ) -> None:
        self._client = context.client
        self._clock = context.clock
        self._dry_run = context.settings.dry_run
        self._force_finalizer = settings.force_finalizer_on_timeout
        self._machines = machines
        self._observer = observer
        self._metrics = metrics
        self._timings = timings
        self._lookup = LiveLookup(context.client, context.cache.kinds)
        self._steps = StepRunner(context.client, SCHEDULED_MACHINES)
        self._writer = MachineStatusWriter(context, metrics, timings)
        self._refusals = Refusals(timings, context.rng)
        self._brake = DeletionLimiter(settings.max_deletions_per_minute)
        # Small memories of this process; each entry goes with its object.
        self._specs: dict[Key, tuple[str, int, SpecView]] = {}
        self._unreadable: dict[Key, float] = {}

    async def reconcile(self, key: Key) -> Result:
        obj = self._machines.get(key)
        if obj is None:
            self.forget(key)
            return DONE
        begun = self._clock.monotonic()
        try:
            result = await self._run(key, obj)
        except (ConflictError, StaleReadError):
            raise
        except FivespotError as error:
            phase = read_stored_status(obj.decode()).phase or "Pending"
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
        self._specs.pop(key, None)
        self._unreadable.pop(key, None)
        self._lookup.forget(key)
        self._writer.forget(key)
        self._refusals.forget(key)
        self._brake.release(key)

    # One run -----------------------------------------------------------------------------------------------------

    async def _run(self, key: Key, obj: Object) -> Result:
        if obj.head.deleting and names.FINALIZER not in obj.head.finalizers:
            return DONE
        fresh = False
        body = obj.decode()
        snapshot = self._snapshot(key, obj, body)
        if self._needs_finalizer(snapshot):
            fresh = not snapshot.stored.phase
            try:
                obj = await ensure_finalizer(self._client, SCHEDULED_MACHINES, obj, names.FINALIZER)
            except NotFoundError:
                return DONE
            body = obj.decode()
            snapshot = self._snapshot(key, obj, body, fresh=fresh)
        if fresh:
            self._lookup.nothing_to_find(key, obj.head.uid)
        if self._lookup.searched(key, obj.head.uid):
            snapshot = replace(snapshot, answers=Answers(searched=True))
        events: list[EventNote] = []
        for _ in range(_ROUNDS):
            plan = self._decide(key, snapshot)
            if plan.ask is not None:
                machines = self._machine_resource(snapshot) if snapshot.world.capi.version else None
                snapshot = await self._lookup.answer(plan.ask, snapshot, machines)
                continue
            try:
                outcome = await self._act(snapshot, obj, plan)
            except (ApiError, TransportError) as error:
                await self._report_trouble(obj, snapshot, plan, error)
                raise
            plan = self._conclude(snapshot, plan, outcome)
            if not self._goes_on(plan, outcome):
                if events:
                    plan = replace(plan, events=(*events, *plan.events))
                result = await self._writer.write(obj, snapshot, plan, let_go=outcome.let_go)
                self._reported(key, snapshot, plan)
                return result
            events += plan.events
            snapshot = replace(self._snapshot(key, obj, body, fresh=fresh), answers=snapshot.answers)
        raise StaleReadError(f"reconcile {key}: the world kept changing")

    def _reported(self, key: Key, s: Snapshot, plan: Plan) -> None:
        """Once a status of ours is there, what it does not name does not exist; should it be lost, a search is due.

        What was written decides, and not what is there by now: it may have been lost before its answer came.
        """
        if not self._lookup.searched(key, s.head.uid):
            return
        written = not plan.quiet and not self._dry_run
        if is_our_status(read_stored_status({"status": build_status(s, plan)}) if written else s.stored):
            self._lookup.forget(key)

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
        spec, stored = self._spec(key, obj, body), read_stored_status(body)
        world = self._observer.look(obj.head, spec, stored)
        now, monotonic = self._clock.now(), self._clock.monotonic()
        unreadable_for = 0.0
        if isinstance(world.resolution, Unreadable):
            unreadable_for = monotonic - self._unreadable.setdefault(key, monotonic)
        else:
            self._unreadable.pop(key, None)
        snapshot = Snapshot(
            now=now,
            monotonic=monotonic,
            head=obj.head,
            spec=spec,
            stored=stored,
            world=world,
            timings=self._timings,
            unreadable_for=unreadable_for,
            fresh=fresh,
            force_finalizer=self._force_finalizer,
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
        return not s.head.deleting and names.FINALIZER not in s.head.finalizers and not s.paused and not self._dry_run

    async def _act(self, s: Snapshot, obj: Object, plan: Plan) -> StepResults:
        if not plan.steps or self._dry_run:
            return StepResults(vanished=False)
        machines = None if not s.world.capi.version else self._machine_resource(s)
        return await self._steps.act(s, obj, plan, machines, self._template_resources(s))

    def _machine_resource(self, s: Snapshot) -> Resource:
        state = self._observer.machine_state()
        if state is None or s.world.capi.version not in state.served:
            raise StaleReadError(f"use {MACHINE_KIND}: Cluster API has changed")
        return state.resource(s.world.capi.version)

    def _template_resources(self, s: Snapshot) -> dict[Slot, Resource]:
        resources = {}
        for slot, template in ((Slot.BOOTSTRAP, s.spec.bootstrap), (Slot.INFRASTRUCTURE, s.spec.infrastructure)):
            state = self._observer.template_resource(template) if template is not None else None
            if state is not None and template is not None and template.version in state.served:
                resources[slot] = state.resource(template.version)
        return resources

    def _conclude(self, s: Snapshot, plan: Plan, outcome: StepResults) -> Plan:
        key = Key(s.head.namespace, s.head.name)
        if outcome.refused is None:
            if plan.steps:
                self._refusals.forget(key)
            elif not plan.quiet and s.refusal is None:
                self._refusals.outdate(key, plan.want)
            if outcome.machine is None and not outcome.children:
                return plan
            return replace(
                plan,
                machine=outcome.machine or plan.machine,
                bootstrap=outcome.children.get(Slot.BOOTSTRAP, plan.bootstrap),
                infrastructure=outcome.children.get(Slot.INFRASTRUCTURE, plan.infrastructure),
            )
        # What was created before the refusal is in the caches by now and must not count as a change.
        after = replace(s, world=self._observer.look(s.head, s.spec, s.stored))
        seconds = self._refusals.note(key, outcome.refused, plan.want, fingerprint(after), self._clock.monotonic())
        self._metrics.refused(outcome.refused.reason)
        plan = after_refusal(after, plan, outcome.refused, seconds)
        if any(isinstance(step, CreateChildren) for step in plan.steps):
            plan = replace(
                plan,
                bootstrap=outcome.children.get(Slot.BOOTSTRAP, plan.bootstrap),
                infrastructure=outcome.children.get(Slot.INFRASTRUCTURE, plan.infrastructure),
            )
        if outcome.taints_lost:
            count = plan.replaced.count + 1
            replaced = Replacements(count, whole_second(s.now), outcome.taints_lost)
            plan = replace(plan, replaced=replaced, replacement="TaintsLost")
        return plan

    @staticmethod
    def _goes_on(plan: Plan, outcome: StepResults) -> bool:
        """Whether the steps already led to another world that should be judged before anything is said."""
        only_leftovers = bool(plan.steps) and all(isinstance(step, DeleteChildren) for step in plan.steps)
        return only_leftovers and outcome.refused is None and outcome.vanished

    async def _report_trouble(self, obj: Object, s: Snapshot, plan: Plan, error: ApiError | TransportError) -> None:
        """B1.1: a run that does not finish says so. The next comes after a back-off, or at once after a conflict."""
        if isinstance(error, ConflictError):
            return
        after = replace(s, world=self._observer.look(s.head, s.spec, s.stored))
        # A server in trouble may not take the report either; the first error is the one to be raised.
        with contextlib.suppress(ApiError, TransportError):
            await self._writer.write(obj, after, after_failure(after, plan, error))
