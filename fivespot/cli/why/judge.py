"""Evaluates one machine as the controller would at this moment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from fivespot.api import ConditionType, Phase, Reason, names
from fivespot.cli.why.live import LiveInputs, ReadRefused, Unread
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.evaluate import MachineEvaluation, evaluate, observe_machine
from fivespot.controllers.scheduledmachine.holds import CreationHold
from fivespot.controllers.scheduledmachine.instants import read_instant
from fivespot.controllers.scheduledmachine.live_lookup import LiveLookup
from fivespot.controllers.scheduledmachine.plan import CreateChildren, DeleteMachine, Plan, Question, Want
from fivespot.controllers.scheduledmachine.snapshot import Answers, Refusal, Snapshot
from fivespot.controllers.scheduledmachine.sources import SCHEDULED_MACHINES
from fivespot.controllers.scheduledmachine.spec import SpecView, read_spec
from fivespot.controllers.scheduledmachine.status import build_status
from fivespot.controllers.scheduledmachine.stored_status import StoredStatus, read_stored_status
from fivespot.controllers.scheduledmachine.timings import Timings
from fivespot.runtime import (
    Client,
    Clock,
    ConfigError,
    ForbiddenError,
    GroupKind,
    Key,
    NotFoundError,
    Object,
    find_condition,
)
from fivespot.runtime.errors import NotServedError

__all__ = ["REQUEST", "Evaluated", "judge"]

REQUEST: Final = re.compile(r"(create|delete|patch) ([a-z0-9.-]+) ")
"""The beginning of a refusal's message: the verb and the resource of the request."""
_HELD: Final = (
    Reason.ACTIVATION_RATE_LIMITED,
    Reason.NAMESPACE_LIMIT_REACHED,
    Reason.ADMISSION_POLICY_MISSING,
)
_TRIED: Final = (Reason.MACHINE_CREATION_FAILED, Reason.MACHINE_DELETION_FAILED, Reason.NODE_TAINTS_UNSUPPORTED)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The controller's present decision and its inputs.

    :param body: the ScheduledMachine as stored; it holds the embedded specs, so nothing of its spec may be shown.
    :param status: what the controller would report.
    :param provider: the schedule object, where it can be read.
    :param plurals: the resource of each kind that was looked up, for commands.
    :param unread: what could not be read.
    :param unanswered: the question that could not be answered, with the reason; "" when there is none.
    :param remembered: the plan is that of a refusal which the controller reported and will not try again before its
        time.
    """

    snapshot: Snapshot
    plan: Plan
    status: Mapping[str, Any]
    body: Mapping[str, Any]
    provider: Object | None
    plurals: Mapping[GroupKind, str]
    unread: tuple[Unread, ...]
    unanswered: str = ""
    remembered: bool = False

    @property
    def announced(self) -> datetime | None:
        """``status.nextTransitionTime`` of the schedule, which the controller does not look at: nothing rests on it."""
        status = self.provider.decode().get("status") if self.provider is not None else None
        return read_instant(status.get("nextTransitionTime")) if isinstance(status, Mapping) else None


async def judge(client: Client, clock: Clock, key: Key, *, capi_version: str | None = None) -> Evaluated:
    """Read the world of one ScheduledMachine and decide.

    :raises ConfigError: there is no such ScheduledMachine, or it may not be read.
    :raises ApiError, TransportError: the server does not answer.
    """
    return await _Judge(client, clock, await _read_machine(client, key), capi_version).judge()


async def _read_machine(client: Client, key: Key) -> Object:
    try:
        return await client.get(SCHEDULED_MACHINES, key)
    except NotFoundError as error:
        raise ConfigError(
            f"there is no ScheduledMachine {key.name} in namespace {key.namespace}; to see those there are: "
            f"kubectl -n {key.namespace} get scheduledmachines"
        ) from error
    except NotServedError as error:
        raise ConfigError(
            "the server does not serve ScheduledMachines; to install their definition: "
            "fivespot crds | kubectl apply --server-side -f -"
        ) from error
    except ForbiddenError as error:
        raise ConfigError(
            f"you may not read ScheduledMachine {key}: {error.message}; to check: "
            f"kubectl auth can-i get {SCHEDULED_MACHINES.qualified} -n {key.namespace}"
        ) from error


class _Judge:
    def __init__(self, client: Client, clock: Clock, obj: Object, capi_version: str | None) -> None:
        self._client = client
        self._clock = clock
        self._obj = obj
        self._body = obj.decode()
        self._capi_version = capi_version
        self._refused = ReadRefused()
        self._inputs = LiveInputs(client, self._refused, capi_version)

    async def judge(self) -> Evaluated:
        spec, stored = read_spec(self._body), read_stored_status(self._body)
        lookup = LiveLookup(self._client, self._inputs)
        found = await evaluate(self._inputs, lookup, lambda: self._snapshot(spec, stored), answers=Answers())
        error = found.unanswered.error if found.unanswered is not None else None
        if error is not None and not isinstance(error, ForbiddenError):
            raise error
        snapshot, plan = _as_held(found.snapshot, found.plan)
        plan, remembered = self._as_remembered(snapshot, plan)
        return Evaluated(
            snapshot=snapshot,
            plan=plan,
            status=build_status(snapshot, plan),
            body=self._body,
            provider=self._provider(spec),
            plurals={gk: state.crd_name for gk, state in self._inputs.kinds.known.items()},
            unread=self._refused.all,
            unanswered=_unanswered(found),
            remembered=remembered,
        )

    def _snapshot(self, spec: SpecView, stored: StoredStatus) -> Snapshot:
        head = self._obj.head
        snapshot = Snapshot(
            now=self._clock.now(),
            monotonic=self._clock.monotonic(),
            head=head,
            spec=spec,
            stored=stored,
            world=observe_machine(self._inputs, head, spec, stored, self._capi_version),
            timings=Timings(),
        )
        # Without a finalizer the controller has not seen the object yet, and nothing was created for it.
        unseen = not head.deleting and names.FINALIZER not in head.finalizers and not stored.phase
        return replace(snapshot, fresh=unseen and not snapshot.paused)

    def _as_remembered(self, s: Snapshot, plan: Plan) -> tuple[Plan, bool]:
        """Add the controller's memory: a refused write that is not retried at once, and the administrator's
        brake. The controller runs in another process, but status shows both."""
        problem = _reported_problem(s.stored)
        if not plan.steps or problem is None:
            return plan, False
        reason, message, stalled = problem
        deletes = any(isinstance(step, DeleteMachine) for step in plan.steps)
        if reason == Reason.DELETION_RATE_LIMITED and deletes and plan.want in (Want.INACTIVE, Want.DISABLED):
            turn = read_instant(s.stored.raw.get("nextCleanup")) or s.now
            return decide(replace(s, deletion_wait=max(1.0, (turn - s.now).total_seconds()))), True
        current = s.stored.raw.get("observedGeneration") == s.head.generation
        # Observed problems are found again; refusals by the server are taken from status.
        by_server = reason == Reason.NODE_TAINTS_UNSUPPORTED or REQUEST.match(message) is not None
        if reason not in _TRIED or not by_server or s.stored.phase != Phase.ERROR or not current:
            return plan, False
        due = s.monotonic + s.timings.refusal_cap
        refusal = Refusal(fingerprint="", attempt=1, due=due, reason=reason, message=message, stalled=stalled)
        refused = decide(replace(s, refusal=refusal))
        return (refused, True) if refused.phase is Phase.ERROR else (plan, False)

    def _provider(self, spec: SpecView) -> Object | None:
        kind = self._inputs.schedules(GroupKind(names.PROVIDER_GROUP, spec.schedule.kind))
        key = Key(self._obj.head.namespace, spec.schedule.name)
        return kind.informer.found.get(key) if kind is not None else None


def _as_held(s: Snapshot, plan: Plan) -> tuple[Snapshot, Plan]:
    """Add what administrators hold back, as the controller reported it."""
    stopped = find_condition(s.stored.raw.get("conditions"), ConditionType.PAUSED)
    if stopped is not None and stopped.get("reason") == Reason.STOPPED:
        s = replace(s, stopped=str(stopped.get("message", "")))
        return s, decide(s)
    problem = _reported_problem(s.stored)
    if problem is not None and problem[0] in _HELD and any(isinstance(step, CreateChildren) for step in plan.steps):
        s = replace(s, creation_hold=CreationHold(problem[0], problem[1]))
        return s, decide(s)
    return s, plan


_QUESTIONS: Final = {
    Question.MACHINE_GONE: "whether the Machine that status or a leftover names is gone",
    Question.LEFTOVERS: "whether anything is left of an earlier machine",
}


def _unanswered(found: MachineEvaluation) -> str:
    if found.unanswered is None or found.plan.ask is None:
        return ""
    if found.unanswered.error is None:
        return found.unanswered.why
    return f"{_QUESTIONS[found.plan.ask]} cannot be answered: {found.unanswered.error}"


def _reported_problem(stored: StoredStatus) -> tuple[str, str, bool] | None:
    """Return the reason of the problem that status reports, and whether only a person can help."""
    conditions = stored.raw.get("conditions")
    for type_ in ("Stalled", "Reconciling"):
        found = find_condition(conditions, type_)
        if found is not None and found.get("status") == "True":
            return str(found.get("reason", "")), str(found.get("message", "")), type_ == "Stalled"
    return None
