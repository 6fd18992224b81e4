"""The grammar of schedules: days, hours, times of day, durations, dates and instants.

Every function takes a string and returns a value, or raises :class:`GrammarError` with the given value, what is
allowed and the nearest valid value. Day and hour lists follow the grammar of 5-Spot: lower case,
comma-separated parts, trimmed; a range includes both ends and may wrap (``fri-mon``, ``22-6``).
"""

from __future__ import annotations

import calendar
import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timedelta

from fivespot.runtime.objects import parse_rfc3339

from .errors import GrammarError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""The names of the days; the index is the day's number, Monday 0."""

MINUTE = 60
HOUR = 3600
DAY = 86_400

_HOUR = re.compile(r"0*([0-9]{1,2})", re.ASCII)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2})", re.ASCII)
_LOOSE_TIME = re.compile(r"([0-9]{1,2})(?:[:.h]?([0-9]{2}))?(?::[0-9]{2})?\s*(am|pm)?", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(r"([0-9]+)([smh])", re.ASCII)
_LOOSE_DURATION = re.compile(
    r"\s*([0-9]{1,9})\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)", re.ASCII | re.IGNORECASE
)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_LOOSE_DATE = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})", re.ASCII)
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)
_COLLECTIVE = {"weekday": "mon-fri", "workday": "mon-fri", "weekend": "sat-sun", "daily": "mon-sun", "*": "mon-sun"}
_UNITS = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY}


def parse_days(items: Iterable[str]) -> frozenset[int]:
    """Parse the days of a list such as ``["mon-wed", "fri,sun"]``, as numbers (Monday 0).

    An empty list names no day. Raises :class:`GrammarError` whose field is ``[i]``, the item at fault.
    """
    return _parse_list(items, _day, 7, _day_error)


def parse_hours(items: Iterable[str]) -> frozenset[int]:
    """Parse the whole hours of a list such as ``["9-17", "22-6"]``; both ends of a range belong to it.

    An empty list names no hour. Raises :class:`GrammarError` whose field is ``[i]``, the item at fault.
    """
    return _parse_list(items, _hour, 24, _hour_error)


def _parse_list(
    items: Iterable[str],
    number: Callable[[str], int | None],
    count: int,
    error: Callable[[str], GrammarError],
) -> frozenset[int]:
    found: set[int] = set()
    for index, item in enumerate(items):
        for part in item.split(","):
            ends = [number(end.strip()) for end in part.split("-")]
            first, last = ends[0], ends[-1]
            if len(ends) > 2 or first is None or last is None:
                raise error(part.strip()).within(f"[{index}]")
            found.update((first + step) % count for step in range((last - first) % count + 1))
    return frozenset(found)


def _day(text: str) -> int | None:
    return DAYS.index(text) if text in DAYS else None


def _hour(text: str) -> int | None:
    match = _HOUR.fullmatch(text)
    return int(match[1]) if match and int(match[1]) < 24 else None


def _day_error(part: str) -> GrammarError:
    nearest = [_nearest_day(end.strip()) for end in part.split("-")]
    known = [day for day in nearest if day is not None]
    suggestion = f'"{"-".join(known)}"' if len(known) == len(nearest) <= 2 else None
    if collective := _COLLECTIVE.get(part.lower().rstrip("s")):
        suggestion = f'"{collective}"'
    return GrammarError(
        f'"{part}" is not a day: write mon, tue, wed, thu, fri, sat or sun, a range such as mon-fri or fri-mon, '
        "or several with commas",
        suggestion=suggestion,
    )


def _nearest_day(text: str) -> str | None:
    lower = text.lower()
    if lower[:3] in DAYS:
        return lower[:3]
    if re.fullmatch("[0-7]", lower):  # 1-6 are Monday to Saturday in cron and in ISO 8601; 0 and 7 are Sunday
        return DAYS[int(lower) - 1]
    close = difflib.get_close_matches(lower, [name.lower() for name in calendar.day_name] + list(DAYS), n=1)
    return close[0][:3] if close else None


def _hour_error(part: str) -> GrammarError:
    allowed = "write whole hours 0 to 23, a range such as 9-17 (runs to 17:59) or 22-6, or several with commas"
    if ":" in part:
        ends = [_nearest_time(end.strip()) for end in part.split("-")]
        suggestion = None
        if len(ends) == 2 and ends[0] and ends[1]:
            suggestion = f'windows: [{{start: "{ends[0]}", end: "{ends[1]}"}}]'
        return GrammarError(f'"{part}" is not an hour: {allowed}; for minutes use windows', suggestion=suggestion)
    suggestion = None
    if re.fullmatch(r"[0-9]{1,2}\s*-\s*24", part):  # the last hour of the day is meant: the end is inclusive
        suggestion = f'"{part.split("-", maxsplit=1)[0].strip()}-23"'
    elif part == "24":
        suggestion = '"0"'
    return GrammarError(f'"{part}" is not an hour: {allowed}', suggestion=suggestion)


def parse_time(text: str, *, end: bool = False) -> int:
    """Parse a time of day into seconds from midnight: ``HH:MM``; ``24:00`` only where ``end`` is set.

    Raises :class:`GrammarError`.
    """
    match = _TIME.fullmatch(text)
    if match:
        seconds = int(match[1]) * HOUR + int(match[2]) * MINUTE
        if int(match[2]) < 60 and (seconds < DAY or (end and seconds == DAY)):
            return seconds
    allowed = 'write "HH:MM", 00:00 to ' + ("24:00" if end else "23:59 (24:00 can only be an end)")
    nearest = _nearest_time(text)
    if nearest == "24:00" and not end:
        nearest = "00:00"
    suggestion = f'"{nearest}"' if nearest else None
    raise GrammarError(f'"{text}" is not a time of day: {allowed}', suggestion=suggestion)


def _nearest_time(text: str) -> str | None:
    match = _LOOSE_TIME.fullmatch(text.strip())
    if not match:
        return None
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return f"{hour:02}:{minute:02}" if minute < 60 and hour * 60 + minute <= 24 * 60 else None


def parse_moment(text: str, *, end: bool = False) -> tuple[int, int]:
    """Parse a moment of the week such as ``mon 06:00`` into the day number and seconds from midnight.

    Raises :class:`GrammarError`.
    """
    words = text.split()
    if len(words) == 2 and words[0] in DAYS:
        return DAYS.index(words[0]), parse_time(words[1], end=end)
    suggestion = None
    if len(words) == 2 and (day := _nearest_day(words[0])) and (time := _nearest_time(words[1])):
        suggestion = f'"{day} {time}"'
    raise GrammarError(
        f'"{text}" is not a moment of the week: write a day and a time, such as "mon 06:00"',
        suggestion=suggestion,
    )


def parse_duration(text: str) -> timedelta:
    """Parse a duration: digits and one of ``s``, ``m``, ``h``. Raises :class:`GrammarError`."""
    match = _DURATION.fullmatch(text)
    if match and len(match[1]) <= 9:
        return timedelta(seconds=int(match[1]) * _UNITS[match[2]])
    if match:
        raise GrammarError(f'"{text[:12]}..." is not a duration: write at most nine digits and s, m or h')
    raise GrammarError(
        f'"{text}" is not a duration: write digits and one of s, m or h, such as "90m"',
        suggestion=_nearest_duration(text),
    )


def _nearest_duration(text: str) -> str | None:
    if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII):
        return f'"{text}s"'
    seconds = 0
    rest = text
    while match := _LOOSE_DURATION.match(rest):
        seconds += int(match[1]) * _UNITS[match[2][0].lower()]
        rest = rest[match.end() :]
    if rest.strip() or not seconds:
        return None
    unit = next(unit for unit in ("h", "m", "s") if seconds % _UNITS[unit] == 0)
    return f'"{seconds // _UNITS[unit]}{unit}"'


def parse_date(text: str) -> date:
    """Parse a local calendar date ``YYYY-MM-DD``. Raises :class:`GrammarError`."""
    match = _DATE.fullmatch(text)
    if match:
        try:
            return date(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            pass  # such as 30 February: reported below with the nearest day that exists
    raise GrammarError(
        f'"{text}" is not a date: write "YYYY-MM-DD", a day that exists',
        suggestion=next(_near_dates(text), None),
    )


def _near_dates(text: str) -> Iterator[str]:
    match = _LOOSE_DATE.fullmatch(text.strip())
    if match:
        year, month, day = int(match[1]), int(match[2]), int(match[3])
        if year and 1 <= month <= 12 and day:
            yield f'"{date(year, month, min(day, calendar.monthrange(year, month)[1]))}"'


def parse_instant(text: str) -> datetime:
    """An instant ``2027-01-31T08:00:00+01:00`` or ``...Z`` (RFC 3339), as UTC. Raises :class:`GrammarError`.

    Fractions are truncated to microseconds.
    """
    match = _INSTANT.fullmatch(text)
    suggestion = None
    if match and match[4]:
        try:
            return parse_rfc3339(f"{match[1]}T{match[2]}{match[3] or ''}{match[4]}")
        except ValueError:
            pass  # a day or hour that does not exist, or one outside of the years 1 to 9999
    elif match:
        suggestion = f'"{match[1]}T{match[2]}Z"'
    elif _DATE.fullmatch(text):
        suggestion = f'"{text}T00:00:00Z"'
    raise GrammarError(
        f'"{text}" is not an instant: write date, time and offset, such as "2027-01-31T08:00:00Z"',
        suggestion=suggestion,
    )


def format_time(seconds: int) -> str:
    """Format seconds from midnight as ``HH:MM`` (``24:00`` for the end of the day)."""
    return f"{seconds // HOUR:02}:{seconds % HOUR // MINUTE:02}"
