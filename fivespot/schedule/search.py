"""Find the next change of a wall-clock pattern in a zone, exactly and at a cost bounded by the pattern's size.

However far ahead the change is: while the zone has one offset, dates that no exception touches repeat every week to the
second, so only exceptions and the surroundings of a change of the zone are examined. A change of the zone of a kind
(same moment of the week, same offsets) that has brought no change of state brings none again, and after 400 years
everything is a repetition. When nothing is left that could cause a change, there is none.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .civil import CYCLE, FAR, Zone
from .grammar import DAY
from .intervals import LAST, Interval, clip, merge, open_earlier

WEEK = 7 * DAY

# A clock that is set back repeats readings for as long as it was set back: at most a day (Alaska in 1867, Kwajalein
# in 1969), with a margin.
_HOLD = 2 * DAY

_LONGEST_OPEN = 28 * 1461 * DAY // 4
"""How long it is open at least when what recurs closes every gap for so long: 28 years, after which weekdays and dates
fall together again. Longer is taken for ever."""

_KEPT = 64
"""The number of cached periods: evaluating overrides needs up to two for each of them."""


class Occurrence(NamedTuple):
    """One window on one date, as written: where it starts and ends on the wall clock."""

    start: int
    end: int


class Readings(Protocol):
    """A pattern on the wall clock, independent of any zone.

    Readings are seconds from 1970 on the wall clock, as in :mod:`.civil`; days are counted from 1 January 1970. The
    pattern is the same every week, except for what begins on some dates (exceptions) and what these cut off.
    """

    last_exception: int | None
    """The last date that may differ from its weekday; 0 if none does, None if they go on for ever."""
    reach: int
    """The number of days, its own included, that a window can touch."""
    has_windows: bool
    """Whether there are windows at all: boundaries, each of which fires once."""
    has_hours: bool
    """Whether there are hours at all: open whenever the wall clock shows them."""
    has_rule: bool
    """Whether anything is open in a week without exceptions."""

    def next_exception(self, day: int) -> int | None:
        """The first date from ``day`` on that may differ from its weekday."""
        ...

    @property
    def covers_every_week(self) -> bool:
        """Whether the windows alone, or the hours alone, cover an ordinary week completely."""
        ...

    def hours(self, day: int) -> Sequence[Interval]:
        """The open hours of one date, as seconds from its midnight; sorted and disjoint."""
        ...

    def windows(self, day: int) -> Sequence[Interval]:
        """The windows that open on one date, as seconds from its midnight; sorted and disjoint, none opens after it."""
        ...

    def weekly_hours(self, weekday: int) -> Sequence[Interval]:
        """As :meth:`hours`, of a date that no exception touches."""
        ...

    def weekly_windows(self, weekday: int) -> Sequence[Interval]:
        """As :meth:`windows`, of a date that no exception touches."""
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
    """A pattern applied to a zone: finds active periods, and caches them.

    :param lead: by how many seconds each opening of the merged windows moves earlier.
    :ivar work: intervals examined so far, the measure of what a search costs.
    """

    def __init__(self, zone: Zone, pattern: Readings, lead: int = 0) -> None:
        self._zone = zone
        self._pattern = pattern
        self._lead = lead
        # Without a weekly rule there is nothing that a change of the zone could move, and a rule that leaves no
        # moment out is open on both sides of any change: only exceptions disturb these two. (It leaves none out in any
        # zone: both clocks that windows and hours are read from always show something.)
        self._zone_disturbs = pattern.has_rule and not pattern.covers_every_week
        self._known: list[Segment] = []
        self.work = 0
        self._stays_open = self._week_without_gap()

    def skipped(self, start: int, end: int) -> list[tuple[int, Occurrence]]:
        """Yield the windows that lie wholly within a jump of the clock in ``[start, end)``, each with its jump.

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
                self.work += 1
                if self._zone.instant_of(occurrence.start) == self._zone.instant_of(occurrence.end) == jump:
                    found.add((jump, occurrence))
        return sorted(found)

    def find(self, at: int) -> Segment:
        """The period without a change around ``at``."""
        index = bisect_right(self._known, at, key=_start)
        if index and at < self._known[index - 1].end:
            return self._known[index - 1]
        found = self.search(at)
        following = self._known[index] if index < len(self._known) else None
        if following is not None and following.start < found.end:
            self._known[index] = found  # the same period, known from an earlier instant on
        else:
            if len(self._known) >= _KEPT:
                self._known.pop(0 if index else -1)
            insort(self._known, found, key=_start)
        return found

    def search(self, at: int) -> Segment:
        """As :meth:`find`; the period begins with ``at``, and only periods after it are looked up."""
        first = self.active(at, at + DAY)
        active = bool(first) and first[0][0] == at
        end = self._edge(first, at, at + DAY, active)
        if end is not None:
            return Segment(at, end, active)

        # Once the zone has settled, and no exception hides a change of it, it shows all it has in one cycle.
        last = self._pattern.last_exception
        horizon = max(at, self._zone.settled, last * DAY if last is not None else 0) + CYCLE + 4 * WEEK
        if last is None and active:
            # Exceptions that go on for ever are gone through one by one while it stays open.
            horizon = at + _LONGEST_OPEN
        harmless: set[tuple[int, int, int]] = set()
        now = at + DAY
        while (now := self._quiet_until(now, active)) <= min(LAST, horizon):
            if (known := self._known_around(now)) is not None and known.active is active:
                return Segment(at, known.end, active)
            over, kind = self._zone_change(now)
            if kind is not None and (kind in harmless or not self._zone_disturbs):
                now = over
                continue
            # Several days cost hardly more than one, and hold the edge of whatever stopped the quiet period.
            until = max(now + 3 * DAY, over)
            end = self._edge(self.active(now, until), now, until, active)
            if end is not None:
                return Segment(at, end, active)
            if kind is not None:
                harmless.add(kind)
            now = until
        return Segment(at, FAR, active)

    @staticmethod
    def _edge(intervals: list[Interval], start: int, end: int, active: bool) -> int | None:
        """Return the first instant in ``[start, end)`` at which the state differs from ``active``."""
        if not active:
            return intervals[0][0] if intervals else None
        if not intervals or intervals[0][0] > start:
            return start
        return intervals[0][1] if intervals[0][1] < end else None

    def _known_around(self, at: int) -> Segment | None:
        index = bisect_right(self._known, at, key=_start)
        return self._known[index - 1] if index and at < self._known[index - 1].end else None

    # Exact search, in any zone
    # ----------------------------------------------------------------------------------------

    def active(self, start: int, end: int) -> list[Interval]:
        """The active instants in ``[start, end)``, sorted and disjoint."""
        until = end + self._lead
        found: list[Interval] = []
        pattern, zone = self._pattern, self._zone
        era = zone.era(start)
        if pattern.has_windows:
            first = (start + era.offset) // DAY - pattern.reach
            # The clock that never goes back may be up to a day ahead of the wall clock.
            last = (until + zone.era(until).offset) // DAY + 2
            for day in range(first, last + 1):
                midnight = day * DAY - era.offset
                if midnight >= era.end:
                    era = zone.era(midnight)
                    midnight = day * DAY - era.offset
                # Where the zone keeps its offset, local times and instants are a fixed distance apart.
                if era.start <= midnight - _HOLD and midnight + pattern.reach * DAY < era.end:
                    found += [(midnight + a, midnight + b) for a, b in pattern.windows(day)]
                else:
                    written = day * DAY
                    instant_of = zone.instant_of
                    found += [(instant_of(written + a), instant_of(written + b)) for a, b in pattern.windows(day)]
            self.work += len(found)
            found = clip(found, start, until)
        if pattern.has_hours:
            self._add_hours(found, start, until)
        merged = merge(found)
        return clip(open_earlier(merged, self._lead), start, end) if self._lead else merged

    def _add_hours(self, found: list[Interval], start: int, end: int) -> None:
        before = len(found)
        while start < end:
            era = self._zone.era(start)
            stop = min(era.end, end)
            for day in range((start + era.offset) // DAY, (stop + era.offset - 1) // DAY + 1):
                midnight = day * DAY - era.offset
                for opens, closes in self._pattern.hours(day):
                    found.append((max(midnight + opens, start), min(midnight + closes, stop)))
            start = stop
        self.work += len(found) - before

    # Fast search, while the zone has one offset
    # ----------------------------------------------------------------------

    def _quiet_until(self, now: int, active: bool) -> int:
        """An instant up to which the state stays ``active``, which it is at ``now``.

        Often it is the next change, else the place from which on :meth:`active` must tell: the surroundings of a change
        of the zone. Within one offset local times and instants are a fixed distance apart, so dates are gone through
        one by one, and those that no exception touches are passed over.
        """
        era = self._zone.era(now)
        limit = era.end if era.end == FAR else era.end - _HOLD - self._lead
        if now < era.start + _HOLD or limit <= now:
            return now
        reading = now + era.offset
        end = limit if limit == FAR else limit + era.offset
        found = self._open_until(reading, end) if active else self._closed_until(reading, end)
        return FAR if found >= FAR else max(found - era.offset, now)

    def _closed_until(self, reading: int, limit: int) -> int:
        """The first opening after ``reading``, at which nothing is open; the limit if there is none before it."""
        day = reading // DAY
        while day * DAY - self._lead < limit:
            if not self._pattern.has_rule:
                following = self._exception_from(day)
                if following is None:
                    return limit
                day = max(day, following)
            for start, closing in self._pieces(day):
                if day * DAY + closing > reading:
                    return min(max(day * DAY + start - self._lead, reading), limit)
            day += 1
        return limit

    def _open_until(self, reading: int, limit: int) -> int:
        """The first closing after ``reading``, at which it is open; the limit if there is none before it."""
        lead, day = self._lead, reading // DAY
        covered = self._covered(day, reading)
        while day * DAY < limit:
            if self._stays_open and self._is_ordinary(day - 2, day):
                # Ordinary dates in a row stay open until an exception touches one.
                following = self._exception_from(day)
                if following is None:
                    return limit
                later = following - self._pattern.reach
                if later > day:
                    day = later
                    covered = self._covered(day, day * DAY)
                    continue
            for start, end in self._pieces(day):
                if day * DAY + start - lead > covered:
                    return min(covered, limit)
                covered = max(covered, day * DAY + end)
            day += 1
            if day * DAY - lead > covered:
                return min(covered, limit)
        return min(covered, limit)

    def _covered(self, day: int, reading: int) -> int:
        """Until when it is open at ``reading`` by windows of the dates before ``day``."""
        before = range(day - self._pattern.reach + 1, day)
        ends = (each * DAY + end for each in before for _, end in self._pattern.windows(each))
        return max(ends, default=reading) if self._pattern.reach > 1 else reading

    def _pieces(self, day: int) -> Sequence[Interval]:
        """Windows and hours that open on a date, by their start."""
        windows, hours = self._pattern.windows(day), self._pattern.hours(day)
        self.work += len(windows) + len(hours) + 1
        return sorted((*windows, *hours)) if windows and hours else windows or hours

    def _is_ordinary(self, first: int, last: int) -> bool:
        """Whether what opens on these dates is what always opens on their weekdays."""
        following = self._exception_from(first)
        return following is None or following > last + self._pattern.reach

    def _exception_from(self, day: int) -> int | None:
        return self._pattern.next_exception(day)

    def _week_without_gap(self) -> bool:
        """Whether weeks without exceptions are open throughout, lead time included."""
        pattern, covered = self._pattern, 0
        for day in range(4 * 7):
            pieces = sorted((*pattern.weekly_windows(day % 7), *pattern.weekly_hours(day % 7)))
            self.work += len(pieces) + 1
            for start, end in pieces:
                # Two weeks are enough to know what runs into a day.
                if day >= 2 * 7 and day * DAY + start - self._lead > covered:
                    return False
                covered = max(covered, day * DAY + end)
        return covered + self._lead >= 4 * WEEK

    # Changes of the zone -----------------------------------------------------------------------------------------

    def _zone_change(self, now: int) -> tuple[int, tuple[int, int, int] | None]:
        """The change of the zone that disturbs the days from ``now`` on: when its effects are over, and its kind.

        Changes of one kind (same moment of the week, same offsets) have the same effects. There is no kind where
        something else disturbs the same days: another change, or an exception.
        """
        era = self._zone.era(now)
        change = era.end
        if change == FAR or now < change - _HOLD - self._lead:
            return now, None
        following = self._zone.era(change)
        over = change + _HOLD
        alone = following.end - self._lead >= over + _HOLD and era.start <= now - _HOLD
        if not alone or self._exception_disturbance(now) <= over:
            return over, None
        return over, ((change + era.offset) % WEEK, era.offset, following.offset)

    def _exception_disturbance(self, at: int) -> int:
        """Return the beginning of the first period not over at ``at`` in which exceptions make a difference."""
        following = self._pattern.next_exception((at - _HOLD) // DAY - self._pattern.reach)
        return following * DAY - _HOLD - self._lead if following is not None else FAR


def _start(segment: Segment) -> int:
    return segment.start
