"""The grammar of schedules: days, hours, times of day, durations, dates and instants.

Every function takes a string and returns a value, or raises :class:`GrammarError` with the given value, what is
allowed and the nearest valid value. Day and hour lists follow the grammar of 5-Spot: lower case,
comma-separated parts, trimmed; a range includes both ends and may wrap (``fri-mon``, ``22-6``).
"""

from __future__ import annotations

import calendar
import difflib
import re
from collections.abc import Callable, Iterable
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
_LOOSE_TIME = re.compile(
    r"([0-9]{1,2})(?:[:.h]?([0-9]{2}))?h?(?::[0-9]{2})?\s*(am|pm|a\.m\.|p\.m\.)?", re.ASCII | re.IGNORECASE
)
_DURATION = re.compile(r"([0-9]+)([smh])", re.ASCII)
_LOOSE_DURATION = re.compile(
    r"\s*([0-9]{1,9})\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)", re.ASCII | re.IGNORECASE
)
_ISO_DURATION = re.compile(r"p([0-9]{1,4}d)?(?:t([0-9hms]{1,20}))?", re.ASCII)
_DECIMAL_HOURS = re.compile(r"([0-9]{1,3})[.,]([0-9]{1,3})\s*(?:h|hours?|hrs?)", re.ASCII)
_HOURS_AND_MINUTES = re.compile(r"([0-9]{1,3})\s*(?:h|:)\s*([0-5][0-9])", re.ASCII)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_LOOSE_DATE = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})", re.ASCII)
_DOTTED_DATE = re.compile(r"([0-9]{1,2})\.\s?([0-9]{1,2})\.\s?([0-9]{4})", re.ASCII)
_AMBIGUOUS_DATE = re.compile(r"([0-9]{1,2})[-/]([0-9]{1,2})[-/]([0-9]{4})", re.ASCII)
_MONTHS = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_NAMED_MONTH = re.compile(
    rf"(?:([0-9]{{1,2}})\.?[- ]{_MONTHS}|{_MONTHS} ([0-9]{{1,2}}))[-, ]{{1,2}}([0-9]{{4}})", re.ASCII
)
_LOOSE_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]{1,9})?\s?"
    r"([Zz]|UTC|GMT|[+-][0-9]{1,2}(?::?[0-9]{2})?)?",
    re.ASCII,
)
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)
_COLLECTIVE = {
    "weekday": "mon-fri",
    "workday": "mon-fri",
    "business day": "mon-fri",
    "weekend": "sat-sun",
    "daily": "mon-sun",
    "everyday": "mon-sun",
    "every day": "mon-sun",
    "all": "mon-sun",
    "*": "mon-sun",
}
_SHORT_DAYS = (
    *("mo", "tu", "we", "th", "fr", "sa", "su"),
    *("m", "tues", "w", "thur", "f", "", ""),
    *("", "", "weds", "thurs", "", "", ""),
)
_LONG_DAYS = (*(name.lower() for name in calendar.day_name), *(f"{name.lower()}s" for name in calendar.day_name))
_RANGE = re.compile(r"\s*(?:-|–|—|\.\.|\bto\b|\bthrough\b|\buntil\b)\s*")
_PARTS = re.compile(r"[,;]|\s+and\s+|&")
_LONGEST = 128
"""Characters of a value that hints look at."""
_WORDS_FOR_TIMES = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}
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
    error: Callable[[str, str], GrammarError],
) -> frozenset[int]:
    found: set[int] = set()
    for index, item in enumerate(items):
        for part in item.split(","):
            ends = [number(end.strip()) for end in part.split("-")]
            first, last = ends[0], ends[-1]
            if len(ends) > 2 or first is None or last is None:
                raise error(part.strip(), item).within(f"[{index}]")
            found.update((first + step) % count for step in range((last - first) % count + 1))
    return frozenset(found)


def _day(text: str) -> int | None:
    return DAYS.index(text) if text in DAYS else None


def _hour(text: str) -> int | None:
    match = _HOUR.fullmatch(text)
    return int(match[1]) if match and int(match[1]) < 24 else None


def _day_error(part: str, item: str) -> GrammarError:
    nearest = [_nearest_days(each) for each in _PARTS.split(item[:_LONGEST])]
    known = [days for days in nearest if days is not None]
    return GrammarError(
        f'"{part}" is not a day: write mon, tue, wed, thu, fri, sat or sun, a range such as mon-fri or fri-mon, '
        "or several with commas",
        suggestion=f'"{",".join(known)}"' if known and len(known) == len(nearest) <= len(DAYS) else None,
    )


def _nearest_days(part: str) -> str | None:
    """Return a day or range that is probably meant by a part of a list."""
    words = part.strip().lower()
    if collective := _COLLECTIVE.get(words.removesuffix("s")):
        return collective
    ends = _RANGE.split(words)
    nearest = [_nearest_day(end.strip()) for end in ends] if len(ends) <= 2 else [None]
    known = [day for day in nearest if day is not None]
    return "-".join(known) if len(known) == len(nearest) else None


def _nearest_day(text: str) -> str | None:
    lower = text.lower().removesuffix(".")
    if lower in DAYS:
        return lower
    if re.fullmatch("[0-7]", lower):  # 1-6 are Monday to Saturday in cron and in ISO 8601; 0 and 7 are Sunday
        return DAYS[int(lower) - 1]
    if lower and lower in _SHORT_DAYS:
        return DAYS[_SHORT_DAYS.index(lower) % 7]
    close = difflib.get_close_matches(lower[:_LONGEST], _LONG_DAYS, n=1, cutoff=0.75)
    return DAYS[_LONG_DAYS.index(close[0]) % 7] if close else None


def _hour_error(part: str, item: str) -> GrammarError:
    allowed = "write whole hours 0 to 23, a range such as 9-17 (runs to 17:59) or 22-6, or several with commas"
    ends = [end.strip() for end in _RANGE.split(part)] if len(part) <= _LONGEST else []
    if ":" in part or any(end.lower().endswith(("am", "pm")) for end in ends):
        times = [_nearest_time(end) for end in ends]
        suggestion = None
        if len(times) == 2 and times[0] and times[1]:
            suggestion = f'start: "{times[0]}", end: "{times[1]}"'
        return GrammarError(f'"{part}" is not an hour: {allowed}; for minutes use windows', suggestion=suggestion)
    suggestion = None
    if re.fullmatch(r"[0-9]{1,2}\s*-\s*24", part):  # the last hour of the day is meant: the end is inclusive
        suggestion = f'"{part.split("-", maxsplit=1)[0].strip()}-23"'
    elif part == "24":
        suggestion = '"0"'
    elif part == "*":
        suggestion = '"0-23"'
    elif len(ends) == 2 and all(_hour(end) is not None for end in ends):  # with a dash that is no hyphen, or `to`
        suggestion = f'"{ends[0]}-{ends[1]}"'
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
    if (word := text.strip().lower()) in _WORDS_FOR_TIMES:
        return _WORDS_FOR_TIMES[word]
    match = _LOOSE_TIME.fullmatch(word) if len(word) <= _LONGEST else None
    if not match:
        return None
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").replace(".", "")
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
    if len(words) == 2 and _nearest_time(words[0]):
        words.reverse()
    if len(words) == 2 and (day := _nearest_day(words[0])) and (time := _nearest_time(words[1])):
        suggestion = f'"{day} {time}"'
    raise GrammarError(
        f'"{text}" is not a moment of the week: write a day and a time, such as "mon 06:00"',
        suggestion=suggestion,
    )


def parse_duration(text: str, *, at_most: timedelta = timedelta.max) -> timedelta:
    """Parse a duration: digits and one of ``s``, ``m``, ``h``. Raises :class:`GrammarError`."""
    match = _DURATION.fullmatch(text)
    if match and len(match[1]) <= 9:
        found = timedelta(seconds=int(match[1]) * _UNITS[match[2]])
        if found <= at_most:
            return found
        limit = f"{at_most // timedelta(hours=1)}h"
        raise GrammarError(f'"{text}" is too long: it is at most {limit}', suggestion=f'"{limit}"')
    if match:
        raise GrammarError(f'"{text[:12]}..." is not a duration: write at most nine digits and s, m or h')
    raise GrammarError(
        f'"{text}" is not a duration: write digits and one of s, m or h, such as "90m"',
        suggestion=_nearest_duration(text, at_most),
    )


def _nearest_duration(text: str, at_most: timedelta) -> str | None:
    lower = text.strip().lower()
    if re.fullmatch(r"[0-9]{1,9}", lower, re.ASCII):
        lower = f"{lower}s"
    if match := _ISO_DURATION.fullmatch(lower):  # a letter T stands between days and the time
        lower = f"{match[1] or ''}{match[2] or ''}"
    if match := _DECIMAL_HOURS.fullmatch(lower):
        lower = f"{int(match[1]) * 60 + round(float(f'0.{match[2]}') * 60)}m"
    if match := _HOURS_AND_MINUTES.fullmatch(lower):
        lower = f"{match[1]}h{match[2]}m"
    seconds = 0
    rest = lower[:_LONGEST]
    while match := _LOOSE_DURATION.match(rest):
        seconds += int(match[1]) * _UNITS[match[2][0].lower()]
        rest = rest[match.end() :]
    if rest.strip() or not seconds or timedelta(seconds=seconds) > at_most:
        return None
    if lower == f"{seconds}s":
        return f'"{lower}"'
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
    suggestion = _nearest_date(text)
    remark = ""
    if suggestion is None and _AMBIGUOUS_DATE.fullmatch(text.strip()[:_LONGEST]):
        remark = " (the year first, so that month and day are not confused)"
    raise GrammarError(
        f'"{text}" is not a date: write "YYYY-MM-DD", a day that exists{remark}',
        suggestion=f'"{suggestion}"' if suggestion else None,
    )


def _nearest_date(text: str) -> str | None:
    written = text.strip()[:_LONGEST]
    if match := _LOOSE_DATE.match(written):
        # A time of day behind it is left out.
        if written[match.end() :] and not re.match(r"[Tt ][0-9]", written[match.end() :]):
            return None
        return _existing(match[1], match[2], match[3])
    if match := _DOTTED_DATE.fullmatch(written):
        return _existing(match[3], match[2], match[1])
    if match := _AMBIGUOUS_DATE.fullmatch(written):
        first, second = int(match[1]), int(match[2])
        if first > 12 or first == second:
            return _existing(match[3], match[2], match[1])
        return _existing(match[3], match[1], match[2]) if second > 12 else None
    if match := _NAMED_MONTH.fullmatch(written.lower()):
        month = [name[:3].lower() for name in calendar.month_name].index(match[2] or match[3])
        return _existing(match[5], str(month), match[1] or match[4])
    if match := re.fullmatch(r"([0-9]{4})([0-9]{2})([0-9]{2})", written, re.ASCII):
        return _existing(match[1], match[2], match[3])
    return None


def _existing(year_text: str, month_text: str, day_text: str) -> str | None:
    """Return the date, or the last day of the month where it is shorter; None without such a month."""
    year, month, day = int(year_text), int(month_text), int(day_text)
    if not year or not 1 <= month <= 12 or not day:
        return None
    return date(year, month, min(day, calendar.monthrange(year, month)[1])).isoformat()


def parse_instant(text: str) -> datetime:
    """An instant ``2027-01-31T08:00:00+01:00`` or ``...Z`` (RFC 3339), as UTC. Raises :class:`GrammarError`.

    Fractions are truncated to microseconds.
    """
    match = _INSTANT.fullmatch(text)
    if match and match[4]:
        try:
            return parse_rfc3339(f"{match[1]}T{match[2]}{match[3] or ''}{match[4]}")
        except ValueError:
            pass  # a day or hour that does not exist, or one outside of the years 1 to 9999
    nearest = nearest_instant(text)
    raise GrammarError(
        f'"{text}" is not an instant: write date, time and offset, such as "2027-01-31T08:00:00Z"',
        suggestion=f'"{nearest}"' if nearest else None,
    )


def nearest_instant(text: str) -> str | None:
    """The instant that is probably meant, in RFC 3339."""
    written = text.strip()[:_LONGEST]
    if match := _LOOSE_INSTANT.fullmatch(written):
        meant = f"{match[1]}T{match[2]}{match[3] or ':00'}{match[4] or ''}{_offset(match[5] or 'Z')}"
    elif match := _DATE.fullmatch(written):
        meant = f"{written}T00:00:00Z"
    else:
        return None
    try:
        parse_rfc3339(meant)
    except ValueError:
        return None
    return meant


def _offset(written: str) -> str:
    if written[0] not in "+-":
        return "Z"
    digits = written[1:].replace(":", "")
    hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "00")
    return f"{written[0]}{hours:0>2}:{minutes}"


def format_time(seconds: int) -> str:
    """Format seconds from midnight as ``HH:MM`` (``24:00`` for the end of the day)."""
    return f"{seconds // HOUR:02}:{seconds % HOUR // MINUTE:02}"
