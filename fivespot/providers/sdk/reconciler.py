"""Keeps the status of one provider's objects true, with one timed wake-up each."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import msgspec
import structlog
from pydantic import BaseModel

from fivespot.runtime.cache import Informer
from fivespot.runtime.manager import ManagerContext
from fivespot.runtime.objects import Change, Key, Object, merge_diff
from fivespot.runtime.reconcile import DONE, Result
from fivespot.runtime.workqueue import Backoff

from .decider import Decider, Trouble
from .definition import Provider
from .dependencies import Context, Dependencies, Nothing
from .due_batch import Together
from .object_state import WORDS_INTERVAL, Decision, ObjectState
from .override_spec import read_memory
from .overrides import Folded, fold
from .status import broken_status, decided_status, only_words, stored_active, stored_overridden, stored_since
from .status_writer import StatusWriter
from .verdict import EventNote, Verdict

__all__ = ["ProviderReconciler"]

LONGEST_SLEEP: Final = 43_200.0
"""Seconds after which even a quiet schedule is looked at again. Clocks that are set are noticed elsewhere; this is for
notes of decisions, which may look back for a day."""
_EARLY: Final = 0.001
_AGAIN: Final = Backoff(base=1.0, cap=300.0)
"""Between decisions that fail."""

_log = structlog.get_logger("fivespot.provider")

Spec = TypeVar("Spec", bound=BaseModel)


class _Body(msgspec.Struct, gc=False):
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: dict[str, Any] | None = None


_body = msgspec.json.Decoder(_Body)
_mapping = msgspec.json.Decoder(dict[str, Any])


class Written(enum.Enum):
    """What became of a status.

    OUTDATED: the object has changed or is gone since it was read; another run sees to it.
    """

    NOTHING = enum.auto()
    WORDS = enum.auto()
    YES = enum.auto()
    OUTDATED = enum.auto()


class ProviderReconciler(Generic[Spec]):
    """The reconciler of one kind of schedule."""

    def __init__(
        self, provider: Provider[Spec], informer: Informer, context: ManagerContext, looking: Dependencies | None
    ) -> None:
        self._provider = provider
        self._informer = informer
        self._clock = context.clock
        self._rng = context.rng
        self._plans = context.plans if context.settings.dry_run else None
        self._looking = looking
        self._decider = Decider(provider)
        self._writer = StatusWriter(provider.resource, context)
        self._memory: dict[Key, ObjectState] = {}
        # What waits for answers, or looks at other objects, cannot be decided for many at once.
        pure = not (provider.asynchronous or provider.takes_context)
        self._together = Together(context.clock, self._decide_due) if pure else None
        labels = ("namespace", "name")
        self._active = context.metrics.gauge(
            f"{provider.metrics}_active", f"Whether a {provider.kind} is active.", labels, leader_only=True
        )
        self._transitions = context.metrics.counter(
            f"{provider.metrics}_transitions_total", f"Changes of the verdict of a {provider.kind}.", labels
        )

    async def reconcile(self, key: Key) -> Result:
        obj = self._informer.get(key)
        if obj is None or obj.head.deleting:
            self._forget(key)
            return DONE
        body = obj.decode_as(_body)
        status = body.status or {}
        memory = self._remember(key, obj, body.spec)
        now = self._clock.now()
        prepared = memory.prepared
        if prepared.trouble is not None:
            await self._broken(key, obj, status, prepared.trouble, now)
            return Result(phase="Invalid")
        base, now = await self._base(key, memory, status, now)
        folded = self._fold(key, memory, status, base, now)
        if folded.verdict is None:
            assert isinstance(base, Trouble)
            return await self._troubled(key, obj, status, memory, base, folded, now)
        verdict = folded.verdict
        if await self._decided(key, obj, status, verdict, folded, now) is Written.OUTDATED:
            return DONE
        return Result(
            requeue_after=self._sleep(key, memory, verdict, folded, base),
            phase="Active" if verdict.active else "Inactive",
        )

    def is_echo(self, change: Change) -> bool:
        """Whether a change shows nothing but what is being written, because its event has overtaken the answer.

        If somebody else wrote the same, our write fails for it, and the key runs again.
        """
        memory = self._memory.get(change.key)
        if memory is None or memory.sent is None:
            return False
        head, prepared = change.head, memory.prepared
        same = (head.uid, head.generation, head.deleting) == (prepared.uid, prepared.generation, False)
        return same and not merge_diff(change.object.decode_as(_body).status or {}, memory.sent)

    # One run -----------------------------------------------------------------------------------------------------

    def _remember(self, key: Key, obj: Object, spec: msgspec.Raw) -> ObjectState:
        found = self._memory.get(key)
        head = obj.head
        if found is None or found.prepared.uid != head.uid:
            found = self._memory[key] = ObjectState(self._decider.prepare(head.uid, head.generation, _spec(spec)))
        elif found.prepared.generation != head.generation:
            # Another question: what failed before says nothing about it.
            found.prepared = self._decider.prepare(head.uid, head.generation, _spec(spec))
            found.failures, found.troubled = 0, None
        return found

    async def _base(
        self, key: Key, memory: ObjectState, status: Mapping[str, Any], now: datetime
    ) -> tuple[Verdict | Trouble, datetime]:
        """What the schedule itself says, and the instant at which it says so."""
        if self._together is not None:
            await self._together.decide_due(now)
            decision, now = memory.decision, self._clock.now()
            if decision is not None and decision.holds(memory.prepared, now):
                memory.decided(decision.verdict.active, decision.at)
                # What overrides say goes on in between, and is asked of now.
                return decision.verdict, now if memory.prepared.overrides else decision.at
        context = self._context(key, memory, status)
        found = await self._decider.decide(memory.prepared, now, context)
        if self._looking is not None:
            self._looking.done(key)
        if isinstance(found, Trouble):
            fresh = memory.failed((found.reason, found.ready), self._clock.monotonic())
            if fresh:
                _log.warning(
                    "no verdict", kind=self._provider.kind, object=str(key), reason=found.reason, error=found.message
                )
        else:
            memory.decided(found.active, context.since if context.since and context.active is found.active else now)
            if self._together is not None:
                memory.decision = Decision(memory.prepared, now, found)
        return found, now

    def _decide_due(self, key: Key, now: datetime) -> None:
        memory = self._memory.get(key)
        if memory is not None and memory.prepared.trouble is None:
            found = self._decider.decide_now(memory.prepared, now, _NO_CONTEXT)
            memory.decision = Decision(memory.prepared, now, found) if isinstance(found, Verdict) else None

    def _fold(
        self, key: Key, memory: ObjectState, status: Mapping[str, Any], found: Verdict | Trouble, now: datetime
    ) -> Folded:
        prepared = memory.prepared
        base = found if isinstance(found, Verdict) else None
        if not prepared.overrides:
            return Folded(base, False, (), (), None)
        rule = self._decider.rule(prepared, base or Verdict(False), now, _NO_CONTEXT)
        return fold(prepared.overrides, read_memory(status.get("overrides")), base, rule, now)

    def _context(self, key: Key, memory: ObjectState, status: Mapping[str, Any]) -> Context:
        if not self._provider.takes_context:
            return _NO_CONTEXT
        if memory.said is None and not stored_overridden(status):
            active, since = stored_active(status), stored_since(status)
            memory.said = (active, since) if active is not None and since is not None else None
        active, since = memory.said or (None, None)
        prepared = memory.prepared
        look = self._looking.at(key) if self._looking is not None else Nothing()
        return Context(key.namespace, key.name, prepared.uid, prepared.generation, active, since, look)

    async def _decided(
        self, key: Key, obj: Object, status: Mapping[str, Any], verdict: Verdict, folded: Folded, now: datetime
    ) -> Written:
        generation = obj.head.generation
        wanted = decided_status(status, verdict, generation=generation, now=now, memory=folded.memory)
        before = stored_active(status)
        written = await self._write(key, obj, status, wanted)
        if written is Written.OUTDATED:
            return written
        self._active.child(key.namespace, key.name).set(float(verdict.active))
        if before is not None and before is not verdict.active:
            self._transitions.child(key.namespace, key.name).inc()
            self._writer.tell(obj, EventNote(reason=verdict.reason, message=verdict.message, warning=False))
            _log.info(
                "the verdict changed", kind=self._provider.kind, object=str(key), active=verdict.active,
                reason=verdict.reason, message=verdict.message,
            )  # fmt: skip
        for note in (*verdict.notes, *folded.notes):
            self._writer.tell(obj, note)
        return written

    async def _troubled(
        self,
        key: Key,
        obj: Object,
        status: Mapping[str, Any],
        memory: ObjectState,
        trouble: Trouble,
        folded: Folded,
        now: datetime,
    ) -> Result:
        assert memory.troubled is not None
        quiet = memory.troubled[1] + trouble.patience - self._clock.monotonic()
        if quiet > 0:
            return Result(requeue_after=min(quiet + _EARLY, self._retry(memory, trouble)), phase="Failed")
        await self._broken(key, obj, status, trouble, now, folded)
        waits = [self._retry(memory, trouble), *_seconds(now, folded.again)]
        return Result(requeue_after=min(waits), phase="Failed")

    async def _broken(
        self,
        key: Key,
        obj: Object,
        status: Mapping[str, Any],
        trouble: Trouble,
        now: datetime,
        folded: Folded | None = None,
    ) -> None:
        wanted = broken_status(
            status,
            trouble.reason,
            trouble.message,
            generation=obj.head.generation,
            now=now,
            ready=trouble.ready,
            memory=folded.memory if folded is not None else None,
        )
        written = await self._write(key, obj, status, wanted)
        if written is Written.YES:
            self._writer.tell(obj, EventNote(reason=trouble.reason, message=trouble.message, warning=True))
        if written is not Written.OUTDATED and folded is not None:
            for note in folded.notes:
                self._writer.tell(obj, note)

    async def _write(self, key: Key, obj: Object, status: Mapping[str, Any], wanted: Mapping[str, Any]) -> Written:
        change = merge_diff(status, wanted)
        if self._plans is not None:
            self._plans.note(self._provider.name, key, {"status": change})
        memory = self._memory[key]
        memory.held = False
        if not change or self._plans is not None:
            return Written.NOTHING
        words = change.keys() == {"conditions"} and only_words(status, wanted)
        if words and not memory.may_word(self._clock.monotonic()):
            # Words that differ with every decision, such as a measured value in them, are not written as often.
            memory.held = True
            return Written.NOTHING
        # `active` goes into every write, whatever else it changes.
        change["active"] = wanted["active"]

        def current() -> bool:
            newest = self._informer.get(key)
            if newest is None or newest.head.version != obj.head.version:
                return False
            memory.sent = wanted
            return True

        try:
            if not await self._writer.write(key, obj, change, current):
                return Written.OUTDATED
        finally:
            memory.sent = None
        return Written.WORDS if words else Written.YES

    # Waiting -----------------------------------------------------------------------------------------------------

    def _sleep(self, key: Key, memory: ObjectState, verdict: Verdict, folded: Folded, base: Verdict | Trouble) -> float:
        """Seconds until something may be different; the instants are on the wall clock, which is read again."""
        now = self._clock.now()
        waits = [
            LONGEST_SLEEP * self._rng.uniform(0.5, 1.0),
            *_seconds(now, verdict.until),
            *_seconds(now, folded.again),
        ]
        if isinstance(base, Trouble):
            waits.append(self._retry(memory, base))
        else:
            if self._together is not None:
                self._together.expect(key, base.until)
            waits += _seconds(now, base.again)
            if folded.overridden:
                waits += _seconds(now, base.until)
        if memory.held:
            waits.append((1.0 - memory.words[0]) * WORDS_INTERVAL + _EARLY)
        if self._provider.poll is not None:
            waits.append(self._provider.poll * self._rng.uniform(0.9, 1.1))
        return min(waits)

    def _retry(self, memory: ObjectState, trouble: Trouble) -> float:
        if trouble.retry is not None:
            return max(trouble.retry, _EARLY) * self._rng.uniform(0.8, 1.2)
        slowest = max(_AGAIN.cap, self._provider.poll or 0.0)
        return replace(_AGAIN, cap=slowest).delay(memory.failures, self._rng)

    def _forget(self, key: Key) -> None:
        self._memory.pop(key, None)
        if self._together is not None:
            self._together.forget(key)
        if self._looking is not None:
            self._looking.forget(key)
        self._active.remove(key.namespace, key.name)
        self._transitions.remove(key.namespace, key.name)
        if self._plans is not None:
            self._plans.forget(self._provider.name, key)


_NO_CONTEXT: Final = Context("", "")


def _spec(raw: msgspec.Raw) -> Mapping[str, Any]:
    try:
        return _mapping.decode(raw)
    except msgspec.DecodeError:
        # What is no object has no fields; the model says which ones are missing.
        return {}


def _seconds(now: datetime, instant: datetime | None) -> list[float]:
    return [max((instant - now).total_seconds(), 0.0) + _EARLY] if instant is not None else []
