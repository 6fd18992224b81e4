"""Finds the next change of what a wall-clock pattern leaves open in a zone, exactly and without scanning.

However far ahead the change is: away from changes of the zone and from exception dates, the set of active instants
repeats every week to the second. So when one whole undisturbed week brings no change, nothing changes until the next
disturbance, and only its surroundings are looked at. A change of the zone whose like (same moment of the week, same
offsets) has already brought none brings none, and after 400 years everything is a repetition. When nothing is left to
disturb, there is no next change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .civil import CYCLE, FAR, Zone
from .grammar import DAY
from .intervals import LAST, Interval, clip, merge, open_earlier

WEEK = 7 * DAY

# A clock put back reads what it has read before for as long as it was put back: at most a day (Alaska in 1867,
# Kwajalein in 1969), with room to spare.
_HOLD = 2 * DAY


class Occurrence(NamedTuple):
    """One window on one date, as written: where it starts and ends on the wall clock."""

    start: int
    end: int


class Readings(Protocol):
    """The open windows on the wall clock, before any zone is applied.

    Readings are seconds from 1970 on the wall clock, as in :mod:`.civil`; days are counted from 1 January 1970. It is
    the same every week, but for what begins on some dates (``exception_days``) and what these cut off themselves.
    """

    exception_days: list[int]
    """The dates that are not like their weekday, sorted."""
    reach: int
    """How many days, its own included, a window can touch."""
    has_windows: bool
    """Whether there are windows at all: boundaries, each of which fires once."""
    has_hours: bool
    """Whether there are hours at all: open whenever the wall clock shows them."""
    has_rule: bool
    """Whether anything is open in a week without exceptions."""

    @property
    def covers_every_week(self) -> bool:
        """Whether the windows alone, or the hours alone, leave no moment of an ordinary week out."""
        ...

    def hours(self, day: int) -> list[Interval]:
        """The open hours of one date, as seconds from its midnight."""
        ...

    def windows(self, first: int, last: int) -> Iterator[Interval]:
        """Return the windows that open on the dates ``first`` to ``last``, unordered, overlapping, with others."""
        ...

    def occurrences(self, first: int, last: int) -> Iterator[Occurrence]:
        """Every window that starts on the dates ``first`` to ``last``, whole, as written."""
        ...


@dataclass(frozen=True)
class Segment:
    """A period without a change, from an instant somewhere in it to its end (``FAR``: it has none)."""

    start: int
    end: int
    active: bool


class Search:
    """A pattern read in a zone: what is active, and until when. It remembers what it found last.

    ``lead`` is by how many seconds each opening of the merged windows moves earlier.
    """

    def __init__(self, zone: Zone, pattern: Readings, lead: int = 0) -> None:
        self._zone = zone
        self._pattern = pattern
        self._lead = lead
        # Without a weekly rule there is nothing that a change of the zone could move, and a rule that leaves no
        # moment out is open on both sides of any change: only exceptions disturb these two. (It leaves none out in any
        # zone: both clocks that windows and hours are read from always show something.)
        self._zone_disturbs = pattern.has_rule and not pattern.covers_every_week
        self._segment = Segment(0, 0, False)

    def skipped(self, start: int, end: int) -> list[tuple[int, Occurrence]]:
        """The windows that a jump of the clock in ``[start, end)`` leaves nothing of, each with its jump.

        Hours of the hour grammar are left out: they are what the clock shows.
        """
        found: set[tuple[int, Occurrence]] = set()
        if not self._pattern.has_windows:
            return []
        for jump, before, after in self._zone.changes(start, end):
            if after < before:
                continue
            first, last = (jump + before) // DAY - 1, (jump + after) // DAY
            for occurrence in self._pattern.occurrences(first, last):
                if self._zone.instant_of(occurrence.start) == self._zone.instant_of(occurrence.end) == jump:
                    found.add((jump, occurrence))
        return sorted(found)

    def find(self, at: int) -> Segment:
        """The period without a change around ``at``."""
        known = self._segment
        if not known.start <= at < known.end:
            self._segment = known = self.search(at)
        return known

    def search(self, at: int) -> Segment:
        """As :meth:`find`, without the memory; the period begins with ``at``."""
        first = self.active(at, at + DAY)
        active = bool(first) and first[0][0] == at
        end = self._edge(first, at, at + DAY, active)
        if end is not None:
            return Segment(at, end, active)

        harmless: set[tuple[int, int, int]] = set()
        now = at + DAY
        while now <= LAST:
            end = self._edge(self.active(now, now + WEEK), now, now + WEEK, active)
            if end is not None:
                return Segment(at, end, active)
            if (disturbed := self._disturbance(now)) < now + WEEK:
                now += WEEK
            else:  # an undisturbed week stands for all up to the next disturbance
                now = self._skip_harmless(disturbed, harmless)
        return Segment(at, FAR, active)

    @staticmethod
    def _edge(intervals: list[Interval], start: int, end: int, active: bool) -> int | None:
        """Return the first instant in ``[start, end)`` at which the state differs from ``active``."""
        if not active:
            return intervals[0][0] if intervals else None
        if not intervals or intervals[0][0] > start:
            return start
        return intervals[0][1] if intervals[0][1] < end else None

    def active(self, start: int, end: int) -> list[Interval]:
        """The active instants in ``[start, end)``, sorted and disjoint."""
        until = end + self._lead
        found: list[Interval] = []
        pattern, zone = self._pattern, self._zone
        era = zone.era(start)
        if pattern.has_windows:
            first = (start + era.offset) // DAY
            # The clock that never goes back may be up to a day ahead of the wall clock.
            last = (until + zone.era(until).offset) // DAY + 2
            if era.start <= start - _HOLD and until <= era.end:  # the usual case: one offset for all of it
                offset = era.offset
                found = [(a - offset, b - offset) for a, b in pattern.windows(first, last)]
            else:
                instant_of = zone.instant_of
                found = [(instant_of(a), instant_of(b)) for a, b in pattern.windows(first, last)]
            found = clip(found, start, until)
        if pattern.has_hours:
            self._add_hours(found, start, until)
        merged = merge(found)
        return clip(open_earlier(merged, self._lead), start, end) if self._lead else merged

    def _add_hours(self, found: list[Interval], start: int, end: int) -> None:
        while start < end:
            era = self._zone.era(start)
            stop = min(era.end, end)
            for day in range((start + era.offset) // DAY, (stop + era.offset - 1) // DAY + 1):
                midnight = day * DAY - era.offset
                for opens, closes in self._pattern.hours(day):
                    found.append((max(midnight + opens, start), min(midnight + closes, stop)))
            start = stop

    def _disturbance(self, at: int) -> int:
        """Return the begin of the first period not over at ``at`` in which weeks may differ from others."""
        return min(self._zone_disturbance(at), self._exception_disturbance(at))

    def _zone_disturbance(self, at: int) -> int:
        if not self._zone_disturbs:
            return FAR
        change = self._zone.era(at - _HOLD).end
        return FAR if change == FAR else change - self._lead

    def _exception_disturbance(self, at: int) -> int:
        days = self._pattern.exception_days
        index = bisect_right(days, (at - _HOLD) // DAY - self._pattern.reach - 1)
        return days[index] * DAY - _HOLD - self._lead if index < len(days) else FAR

    def _skip_harmless(self, disturbed: int, harmless: set[tuple[int, int, int]]) -> int:
        """The start of the first disturbance from ``disturbed`` on of which no like is in ``harmless``.

        Whoever calls returns as soon as a change is found, so what is in ``harmless`` has brought none.
        """
        days = self._pattern.exception_days
        passed = bisect_right(days, disturbed // DAY)
        # Once the zone has settled, and no exception hides a change of it, it shows all it has in one cycle.
        horizon = max(disturbed, self._zone.settled, days[passed - 1] * DAY if passed else 0) + CYCLE + 4 * WEEK
        while disturbed <= horizon and disturbed < FAR:
            change = disturbed + self._lead
            era = self._zone.era(change - 1)
            if not self._zone_disturbs or era.end != change:
                return disturbed  # an exception
            following = self._disturbance(change + _HOLD)
            if following < change + _HOLD or self._exception_disturbance(disturbed) <= change + _HOLD:
                return disturbed  # two disturbances at once are like no other
            kind = ((change + era.offset) % WEEK, era.offset, self._zone.era(change).offset)
            if kind not in harmless:
                harmless.add(kind)
                return disturbed
            disturbed = following
        return self._exception_disturbance(disturbed)
