"""The calendar of a market on the wall clock, before any zone comes into it, and its evaluation in a zone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime

from fivespot.schedule.evaluate import (
    Evaluation,
    SkippedWindow,
    changes_between,
    evaluate_within,
    skipped_within,
    widening,
)
from fivespot.schedule.grammar import DAY, HOUR
from fivespot.schedule.intervals import Interval, merge, subtract
from fivespot.schedule.pattern import day_of, leaves_nothing_out, weekday_of
from fivespot.schedule.rules import HourRule, SpanWindow
from fivespot.schedule.search import Occurrence, Search

from .rules import MarketCalendar


class MarketPattern:
    """A calendar arranged by weekday and date (:class:`~fivespot.schedule.search.Readings`)."""

    def __init__(self, calendar: MarketCalendar) -> None:
        self._sessions: list[list[Interval]] = [[] for _ in range(7)]
        hours: list[list[Interval]] = [[] for _ in range(7)]
        for session in calendar.sessions:
            if isinstance(session, HourRule):
                for day in session.days:
                    hours[day] += [(hour * HOUR, (hour + 1) * HOUR) for hour in session.hours]
            elif isinstance(session, SpanWindow):
                self._sessions[session.from_day].append((session.from_time, session.from_time + session.length))
            else:
                for day in session.days:
                    self._sessions[day] += session.hours.pieces(calendar.breaks)
        # What is left of a session after a break may begin on the day after it opened.
        self._weekly = [
            merge(
                (start - after * DAY, end - after * DAY)
                for after in (0, 1)
                for start, end in self._sessions[day - after]
                if start // DAY == after
            )
            for day in range(7)
        ]
        self._hours = [merge(day) for day in hours]
        self._special: dict[int, list[Interval]] = {}
        for special in calendar.special_sessions:
            self._special.setdefault(day_of(special.date), []).extend(special.hours.pieces(calendar.breaks))
        self._cuts = _cuts(calendar)
        self._exception_days = sorted(self._cuts)
        self.last_exception: int | None = self._exception_days[-1] if self._exception_days else 0
        ends = [end for pieces in (*self._weekly, *self._special.values()) for _, end in pieces]
        self.reach = (max(ends, default=0) + DAY - 1) // DAY
        self.has_windows = bool(ends)
        self.has_hours = any(self._hours)
        self.has_rule = self.has_hours or any(self._weekly)
        # What opens on dates that exceptions touch: their own, and those whose sessions run into them.
        opened = [merge(day) for day in self._sessions]
        touched = {day for exception in self._exception_days for day in range(exception - self.reach, exception + 2)}
        found: dict[int, list[Interval]] = {day: [] for day in touched}
        for day in touched:
            for start, end in (*self._special.get(day, ()), *self._left(day, opened[weekday_of(day)])):
                # A session that an exception cuts at midnight goes on on the day after it.
                after = start // DAY
                if day + after in found:
                    found[day + after].append((start - after * DAY, end - after * DAY))
        self._exceptions = {
            day: merge(found[day])
            for exception in self._exception_days
            for day in range(exception - self.reach + 1, exception + 2)
        }

    def next_exception(self, day: int) -> int | None:
        index = bisect_left(self._exception_days, day)
        return self._exception_days[index] if index < len(self._exception_days) else None

    @property
    def covers_every_week(self) -> bool:
        windows = (
            (day * DAY + start, day * DAY + end) for day, pieces in enumerate(self._weekly) for start, end in pieces
        )
        return leaves_nothing_out(windows, self._hours)

    def hours(self, day: int) -> Sequence[Interval]:
        usual = self._hours[weekday_of(day)]
        cuts = self._cuts.get(day)
        return [piece for interval in usual for piece in subtract(interval, cuts)] if cuts else usual

    def windows(self, day: int) -> Sequence[Interval]:
        found = self._exceptions.get(day)
        return self._weekly[weekday_of(day)] if found is None else found

    def weekly_hours(self, weekday: int) -> Sequence[Interval]:
        return self._hours[weekday]

    def weekly_windows(self, weekday: int) -> Sequence[Interval]:
        return self._weekly[weekday]

    def occurrences(self, first: int, last: int) -> Iterator[Occurrence]:
        for day in range(first, last + 1):
            for start, end in (*self._special.get(day, ()), *self._left(day, self._sessions[weekday_of(day)])):
                yield Occurrence(day * DAY + start, day * DAY + end)

    def _left(self, day: int, sessions: Iterable[Interval]) -> Iterator[Interval]:
        """Return the weekly sessions of a date without its exceptions, as seconds from its midnight."""
        for start, end in sessions:
            cuts = [
                (after * DAY + a, after * DAY + b)
                for after in range((end - 1) // DAY + 1)
                for a, b in self._cuts.get(day + after, ())
            ]
            yield from subtract((start, end), cuts)


def _cuts(calendar: MarketCalendar) -> dict[int, list[Interval]]:
    """Return the spans that each date removes from the weekly sessions, in seconds from its midnight."""
    closed: dict[date, list[Interval]] = {}
    for day, close in calendar.closes_on().items():
        closed.setdefault(day, []).append((close, DAY))
    for day, opens in calendar.opens_on().items():
        closed.setdefault(day, []).append((0, opens))
    for day in (*calendar.holidays, *(special.date for special in calendar.special_sessions)):
        closed[day] = [(0, DAY)]
    return {day_of(day): merge(pieces) for day, pieces in closed.items()}


class MarketTimeline:
    """A calendar prepared for evaluation. Make it once for each calendar and keep it: it remembers."""

    def __init__(self, calendar: MarketCalendar) -> None:
        self.calendar = calendar
        self._search = Search(calendar.zone, MarketPattern(calendar), widening(calendar))

    def evaluate(self, at: datetime) -> Evaluation:
        """The state at ``at``, which must carry an offset (ValueError otherwise)."""
        return evaluate_within(self._search, self.calendar, at)

    def transitions(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, bool]]:
        """Every change after ``start`` and before ``end``, and the state from then on."""
        return changes_between(self.evaluate, start, end)

    def skipped(self, start: datetime, end: datetime) -> list[SkippedWindow]:
        """The sessions (or pieces between breaks) of which a jump of the clock in ``[start, end)`` leaves nothing.

        Hours of sessions by the hour are left out: they are what the clock shows.
        """
        return skipped_within(self._search, self.calendar, start, end)
