"""The calendar of a market on the wall clock: what is open, before any zone comes into it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime

from fivespot.schedule.evaluate import Cause, Evaluation, SkippedWindow, changes_between, skipped_windows
from fivespot.schedule.grammar import DAY, HOUR
from fivespot.schedule.intervals import Interval, instant_at, merge, seconds_after, seconds_of, subtract
from fivespot.schedule.pattern import day_of, leaves_nothing_out, weekday_of
from fivespot.schedule.rules import HourRule
from fivespot.schedule.search import Occurrence, Search

from .rules import MarketCalendar


class MarketPattern:
    """A calendar arranged by weekday and date for quick look-up (:class:`~fivespot.schedule.search.Readings`)."""

    def __init__(self, calendar: MarketCalendar) -> None:
        self._weekly: list[list[Interval]] = [[] for _ in range(7)]
        hours: list[list[Interval]] = [[] for _ in range(7)]
        for session in calendar.sessions:
            if isinstance(session, HourRule):
                for day in session.days:
                    hours[day] += [(hour * HOUR, (hour + 1) * HOUR) for hour in session.hours]
            else:
                for day in session.days:
                    self._weekly[day] += session.hours.pieces(calendar.breaks)
        self._hours = [merge(day) for day in hours]
        self._special: dict[int, list[Interval]] = {}
        for special in calendar.special_sessions:
            self._special.setdefault(day_of(special.date), []).extend(special.hours.pieces(calendar.breaks))
        self._cuts = _cuts(calendar)
        self.exception_days = sorted(self._cuts)
        ends = [end for pieces in (*self._weekly, *self._special.values()) for _, end in pieces]
        self.reach = (max(ends, default=0) + DAY - 1) // DAY
        self.has_windows = bool(ends)
        self.has_hours = any(self._hours)
        self.has_rule = self.has_hours or any(self._weekly)

    @property
    def covers_every_week(self) -> bool:
        windows = (
            (day * DAY + start, day * DAY + end) for day, pieces in enumerate(self._weekly) for start, end in pieces
        )
        return leaves_nothing_out(windows, self._hours)

    def hours(self, day: int) -> list[Interval]:
        usual = self._hours[weekday_of(day)]
        cuts = self._cuts.get(day)
        return [piece for interval in usual for piece in subtract(interval, cuts)] if cuts else usual

    def windows(self, first: int, last: int) -> Iterator[Interval]:
        for day in range(first - self.reach, last + 1):
            yield from self._on(day)

    def occurrences(self, first: int, last: int) -> Iterator[Occurrence]:
        for day in range(first, last + 1):
            for start, end in self._on(day):
                yield Occurrence(start, end)

    def _on(self, day: int) -> Iterator[Interval]:
        """Return the sessions that open on a date, as readings."""
        midnight = day * DAY
        for start, end in self._special.get(day, ()):
            yield midnight + start, midnight + end
        for start, end in self._weekly[weekday_of(day)]:
            cuts = [
                (touched * DAY + a, touched * DAY + b)
                for touched in range(day, day + (end - 1) // DAY + 1)
                for a, b in self._cuts.get(touched, ())
            ]
            yield from subtract((midnight + start, midnight + end), cuts)


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
        self._search = Search(calendar.zone, MarketPattern(calendar))

    def evaluate(self, at: datetime) -> Evaluation:
        """The state at ``at``, which must carry an offset (ValueError otherwise)."""
        segment = self._search.find(seconds_of(at))
        return Evaluation(segment.active, instant_at(segment.end), Cause.OPEN if segment.active else Cause.CLOSED)

    def transitions(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, bool]]:
        """Every change after ``start`` and before ``end``, and the state from then on."""
        return changes_between(self.evaluate, start, end)

    def skipped(self, start: datetime, end: datetime) -> list[SkippedWindow]:
        """The sessions (or pieces between breaks) of which a jump of the clock in ``[start, end)`` leaves nothing.

        Hours of sessions by the hour are left out: they are what the clock shows.
        """
        return skipped_windows(self._search.skipped(seconds_after(start), seconds_after(end)))
