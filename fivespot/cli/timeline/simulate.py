"""Schedules decided one after the other as their controllers would, but at instants of our choosing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from fivespot.api.names import PROVIDER_GROUP
from fivespot.cli.timeline.documents import unknown_fields
from fivespot.cli.timeline.forecast import LIMIT, DecisionFailed, Forecast, Period
from fivespot.cli.timeline.schedules import Schedule, find
from fivespot.contract import Display, Reference, Resolution, Resolved, Unresolved
from fivespot.providers.sdk import Context, EventNote, OverrideRecord, Provider, Verdict, apply_overrides
from fivespot.providers.sdk.decider import Decider, DecisionFailure, PreparedSpec
from fivespot.providers.sdk.override_spec import read_records
from fivespot.runtime import ConfigError, Key, Resource
from fivespot.runtime.objects import rfc3339
from fivespot.schedule import UnknownZone, load_zone

__all__ = ["Readied", "Simulation", "ready"]

_DEEPEST: Final = 8
"""Schedules in a chain of bases (contract, C3)."""


@dataclass(frozen=True, slots=True)
class Readied:
    """A schedule whose spec its provider accepts."""

    schedule: Schedule
    provider: Provider[Any]
    decider: Decider[Any]
    prepared: PreparedSpec


def ready(schedule: Schedule, provider: Provider[Any]) -> Readied:
    """Have the provider read the spec.

    :raises ConfigError: it refuses it, in the words of its ``Ready=False``; or the API server would not take it; or the
        provider decides by what it asks of others, which no file can tell.
    """
    if provider.asynchronous:
        raise ConfigError(f"{schedule}: {provider.kind} asks the outside world, so its future cannot be worked out")
    _check_zone(schedule)
    schema = provider.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    unknown = list(unknown_fields(schedule.spec, schema))
    if unknown:
        raise ConfigError(f"{schedule}: {'; '.join(unknown)}")
    decider: Decider[Any] = Decider(provider)
    prepared = decider.prepare("", 1, schedule.body.get("spec") or {})
    if prepared.failure is not None:
        raise ConfigError(f"{schedule}: {prepared.failure.message}")
    return Readied(schedule, provider, decider, prepared)


def _check_zone(schedule: Schedule) -> None:
    """Before the schema judges it, whose pattern cannot tell which zone was meant."""
    zone = schedule.spec.get("timezone")
    if isinstance(zone, str):
        try:
            load_zone(zone)
        except UnknownZone as error:
            raise ConfigError(f"{schedule}: spec.timezone: {error}") from error


class Simulation:
    """The courses of schedules that may depend on each other.

    :param schedules: all that are there to be looked at.
    :param ready: called for each of them that is.
    :param start: when all of it begins; overrides without a ``from`` are seen for the first time then, unless their
        status remembers them.
    """

    def __init__(
        self,
        schedules: Sequence[Schedule],
        ready: Callable[[Schedule], Readied],
        start: datetime,
        *,
        limit: int = LIMIT,
    ) -> None:
        self._schedules = schedules
        self._ready = ready
        self._start = start
        self._limit = limit
        self._courses: dict[str, Forecast] = {}
        self._opening: list[Schedule] = []

    def course(self, schedule: Schedule) -> Forecast:
        """The course of one of the schedules; the same object each time.

        :raises ConfigError: it depends on a schedule that is not there, or in the end on itself.
        """
        found = self._courses.get(schedule.identity)
        if found is not None:
            return found
        chain = " -> ".join(str(each) for each in (*self._opening, schedule))
        if any(schedule.identity == each.identity for each in self._opening):
            raise ConfigError(f"{self._opening[0]}: BaseCycle: {chain}")
        if len(self._opening) > _DEEPEST:
            raise ConfigError(f"{self._opening[0]}: BaseCycle: more than {_DEEPEST} bases in a row: {chain}")
        self._opening.append(schedule)
        try:
            simulated = _Simulated(self, self._ready(schedule))
            course = Forecast(str(schedule), simulated.decide, self._start, limit=self._limit)
        finally:
            self._opening.pop()
        self._courses[schedule.identity] = course
        return course

    def notes(self, schedule: Schedule, period: Period) -> list[EventNote]:
        """Return the provider's notes on a period, each once.

        Notes may look back for a day, and controllers look at each schedule twice a day, so this does as well.
        """
        readied = self._ready(schedule)
        found = {note.once: note for note in self.course(schedule).notes}
        at = period.start + timedelta(days=1)
        while not readied.provider.takes_context and at - timedelta(hours=12) < period.end:
            at = min(at, period.end)
            verdict = readied.decider.decide_now(readied.prepared, at, Context(schedule.namespace, schedule.name))
            if isinstance(verdict, Verdict):
                found |= {note.once: note for note in verdict.notes if note.once not in found}
            at += timedelta(hours=12)
        return list(found.values())

    def find(self, namespace: str, reference: Reference) -> Schedule | None:
        return find(self._schedules, namespace, reference.kind, reference.name)


class _Simulated:
    """One schedule, with what its status would hold: this is what the provider's reconciler does, without an API."""

    def __init__(self, simulation: Simulation, readied: Readied) -> None:
        self._simulation = simulation
        self._readied = readied
        status = readied.schedule.body.get("status")
        self._memory: Mapping[str, OverrideRecord] = read_records(
            status.get("overrides") if isinstance(status, Mapping) else None
        )
        self._active: bool | None = None
        self._since: datetime | None = None

    def decide(self, at: datetime) -> Verdict:
        """The verdict in force, overrides included; ``again`` says when to look again."""
        readied, schedule = self._readied, self._readied.schedule
        look = _Look(self._simulation, at)
        context = Context(schedule.namespace, schedule.name, "", 1, active=self._active, since=self._since, reader=look)
        found = readied.decider.decide_now(readied.prepared, at, context)
        if look.problem is not None:
            raise look.problem
        base = found if isinstance(found, Verdict) else None
        if base is not None and base.active is not self._active:
            self._active, self._since = base.active, at
        rule = readied.decider.rule(readied.prepared, base or Verdict(False), at, context)
        folded = apply_overrides(readied.prepared.overrides, self._memory, base, rule, at)
        self._memory = {entry.name: entry for entry in folded.records}
        if folded.verdict is None:
            assert isinstance(found, DecisionFailure)
            raise ConfigError(f"{schedule}: no verdict at {rfc3339(at)}: {found.reason}: {found.message}")
        looks = [folded.again, *look.changes]
        if base is not None:
            looks.append(base.again)
            if folded.overridden and readied.provider.takes_context:
                # Of the others an override knows the whole future.
                looks.append(base.until)
        again = min((instant for instant in looks if instant is not None and instant > at), default=None)
        return replace(folded.verdict, notes=(*folded.verdict.notes, *folded.notes), again=again)


class _Look:
    """The other schedules of the files, at one instant.

    :ivar changes: when what was looked at changes next.
    :ivar problem: why something that was looked for cannot be had; a decision would only take it for a state.
    """

    def __init__(self, simulation: Simulation, at: datetime) -> None:
        self._simulation = simulation
        self._at = at
        self.changes: list[datetime] = []
        self.problem: Exception | None = None

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Resolution:
        found = self._simulation.find(namespace, reference)
        try:
            if found is None:
                raise ConfigError(f"{field} names {reference}, which the files do not hold: add it with another -f")
            course = self._simulation.course(found)
            active, until = course.active_at(self._at), course.next_look(self._at)
        except (ConfigError, DecisionFailed) as error:
            self.problem = self.problem or error
            return Unresolved("BaseUnresolved", str(error))
        if until is not None:
            self.changes.append(until)
        return Resolved(active, Display())

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None:
        if resource.group != PROVIDER_GROUP:
            self.problem = ConfigError(f"it depends on {resource.qualified} {key}, which no file can tell")
            return None
        found = self._simulation.find(key.namespace, Reference(resource.kind, key.name))
        return found.body if found is not None else None
