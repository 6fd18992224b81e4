"""A timeline by the days of a zone: the data of tables and pictures.

A day consists of the instants at which the wall clock shows its date: one on which the clock goes back has 25 hours,
and an hour that the clock skips belongs to no day.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final

from fivespot.cli.timeline.forecast import Interval, Period
from fivespot.schedule import Zone

__all__ = ["ClockChange", "Day", "DaySpan", "Piece", "days_of", "total"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Piece:
    """Instants of a day that share an offset from UTC.

    :param start: instant, inclusive.
    :param end: instant, exclusive.
    :param offset: seconds east of UTC.
    :param reads: the wall clock at ``start``, in seconds from the day's midnight.
    """

    start: datetime
    end: datetime
    offset: int
    reads: float

    def reading(self, instant: datetime) -> float:
        """Return the wall clock's reading at an instant, in seconds from the day's midnight."""
        return self.reads + (instant - self.start) / _SECOND


@dataclass(frozen=True, slots=True)
class DaySpan:
    """An active time within one day.

    :param opens: the wall clock at its start, in seconds from midnight.
    :param closes: the wall clock at its end; 86400 for midnight.
    :param open_again: the clock shows the time of the start twice that day, and this is the second time.
    :param close_again: the same of the end.
    """

    opens: float
    closes: float
    length: timedelta
    open_again: bool = False
    close_again: bool = False


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of the clock, forward or back.

    :param shows: seconds from midnight: the reading without the change, and the actual one.
    :param offsets: seconds east of UTC before and after.
    """

    at: datetime
    shows: tuple[float, float]
    offsets: tuple[int, int]

    @property
    def forward(self) -> bool:
        return self.offsets[1] > self.offsets[0]


@dataclass(slots=True)
class Day:
    """One date in the zone, or the part of it that is within the period."""

    date: date
    pieces: list[Piece] = field(default_factory=list)
    spans: list[DaySpan] = field(default_factory=list)
    # Per piece, so that a picture draws a repeated hour once and omits a skipped one.
    active: list[tuple[Piece, datetime, datetime]] = field(default_factory=list)
    clock_changes: list[ClockChange] = field(default_factory=list)

    @property
    def length(self) -> timedelta:
        """Return the length of the day within the period."""
        return total((piece.start, piece.end) for piece in self.pieces)

    @property
    def active_time(self) -> timedelta:
        return total((start, end) for _, start, end in self.active)

    @property
    def plain(self) -> bool:
        """Whether the day has 24 hours with one verdict."""
        whole = self.length == timedelta(days=1) and not self.clock_changes
        return whole and self.active_time in (timedelta(0), timedelta(days=1))

    def share(self, opens: float, closes: float) -> float | None:
        """Return the active share of the time with such readings of the clock; None if there is no such time."""
        there, active = 0.0, 0.0
        for piece in self.pieces:
            there += _overlap(opens, closes, piece.reads, piece.reading(piece.end))
        for piece, start, end in self.active:
            active += _overlap(opens, closes, piece.reading(start), piece.reading(end))
        return active / there if there else None


def days_of(zone: Zone, period: Period, intervals: Sequence[Interval]) -> list[Day]:
    """Return the days of a period in a zone, each with its part of the intervals."""
    days: dict[date, Day] = {}
    changes: list[ClockChange] = []
    for start, end, offset, change in _eras(zone, period):
        if change is not None:
            changes.append(change)
        for day, piece in _split(start, end, offset):
            days.setdefault(day, Day(day)).pieces.append(piece)
    for change in changes:
        shown = _date(change.at, change.offsets[1])
        midnight = _midnight(shown)
        before, after = ((change.at + timedelta(seconds=o) - midnight) / _SECOND for o in change.offsets)
        days.setdefault(shown, Day(shown)).clock_changes.append(ClockChange(change.at, (before, after), change.offsets))
    ordered = [days[day] for day in sorted(days)]
    starts, ends = [interval.start for interval in intervals], [interval.end for interval in intervals]
    for found in ordered:
        if found.pieces:
            first, last = found.pieces[0].start, found.pieces[-1].end
            _fill(found, intervals[bisect_right(ends, first) : bisect_left(starts, last)])
    return ordered


def total(spans: Iterable[tuple[datetime, datetime]]) -> timedelta:
    """Return the total length of spans."""
    return sum((end - start for start, end in spans), timedelta(0))


def _eras(zone: Zone, period: Period) -> Iterator[tuple[datetime, datetime, int, ClockChange | None]]:
    """Yield the parts of a period between changes of the clock, each with the change that begins it."""
    start, change = period.start, None
    while start < period.end:
        era = zone.era((start - _EPOCH) // _SECOND)
        beyond = era.end >= (period.end - _EPOCH) / _SECOND
        end = period.end if beyond else _EPOCH + timedelta(seconds=era.end)
        yield start, end, era.offset, change
        if not beyond:
            change = ClockChange(end, (0, 0), (era.offset, zone.era(era.end).offset))
        start = end


def _split(start: datetime, end: datetime, offset: int) -> Iterator[tuple[date, Piece]]:
    """Split a time of one offset at midnights."""
    while start < end:
        day = _date(start, offset)
        midnight = _midnight(day) - timedelta(seconds=offset)
        stop = min(end, midnight + timedelta(days=1))
        yield day, Piece(start, stop, offset, (start - midnight) / _SECOND)
        start = stop


def _fill(day: Day, intervals: Sequence[Interval]) -> None:
    for interval in intervals:
        parts = [
            (piece, max(piece.start, interval.start), min(piece.end, interval.end))
            for piece in day.pieces
            if piece.start < interval.end and interval.start < piece.end
        ]
        day.active += parts
        run: list[tuple[Piece, datetime, datetime]] = []
        for part in parts:
            # If the clock goes back across midnight, the hour after midnight occurs twice: then there are two parts.
            if run and run[-1][2] != part[1]:
                day.spans.append(_span(day, run))
                run = []
            run.append(part)
        if run:
            day.spans.append(_span(day, run))


def _span(day: Day, parts: list[tuple[Piece, datetime, datetime]]) -> DaySpan:
    (opening, start, _), (closing, _, end) = parts[0], parts[-1]
    opens, closes = opening.reading(start), closing.reading(end)
    earlier = day.pieces[: day.pieces.index(opening)]
    open_again = any(piece.reads <= opens < piece.reading(piece.end) for piece in earlier)
    earlier = day.pieces[: day.pieces.index(closing)]
    close_again = any(piece.reads <= closes < piece.reading(piece.end) for piece in earlier)
    return DaySpan(opens, closes, total((a, b) for _, a, b in parts), open_again, close_again)


def _date(instant: datetime, offset: int) -> date:
    return (instant + timedelta(seconds=offset)).date()


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _overlap(a: float, b: float, c: float, d: float) -> float:
    return max(0.0, min(b, d) - max(a, c))
