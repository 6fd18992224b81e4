"""Simulates schedules: decides them as their controllers would, at chosen instants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, cast

from fivespot.api.names import PROVIDER_GROUP
from fivespot.cli.timeline.documents import unknown_fields, without_nulls
from fivespot.cli.timeline.forecast import LIMIT, DecisionFailed, Forecast, Period
from fivespot.cli.timeline.schedules import Schedule, find
from fivespot.contract import Display, Reference, Resolution, Resolved, Unresolved
from fivespot.providers.sdk import Context, EventNote, OverrideRecord, Provider, Verdict, apply_overrides
from fivespot.providers.sdk.decider import Decider, DecisionFailure, PreparedSpec
from fivespot.providers.sdk.override_spec import read_records
from fivespot.providers.sdk.status import SPEC_WARNINGS
from fivespot.runtime import ConfigError, Key, Resource
from fivespot.runtime.objects import rfc3339

__all__ = ["PreparedSchedule", "Simulation", "prepare"]

_DEEPEST: Final = 8
"""Schedules in a chain of bases (contract, C3)."""


@dataclass(frozen=True, slots=True)
class PreparedSchedule:
    """A schedule with a spec that its provider accepted."""

    schedule: Schedule
    provider: Provider[Any]
    decider: Decider[Any]
    prepared: PreparedSpec


def prepare(schedule: Schedule, provider: Provider[Any]) -> PreparedSchedule:
    """Have the provider prepare the spec.

    :raises ConfigError: the provider refuses it, with the message of its ``Ready=False``; or the API server would
        refuse it; or the provider depends on a source outside the files.
    """
    if provider.asynchronous:
        raise ConfigError(
            f"{schedule}: {provider.kind} asks a source outside the cluster, so its future cannot be computed"
        )
    schema = provider.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec = schedule.body.get("spec")
    if spec is None:
        raise ConfigError(f"{schedule}: spec: is required")
    if not isinstance(spec, Mapping):
        raise ConfigError(f"{schedule}: spec: must be an object, with fields such as {', '.join(schema['properties'])}")
    unknown = list(unknown_fields(spec, schema))
    if unknown:
        raise ConfigError(f"{schedule}: {'; '.join(unknown)}")
    decider: Decider[Any] = Decider(provider)
    prepared = decider.prepare("", 1, cast("Mapping[str, Any]", without_nulls(spec, schema)))
    if prepared.failure is not None:
        raise ConfigError(f"{schedule}: {prepared.failure.message}")
    return PreparedSchedule(schedule, provider, decider, prepared)


class Simulation:
    """The timelines of schedules that may depend on each other.

    :param schedules: all schedules of the files.
    :param prepare: returns a schedule with its accepted spec.
    :param start: the start of the simulation, at which overrides without a ``from`` start unless status has a record
        of them.
    """

    def __init__(
        self,
        schedules: Sequence[Schedule],
        prepare: Callable[[Schedule], PreparedSchedule],
        start: datetime,
        *,
        limit: int = LIMIT,
    ) -> None:
        self._schedules = schedules
        self._prepare = prepare
        self._start = start
        self._limit = limit
        self._forecasts: dict[str, Forecast] = {}
        self._opening: list[Schedule] = []

    def forecast(self, schedule: Schedule) -> Forecast:
        """Return the timeline of one of the schedules; the same object each time.

        :raises ConfigError: it depends on a missing schedule, or on itself.
        """
        found = self._forecasts.get(schedule.identity)
        if found is not None:
            return found
        chain = " -> ".join(str(each) for each in (*self._opening, schedule))
        if any(schedule.identity == each.identity for each in self._opening):
            raise ConfigError(f"{self._opening[0]}: BaseCycle: {chain}")
        if len(self._opening) > _DEEPEST:
            raise ConfigError(f"{self._opening[0]}: BaseCycle: more than {_DEEPEST} bases in a row: {chain}")
        self._opening.append(schedule)
        try:
            simulated = _Simulated(self, self._prepare(schedule))
            forecast = Forecast(str(schedule), simulated.decide, self._start, limit=self._limit)
        finally:
            self._opening.pop()
        self._forecasts[schedule.identity] = forecast
        return forecast

    def notes(self, schedule: Schedule, period: Period) -> list[EventNote]:
        """Return the provider's notes on a period, each once.

        Notes may be about the day before, and controllers decide each schedule at least twice a day, so this does as
        well.
        """
        prepared = self._prepare(schedule)
        advice = [
            EventNote(reason=SPEC_WARNINGS, message=each, warning=True, once=each) for each in prepared.prepared.advice
        ]
        found = {note.once: note for note in (*advice, *self.forecast(schedule).notes)}
        at = period.start + timedelta(days=1)
        while not prepared.provider.takes_context and at - timedelta(hours=12) < period.end:
            at = min(at, period.end)
            verdict = prepared.decider.decide_now(prepared.prepared, at, Context(schedule.namespace, schedule.name))
            if isinstance(verdict, Verdict):
                found |= {note.once: note for note in verdict.notes if note.once not in found}
            at += timedelta(hours=12)
        return list(found.values())

    def find(self, namespace: str, reference: Reference) -> Schedule | None:
        return find(self._schedules, namespace, reference.kind, reference.name)


class _Simulated:
    """One schedule and its simulated status: does what the provider's reconciler does, without an API server."""

    def __init__(self, simulation: Simulation, schedule: PreparedSchedule) -> None:
        self._simulation = simulation
        self._schedule = schedule
        status = schedule.schedule.body.get("status")
        self._records: Mapping[str, OverrideRecord] = read_records(
            status.get("overrides") if isinstance(status, Mapping) else None
        )
        self._active: bool | None = None
        self._since: datetime | None = None

    def decide(self, at: datetime) -> Verdict:
        """Return the verdict in force, overrides included; ``again`` is the time of the next decision."""
        schedule, decider, spec = self._schedule.schedule, self._schedule.decider, self._schedule.prepared
        others = _OtherSchedules(self._simulation, at)
        context = Context(
            schedule.namespace, schedule.name, "", 1, active=self._active, since=self._since, reader=others
        )
        found = decider.decide_now(spec, at, context)
        if others.problem is not None:
            raise others.problem
        base = found if isinstance(found, Verdict) else None
        if base is not None and base.active is not self._active:
            self._active, self._since = base.active, at
        rule = decider.rule(spec, base or Verdict(False), at, context)
        result = apply_overrides(spec.overrides, self._records, base, rule, at)
        self._records = {entry.name: entry for entry in result.records}
        if result.verdict is None:
            assert isinstance(found, DecisionFailure)
            raise ConfigError(f"{schedule}: no verdict at {rfc3339(at)}: {found.reason}: {found.message}")
        instants = [result.again, *others.changes]
        if base is not None:
            instants.append(base.again)
            if result.overridden and self._schedule.provider.takes_context:
                # For other verdicts the override has the whole future.
                instants.append(base.until)
        again = min((instant for instant in instants if instant is not None and instant > at), default=None)
        return replace(result.verdict, notes=(*result.verdict.notes, *result.notes), again=again)


class _OtherSchedules:
    """The other schedules of the files, at one instant.

    :ivar changes: the next change of those that were read.
    :ivar problem: the reason why one is not available, which the decision itself would treat as a state.
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
                raise ConfigError(f"{field} names {reference}, which the files do not contain: add it with another -f")
            forecast = self._simulation.forecast(found)
            active, until = forecast.active_at(self._at), forecast.next_decision(self._at)
        except (ConfigError, DecisionFailed) as error:
            self.problem = self.problem or error
            return Unresolved("BaseUnresolved", str(error))
        if until is not None:
            self.changes.append(until)
        return Resolved(active, Display())

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None:
        if resource.group != PROVIDER_GROUP:
            self.problem = ConfigError(f"it depends on {resource.qualified} {key}, which files cannot provide")
            return None
        found = self._simulation.find(key.namespace, Reference(resource.kind, key.name))
        return found.body if found is not None else None
