"""Parses compiled time zone files (TZif) and the rule in their last line.

The format and the meaning of the last line are those of RFC 9636; the rule's syntax is that of the ``TZ``
variable in POSIX, with hours from -167 to 167. :mod:`zoneinfo` is not used because exact arithmetic needs the list of
changes, and zoneinfo only answers for single instants.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from datetime import date

_HEADER = struct.Struct(">4sc15x6I")
_EPOCH = date(1970, 1, 1).toordinal()
_END_OF_FEBRUARY = 31 + 28
_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_OFFSET = r"[+-]?[0-9]{1,3}(?::[0-9]{2}){0,2}"
_RULE = re.compile(rf"{_NAME}({_OFFSET})(?:{_NAME}({_OFFSET})?,([^,]+),([^,]+))?")
_DATE = re.compile(rf"(?:M([0-9]+)\.([0-9])\.([0-9])|(J?)([0-9]+))(?:/({_OFFSET}))?")


@dataclass(frozen=True)
class YearlyDate:
    """One of a rule's two changes, on a day that a year's number decides."""

    month: int
    """1-12 for the n-th weekday of a month; 0 for a day counted from the start of the year."""
    week: int
    """1-5, 5 being the last."""
    weekday: int
    """Sunday 0."""
    day: int
    """Days after 1 January, when ``month`` is 0."""
    counts_leap_day: bool
    """Whether 29 February is counted by ``day``."""
    time: int
    """Seconds from that day's midnight, on the wall clock before the change; may be negative or beyond a day."""

    def wall(self, year: int) -> int:
        """The wall-clock reading, in seconds as if it were UTC, at which the change comes in ``year``."""
        if self.month:
            first = date(year, self.month, 1).toordinal()
            days = first + (self.weekday - first) % 7 + 7 * (self.week - 1)
            if self.week == 5:
                following = date(year + self.month // 12, self.month % 12 + 1, 1).toordinal()
                days -= 7 if days >= following else 0
        else:
            start = date(year, 1, 1).toordinal()
            is_leap = date(year + 1, 1, 1).toordinal() - start == 366
            days = start + self.day + (is_leap and not self.counts_leap_day and self.day >= _END_OF_FEBRUARY)
        return (days - _EPOCH) * 86_400 + self.time


@dataclass(frozen=True)
class TailRule:
    """The rule of a zone after its last listed change: one offset, or two that alternate."""

    offset: int
    """Seconds east of UTC in standard time."""
    summer_offset: int = 0
    starts: YearlyDate | None = None
    ends: YearlyDate | None = None

    def changes(self, year: int) -> list[tuple[int, int]]:
        """The changes of one year, sorted: the instant (seconds from 1970, UTC) and the offset after it."""
        if self.starts is None or self.ends is None:
            return []
        begin = self.starts.wall(year) - self.offset
        end = self.ends.wall(year) - self.summer_offset
        return sorted([(begin, self.summer_offset), (end, self.offset)])


@dataclass(frozen=True)
class ZoneFile:
    """A parsed zone file. ``offsets`` has one entry more than ``instants``: the first is before all."""

    instants: list[int]
    offsets: list[int]
    tail: TailRule


def read_tzif(data: bytes) -> ZoneFile:
    """Read the 64-bit part of a TZif file. Raises ValueError for anything else."""
    magic, version, *_ = fields = _HEADER.unpack_from(data)
    if magic != b"TZif" or version < b"2":
        raise ValueError("not a TZif file of version 2 or later")
    is_ut, is_std, leaps, times, types, chars = fields[2:]
    start = _HEADER.size + times * 5 + types * 6 + chars + leaps * 8 + is_std + is_ut
    is_ut, is_std, leaps, times, types, chars = _HEADER.unpack_from(data, start)[2:]
    at = start + _HEADER.size
    instants = list(struct.unpack_from(f">{times}q", data, at))
    indexes = struct.unpack_from(f">{times}B", data, at + times * 8)
    at += times * 9
    kinds = [struct.unpack_from(">lBB", data, at + 6 * index)[0] for index in range(types)]
    at += types * 6 + chars + leaps * 12 + is_std + is_ut
    footer = data[at:].strip(b"\n").decode("ascii")
    # RFC 9636 3.2: the first type stands for the time before the first change.
    return ZoneFile(instants, [kinds[0], *(kinds[index] for index in indexes)], read_tail_rule(footer))


def read_tail_rule(text: str) -> TailRule:
    """Read a rule such as ``CET-1CEST,M3.5.0,M10.5.0/3``. Raises ValueError."""
    match = _RULE.fullmatch(text)
    if not match:
        raise ValueError(f"not a rule for a time zone: {text!r}")
    offset = -_seconds(match[1])  # POSIX counts west of Greenwich
    if not match[3]:
        return TailRule(offset)
    summer = -_seconds(match[2]) if match[2] else offset + 3600
    return TailRule(offset, summer, _yearly_date(match[3]), _yearly_date(match[4]))


def _yearly_date(text: str) -> YearlyDate:
    match = _DATE.fullmatch(text)
    if not match:
        raise ValueError(f"not a date of a rule for a time zone: {text!r}")
    time = _seconds(match[6]) if match[6] else 7200
    if match[1]:
        return YearlyDate(int(match[1]), int(match[2]), int(match[3]), 0, False, time)
    julian = bool(match[4])
    return YearlyDate(0, 0, 0, int(match[5]) - (1 if julian else 0), not julian, time)


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    return sign * sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
