"""The weekly rule with its exceptions on the wall clock, independent of any zone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta

from .grammar import DAY, HOUR
from .intervals import Interval, merge
from .recurrence import Recurrence
from .rules import DailyWindow, SpanWindow, WeeklySchedule, window_length
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
    """The rules of a schedule, arranged by weekday and date (:class:`~.search.Readings`).

    Spans are split at midnight, so that an exception removes the part of its own date alone. The parts are adjacent,
    and adjacent windows stay adjacent in every zone.
    """

    def __init__(self, schedule: WeeklySchedule) -> None:
        self._daily: list[list[Interval]] = [[] for _ in range(7)]
        self._spans: list[list[Interval]] = [[] for _ in range(7)]
        self._recurring: list[tuple[Recurrence, Interval]] = []
        parts: list[list[Interval]] = [[] for _ in range(7)]
        for window in schedule.windows:
            if isinstance(window, SpanWindow):
                start, end = window.from_time, window.from_time + window.length
                self._spans[window.from_day].append((start, end))
                for passed in range((end - 1) // DAY + 1):
                    part = max(start - passed * DAY, 0), min(end - passed * DAY, DAY)
                    parts[(window.from_day + passed) % 7].append(part)
            elif isinstance(window, DailyWindow):
                for day in window.days:
                    self._daily[day].append((window.start, window.start + window.length))
            elif window.recurrence.is_weekly:
                for day in window.recurrence.weekdays:
                    self._daily[day].append((window.start, window.start + window.length))
            else:
                self._recurring.append((window.recurrence, (window.start, window.start + window.length)))
        self._windows = [merge((*daily, *spans)) for daily, spans in zip(self._daily, parts, strict=True)]
        self._hours: list[list[Interval]] = [[] for _ in range(7)]
        if schedule.hours:
            open_hours = merge((hour * HOUR, (hour + 1) * HOUR) for hour in schedule.hours.hours)
            for day in schedule.hours.days:
                self._hours[day] = open_hours
        self._written = {
            day_of(exception.date): [(start, start + window_length(start, end)) for start, end in exception.windows]
            for exception in schedule.exceptions
        }
        self._exceptions = {day: merge(windows) for day, windows in self._written.items()}
        self._exception_days = sorted(self._exceptions)
        recurring = [window for _, window in self._recurring]
        ends = [end for windows in (*self._windows, *self._exceptions.values(), recurring) for _, end in windows]
        self.reach = (max(ends, default=0) + DAY - 1) // DAY
        self.has_windows = bool(ends)
        self.has_hours = any(self._hours)
        self.has_rule = self.has_hours or any(self._windows)
        # Where every week is open throughout, what recurs adds nothing, except beside a date that takes something away.
        self._recurs = bool(self._recurring) and not self.covers_every_week
        if self._recurring and not self._recurs:
            near = {day for each in self._exceptions for day in range(each - self.reach, each + 2)}
            self._exception_days = sorted({*self._exception_days, *filter(self._is_recurring, near)})
        ends_at = [each.until for each, _ in self._recurring] if self._recurs else []
        last = max([*self._exception_days, *(day_of(end) for end in ends_at if end is not None)], default=0)
        self.last_exception = None if any(end is None for end in ends_at) else last

    def next_exception(self, day: int) -> int | None:
        index = bisect_left(self._exception_days, day)
        found = self._exception_days[index : index + 1]
        if self._recurs:
            found += [following for each, _ in self._recurring if (following := each.next(day)) is not None]
        return min(found, default=None)

    def _is_recurring(self, day: int) -> bool:
        return any(each.matches(day) for each, _ in self._recurring)

    @property
    def covers_every_week(self) -> bool:
        windows = ((day * DAY + start, day * DAY + end) for day in range(7) for start, end in self._windows[day])
        return leaves_nothing_out(windows, self._hours)

    def hours(self, day: int) -> Sequence[Interval]:
        return () if day in self._exceptions else self._hours[weekday_of(day)]

    def windows(self, day: int) -> Sequence[Interval]:
        found = self._exceptions.get(day)
        if found is not None:
            return found
        usual = self._windows[weekday_of(day)]
        recurring = [window for each, window in self._recurring if each.matches(day)]
        return merge((*usual, *recurring)) if recurring else usual

    def weekly_hours(self, weekday: int) -> Sequence[Interval]:
        return self._hours[weekday]

    def weekly_windows(self, weekday: int) -> Sequence[Interval]:
        return self._windows[weekday]

    def occurrences(self, first: int, last: int) -> Iterator[Occurrence]:
        for day in range(first, last + 1):
            written = self._written.get(day)
            windows: Iterable[Interval] = written or ()
            if written is None:
                recurring = [window for each, window in self._recurring if each.matches(day)]
                windows = (*self._daily[weekday_of(day)], *self._spans[weekday_of(day)], *recurring)
            for start, end in windows:
                yield Occurrence(day * DAY + start, day * DAY + end)
