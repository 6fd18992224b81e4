"""Keeps the status of one provider's objects true, with one timed wake-up each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import structlog

from fivespot.api import ApiModel, InvalidObject, validate
from fivespot.runtime.cache import Informer
from fivespot.runtime.errors import NotFoundError
from fivespot.runtime.manager import ManagerContext
from fivespot.runtime.objects import Key, Object, merge_diff, merge_patch
from fivespot.runtime.reconcile import DONE, Result
from fivespot.runtime.telemetry import ObjectRef

from .definition import Provider
from .status import INVALID_SPEC, broken_status, decided_status, stored_active
from .verdict import Verdict

__all__ = ["ProviderReconciler"]

DECISION_FAILED: Final = "DecisionFailed"
LONGEST_SLEEP: Final = 600.0
"""Seconds after which even a quiet schedule is looked at again: the wall clock may have been set meanwhile, and only
the loop's own clock is waited on."""

_EARLY: Final = 0.001
_log = structlog.get_logger("fivespot.provider")

Spec = TypeVar("Spec", bound=ApiModel)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a spec came to, kept per generation: the decision's input, or what is wrong with it."""

    uid: str
    generation: int
    rule: Any
    problem: str = ""


class ProviderReconciler(Generic[Spec]):
    """The reconciler of one kind of schedule."""

    def __init__(self, provider: Provider[Spec], informer: Informer, context: ManagerContext) -> None:
        self._provider = provider
        self._informer = informer
        self._client = context.client
        self._clock = context.clock
        self._events = context.events
        self._dry_run = context.settings.dry_run
        self._prepared: dict[Key, _Prepared] = {}
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
        body = obj.decode()
        status = body.get("status")
        status = status if isinstance(status, dict) else {}
        prepared = self._prepare(key, obj, body)
        now = self._clock.now()
        if prepared.problem:
            wanted = broken_status(status, INVALID_SPEC, prepared.problem, generation=obj.head.generation, now=now)
            await self._write(key, obj, status, wanted, warning=(INVALID_SPEC, prepared.problem))
            return Result(phase="Invalid")
        try:
            verdict = self._provider.decide(prepared.rule, now)
        except Exception as error:
            # A provider's decision is other people's code: its failure is its own object's trouble, said on it.
            _log.exception("a decision failed", kind=self._provider.kind, object=str(key))
            problem = f"the decision failed: {type(error).__name__}: {error}"
            wanted = broken_status(status, DECISION_FAILED, problem, generation=obj.head.generation, now=now)
            await self._write(key, obj, status, wanted, warning=(DECISION_FAILED, problem))
            return Result(requeue_after=LONGEST_SLEEP, phase="Failed")
        wanted = decided_status(status, verdict, generation=obj.head.generation, now=now)
        before = stored_active(status)
        await self._write(key, obj, status, wanted)
        self._tell(key, obj, verdict, flipped=before is not None and before is not verdict.active)
        return Result(requeue_after=self._sleep(verdict), phase="Active" if verdict.active else "Inactive")

    def _prepare(self, key: Key, obj: Object, body: Mapping[str, Any]) -> _Prepared:
        found = self._prepared.get(key)
        if found is not None and (found.uid, found.generation) == (obj.head.uid, obj.head.generation):
            return found
        rule: Any = None
        problem = ""
        try:
            rule = self._provider.prepare(validate(self._provider.spec, body.get("spec") or {}))
        except InvalidObject as error:
            problem = str(error)
        except ValueError as error:
            problem = str(error)
        prepared = self._prepared[key] = _Prepared(obj.head.uid, obj.head.generation, rule, problem)
        return prepared

    async def _write(
        self,
        key: Key,
        obj: Object,
        status: Mapping[str, Any],
        wanted: Mapping[str, Any],
        *,
        warning: tuple[str, str] | None = None,
    ) -> None:
        change = merge_diff(status, wanted)
        if not change or self._dry_run:
            return
        # `active` goes into every write, whatever else it changes.
        change["active"] = wanted["active"]
        patch = merge_patch({"status": change}, obj.head)
        try:
            await self._client.patch(self._provider.resource, key, patch, subresource="status")
        except NotFoundError:
            return
        if warning is not None:
            self._event(obj, *warning, warning=True)

    def _tell(self, key: Key, obj: Object, verdict: Verdict, *, flipped: bool) -> None:
        self._active.child(key.namespace, key.name).set(float(verdict.active))
        if flipped:
            self._transitions.child(key.namespace, key.name).inc()
            self._event(obj, verdict.reason, verdict.message)
        for note in verdict.notes:
            self._event(obj, note.reason, note.message, warning=True, once=note.once)

    def _event(self, obj: Object, reason: str, message: str, *, warning: bool = False, once: str = "") -> None:
        resource, head = self._provider.resource, obj.head
        regarding = ObjectRef(resource.api_version, resource.kind, head.namespace, head.name, head.uid)
        self._events.event(
            regarding, type="Warning" if warning else "Normal", reason=reason, message=message, once=once
        )

    def _sleep(self, verdict: Verdict) -> float | None:
        if verdict.until is None:
            return None
        seconds = (verdict.until - self._clock.now()).total_seconds() + _EARLY
        return min(max(seconds, 0.0), LONGEST_SLEEP)

    def _forget(self, key: Key) -> None:
        self._prepared.pop(key, None)
        self._active.remove(key.namespace, key.name)
        self._transitions.remove(key.namespace, key.name)
