"""Ends of overrides as people write them: durations, times of day and weekdays in the schedule's time zone. Pure."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from fivespot.cli.timeline.period import local
from fivespot.providers.sdk.override_spec import FOREVER, NEXT_TRANSITION
from fivespot.providers.sdk.overrides import Until
from fivespot.runtime import ConfigError
from fivespot.schedule import Zone

__all__ = ["read_duration", "read_until"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME: Final = re.compile(r"(?:([a-z]{3}) +)?([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_DURATION: Final = re.compile(
    r"(?:(?P<days>[0-9]{1,3})d)?(?:(?P<hours>[0-9]{1,4})h)?(?:(?P<minutes>[0-9]{1,5})m)?(?:(?P<seconds>[0-9]{1,6})s)?",
    re.ASCII,
)
_LONGEST: Final = timedelta(days=3660)
_FORMS: Final = (
    'write a time of day such as 20:00, a weekday and a time such as "fri 20:00", a date such as 2027-03-12 or '
    f'"2027-03-12 20:00", an instant such as 2027-03-12T19:00:00Z, {NEXT_TRANSITION} or {FOREVER}'
)


def read_duration(text: str) -> timedelta:
    """A duration such as ``90m``, ``2h``, ``2h30m`` or ``3d``.

    :raises ConfigError: it is none.
    """
    found = _DURATION.fullmatch(text.strip().lower())
    parts = {unit: int(count) for unit, count in found.groupdict().items() if count} if found is not None else {}
    length = timedelta(**parts)
    if not timedelta(0) < length <= _LONGEST:
        raise ConfigError(f"--for {text!r} is not a duration: write 90m, 2h, 2h30m or 3d")
    return length


def read_until(text: str, now: datetime, zone: Zone | None) -> Until:
    """The end of an override. Times without an offset are read in the zone, the next such time after now.

    :raises ConfigError: it cannot be read, it is past, or it has no offset and there is no zone.
    """
    written = " ".join(text.split())
    if written.lower() == NEXT_TRANSITION.lower():
        return "nextTransition"
    if written.lower() == FOREVER:
        return "forever"
    end = _read(text, written, now, zone)
    if end <= now:
        raise ConfigError(f"--until {text} is in the past: it is {now:%Y-%m-%dT%H:%M:%SZ}")
    if end - now > _LONGEST:
        raise ConfigError(f"--until {text} is more than ten years ahead; write {FOREVER}")
    return end


def _read(text: str, written: str, now: datetime, zone: Zone | None) -> datetime:
    time = _TIME.fullmatch(written.lower())
    if time is not None and time[1] in (None, *_DAYS):
        return _next_time(time[1], int(time[2]), int(time[3]), now, _required(zone, text))
    try:
        instant = datetime.fromisoformat(written)
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ConfigError(f"--until {text!r} cannot be read: {_FORMS}") from None
    return _instant_of(_required(zone, text), instant)


def _required(zone: Zone | None, text: str) -> Zone:
    if zone is None:
        raise ConfigError(
            f"--until {text}: the schedule has no time zone of its own; add --timezone Europe/Berlin, or write an "
            "instant with its offset such as 2027-03-12T19:00:00Z"
        )
    return zone


def _next_time(day: str | None, hour: int, minute: int, now: datetime, zone: Zone) -> datetime:
    today: date = local(zone, now).date()
    for ahead in range(9):
        on = today + timedelta(days=ahead)
        if day is not None and _DAYS[on.weekday()] != day:
            continue
        instant = _instant_of(zone, datetime(on.year, on.month, on.day, hour, minute))  # noqa: DTZ001 - a wall clock
        if instant > now:
            return instant
    raise AssertionError("every weekday and time comes within eight days")


def _instant_of(zone: Zone, reading: datetime) -> datetime:
    """The first instant at which the zone's wall clock shows the reading or a later one."""
    seconds = zone.instant_of((reading.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1))
    return _EPOCH + timedelta(seconds=seconds)
