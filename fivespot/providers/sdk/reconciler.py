"""Keep the status of a provider's objects true, with one timed wake-up each."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import msgspec
import structlog
from pydantic import BaseModel

from fivespot.providers.registry import SHIPPED
from fivespot.runtime import (
    DONE,
    Change,
    FivespotError,
    Informer,
    Key,
    ManagerContext,
    NotFoundError,
    Object,
    Result,
    merge_diff,
)
from fivespot.runtime.errors import NotLeaderError, ProtocolError
from fivespot.runtime.objects import decode, members
from fivespot.runtime.workqueue import Backoff

from .decider import Decider, DecisionFailure, PreparedSpec
from .definition import Provider
from .dependencies import Context, Dependencies, NoDependencies
from .due_batch import DueBatch
from .object_state import MESSAGE_WRITE_INTERVAL, Decision, ObjectState
from .override_spec import read_records
from .overrides import OverrideOutcome, apply_overrides
from .status import (
    INVALID_SPEC,
    broken_status,
    decided_status,
    only_generations_differ,
    only_messages_differ,
    stored_active,
    stored_overridden,
    stored_since,
)
from .status_writer import StatusWriter, with_setter, with_switch
from .verdict import EventNote, Verdict
from .work_budget import WorkBudget
from .write_trouble import Contest, UnwrittenStatus, summary

__all__ = ["ProviderReconciler"]

LONGEST_SLEEP: Final = 43_200.0
"""Seconds after which even a quiet schedule is decided again. A change of the wall clock is noticed elsewhere; this is
for events of decisions, which may look back for a day."""
ANOTHER_WRITER: Final = "AnotherWriter"
STATUS_NOT_WRITTEN: Final = "StatusNotWritten"
"""Reasons of events about trouble with the status itself."""
UNWRITTEN_RETRY: Final = 30.0
"""Seconds until an object is looked at again whose status was not written because it had changed or was gone."""
_MARGIN: Final = 0.001
_EVENT_LIMIT: Final = 1024
_DECISION_RETRIES: Final = Backoff(base=1.0, cap=300.0)
"""Between decisions that fail."""

_log = structlog.get_logger("fivespot.provider")

Spec = TypeVar("Spec", bound=BaseModel)


class _Body(msgspec.Struct, gc=False):
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: dict[str, Any] | None = None


_body = msgspec.json.Decoder(_Body)
_status = msgspec.json.Decoder(dict[str, Any] | None)
_mapping = msgspec.json.Decoder(dict[str, Any])


class Written(enum.Enum):
    """The result of writing a status.

    MESSAGE: nothing but a message was changed. OUTDATED: the object has changed or is gone since it was read, and that
    change causes another run. HELD: another writer has undone this status, and it is written again later.
    """

    NOTHING = enum.auto()
    MESSAGE = enum.auto()
    YES = enum.auto()
    OUTDATED = enum.auto()
    HELD = enum.auto()


class ProviderReconciler(Generic[Spec]):
    """The reconciler of one kind of schedule."""

    def __init__(
        self, provider: Provider[Spec], informer: Informer, context: ManagerContext, dependencies: Dependencies | None
    ) -> None:
        self._provider = provider
        self._informer = informer
        self._clock = context.clock
        self._rng = context.rng
        self._plans = context.plans if context.settings.dry_run else None
        self._dependencies = dependencies
        self._decider = Decider(provider)
        self._writer = StatusWriter(provider.resource, context, "" if provider.kind in SHIPPED else provider.name)
        self._states: dict[Key, ObjectState] = {}
        # Decisions that wait for answers or read other objects cannot be made in a batch.
        pure = not (provider.asynchronous or provider.takes_context)
        self._due = DueBatch(context.clock, self._decide_due, self._spend) if pure else None
        self._budget = WorkBudget()
        labels = ("namespace", "name")
        self._active = context.metrics.gauge(
            f"{provider.metrics}_active", f"Whether a {provider.kind} is active.", labels, leader_only=True
        )
        self._transitions = context.metrics.counter(
            f"{provider.metrics}_transitions_total", f"Changes of the verdict of a {provider.kind}.", labels
        )
        self._errors = context.metrics.counter("fivespot_errors_total", "Errors by type.", ("error_type",))

    def begin_term(self) -> None:
        """Start to work, perhaps after another process did, whose writes are no contest."""
        for key in [key for key in self._states if self._informer.get(key) is None]:
            self._forget(key)
        for state in self._states.values():
            state.contest, state.unwritten = Contest(), UnwrittenStatus()

    async def reconcile(self, key: Key) -> Result:
        obj = self._informer.get(key)
        if obj is None:
            self._forget(key)
            return DONE
        # An object that is being deleted stays a schedule until it is gone: a finalizer must not freeze its verdict.
        body, undecodable = _read(obj)
        status = body.status or {}
        state = await self._state_of(key, obj, body.spec)
        now = self._clock.now()
        prepared = state.prepared
        failure = undecodable or prepared.failure
        if failure is not None:
            written = await self._not_ready(key, obj, status, failure, now)
            waits = [self._another_look()] if written is Written.OUTDATED else self._held(state)
            return Result(requeue_after=min(waits, default=None), phase="Invalid")
        base, now = await self._base(key, state, status, now)
        outcome = self._override(key, state, status, base, now)
        if outcome.verdict is None:
            assert isinstance(base, DecisionFailure)
            return await self._failed(key, obj, status, state, base, outcome, now)
        verdict = outcome.verdict
        if await self._decided(key, obj, status, verdict, outcome, now) is Written.OUTDATED:
            return Result(requeue_after=self._another_look())
        return Result(
            requeue_after=self._sleep(key, state, verdict, outcome, base),
            phase="Active" if verdict.active else "Inactive",
        )

    def is_echo(self, change: Change) -> bool:
        """Whether a change is the event of a write in flight, which has overtaken the answer.

        If somebody else wrote the same, our write fails on it, and the key runs again.
        """
        state = self._states.get(change.key)
        if state is None or state.in_flight is None:
            return False
        head, prepared = change.head, state.prepared
        same = (head.uid, head.generation) == (prepared.uid, prepared.generation)
        return same and not merge_diff(_read(change.object)[0].status or {}, state.in_flight)

    # One run -----------------------------------------------------------------------------------------------------

    async def _state_of(self, key: Key, obj: Object, spec: msgspec.Raw) -> ObjectState:
        found = self._states.get(key)
        head = obj.head
        if found is not None and (found.prepared.uid, found.prepared.generation) == (head.uid, head.generation):
            return found
        await self._budget.spend(len(obj.raw))
        try:
            prepared = self._decider.prepare(head.uid, head.generation, _spec(spec))
        except ProtocolError as error:
            prepared = PreparedSpec(head.uid, head.generation, failure=_undecodable(f"spec: {error}"))
        if found is None or found.prepared.uid != head.uid:
            found = self._states[key] = ObjectState(prepared, len(obj.raw))
        else:
            # Failures of an earlier spec say nothing about this one.
            found.prepared, found.size = prepared, len(obj.raw)
            found.failures, found.failing = 0, None
        return found

    async def _spend(self, key: Key) -> None:
        """Wait for a turn of the loop in which there is room for a decision."""
        state = self._states.get(key)
        await self._budget.spend(state.size if state is not None else 0)

    async def _base(
        self, key: Key, state: ObjectState, status: Mapping[str, Any], now: datetime
    ) -> tuple[Verdict | DecisionFailure, datetime]:
        """The verdict of the schedule itself, and the instant that it is for."""
        if self._due is not None:
            await self._due.decide_due(now)
            decision, now = state.decision, self._clock.now()
            if decision is not None and decision.holds(state.prepared, now):
                state.decided(decision.verdict.active, decision.at)
                # Overrides start and end in between, and are evaluated now.
                return decision.verdict, now if state.prepared.overrides else decision.at
        await self._spend(key)
        now = self._clock.now()
        context = self._context(key, state, status)
        found = await self._decider.decide(state.prepared, now, context)
        if self._dependencies is not None:
            self._dependencies.end(key)
        if isinstance(found, DecisionFailure):
            fresh = state.failed((found.reason, found.ready), self._clock.monotonic())
            if fresh:
                _log.warning(
                    "the provider gives no verdict",
                    kind=self._provider.kind,
                    object=str(key),
                    reason=found.reason,
                    error=found.message,
                )
        else:
            state.decided(found.active, context.since if context.since and context.active is found.active else now)
            if self._due is not None:
                state.decision = Decision(state.prepared, now, found)
        return found, now

    def _decide_due(self, key: Key, now: datetime) -> None:
        state = self._states.get(key)
        if state is not None and state.prepared.failure is None:
            found = self._decider.decide_now(state.prepared, now, _NO_CONTEXT)
            state.decision = Decision(state.prepared, now, found) if isinstance(found, Verdict) else None

    def _override(
        self, key: Key, state: ObjectState, status: Mapping[str, Any], found: Verdict | DecisionFailure, now: datetime
    ) -> OverrideOutcome:
        prepared = state.prepared
        base = found if isinstance(found, Verdict) else None
        if not prepared.overrides:
            return OverrideOutcome(base, False, (), (), None)
        rule = self._decider.rule(prepared, base or Verdict(False), now, _NO_CONTEXT)
        return apply_overrides(prepared.overrides, read_records(status.get("overrides")), base, rule, now)

    def _context(self, key: Key, state: ObjectState, status: Mapping[str, Any]) -> Context:
        if not self._provider.takes_context:
            return _NO_CONTEXT
        if state.last_verdict is None and not stored_overridden(status):
            active, since = stored_active(status), stored_since(status)
            state.last_verdict = (active, since) if active is not None and since is not None else None
        active, since = state.last_verdict or (None, None)
        prepared = state.prepared
        reader = self._dependencies.begin(key) if self._dependencies is not None else NoDependencies()
        return Context(key.namespace, key.name, prepared.uid, prepared.generation, active, since, reader)

    async def _decided(
        self,
        key: Key,
        obj: Object,
        status: Mapping[str, Any],
        verdict: Verdict,
        outcome: OverrideOutcome,
        now: datetime,
    ) -> Written:
        generation = obj.head.generation
        prepared = self._states[key].prepared
        wanted = decided_status(
            status, verdict, generation=generation, now=now, records=outcome.records, advice=prepared.advice
        )
        before = stored_active(status)
        written = await self._write(key, obj, status, wanted)
        answer = self._writer.take_answer(obj)
        if written is Written.OUTDATED:
            return written
        self._active.child(key.namespace, key.name).set(float(verdict.active))
        if written is Written.HELD:
            return written
        if before is not None and before is not verdict.active:
            self._transitions.child(key.namespace, key.name).inc()
            edited = answer if status.get("observedGeneration") != generation else None
            message = with_switch(verdict.message, edited, now)
            self._writer.record(obj, EventNote(reason=verdict.reason, message=message, warning=False))
            _log.info(
                "the verdict changed", kind=self._provider.kind, object=str(key), active=verdict.active,
                reason=verdict.reason, message=verdict.message,
            )  # fmt: skip
        for note in (*verdict.notes, *(with_setter(note, answer) for note in outcome.notes)):
            self._writer.record(obj, note)
        return written

    async def _failed(
        self,
        key: Key,
        obj: Object,
        status: Mapping[str, Any],
        state: ObjectState,
        failure: DecisionFailure,
        outcome: OverrideOutcome,
        now: datetime,
    ) -> Result:
        assert state.failing is not None
        quiet = state.failing[1] + failure.patience - self._clock.monotonic()
        if quiet > 0:
            return Result(requeue_after=min(quiet + _MARGIN, self._retry(state, failure)), phase="Failed")
        await self._not_ready(key, obj, status, failure, now, outcome)
        waits = [self._retry(state, failure), *_seconds(now, outcome.again), *self._held(state)]
        return Result(requeue_after=min(waits), phase="Failed")

    async def _not_ready(
        self,
        key: Key,
        obj: Object,
        status: Mapping[str, Any],
        failure: DecisionFailure,
        now: datetime,
        outcome: OverrideOutcome | None = None,
    ) -> Written:
        wanted = broken_status(
            status,
            failure.reason,
            failure.message,
            generation=obj.head.generation,
            now=now,
            ready=failure.ready,
            records=outcome.records if outcome is not None else None,
        )
        written = await self._write(key, obj, status, wanted)
        if written is Written.YES:
            self._writer.record(obj, EventNote(reason=failure.reason, message=failure.message, warning=True))
        if written is not Written.OUTDATED and outcome is not None:
            for note in outcome.notes:
                self._writer.record(obj, note)
        return written

    async def _write(self, key: Key, obj: Object, status: Mapping[str, Any], wanted: Mapping[str, Any]) -> Written:
        change = merge_diff(status, wanted)
        if obj.head.deleting and only_generations_differ(status, wanted):
            # The deletion is what made the new generation; the verdict is as true as it was.
            change = {}
        if self._plans is not None:
            self._plans.note(self._provider.name, key, {"status": change})
        state = self._states[key]
        state.message_pending, state.held_until = False, None
        if not change or self._plans is not None:
            state.unwritten.written()
            return Written.NOTHING
        message_only = change.keys() == {"conditions"} and only_messages_differ(status, wanted)
        if message_only and not state.take_message_write(self._clock.monotonic()):
            # A message that differs with every decision, such as one with a measured value, is not written as often.
            state.message_pending = True
            return Written.NOTHING
        moment = self._clock.monotonic()
        held = state.contest.wait(status, wanted, moment, self._rng)
        if held > 0:
            state.held_until = moment + held
            self._report_contest(obj, state, status, wanted, held)
            return Written.HELD
        # `active` goes into every write, whatever else it changes.
        change["active"] = wanted["active"]

        def current() -> bool:
            newest = self._informer.get(key)
            if newest is None or newest.head.version != obj.head.version:
                return False
            state.in_flight = wanted
            return True

        try:
            if not await self._writer.write(obj, change, current):
                return Written.OUTDATED
        except NotFoundError as error:
            # Gone, as the cache will say too; or not, and something that answers for the server says so.
            self._report_unwritten(obj, state, moment, error)
            return Written.OUTDATED
        except NotLeaderError:
            raise
        except FivespotError as error:
            self._report_unwritten(obj, state, moment, error)
            raise
        finally:
            state.in_flight = None
        state.unwritten.written()
        state.contest.wrote(wanted)
        return Written.MESSAGE if message_only else Written.YES

    def _report_unwritten(self, obj: Object, state: ObjectState, begun: float, error: Exception) -> None:
        self._errors.child("status_not_written").inc()
        if not state.unwritten.failed(begun, self._clock.monotonic()):
            return
        message = f"the status cannot be written and is out of date: {error}"[:_EVENT_LIMIT]
        self._writer.record(obj, EventNote(reason=STATUS_NOT_WRITTEN, message=message, warning=True))
        _log.warning(
            "the status cannot be written", kind=self._provider.kind, object=str(obj.key), error=str(error)
        )  # fmt: skip

    def _report_contest(
        self, obj: Object, state: ObjectState, stored: Mapping[str, Any], wanted: Mapping[str, Any], held: float
    ) -> None:
        if state.contest.reported:
            return
        state.contest.reported = True
        self._errors.child("another_writer").inc()
        message = (
            f"another writer replaces this status ({summary(wanted)}) by its own ({summary(stored)}); it is "
            "corrected less and less often. Stop the other writer, such as a second manager without leader election: "
            "kubectl get -o yaml --show-managed-fields names it"
        )
        self._writer.record(obj, EventNote(reason=ANOTHER_WRITER, message=message, warning=True))
        _log.warning(
            "another writer undoes the status", kind=self._provider.kind, object=str(obj.key), ours=summary(wanted),
            theirs=summary(stored), corrected_in=round(held, 3),
        )  # fmt: skip

    # Waiting -----------------------------------------------------------------------------------------------------

    def _sleep(
        self, key: Key, state: ObjectState, verdict: Verdict, outcome: OverrideOutcome, base: Verdict | DecisionFailure
    ) -> float:
        """Seconds until the next run; instants are on the wall clock, which is read again after the write."""
        now = self._clock.now()
        waits = [
            LONGEST_SLEEP * self._rng.uniform(0.5, 1.0),
            *_seconds(now, verdict.until),
            *_seconds(now, outcome.again),
        ]
        if isinstance(base, DecisionFailure):
            waits.append(self._retry(state, base))
        else:
            if self._due is not None:
                self._due.add(key, base.until)
            waits += _seconds(now, base.again)
            if outcome.overridden:
                waits += _seconds(now, base.until)
        waits += self._held(state)
        if state.message_pending:
            waits.append((1.0 - state.message_budget[0]) * MESSAGE_WRITE_INTERVAL + _MARGIN)
        if self._provider.poll is not None:
            waits.append(self._provider.poll * self._rng.uniform(0.9, 1.1))
        return min(waits)

    def _held(self, state: ObjectState) -> list[float]:
        """Seconds until a status that was held back is written, if one was."""
        until = state.held_until
        return [max(until - self._clock.monotonic(), 0.0) + _MARGIN] if until is not None else []

    def _another_look(self) -> float:
        """Seconds until the next run after a status that was not written, should the change that is due not arrive."""
        return UNWRITTEN_RETRY * self._rng.uniform(0.8, 1.2)

    def _retry(self, state: ObjectState, failure: DecisionFailure) -> float:
        if failure.retry is not None:
            return max(failure.retry, _MARGIN) * self._rng.uniform(0.8, 1.2)
        slowest = max(_DECISION_RETRIES.cap, self._provider.poll or 0.0)
        return replace(_DECISION_RETRIES, cap=slowest).delay(state.failures, self._rng)

    def _forget(self, key: Key) -> None:
        self._states.pop(key, None)
        if self._due is not None:
            self._due.forget(key)
        if self._dependencies is not None:
            self._dependencies.forget(key)
        self._active.remove(key.namespace, key.name)
        self._transitions.remove(key.namespace, key.name)
        if self._plans is not None:
            self._plans.forget(self._provider.name, key)


_NO_CONTEXT: Final = Context("", "")


def _read(obj: Object) -> tuple[_Body, DecisionFailure | None]:
    """The parts of an object, and why one of them cannot be decoded."""
    try:
        return obj.decode_as(_body), None
    except ProtocolError as error:
        parts = members(obj.raw)
        try:
            status = decode(_status, parts.get("status", b"null"))
        except ProtocolError:
            # It is written anew.
            status = None
        return _Body(msgspec.Raw(b"{}"), status), _undecodable(str(error))


def _undecodable(why: str) -> DecisionFailure:
    return DecisionFailure(INVALID_SPEC, f"the object cannot be decoded: {why}")


def _spec(raw: msgspec.Raw) -> Mapping[str, Any]:
    if not bytes(raw).lstrip().startswith(b"{"):
        # A spec that is no object has no fields; the model says which ones are missing.
        return {}
    return decode(_mapping, raw)


def _seconds(now: datetime, instant: datetime | None) -> list[float]:
    return [max((instant - now).total_seconds(), 0.0) + _MARGIN] if instant is not None else []
