"""The effect of an override on a schedule: simulated by the providers' rules, and told in one sentence. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fivespot.cli.timeline.period import local
from fivespot.providers.sdk import Override, OverrideOutcome, Verdict, apply_overrides
from fivespot.schedule import Zone

from .schedule import LiveSchedule, verdict_at

__all__ = ["Effect", "describe", "predict"]

_STEPS: Final = 32
"""Changes that are simulated where the override has no end."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of an override.

    :param changes: whether ``status.active`` is different at some time because of it.
    :param sentence: what happens and when it ends, for the person who sets it.
    """

    changes: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class _Step:
    """A stretch of the future with one outcome; it begins at ``at``."""

    at: datetime
    outcome: OverrideOutcome

    @property
    def active(self) -> bool | None:
        return self.outcome.verdict.active if self.outcome.verdict is not None else None


def predict(schedule: LiveSchedule, override: Override, now: datetime, zone: Zone | None) -> Effect:
    """Predict the effect of an override that replaces the entry of its name.

    :param zone: the zone in which instants are shown; None shows them in UTC.
    """
    rule = schedule.rule()
    others = [entry for entry in schedule.overrides if entry.name != override.name]
    before = _simulate(schedule, schedule.overrides, rule, now)
    after = _simulate(schedule, [*others, override], rule, now)
    return _Teller(schedule, override, rule, now, zone, before, after).effect()


def describe(schedule: LiveSchedule, overrides: Sequence[Override], now: datetime) -> str:
    """Describe the verdict of a schedule with these overrides, and its end."""
    steps = _simulate(schedule, overrides, schedule.rule(), now)
    active = steps[0].active
    if active is None:
        return f"{schedule.label} follows its own schedule"
    change = next((step.at for step in steps if step.active is not active), None)
    until = f" until {_show_instant(change, schedule.zone, now)}" if change is not None else ""
    return f"{schedule.label} is {_state(active)}{until}"


class _Teller:
    """Compares two futures and describes the difference."""

    def __init__(
        self,
        schedule: LiveSchedule,
        override: Override,
        rule: Callable[[datetime], Verdict] | None,
        now: datetime,
        zone: Zone | None,
        before: Sequence[_Step],
        after: Sequence[_Step],
    ) -> None:
        self._schedule, self._override = schedule, override
        self._rule, self._now, self._zone = rule, now, zone
        self._before, self._after = before, after
        self._record = next(record for record in after[0].outcome.records if record.name == override.name)

    def effect(self) -> Effect:
        base = verdict_at(self._rule, self._now)
        label, state = self._schedule.label, _state(self._override.active)
        if base is not None and base.final:
            return Effect(
                False, f"{label} is {_state(base.active)} by {base.message or base.reason}: overrides have no effect"
            )
        if not self._differs():
            return Effect(False, self._no_change(base))
        verb = "stays" if self._before[0].active is self._override.active else "becomes"
        return Effect(True, f"{label} {verb} {state} {self._until()}")

    def _differs(self) -> bool:
        # Beyond the last step of a simulation that was cut off nothing is known.
        horizon = min((steps[-1].at for steps in (self._before, self._after) if len(steps) == _STEPS), default=None)
        return any(
            _active_at(self._before, step.at) is not _active_at(self._after, step.at)
            for step in (*self._before, *self._after)
            if horizon is None or step.at <= horizon
        )

    def _until(self) -> str:
        """The end of the override, and what follows."""
        end, takeover = self._record.end, self._takeover()
        if takeover is not None:
            at, name = takeover
            return f"until {self._show(at)}, when override {name} takes over"
        if end is None:
            if self._record.open_ended and self._override.until == "forever":
                return f"until the override is removed ({self._clear()})"
            if self._record.open_ended:
                return f"until the override is removed ({self._clear()}): its schedule never changes by itself"
            return f"until the verdict of its own schedule changes next{self._announced()}"
        following = _active_at(self._after, end)
        if following is None:
            return f"until {self._show(end)}; then its own schedule decides"
        if following is not self._override.active:
            return f"until {self._show(end)}; then it is {_state(following)} by its own schedule"
        change = next((step.at for step in self._after if step.at > end and step.active is not following), None)
        ends = f"the override ends at {self._show(end)}, and its own schedule is {_state(following)} then"
        return f"until {self._show(change)}: {ends}" if change is not None else f"for good: {ends}"

    def _no_change(self, base: Verdict | None) -> str:
        label, state = self._schedule.label, _state(self._override.active)
        decider = _decider(self._after[0].outcome)
        if decider not in (None, self._override.name):
            return f"override {decider} of {label} started later and decides, so this override changes nothing"
        by = f"override {decider}" if _decider(self._before[0].outcome) else "its own schedule"
        end = self._record.end
        if end is None:
            return f"{label} is {state} by {by} already and does not change by itself, so this override changes nothing"
        change = next((step.at for step in self._before if step.active is not self._override.active), None)
        until = f" until {self._show(change)}" if change is not None else ""
        ends = "this override would end then too" if change == end else f"this override would end at {self._show(end)}"
        longer = "--for or --until sets a later end" if change is not None else "it would change nothing"
        return f"{label} is {state} by {by} already{until}, and {ends}: nothing changes; {longer}"

    def _takeover(self) -> tuple[datetime, str] | None:
        """The override that decides differently before this one ends, and from when."""
        for step in self._after[1:]:
            if self._record.end is not None and step.at >= self._record.end:
                return None
            decider = _decider(step.outcome)
            if decider not in (None, self._override.name) and step.active is not self._override.active:
                return step.at, str(decider)
        return None

    def _announced(self) -> str:
        base = verdict_at(self._rule, self._now)
        return (
            f", which it announces for {self._show(base.until)}" if base is not None and base.until is not None else ""
        )

    def _clear(self) -> str:
        return f"fivespot override clear {self._schedule.label} -n {self._schedule.key.namespace}"

    def _show(self, instant: datetime) -> str:
        return _show_instant(instant, self._zone, self._now)


def _show_instant(instant: datetime, zone: Zone | None, now: datetime) -> str:
    """An instant in a zone (UTC if None), with the time left."""
    left = _distance(instant - now)
    if zone is None:
        return f"{instant:%a %Y-%m-%d %H:%M} UTC ({left})"
    return f"{local(zone, instant):%a %Y-%m-%d %H:%M} {zone.name} ({left})"


def _distance(left: timedelta) -> str:
    minutes = round(left.total_seconds() / 60)
    if minutes < 1:
        return "now" if minutes > -1 else "past"
    days, minutes = divmod(minutes, 24 * 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    return f"in {''.join(parts[:2])}"


def _simulate(
    schedule: LiveSchedule, overrides: Sequence[Override], rule: Callable[[datetime], Verdict] | None, now: datetime
) -> list[_Step]:
    """The outcomes from now on, one for each instant at which the verdict or an override changes."""
    steps: list[_Step] = []
    at, records = now, dict(schedule.records)
    while len(steps) < _STEPS:
        outcome = apply_overrides(overrides, records, verdict_at(rule, at), rule or _no_rule, at)
        steps.append(_Step(at, outcome))
        records = {record.name: record for record in outcome.records}
        until = outcome.verdict.until if outcome.verdict is not None else None
        later = [instant for instant in (until, outcome.again) if instant is not None and instant > at]
        if not later:
            break
        at = min(later)
    return steps


def _no_rule(at: datetime) -> Verdict:
    raise AssertionError("not called without a base verdict")


def _active_at(steps: Sequence[_Step], at: datetime) -> bool | None:
    return next((step.active for step in reversed(steps) if step.at <= at), None)


def _decider(outcome: OverrideOutcome) -> str | None:
    return next((record.name for record in outcome.records if record.state.value == "InForce"), None)


def _state(active: bool) -> str:
    return "active" if active else "inactive"
