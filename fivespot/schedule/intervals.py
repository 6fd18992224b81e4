"""Intervals of instants in whole seconds from 1970 in UTC, and conversions from and to datetimes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SECOND = timedelta(seconds=1)

LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _SECOND
"""The last second that a datetime can hold."""


def seconds_of(at: datetime) -> int:
    """The second that ``at`` lies in. Raises ValueError without an offset from UTC."""
    if at.tzinfo is None:
        raise ValueError("an instant needs an offset from UTC")
    return (at - _EPOCH) // _SECOND


def seconds_after(at: datetime) -> int:
    """The first whole second that is not before ``at``."""
    return -((_EPOCH - at) // _SECOND)


def instant_at(seconds: int) -> datetime | None:
    """The instant in UTC; None after the year 9999."""
    return _EPOCH + timedelta(seconds=seconds) if seconds <= LAST else None


Interval = tuple[int, int]


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """The union, sorted and disjoint; intervals that overlap or touch become one, empty ones vanish."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def clip(intervals: Iterable[Interval], start: int, end: int) -> list[Interval]:
    """Return the parts within ``[start, end)``."""
    return [(max(a, start), min(b, end)) for a, b in intervals if max(a, start) < min(b, end)]


def subtract(interval: Interval, cuts: Sequence[Interval]) -> list[Interval]:
    """Return ``interval`` without ``cuts``, which are sorted and disjoint."""
    rest: list[Interval] = []
    start, end = interval
    for cut_start, cut_end in cuts:
        if cut_end <= start or cut_start >= end:
            continue
        if cut_start > start:
            rest.append((start, cut_start))
        start = cut_end
    if start < end:
        rest.append((start, end))
    return rest


def open_earlier(intervals: Iterable[Interval], lead: int) -> list[Interval]:
    """Each interval with its start moved ``lead`` seconds earlier, merged again."""
    return merge((start - lead, end) for start, end in intervals)
