"""The ScheduledMachine reconciler: observe, decide, act and report, once per run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import structlog

from fivespot.api import names
from fivespot.contract import Unreadable, Unresolved
from fivespot.runtime import (
    DONE,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    Key,
    ManagerContext,
    NotFoundError,
    Object,
    Result,
    TransportError,
    ensure_finalizer,
)
from fivespot.runtime.errors import ServerTimeoutError, StaleReadError

from .act import StepResults, StepRunner, changed_world
from .common_plans import is_our_status
from .creation_gate import CreationGate
from .decide import decide
from .deletion_limiter import DeletionLimiter
from .evaluate import MachineEvaluation, evaluate, observe_machine
from .holds import Holds
from .informers import MachineInformers
from .instants import read_instant, whole_second
from .live_lookup import LiveLookup
from .metrics import MachineMetrics
from .observe import machine_resource, template_resources
from .orphans import OrphanSearch
from .plan import CreateChildren, DeleteMachine, Plan, Want
from .refusals import Refusals, fingerprint
from .run_end import Ending, RunEnd, plan_to_report
from .settings import MachineSettings
from .snapshot import Answers, Slot, Snapshot
from .sources import SCHEDULED_MACHINES, settled_since
from .spec import SpecView, read_spec
from .status import after_refusal, build_status
from .status_writer import MachineStatusWriter
from .stored_status import ReplacementCount, read_stored_status, stored_status_of
from .timings import Timings

__all__ = ["HOUSEKEEPING", "MachineReconciler"]

HOUSEKEEPING: Final = Key("", "housekeeping")
"""The key of work that concerns no single machine: noticing a wall clock that was set, and the search for orphans."""

_ROUNDS: Final = 4
"""The number of decisions with steps in one run: enough to delete leftovers and continue, too few to spin."""
_SLOW: Final = 40.0
"""Seconds after which status reports a request that has not been answered."""
_MINUTE: Final = 60.0
_CLOCK_JUMP: Final = 2.0
"""Seconds by which the wall clock has to move against the loop's for it to count as set."""

_log = structlog.get_logger("fivespot.scheduledmachine")


class MachineReconciler:
    """Makes the machine of a ScheduledMachine exist or not, as its schedule says.

    :param enqueue: enqueues a machine, now or after some seconds.
    """

    def __init__(
        self,
        context: ManagerContext,
        informers: MachineInformers,
        metrics: MachineMetrics,
        timings: Timings,
        settings: MachineSettings,
        enqueue: Callable[[Key, float], None],
        holds: Holds,
    ) -> None:
        self._client = context.client
        self._clock = context.clock
        self._dry_run = context.settings.dry_run
        self._settings = settings
        self._informers = informers
        self._metrics = metrics
        self._timings = timings
        self._enqueue = enqueue
        self._lookup = LiveLookup(context.client, informers)
        self._steps = StepRunner(context.client, SCHEDULED_MACHINES)
        self._writer = MachineStatusWriter(context, metrics, timings)
        self._refusals = Refusals(timings, context.rng)
        self._limiter = DeletionLimiter(settings.max_deletions_per_minute, enqueue)
        self._holds = holds
        self._activations = CreationGate(settings.activations, informers, context.clock, enqueue)
        self._orphans = OrphanSearch(
            context.client,
            context.clock,
            informers,
            informers.scheduled_machines,
            timings,
            context.settings.namespaces,
            dry_run=self._dry_run,
        )
        # State of this process; each entry is removed with its object.
        self._specs: dict[Key, tuple[str, int, SpecView]] = {}
        self._unreadable: dict[Key, float] = {}
        self._unresolved: dict[Key, float] = {}
        self._unfinished: dict[Key, float] = {}
        self._cancelled: dict[Key, tuple[str, float]] = {}
        self._clock_offset: float | None = None
        self._next_search = 0.0

    def begin_term(self) -> None:
        """Begin a term of leadership: forget what another process may have changed since."""
        now = self._clock.monotonic()
        for key in [key for key in self._specs if self._informers.scheduled_machines.get(key) is None]:
            # Deleted while this process was a standby.
            self.forget(key)
        self._lookup.forget_all()
        self._refusals.forget_all()
        if self._settings.max_deletions_per_minute is not None:
            self._limiter.begin_term(self._begun_lately(now))
        self._activations.begin_term()
        for memory in (self._unreadable, self._unresolved, self._unfinished, self._cancelled):
            memory.clear()
        self._clock_offset = None
        self._next_search = now + self._timings.orphan_age
        self._enqueue(HOUSEKEEPING, 0.0)

    def _begun_lately(self, now: float) -> Iterator[float]:
        """Yield the times of deletions in the last minute, from Machines and statuses, on the loop's clock."""
        wall = self._clock.now()
        machines = self._informers.machines
        traces = [obj.head.deletion_timestamp for obj in machines.list()] if machines is not None else []
        traces += [settled_since(obj) for obj in self._informers.scheduled_machines.list()]
        for text in traces:
            at = read_instant(text)
            if at is not None and 0 <= (wall - at).total_seconds() < _MINUTE:
                yield now - (wall - at).total_seconds()

    async def reconcile(self, key: Key) -> Result:
        if key == HOUSEKEEPING:
            return await self._keep_house()
        obj = self._informers.scheduled_machines.get(key)
        if obj is None:
            self.forget(key)
            return DONE
        begun = self._clock.monotonic()
        end = await self._run(key, obj)
        return await self._finish(key, end, begun)

    def priority(self, key: Key) -> int:
        """Return ``spec.priority`` as last read (B5.4)."""
        found = self._specs.get(key)
        return found[2].priority if found is not None else 50

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        for memory in (self._specs, self._unreadable, self._unresolved, self._unfinished, self._cancelled):
            memory.pop(key, None)
        self._lookup.forget(key)
        self._writer.forget(key)
        self._refusals.forget(key)
        self._limiter.release(key, self._clock.monotonic())
        self._activations.release(key)
        if not self._informers.scheduled_machines.list(key.namespace):
            self._metrics.forget_namespace(key.namespace)

    # One run -----------------------------------------------------------------------------------------------------

    async def _run(self, key: Key, obj: Object) -> RunEnd:
        """Make one run and return how it ended; only a cancellation is raised."""
        if obj.head.deleting and names.FINALIZER not in obj.head.finalizers:
            return RunEnd(obj=obj, gone=True)
        end = RunEnd(obj=obj)
        try:
            fresh = False
            if names.FINALIZER not in obj.head.finalizers and not self._dry_run:
                snapshot = self._snapshot(key, obj)
                if not snapshot.paused:
                    end = replace(end, snapshot=snapshot, plan=decide(snapshot))
                    obj = await ensure_finalizer(self._client, SCHEDULED_MACHINES, obj, names.FINALIZER)
                    end = replace(end, obj=obj)
                    fresh = not snapshot.stored.phase
            if fresh:
                self._lookup.is_new(key, obj.head.uid)
            return await self._rounds(key, end, fresh=fresh)
        except NotFoundError:
            return replace(end, gone=True)
        except Exception as error:
            # Every error has to be reported, and the key retried.
            return replace(end, error=error)

    async def _rounds(self, key: Key, end: RunEnd, *, fresh: bool) -> RunEnd:
        answers = Answers(searched=self._lookup.nothing_left(key, end.obj.head.uid))
        events: tuple[Any, ...] = ()
        for _ in range(_ROUNDS):
            obj = end.obj
            found = await self._evaluate(key, obj, answers, fresh=fresh)
            s, plan = found.snapshot, replace(found.plan, events=(*events, *found.plan.events))
            end = RunEnd(obj=obj, snapshot=s, plan=plan)
            if found.unanswered is not None:
                self._limiter.release(key, self._clock.monotonic())
                self._activations.release(key)
                why = found.unanswered
                return replace(end, error=why.error or StaleReadError(why.why))
            end = await self._act(key, end)
            if end.error is not None or end.gone or not changed_world(plan, end.results):
                return end
            events = plan.events
            answers = replace(s.answers, found=())
        return replace(end, error=StaleReadError(f"{key}: the objects kept changing while they were read"))

    async def _evaluate(self, key: Key, obj: Object, answers: Answers, *, fresh: bool) -> MachineEvaluation:
        return await evaluate(
            self._informers,
            self._lookup,
            lambda: self._snapshot(key, obj, fresh=fresh),
            answers=answers,
            judge=lambda s: self._judge(key, s),
        )

    def _judge(self, key: Key, s: Snapshot) -> Plan:
        """Return the plan; the administrator's limits are consulted only for one that would create a machine, or begin
        a deletion by schedule.
        """
        plan = decide(s)
        if not any(isinstance(step, CreateChildren) for step in plan.steps):
            self._activations.release(key)
        else:
            hold = self._holds.creation or self._activations.hold(key, s.now, s.monotonic)
            if hold is not None:
                return decide(replace(s, creation_hold=hold))
        limited = plan.want in (Want.INACTIVE, Want.DISABLED) and not s.head.deleting
        if not limited or not any(isinstance(step, DeleteMachine) for step in plan.steps):
            self._limiter.release(key, s.monotonic)
            return plan
        wait = self._limiter.wait(key, s.monotonic)
        return decide(replace(s, deletion_wait=wait)) if wait > 0 else plan

    def _snapshot(self, key: Key, obj: Object, *, fresh: bool = False) -> Snapshot:
        spec, stored = self._spec(key, obj), stored_status_of(obj)
        world = observe_machine(self._informers, obj.head, spec, stored, self._settings.capi_version)
        now, monotonic = self._clock.now(), self._clock.monotonic()
        unreadable_for = 0.0
        if isinstance(world.resolution, Unreadable):
            unreadable_for = monotonic - self._unreadable.setdefault(key, monotonic)
        else:
            self._unreadable.pop(key, None)
        unresolved_for = 0.0
        if isinstance(world.resolution, Unresolved):
            unresolved_for = monotonic - self._unresolved.setdefault(key, monotonic)
        else:
            self._unresolved.pop(key, None)
        snapshot = Snapshot(
            now=now,
            monotonic=monotonic,
            head=obj.head,
            spec=spec,
            stored=stored,
            world=world,
            timings=self._timings,
            unreadable_for=unreadable_for,
            unresolved_for=unresolved_for,
            fresh=fresh,
            force_finalizer=self._settings.force_finalizer_on_timeout,
            shortest_grace=self._settings.shortest_grace,
            stopped=self._holds.stopped,
            cancelled_uid=self._cancelled_uid(key, monotonic),
        )
        if key not in self._refusals:
            return snapshot
        return replace(snapshot, refusal=self._refusals.current(key, fingerprint(snapshot)))

    def _cancelled_uid(self, key: Key, monotonic: float) -> str:
        uid, at = self._cancelled.get(key, ("", 0.0))
        if uid and monotonic - at > self._timings.late_deletion:
            del self._cancelled[key]
            return ""
        return uid

    def _spec(self, key: Key, obj: Object) -> SpecView:
        found = self._specs.get(key)
        if found is not None and found[:2] == (obj.head.uid, obj.head.generation):
            return found[2]
        spec = read_spec(obj.decode())
        self._specs[key] = (obj.head.uid, obj.head.generation, spec)
        return spec

    # Steps ---------------------------------------------------------------------------------------------------------

    async def _act(self, key: Key, end: RunEnd) -> RunEnd:
        """Carry out the plan's steps."""
        s, plan = end.snapshot, end.plan
        assert s is not None
        assert plan is not None
        if not plan.steps or self._dry_run:
            if self._dry_run:
                self._limiter.release(key, s.monotonic)
                self._activations.release(key)
            return replace(end, results=StepResults(vanished=False), plan=self._conclude(key, s, plan, StepResults()))
        if _can_be_taken_back(s, plan):
            end = await self._announce(key, end)
            if end.error is not None or end.gone:
                self._limiter.release(key, s.monotonic)
                return end
            s = end.snapshot or s
        machines = machine_resource(self._informers, s.world.capi.version) if s.world.capi.version else None
        templates = template_resources(self._informers, s.spec)
        async with asyncio.TaskGroup() as group:
            acting = group.create_task(self._steps.act(s, end.obj, plan, machines, templates))
            done, _ = await asyncio.wait({acting}, timeout=_SLOW)
            if not done:
                end = await self._report_slow(key, end)
        results = acting.result()
        self._settle_turn(key, results)
        s = end.snapshot or s
        if results.failure is not None:
            after = replace(s, world=self._look(s))
            return replace(end, snapshot=after, results=results, error=results.failure)
        return replace(end, results=results, plan=self._conclude(key, s, plan, results))

    async def _announce(self, key: Key, end: RunEnd) -> RunEnd:
        """Write the status of a deletion before it is sent.

        The write fails unless the ScheduledMachine is as it was read: where the spec was edited, or another leader
        has decided otherwise, nothing is deleted. It also records that the shutdown is our own.
        """
        assert end.snapshot is not None
        assert end.plan is not None
        try:
            written = await self._writer.announce(end.obj, end.snapshot, end.plan)
        except (ForbiddenError, InvalidError):
            # The write may fail for long; the deletion has a precondition of its own.
            return end
        except NotFoundError:
            return replace(end, gone=True)
        except (ApiError, TransportError) as error:
            return replace(end, error=error)
        stored = stored_status_of(written)
        return replace(end, obj=written, snapshot=replace(end.snapshot, head=written.head, stored=stored))

    async def _report_slow(self, key: Key, end: RunEnd) -> RunEnd:
        assert end.plan is not None
        error = StaleReadError(f"a request has not been answered for {_SLOW:g} s")
        slow = plan_to_report(replace(end, error=error), self._timings.conflict_limit, self._timings)
        assert slow is not None
        reported = await self._announce(key, replace(end, plan=slow))
        return replace(reported, plan=end.plan, error=None)

    def _settle_turn(self, key: Key, results: StepResults) -> None:
        now = self._clock.monotonic()
        unknown = isinstance(results.failure, TransportError | ServerTimeoutError)
        if unknown or (results.failure is None and results.refused is None):
            self._limiter.used(key, now)
            self._activations.used(key)
        else:
            self._limiter.release(key, now)
            self._activations.release(key)

    def _look(self, s: Snapshot) -> Any:
        return observe_machine(self._informers, s.head, s.spec, s.stored, self._settings.capi_version)

    def _conclude(self, key: Key, s: Snapshot, plan: Plan, results: StepResults) -> Plan:
        """Return the plan with the results of its steps."""
        if results.unprepared is not None:
            after = replace(s, world=self._look(s))
            refusal = self._refusals.note(
                key, results.unprepared, plan.want, fingerprint(after), self._clock.monotonic(), optional=True
            )
            self._metrics.refused(results.unprepared.reason)
            due = s.now + timedelta(seconds=refusal.due - self._clock.monotonic())
            message = f"{plan.message}; the Machine could not be prepared for it: {refusal.message}"
            plan = replace(plan, message=message, wake=min(plan.wake or due, due))
        if results.refused is None:
            if results.unprepared is None:
                if plan.steps:
                    self._refusals.forget(key)
                elif not plan.quiet and s.refusal is None:
                    self._refusals.outdate(key, plan.want)
            if results.machine is None and not results.children:
                return plan
            return replace(
                plan,
                machine=results.machine or plan.machine,
                bootstrap=results.children.get(Slot.BOOTSTRAP, plan.bootstrap),
                infrastructure=results.children.get(Slot.INFRASTRUCTURE, plan.infrastructure),
            )
        # Objects created before the refusal are in the caches by now and must not count as a change.
        after = replace(s, world=self._look(s))
        monotonic = self._clock.monotonic()
        refusal = self._refusals.note(key, results.refused, plan.want, fingerprint(after), monotonic)
        self._metrics.refused(results.refused.reason)
        refused = replace(results.refused, message=refusal.message)
        plan = after_refusal(after, plan, refused, refusal.due - monotonic)
        if any(isinstance(step, CreateChildren) for step in plan.steps):
            plan = replace(
                plan,
                bootstrap=results.children.get(Slot.BOOTSTRAP, plan.bootstrap),
                infrastructure=results.children.get(Slot.INFRASTRUCTURE, plan.infrastructure),
            )
        if results.taints_lost:
            count = plan.replaced.count + 1
            replaced = ReplacementCount(count, whole_second(s.now), results.taints_lost)
            plan = replace(plan, replaced=replaced, replacement="TaintsLost")
        return plan

    # The end of a run ------------------------------------------------------------------------------------------------

    async def _finish(self, key: Key, end: RunEnd, begun: float) -> Result:
        """Report how a run ended, and arrange the next one.

        :raises Exception: the error that ended the run, for the queue to back off.
        """
        now = self._clock.monotonic()
        ending = end.ending
        if ending is Ending.GONE:
            # The cache will show it too; in case it does not, the key is requeued.
            return Result(requeue_after=self._timings.next_look)
        lasting = now - self._unfinished.setdefault(key, now)
        error = end.error if ending in (Ending.CONFLICT, Ending.FAILED) else None
        report = plan_to_report(end, lasting, self._timings)
        result = Result(phase=stored_status_of(end.obj).phase or "Pending")
        try:
            if report is not None:
                assert end.snapshot is not None
                result = await self._writer.write(end.obj, end.snapshot, report, let_go=end.results.let_go)
                self._written(key, end.snapshot, report)
                if ending is Ending.CONCLUDED:
                    del self._unfinished[key]
            elif error is not None:
                self._writer.record_failure(end.obj, f"the run failed: {type(error).__name__}")
        except Exception as failure:
            self._metrics.status_failed()
            if lasting >= self._timings.conflict_limit:
                words = f"{error}; " if error is not None else ""
                self._writer.record_failure(end.obj, f"{words}the status cannot be written: {failure}")
            error = error or failure
        self._count(result, begun, error, lasting)
        if error is not None:
            raise error
        if ending is Ending.WAITING:
            left = self._timings.unreadable_limit - lasting
            if left > 0:
                wake = left if result.requeue_after is None else min(left, result.requeue_after)
                return replace(result, requeue_after=wake)
        return result

    def _count(self, result: Result, begun: float, error: Exception | None, lasting: float) -> None:
        seconds = self._clock.monotonic() - begun
        phase = result.phase or "Pending"
        if error is None:
            self._metrics.finished(phase, seconds)
        elif not isinstance(error, StaleReadError | ConflictError) or lasting >= self._timings.conflict_limit:
            name = type(error).__name__.removesuffix("Error")
            self._metrics.finished(phase, seconds, failed=True, error=name)

    def _written(self, key: Key, s: Snapshot, plan: Plan) -> None:
        """Note what a status that was written implies."""
        wrote = not plan.quiet and not self._dry_run
        stays = plan.machine is not None and not plan.machine.deleting and not plan.want.down
        if wrote and stays and s.stored.shutdown_requested is not None and plan.shutdown_requested is None:
            assert plan.machine is not None
            self._cancelled[key] = (plan.machine.head.uid, self._clock.monotonic())
        # Children that a status of ours does not name do not exist; if the status is lost, a search is needed.
        # The written status counts, not the current one: it may have been lost before its answer came.
        if self._lookup.nothing_left(key, s.head.uid):
            stored = read_stored_status({"status": build_status(s, plan)}) if wrote else s.stored
            if is_our_status(stored):
                self._lookup.forget(key)

    # What concerns no single machine ---------------------------------------------------------------------------------

    async def _keep_house(self) -> Result:
        now = self._clock.monotonic()
        offset = self._clock.now().timestamp() - now
        if self._clock_offset is not None and abs(offset - self._clock_offset) > _CLOCK_JUMP:
            # Timers run on the loop's clock, and status shows instants of the wall clock.
            _log.warning("the wall clock was set", by=round(offset - self._clock_offset, 3))
            self._informers.enqueue_all()
        self._clock_offset = offset
        self._informers.close_unnamed()
        if now >= self._next_search and not self._holds.stopped:
            self._next_search = now + self._timings.orphan_search
            await self._orphans.remove()
        return Result(requeue_after=self._timings.clock_check)


def _can_be_taken_back(s: Snapshot, plan: Plan) -> bool:
    """Whether a plan begins a deletion that another decision could still prevent."""
    begins = any(isinstance(step, DeleteMachine) for step in plan.steps)
    return begins and not s.head.deleting and plan.want in (Want.ACTIVE, Want.INACTIVE, Want.DISABLED)
