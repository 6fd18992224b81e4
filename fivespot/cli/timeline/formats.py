"""Formats for instants, durations and readings of the clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from fivespot.cli.timeline.days import ClockChange, DaySpan
from fivespot.cli.timeline.period import local
from fivespot.schedule import Zone

__all__ = ["change_text", "clock", "length", "moment", "offset", "share", "span_text"]

_SECOND: Final = timedelta(seconds=1)


def length(span: timedelta) -> str:
    """``24 h``, ``10 h 30 min``, ``45 min``, ``1 h 0 min 10 s``."""
    seconds = round(span / _SECOND)
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    parts = [f"{hours} h"] if hours else []
    if minutes or (hours and rest):
        parts.append(f"{minutes} min")
    if rest:
        parts.append(f"{rest} s")
    return " ".join(parts) or "0 h"


def clock(reading: float) -> str:
    """Format a wall-clock time: ``08:00``, ``24:00``, with seconds where there are any."""
    seconds = round(reading)
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    return f"{shown}:{seconds % 60:02}" if seconds % 60 else shown


def offset(seconds: int) -> str:
    """``UTC+1``, ``UTC-3:30``, ``UTC``."""
    if not seconds:
        return "UTC"
    sign, size = ("-" if seconds < 0 else "+"), abs(seconds)
    hours, minutes, rest = size // 3600, size // 60 % 60, size % 60
    shown = f"{hours}:{minutes:02}" if minutes or rest else f"{hours}"
    return f"UTC{sign}{shown}{f':{rest:02}' if rest else ''}"


def span_text(span: DaySpan) -> str:
    """Format a time of day as ``08:00-18:30``; a time that occurs a second time that day is marked."""
    opens = clock(span.opens) + (" (2nd)" if span.open_again else "")
    return f"{opens}-{clock(span.closes)}" + (" (2nd)" if span.close_again else "")


def change_text(change: ClockChange) -> str:
    """Describe a clock change for people."""
    before, after = change.shows
    way = "forward" if change.forward else "back"
    # A change at midnight would show the 24th hour of the day before.
    return (
        f"clock {way} {clock(before % 86_400)} -> {clock(after % 86_400)} "
        f"({offset(change.offsets[0])} -> {offset(change.offsets[1])})"
    )


def moment(zone: Zone, instant: datetime) -> str:
    """``Mon 2027-03-22 08:00``, the time on the zone's wall clock."""
    shown = local(zone, instant)
    return f"{shown:%a %Y-%m-%d %H:%M:%S}" if shown.second else f"{shown:%a %Y-%m-%d %H:%M}"


def share(part: timedelta, whole: timedelta) -> str:
    """Format a share as ``31 %``; only nothing is 0 %, and only everything 100 %."""
    percent = round(100 * (part / whole)) if whole else 0
    if part and not percent:
        return "< 1 %"
    if part < whole and percent == 100:
        return "> 99 %"
    return f"{percent} %"
