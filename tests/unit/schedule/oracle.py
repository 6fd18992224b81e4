"""A second implementation of weekly schedules, for comparison: written with ``whenever``, one instant at a time.

It shares no code and no method with the product: windows are constructed boundary by boundary from local dates,
hours are read off the local clock, and there is no search. Slow and plain on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from whenever import Date, Instant, PlainDateTime, RepeatedTime, SkippedTime, ZonedDateTime

NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEK = 7 * 1440


@dataclass(frozen=True)
class Case:
    """A schedule as numbers: days 0-6 from Monday, times in minutes from midnight."""

    zone: str
    hour_days: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    daily: tuple[tuple[frozenset[int], int, int], ...] = ()
    spans: tuple[tuple[int, int, int, int], ...] = ()
    exceptions: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()
    lead: int = 0
    """Minutes; the oracle looks for openings by the quarter of an hour."""
    lag: int = 0

    def spec(self) -> dict[str, object]:
        """The same as a custom resource's spec."""
        windows: list[object] = [
            {"days": [NAMES[day] for day in sorted(days)], "start": hhmm(start), "end": hhmm(end)}
            for days, start, end in self.daily
        ]
        windows += [
            {"from": f"{NAMES[day]} {hhmm(time)}", "until": f"{NAMES[last]} {hhmm(end)}"}
            for day, time, last, end in self.spans
        ]
        return {
            "timezone": self.zone,
            "daysOfWeek": [NAMES[day] for day in sorted(self.hour_days)],
            "hoursOfDay": [str(hour) for hour in sorted(self.hours)],
            "windows": windows,
            "exceptions": [
                {"date": day, "windows": [{"start": hhmm(start), "end": hhmm(end)} for start, end in windows]}
                for day, windows in self.exceptions
            ],
            "leadTime": f"{self.lead}m",
            "lagTime": f"{self.lag}m",
        }


def hhmm(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


@lru_cache(maxsize=100_000)
def fires(zone: str, day: Date, minutes: int) -> int:
    """Return the instant at which the boundary so many minutes after a local midnight fires, in seconds from 1970."""
    day = day.add(days=minutes // 1440)
    local = PlainDateTime(day.year, day.month, day.day, minutes % 1440 // 60, minutes % 60)
    try:
        return local.assume_tz(zone, disambiguation="raise").timestamp()
    except RepeatedTime:
        return local.assume_tz(zone, disambiguation="earlier").timestamp()
    except SkippedTime:
        early = local.assume_tz(zone, disambiguation="earlier").timestamp()
        late = local.assume_tz(zone, disambiguation="later").timestamp()
        return jump_between(zone, min(early, late), max(early, late))


def jump_between(zone: str, before: int, after: int) -> int:
    """The first instant with another offset than ``before``, known to have come at ``after``."""
    offset = local_time(zone, before).offset
    while after - before > 1:
        middle = (before + after) // 2
        if local_time(zone, middle).offset == offset:
            before = middle
        else:
            after = middle
    return after


def local_time(zone: str, at: int) -> ZonedDateTime:
    return Instant.from_timestamp(at).to_tz(zone)


@dataclass
class Oracle:
    """Says whether a case is active at an instant."""

    case: Case
    exceptions: dict[Date, tuple[tuple[int, int], ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.exceptions = {Date.parse_iso(day): windows for day, windows in self.case.exceptions}

    def active(self, at: int) -> bool:
        first, last = at - self.case.lag * 60, at + self.case.lead * 60
        if any(start <= last and end > first for start, end in self._windows(first, last)):
            return True
        quarters = range(first - first % 900 + 900, last + 1, 900)
        return bool(self.case.hours) and any(self._hour(moment) for moment in (first, *quarters))

    def _hour(self, at: int) -> bool:
        local = local_time(self.case.zone, at)
        day = local.date()
        return (
            day not in self.exceptions
            and local.hour in self.case.hours
            and day.day_of_week().value - 1 in self.case.hour_days
        )

    def _windows(self, first: int, last: int) -> list[tuple[int, int]]:
        """All windows (possibly more) that touch the time from ``first`` to ``last``; none empty."""
        zone, found = self.case.zone, []
        day = local_time(zone, first).date().subtract(days=9)
        final = local_time(zone, last).date().add(days=2)
        while day <= final:
            weekday = day.day_of_week().value - 1
            today = self.exceptions.get(day)
            if today is None:
                today = tuple((start, end) for days, start, end in self.case.daily if weekday in days)
            pieces = [(start, end if end > start else end + 1440) for start, end in today]
            for start_day, start, end_day, end in self.case.spans:
                if start_day == weekday:
                    length = ((end_day * 1440 + end) - (start_day * 1440 + start)) % WEEK or WEEK
                    pieces += self._uncut(day, start, start + length)
            for start, end in pieces:
                opens, closes = fires(zone, day, start), fires(zone, day, end)
                if opens < closes:
                    found.append((opens, closes))
            day = day.add(days=1)
        return found

    def _uncut(self, day: Date, start: int, end: int) -> list[tuple[int, int]]:
        """A span, midnight by midnight, without the dates that have an exception."""
        pieces = []
        for step in range(end // 1440 + 1):
            low, high = max(start, step * 1440), min(end, (step + 1) * 1440)
            if low < high and day.add(days=step) not in self.exceptions:
                pieces.append((low, high))
        return pieces
