"""Whether a schedule is active at an instant, and the exact instant of the next change.

How the next change is found without scanning, and yet however far ahead it is: away from changes of the zone and
from exception dates, the set of active instants repeats every week to the second. So when one whole undisturbed
week brings no change, nothing changes until the next disturbance, and only its surroundings are looked at. A
change of the zone whose like (same moment of the week, same offsets) has already brought none brings none, and
after 400 years everything is a repetition. When nothing is left to disturb, there is no next change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from .civil import CYCLE, FAR
from .grammar import DAY
from .intervals import Interval, clip, merge, open_earlier
from .pattern import WEEK, Pattern, date_of
from .rules import WeeklySchedule

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _SECOND

# A clock put back reads what it has read before for as long as it was put back: at most a day (Alaska in 1867,
# Kwajalein in 1969), with room to spare.
_HOLD = 2 * DAY


class Cause(StrEnum):
    """Why a schedule is or is not active."""

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
    """When ``active`` changes next, in UTC; ``None`` when it never does (or only after the year 9999)."""
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


@dataclass(frozen=True)
class _Segment:
    """A period without a change, from an instant somewhere in it to its end (``FAR``: it has none)."""

    start: int
    end: int
    active: bool


class Timeline:
    """A schedule prepared for evaluation. Make it once for each schedule and keep it: it remembers."""

    def __init__(self, schedule: WeeklySchedule) -> None:
        self.schedule = schedule
        self._zone = schedule.zone
        self._pattern = Pattern(schedule)
        self._lead = schedule.lead_time // _SECOND
        # Without a weekly rule there is nothing that a change of the zone could move, and a rule that leaves no
        # moment out is open on both sides of any change: only exceptions disturb these two.
        self._zone_disturbs = self._pattern.has_rule and not self._pattern.covers_every_week
        self._segment = _Segment(0, 0, False)

    def evaluate(self, at: datetime) -> Evaluation:
        """The state at ``at``, which must carry an offset (ValueError otherwise)."""
        if at.tzinfo is None:
            raise ValueError("an instant needs an offset from UTC")
        schedule = self.schedule
        opens, closes = schedule.valid_from, schedule.valid_until
        if not schedule.enabled:
            return Evaluation(False, None, Cause.DISABLED)
        if closes is not None and at >= closes:
            return Evaluation(False, None, Cause.NO_LONGER_VALID)
        if opens is not None and at < opens:
            segment = self._find(_seconds(opens))
            first = opens.astimezone(UTC) if segment.active else _instant(segment.end)
            return Evaluation(False, _before(first, closes), Cause.NOT_YET_VALID)
        segment = self._find(_seconds(at))
        until = _instant(segment.end)
        if not segment.active:
            return Evaluation(False, _before(until, closes), Cause.CLOSED)
        if closes is not None and (until is None or until > closes):
            until = closes.astimezone(UTC)
        return Evaluation(True, until, Cause.OPEN)

    def transitions(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, bool]]:
        """Every change after ``start`` and before ``end``, and the state from then on."""
        state = self.evaluate(start)
        while state.until is not None and state.until < end:
            at = state.until
            state = self.evaluate(at)
            yield at, state.active

    def skipped(self, start: datetime, end: datetime) -> list[SkippedWindow]:
        """The windows that do not take place because of a jump of the clock in ``[start, end)``.

        Those of a schedule that is disabled or not valid at that instant are left out, and so are hours of the
        hour grammar, which are what the clock shows.
        """
        found: set[tuple[int, int, int]] = set()
        if not (self.schedule.enabled and self._pattern.has_windows):
            return []
        for jump, before, after in self._zone.changes(_ceiling(start), _ceiling(end)):
            if after < before:
                continue
            first, last = (jump + before) // DAY - 1, (jump + after) // DAY
            for opens, closes in self._pattern.occurrences(first, last):
                if self._zone.instant_of(opens) == self._zone.instant_of(closes) == jump:
                    found.add((jump, opens, closes))
        return [
            SkippedWindow(date_of(opens // DAY), _clock(opens), _clock(closes, end=True), at)
            for jump, opens, closes in sorted(found)
            if (at := _instant(jump)) is not None and self._is_valid(at)
        ]

    def _is_valid(self, at: datetime) -> bool:
        opens, closes = self.schedule.valid_from, self.schedule.valid_until
        return (opens is None or at >= opens) and (closes is None or at < closes)

    def _find(self, at: int) -> _Segment:
        """The period without a change around ``at``: rules, exceptions and lead time, nothing else."""
        known = self._segment
        if not known.start <= at < known.end:
            self._segment = known = self._search(at)
        return known

    def _search(self, at: int) -> _Segment:
        first = self._active(at, at + DAY)
        active = bool(first) and first[0][0] == at
        end = self._edge(first, at, at + DAY, active)
        if end is not None:
            return _Segment(at, end, active)

        harmless: set[tuple[int, int, int]] = set()
        now = at + DAY
        while now <= _LAST:
            end = self._edge(self._active(now, now + WEEK), now, now + WEEK, active)
            if end is not None:
                return _Segment(at, end, active)
            if (disturbed := self._disturbance(now)) < now + WEEK:
                now += WEEK
            else:  # an undisturbed week stands for all up to the next disturbance
                now = self._skip_harmless(disturbed, harmless)
        return _Segment(at, FAR, active)

    @staticmethod
    def _edge(intervals: list[Interval], start: int, end: int, active: bool) -> int | None:
        """Where in ``[start, end)`` the state is first another than ``active``."""
        if not active:
            return intervals[0][0] if intervals else None
        if not intervals or intervals[0][0] > start:
            return start
        return intervals[0][1] if intervals[0][1] < end else None

    def _active(self, start: int, end: int) -> list[Interval]:
        """The active instants in ``[start, end)``: rules, exceptions, merge, lead time, merge."""
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
        """When the first period that is not wholly over at ``at`` begins in which a week need not be like others."""
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


@lru_cache(maxsize=1024)
def timeline(schedule: WeeklySchedule) -> Timeline:
    """A :class:`Timeline` of the schedule; equal schedules share one while they are in use."""
    return Timeline(schedule)


def evaluate(schedule: WeeklySchedule, at: datetime) -> Evaluation:
    """The state of ``schedule`` at ``at`` and the exact instant of its next change.

    ``at`` must carry an offset (ValueError otherwise). Whoever asks often keeps a :class:`Timeline` instead.
    """
    return timeline(schedule).evaluate(at)


def transitions(schedule: WeeklySchedule, start: datetime, end: datetime) -> Iterator[tuple[datetime, bool]]:
    """Every change of ``schedule`` after ``start`` and before ``end``, and the state from then on."""
    return timeline(schedule).transitions(start, end)


def skipped(schedule: WeeklySchedule, start: datetime, end: datetime) -> list[SkippedWindow]:
    """The windows of ``schedule`` that lie wholly inside a jump of the clock in ``[start, end)``."""
    return timeline(schedule).skipped(start, end)


def _seconds(at: datetime) -> int:
    return (at - _EPOCH) // _SECOND


def _ceiling(at: datetime) -> int:
    return -((_EPOCH - at) // _SECOND)


def _instant(seconds: int) -> datetime | None:
    return _EPOCH + timedelta(seconds=seconds) if seconds <= _LAST else None


def _before(at: datetime | None, limit: datetime | None) -> datetime | None:
    return None if at is None or (limit is not None and at >= limit) else at


def _clock(reading: int, *, end: bool = False) -> str:
    minutes = reading % DAY // 60
    if end and not minutes:
        return "24:00"
    return f"{minutes // 60:02}:{minutes % 60:02}"
