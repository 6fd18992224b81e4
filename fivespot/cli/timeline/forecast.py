"""The future of a schedule: its state at a start, and every change after it.

The provider is called for one change after the other, as far as a period needs them, and once for each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fivespot.providers.sdk import EventNote, Verdict
from fivespot.runtime import ConfigError, FivespotError
from fivespot.runtime.objects import rfc3339

__all__ = ["LIMIT", "DecisionFailed", "Forecast", "Interval", "Period", "TooManyChanges", "Transition"]

LIMIT: Final = 20_000
"""The most decisions for one schedule: some seconds of work. Hourly changes for two years need fewer."""

_SIGHT: Final = 1_000
"""Decisions for finding the next change after the shown period."""


class TooManyChanges(ConfigError):
    """The schedule changes too often within the period to be shown."""


class DecisionFailed(FivespotError):
    """The provider's code failed, or returned an invalid answer."""


@dataclass(frozen=True, slots=True)
class Period:
    """From ``start`` (inclusive) to ``end`` (exclusive), aware instants."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of the verdict at an instant."""

    at: datetime
    active: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """A time in which the schedule is active, clipped to the requested period.

    :param whole_end: its end without clipping; None if no end is known.
    """

    start: datetime
    end: datetime
    whole_end: datetime | None


class Forecast:
    """One schedule from ``start`` on.

    :param name: its name in messages.
    :param decide: the verdict at an instant. It is called once for an instant and in order of time, so it may keep
        state between calls.
    """

    def __init__(
        self, name: str, decide: Callable[[datetime], Verdict], start: datetime, *, limit: int = LIMIT
    ) -> None:
        self.name = name
        self.start = start
        self._decide = decide
        self._limit = limit
        self._decisions = 0
        self._notes: dict[str, EventNote] = {}
        first = self._ask(start)
        self.initial = first.active
        self._changes: list[Transition] = []
        self._instants: list[datetime] = []
        # The state is known up to here, exclusive; None: forever.
        self._known_until = _next_decision(first)
        self._first_reason = first.message or first.reason

    @property
    def reason(self) -> str:
        """Return the provider's message about the state at the start."""
        return self._first_reason

    @property
    def notes(self) -> tuple[EventNote, ...]:
        """Return the provider's notes at the evaluated instants, each once, in order."""
        return tuple(self._notes.values())

    def changes(self, end: datetime) -> list[Transition]:
        """Return every change after the start and before ``end``."""
        self._extend(end)
        return self._changes[: bisect_left(self._instants, end)]

    def active_at(self, instant: datetime) -> bool:
        """Return the state at an instant that is not before the start."""
        self._extend(instant)
        index = bisect_right(self._instants, instant)
        return self._changes[index - 1].active if index else self.initial

    def next_decision(self, instant: datetime) -> datetime | None:
        """Return the instant until which the state at another is known to last; None for forever."""
        self._extend(instant)
        index = bisect_right(self._instants, instant)
        return self._instants[index] if index < len(self._instants) else self._known_until

    @property
    def settled(self) -> bool:
        """Whether it is known that nothing changes after the computed part."""
        return self._known_until is None

    def intervals(self, period: Period) -> list[Interval]:
        """Return the active times of a period, which begins at the start or later."""
        found: list[Interval] = []
        active, begun = self.active_at(period.start), period.start
        for change in self.changes(period.end):
            if change.at <= period.start:
                continue
            if active:
                found.append(Interval(begun, change.at, change.at))
            active, begun = change.active, change.at
        if active and begun < period.end:
            following = self.next_change(period.end)
            found.append(Interval(begun, period.end, following.at if following is not None else None))
        return found

    def next_change(self, instant: datetime) -> Transition | None:
        """Return the first change at or after an instant; None if there is none, or none is known (see
        :attr:`settled`).
        """
        self._extend(instant)
        for _ in range(_SIGHT):
            index = bisect_left(self._instants, instant)
            if index < len(self._instants):
                return self._changes[index]
            if self._known_until is None:
                break
            self._step()
        return None

    def _extend(self, instant: datetime) -> None:
        while self._known_until is not None and self._known_until <= instant:
            self._step()

    def _step(self) -> None:
        """Make the next decision."""
        at = self._known_until
        assert at is not None
        verdict = self._ask(at)
        before = self._changes[-1].active if self._changes else self.initial
        # A provider may ask to decide again at an instant without a change.
        if verdict.active is not before:
            self._changes.append(Transition(at, verdict.active))
            self._instants.append(at)
        self._known_until = _next_decision(verdict)

    def _ask(self, at: datetime) -> Verdict:
        self._decisions += 1
        if self._decisions > self._limit:
            raise TooManyChanges(
                f"{self.name} changes more than {self._limit} times between {rfc3339(self.start)} and "
                f"{rfc3339(at)}: ask for a shorter period (--from, --to)"
            )
        try:
            verdict = self._decide(at)
        except FivespotError:
            raise
        except Exception as error:
            # A provider's decision is foreign code.
            what = f"{type(error).__name__}: {error}"
            raise DecisionFailed(f"{self.name}: the decision at {rfc3339(at)} failed: {what}") from error
        following = _next_decision(verdict)
        if following is not None and following <= at:
            raise DecisionFailed(
                f"{self.name}: the decision at {rfc3339(at)} holds until {rfc3339(following)}, not later"
            )
        for note in verdict.notes:
            self._notes.setdefault(note.once, note)
        return verdict


def _next_decision(verdict: Verdict) -> datetime | None:
    return min((instant for instant in (verdict.until, verdict.again) if instant is not None), default=None)
