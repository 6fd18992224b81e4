"""The weekly rule with its exceptions, on the wall clock: what is open, before any zone comes into it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta

from .grammar import DAY, HOUR
from .intervals import Interval, merge, subtract
from .rules import SpanWindow, WeeklySchedule, window_length
from .search import WEEK, Occurrence

_EPOCH = date(1970, 1, 1)


def day_of(day: date) -> int:
    """Days from 1 January 1970."""
    return (day - _EPOCH).days


def date_of(day: int) -> date:
    """The date so many days from 1 January 1970. Raises OverflowError outside of the years 1 to 9999."""
    return _EPOCH + timedelta(days=day)


def weekday_of(day: int) -> int:
    """The weekday, Monday 0, of the date so many days from 1 January 1970, which was a Thursday."""
    return (day + 3) % 7


def leaves_nothing_out(windows: Iterable[Interval], hours: Sequence[Sequence[Interval]]) -> bool:
    """Whether windows of a week (in seconds from its Monday), or else the hours of each weekday, cover all of it."""
    merged = merge((start + shift, end + shift) for start, end in windows for shift in (-WEEK, 0, WEEK))
    return all(list(day) == [(0, DAY)] for day in hours) or any(start <= 0 and end >= WEEK for start, end in merged)


class Pattern:
    """The rules of a schedule, arranged by weekday for quick look-up (:class:`~.search.Readings`)."""

    def __init__(self, schedule: WeeklySchedule) -> None:
        daily: list[list[tuple[int, int]]] = [[] for _ in range(7)]
        spans: list[list[tuple[int, int]]] = [[] for _ in range(7)]
        for window in schedule.windows:
            if isinstance(window, SpanWindow):
                spans[window.from_day].append((window.from_time, window.from_time + window.length))
            else:
                for day in window.days:
                    daily[day].append((window.start, window.start + window.length))
        self._daily = daily
        self._spans = spans
        self._hours: list[list[Interval]] = [[] for _ in range(7)]
        if schedule.hours:
            open_hours = merge((hour * HOUR, (hour + 1) * HOUR) for hour in schedule.hours.hours)
            for day in schedule.hours.days:
                self._hours[day] = open_hours
        self._exceptions = {
            day_of(exception.date): [(start, start + window_length(start, end)) for start, end in exception.windows]
            for exception in schedule.exceptions
        }
        self.exception_days = sorted(self._exceptions)
        weekly = [*self._daily, *self._spans]
        ends = [end for day in [*weekly, *self._exceptions.values()] for _, end in day]
        self.reach = (max(ends, default=0) + DAY - 1) // DAY
        self.has_windows = bool(ends)
        self.has_hours = any(self._hours)
        self.has_rule = self.has_hours or any(weekly)

    @property
    def covers_every_week(self) -> bool:
        return leaves_nothing_out(
            (
                (day * DAY + start, day * DAY + end)
                for rules in (self._daily, self._spans)
                for day, opens in enumerate(rules)
                for start, end in opens
            ),
            self._hours,
        )

    def hours(self, day: int) -> list[Interval]:
        return [] if day in self._exceptions else self._hours[weekday_of(day)]

    def windows(self, first: int, last: int) -> Iterator[Interval]:
        for day, start, end, is_span in self._written(first - self.reach, last):
            if not is_span or not self.exception_days:
                yield day * DAY + start, day * DAY + end
                continue
            low = bisect_left(self.exception_days, day)
            high = bisect_right(self.exception_days, day + (end - 1) // DAY)
            cuts = [(cut * DAY, (cut + 1) * DAY) for cut in self.exception_days[low:high]]
            yield from subtract((day * DAY + start, day * DAY + end), cuts)

    def occurrences(self, first: int, last: int) -> Iterator[Occurrence]:
        for day, start, end, is_span in self._written(first, last):
            if not (is_span and day in self._exceptions):
                yield Occurrence(day * DAY + start, day * DAY + end)

    def _written(self, first: int, last: int) -> Iterator[tuple[int, int, int, bool]]:
        for day in range(first, last + 1):
            weekday = weekday_of(day)
            for start, end in self._exceptions.get(day, self._daily[weekday]):
                yield day, start, end, False
            for start, end in self._spans[weekday]:
                yield day, start, end, True
