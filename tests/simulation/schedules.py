"""An independent evaluation of schedules, for the few forms that simulations use. Shares no code with the product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = ["edges", "verdict_of"]

Json = dict[str, Any]

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_PLAIN = {"windows", "timezone", "enabled"}
_MINUTE = timedelta(minutes=1)
_BACK = timedelta(days=8)


def verdict_of(kind: str, spec: Mapping[str, Any], at: datetime) -> bool | None:
    """Return the verdict; None for no verdict, or for a form that is not supported here."""
    if kind == "ManualSchedule":
        enabled = spec.get("enabled")
        return enabled if isinstance(enabled, bool) and set(spec) <= {"enabled"} else None
    windows = _windows(kind, spec)
    return None if windows is None else any(begin <= at < end for begin, end in _around(windows, at))


def edges(kind: str, spec: Mapping[str, Any], begin: datetime, end: datetime) -> list[datetime]:
    """Return the times in (begin, end] at which the verdict may change, in order."""
    windows = _windows(kind, spec) or []
    found = {edge for window in _around(windows, end) for edge in window if begin < edge <= end}
    return sorted(found)


def _windows(kind: str, spec: Mapping[str, Any]) -> list[Json] | None:
    if kind != "TimeBasedSpotSchedule" or not {name for name, value in spec.items() if value} <= _PLAIN:
        return None
    if spec.get("timezone", "UTC") != "UTC" or spec.get("enabled") is False:
        return None
    found: list[Json] = spec.get("windows") or []
    return found if all(window.get("days") and window["start"] < window["end"] for window in found) else None


def _around(windows: list[Json], at: datetime) -> Iterator[tuple[datetime, datetime]]:
    day = (at - _BACK).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
    while day <= at + _BACK:
        for window in windows:
            if _DAYS[day.weekday()] in {name for days in window["days"] for name in _expand(days)}:
                yield day + _minutes(window["start"]), day + _minutes(window["end"])
        day += timedelta(days=1)


def _expand(days: str) -> tuple[str, ...]:
    first, _, last = days.partition("-")
    return _DAYS[_DAYS.index(first) : _DAYS.index(last or first) + 1]


def _minutes(text: str) -> timedelta:
    hours, minutes = text.split(":")
    return (60 * int(hours) + int(minutes)) * _MINUTE
