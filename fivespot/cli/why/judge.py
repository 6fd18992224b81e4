"""Observes and decides for one machine, as the controller would at this moment."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from fivespot.api import Phase, Reason, names
from fivespot.cli.why.live import LiveKinds, LiveReaders, ReadRefused, Unread
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.instants import read_instant
from fivespot.controllers.scheduledmachine.live_lookup import LiveLookup
from fivespot.controllers.scheduledmachine.observe import CLUSTER_KIND, MACHINE_KIND, Observer
from fivespot.controllers.scheduledmachine.plan import DeleteMachine, Plan, Question, Want
from fivespot.controllers.scheduledmachine.snapshot import Refusal, Snapshot, World
from fivespot.controllers.scheduledmachine.sources import SCHEDULED_MACHINES
from fivespot.controllers.scheduledmachine.spec import SpecView, read_spec
from fivespot.controllers.scheduledmachine.status import build_status
from fivespot.controllers.scheduledmachine.stored_status import StoredStatus, read_stored_status
from fivespot.controllers.scheduledmachine.timings import Timings
from fivespot.runtime.client import Client
from fivespot.runtime.clock import Clock
from fivespot.runtime.errors import ConfigError, ForbiddenError, NotFoundError, NotServedError, StaleReadError
from fivespot.runtime.objects import GroupKind, Head, Key, KindState, Object, find_condition

__all__ = ["REQUEST", "Evaluated", "judge"]

_ROUNDS: Final = 8
"""Looks at the world before it counts as one that does not hold still: definitions, the Machine, what it names."""

REQUEST: Final = re.compile(r"(create|delete|patch) ([a-z0-9.-]+) ")
"""How the message of a refusal begins: what was tried, with the resource."""
_TRIED: Final = (Reason.MACHINE_CREATION_FAILED, Reason.MACHINE_DELETION_FAILED, Reason.NODE_TAINTS_UNSUPPORTED)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What the controller would decide now, and what it stood on.

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
        self._refused = ReadRefused()
        self._kinds = LiveKinds(client, self._refused)
        self._providers = LiveReaders(metadata_only=False)
        self._children = LiveReaders(metadata_only=True)
        # Machines and Clusters hold no credentials, and are read whole as the controller does.
        self._own = LiveReaders(metadata_only=False)
        self._observer = Observer(self._kinds, self._providers, self._children, capi_version=capi_version)

    async def judge(self) -> Evaluated:
        spec, stored = read_spec(self._body), read_stored_status(self._body)
        snapshot = self._snapshot(self._obj.head, spec, stored, await self._look(self._obj.head, spec, stored))
        snapshot, plan, unanswered = await self._decide(snapshot)
        plan, remembered = self._as_remembered(snapshot, plan)
        return Evaluated(
            snapshot=snapshot,
            plan=plan,
            status=build_status(snapshot, plan),
            body=self._body,
            provider=self._provider(spec),
            plurals=self._plurals(),
            unread=self._refused.all,
            unanswered=unanswered,
            remembered=remembered,
        )

    async def _look(self, head: Head, spec: SpecView, stored: StoredStatus) -> World:
        for _ in range(_ROUNDS):
            self._open_own()
            world = self._observer.look(head, spec, stored)
            unfinished = [objects for r in (self._providers, self._children, self._own) for objects in r.unfinished]
            if not unfinished and not self._kinds.unfinished:
                return world
            await asyncio.gather(
                self._kinds.fetch(), *(objects.fetch(self._client, self._refused) for objects in unfinished)
            )
        raise StaleReadError(f"observe {head.namespace}/{head.name}: the world kept changing")

    def _open_own(self) -> None:
        """What the controller's wiring does when it learns how Machines and Clusters are served."""
        machines, clusters = self._kinds.lookup(MACHINE_KIND), self._kinds.lookup(CLUSTER_KIND)
        if isinstance(machines, KindState) and (version := self._observer.machine_version(machines)):
            self._observer.machines = self._own.open(MACHINE_KIND, machines, version).informer
        if isinstance(clusters, KindState) and clusters.usable:
            self._observer.clusters = self._own.open(CLUSTER_KIND, clusters).informer

    def _snapshot(self, head: Head, spec: SpecView, stored: StoredStatus, world: World) -> Snapshot:
        snapshot = Snapshot(
            now=self._clock.now(),
            monotonic=self._clock.monotonic(),
            head=head,
            spec=spec,
            stored=stored,
            world=world,
            timings=Timings(),
        )
        # The controller has not seen it yet: then it was never given a finalizer, and nothing was made for it.
        unseen = not head.deleting and names.FINALIZER not in head.finalizers and not stored.phase
        return replace(snapshot, fresh=unseen and not snapshot.paused)

    async def _decide(self, snapshot: Snapshot) -> tuple[Snapshot, Plan, str]:
        lookup = LiveLookup(self._client, self._kinds)
        plan = decide(snapshot)
        for _ in range(_ROUNDS):
            if plan.ask is None:
                return snapshot, plan, ""
            try:
                snapshot = await lookup.answer(plan.ask, snapshot, self._machines(snapshot))
            except StaleReadError as error:
                if not self._kinds.unfinished:
                    return snapshot, plan, str(error)
                # The search looked up groups that nobody had asked for.
                await self._kinds.fetch()
            except ForbiddenError as error:
                return snapshot, plan, f"{_QUESTIONS[plan.ask]} cannot be answered: {error}"
            plan = decide(snapshot)
        return snapshot, plan, "the world kept changing"

    def _machines(self, snapshot: Snapshot) -> Any:
        state = self._observer.machine_state()
        version = snapshot.world.capi.version
        return state.resource(version) if state is not None and version in state.served else None

    def _as_remembered(self, s: Snapshot, plan: Plan) -> tuple[Plan, bool]:
        """What the controller's memory adds: a refusal that it will not try again at once, and the administrator's
        brake. The process that is_our_status is another one, but it has told both in status."""
        told = _told(s.stored)
        if not plan.steps or told is None:
            return plan, False
        reason, message, stalled = told
        deletes = any(isinstance(step, DeleteMachine) for step in plan.steps)
        if reason == Reason.DELETION_RATE_LIMITED and deletes and plan.want in (Want.INACTIVE, Want.DISABLED):
            return decide(replace(s, deletion_wait=1.0)), True
        current = s.stored.raw.get("observedGeneration") == s.head.generation
        # What only observing found is found anew; what the server said to a request is remembered.
        by_server = reason == Reason.NODE_TAINTS_UNSUPPORTED or REQUEST.match(message) is not None
        if reason not in _TRIED or not by_server or s.stored.phase != Phase.ERROR or not current:
            return plan, False
        due = s.monotonic + s.timings.refusal_cap
        refusal = Refusal(fingerprint="", attempt=1, due=due, reason=reason, message=message, stalled=stalled)
        refused = decide(replace(s, refusal=refusal))
        return (refused, True) if refused.phase is Phase.ERROR else (plan, False)

    def _provider(self, spec: SpecView) -> Object | None:
        state = self._kinds.lookup(GroupKind(names.PROVIDER_GROUP, spec.schedule.kind))
        if not isinstance(state, KindState) or not state.usable:
            return None
        key = Key(self._obj.head.namespace, spec.schedule.name)
        return self._providers.open(GroupKind(names.PROVIDER_GROUP, spec.schedule.kind), state).informer.found.get(key)

    def _plurals(self) -> Mapping[GroupKind, str]:
        return {gk: state.crd_name for gk, state in self._kinds.known.items()}


_QUESTIONS: Final = {
    Question.MACHINE_GONE: "whether the Machine that status or a leftover names is gone",
    Question.LEFTOVERS: "whether anything is left of an earlier machine",
}


def _told(stored: StoredStatus) -> tuple[str, str, bool] | None:
    """The reason of what is in the way, as status tells it, and whether only a person can help."""
    conditions = stored.raw.get("conditions")
    for type_ in ("Stalled", "Reconciling"):
        found = find_condition(conditions, type_)
        if found is not None and found.get("status") == "True":
            return str(found.get("reason", "")), str(found.get("message", "")), type_ == "Stalled"
    return None
