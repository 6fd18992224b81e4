"""The calendar of a market on the wall clock: what is open, before any zone comes into it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from fivespot.schedule.grammar import DAY, HOUR
from fivespot.schedule.intervals import Interval, merge, subtract
from fivespot.schedule.pattern import day_of, leaves_nothing_out, weekday_of
from fivespot.schedule.rules import HourRule
from fivespot.schedule.search import Occurrence

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
        """What opens on a date, as readings."""
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
    """What of each date is taken from the weekly sessions, in seconds from its midnight."""
    closed: dict[date, list[Interval]] = {}
    for day, close in calendar.closes_on().items():
        closed.setdefault(day, []).append((close, DAY))
    for day, opens in calendar.opens_on().items():
        closed.setdefault(day, []).append((0, opens))
    for day in (*calendar.holidays, *(special.date for special in calendar.special_sessions)):
        closed[day] = [(0, DAY)]
    return {day_of(day): merge(pieces) for day, pieces in closed.items()}
