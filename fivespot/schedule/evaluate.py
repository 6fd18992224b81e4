"""Evaluates schedules: the verdict at an instant, and the exact instant of the next change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

from .grammar import DAY
from .intervals import LAST, instant_at, seconds_after, seconds_of
from .pattern import Pattern, date_of
from .rules import WeeklySchedule
from .search import Occurrence, Search, Segment

_SECOND = timedelta(seconds=1)


class Cause(StrEnum):
    """The reason for which a schedule is active or not."""

    OPEN = "open"
    CLOSED = "closed"
    DISABLED = "disabled"
    NOT_YET_VALID = "not yet valid"
    NO_LONGER_VALID = "no longer valid"


@dataclass(frozen=True)
class Evaluation:
    """A schedule's state at an instant."""

    active: bool
    until: datetime | None
    """The next change of ``active``, in UTC; ``None`` if there is none before the year 10000."""
    cause: Cause


@dataclass(frozen=True)
class SkippedWindow:
    """A window that does not take place, because the clock jumps over all of it."""

    date: date
    """The local date it starts on."""
    start: str
    """``HH:MM`` on that date."""
    end: str
    """``HH:MM``, on that date or a later one."""
    at: datetime
    """The instant of the jump, in UTC."""


class Bounds(Protocol):
    """The fields of a schedule that are laid over its rules."""

    @property
    def enabled(self) -> bool: ...

    @property
    def valid_from(self) -> datetime | None: ...

    @property
    def valid_until(self) -> datetime | None: ...

    @property
    def lead_time(self) -> timedelta: ...

    @property
    def lag_time(self) -> timedelta: ...


class Timeline:
    """A schedule prepared for evaluation. Create one per schedule and keep it, because it caches."""

    def __init__(self, schedule: WeeklySchedule) -> None:
        self.schedule = schedule
        # Rules, exceptions, merge, lead and lag time, merge; validity and `enabled` are applied to the result.
        self._search = Search(schedule.zone, Pattern(schedule), widening(schedule))

    def evaluate(self, at: datetime) -> Evaluation:
        """Return the state at ``at``, which must have an offset (ValueError otherwise)."""
        return evaluate_within(self._search, self.schedule, at)

    def transitions(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, bool]]:
        """Yield every change after ``start`` and before ``end``, and the state from then on."""
        return changes_between(self.evaluate, start, end)

    def skipped(self, start: datetime, end: datetime) -> list[SkippedWindow]:
        """Return the windows that do not take place because of a jump of the clock in ``[start, end)``.

        Windows of a schedule that is disabled or not valid at that instant are left out, and so are hours of the hour
        rule, which follow the clock by definition.
        """
        return skipped_within(self._search, self.schedule, start, end)


def widening(bounds: Bounds) -> int:
    """The lead of the :class:`Search` that :func:`evaluate_within` takes, in seconds: lead and lag time together."""
    return (bounds.lead_time + bounds.lag_time) // _SECOND


def find_segment(search: Search, bounds: Bounds, at: int) -> Segment:
    """The period without a change around an instant, lead and lag time included.

    Opening ``lead`` earlier and closing ``lag`` later is the same as opening ``lead + lag`` earlier, with everything
    ``lag`` later. So the search only ever moves openings.
    """
    lag = bounds.lag_time // _SECOND
    found = search.find(at - lag)
    return Segment(found.start + lag, found.end + lag if found.end <= LAST else found.end, found.active)


def evaluate_within(search: Search, bounds: Bounds, at: datetime) -> Evaluation:
    """The state at an instant of what a search finds, with ``enabled`` and validity laid over it.

    :param search: of the rules, with the lead that :func:`widening` returns.
    """
    now = seconds_of(at)
    opens, closes = bounds.valid_from, bounds.valid_until
    if not bounds.enabled:
        return Evaluation(False, None, Cause.DISABLED)
    if closes is not None and at >= closes:
        return Evaluation(False, None, Cause.NO_LONGER_VALID)
    if opens is not None and at < opens:
        segment = find_segment(search, bounds, seconds_of(opens))
        first = opens.astimezone(UTC) if segment.active else instant_at(segment.end)
        return Evaluation(False, _before(first, closes), Cause.NOT_YET_VALID)
    segment = find_segment(search, bounds, now)
    until = instant_at(segment.end)
    if not segment.active:
        return Evaluation(False, _before(until, closes), Cause.CLOSED)
    if closes is not None and (until is None or until > closes):
        until = closes.astimezone(UTC)
    return Evaluation(True, until, Cause.OPEN)


def skipped_within(search: Search, bounds: Bounds, start: datetime, end: datetime) -> list[SkippedWindow]:
    """The windows that do not take place because of a jump of the clock in ``[start, end)``, while the bounds hold."""
    if not bounds.enabled:
        return []
    opens, closes = bounds.valid_from, bounds.valid_until
    found = skipped_windows(search.skipped(seconds_after(start), seconds_after(end)))
    return [
        window for window in found if (opens is None or window.at >= opens) and (closes is None or window.at < closes)
    ]


@lru_cache(maxsize=1024)
def timeline(schedule: WeeklySchedule) -> Timeline:
    """A :class:`Timeline` of the schedule; equal schedules share one while they are in use."""
    return Timeline(schedule)


def evaluate(schedule: WeeklySchedule, at: datetime) -> Evaluation:
    """Return the state of ``schedule`` at ``at`` and the exact instant of its next change.

    ``at`` must carry an offset (ValueError otherwise). For repeated evaluations keep a :class:`Timeline` instead.
    """
    return timeline(schedule).evaluate(at)


def transitions(schedule: WeeklySchedule, start: datetime, end: datetime) -> Iterator[tuple[datetime, bool]]:
    """Every change of ``schedule`` after ``start`` and before ``end``, and the state from then on."""
    return timeline(schedule).transitions(start, end)


def skipped(schedule: WeeklySchedule, start: datetime, end: datetime) -> list[SkippedWindow]:
    """The windows of ``schedule`` that lie wholly inside a jump of the clock in ``[start, end)``."""
    return timeline(schedule).skipped(start, end)


def changes_between(
    evaluate: Callable[[datetime], Evaluation], start: datetime, end: datetime
) -> Iterator[tuple[datetime, bool]]:
    """Every change after ``start`` and before ``end``, from one evaluation to the next."""
    state = evaluate(start)
    while state.until is not None and state.until < end:
        at = state.until
        state = evaluate(at)
        yield at, state.active


def skipped_windows(found: Iterable[tuple[int, Occurrence]]) -> list[SkippedWindow]:
    """Windows and the jumps that they are in, as people read them."""
    return [
        SkippedWindow(date_of(start // DAY), _clock(start), _clock(end, end=True), at)
        for jump, (start, end) in found
        if (at := instant_at(jump)) is not None
    ]


def _before(at: datetime | None, limit: datetime | None) -> datetime | None:
    return None if at is None or (limit is not None and at >= limit) else at


def _clock(reading: int, *, end: bool = False) -> str:
    minutes = reading % DAY // 60
    if end and not minutes:
        return "24:00"
    return f"{minutes // 60:02}:{minutes % 60:02}"
