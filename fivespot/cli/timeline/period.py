"""Parses instants on the command line."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

from fivespot.cli.timeline.forecast import Period
from fivespot.runtime import ConfigError
from fivespot.schedule import UnknownZone, Zone, load_zone

__all__ = ["LONGEST", "local", "read_period", "read_zone", "start_of"]

LONGEST: Final = timedelta(days=3660)
"""Ten years; more does not make a readable table."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_RELATIVE = re.compile(r"([+-][0-9]{1,6})([smhdw])", re.ASCII)
_ELAPSED: Final = {"s": "seconds", "m": "minutes", "h": "hours"}
_FORMS: Final = (
    "write an instant such as 2027-03-28T01:00:00Z, a local date or time such as 2027-03-28 or 2027-03-28T02:30, a "
    "time of day such as 17:00, now, or a distance such as +7d (s, m, h, d or w)"
)


def read_zone(name: str, option: str = "--zone") -> Zone:
    """Load the zone of that name.

    :raises ConfigError: there is none; the message suggests a name where possible.
    """
    try:
        return load_zone(name)
    except UnknownZone as error:
        raise ConfigError(f"{option}: {error}") from error


def read_period(start: str, end: str, zone: Zone, now: datetime) -> Period:
    """Return the period between two instants as written; those without an offset are in ``zone``.

    A distance counts from now, and for the end from the start. Days and weeks keep the time of day in the zone.

    :raises ConfigError: one cannot be read, or they are in the wrong order, or too far apart.
    """
    # A period rarely starts at the second at which the command was entered.
    now = now.replace(second=0, microsecond=0)
    begins = _read("--from", start, zone, now, now)
    ends = _read("--to", end, zone, now, begins)
    if ends <= begins:
        raise ConfigError(f"--to {end} is not after --from {start}: {_show(begins)} to {_show(ends)}")
    if ends - begins > LONGEST:
        raise ConfigError(f"--from {start} to --to {end} is longer than {LONGEST.days} days: ask for a shorter period")
    return Period(begins, ends)


def local(zone: Zone, instant: datetime) -> datetime:
    """Return the instant with the offset that the zone has then."""
    offset = zone.era((instant - _EPOCH) // timedelta(seconds=1)).offset
    return instant.astimezone(timezone(timedelta(seconds=offset)))


def start_of(zone: Zone, day: date) -> datetime:
    """Return the first instant at which the zone's wall clock shows that date or a later one."""
    return _at_reading(zone, datetime(day.year, day.month, day.day))  # noqa: DTZ001 - a wall clock has no offset


def _read(option: str, text: str, zone: Zone, now: datetime, base: datetime) -> datetime:
    written = text.strip()
    try:
        if written.lower() == "now":
            return now
        if (clock := _CLOCK.fullmatch(written)) is not None:
            result = _time_of_day(zone, base, int(clock[1]), int(clock[2]), after=option == "--to")
        elif (found := _RELATIVE.fullmatch(written)) is not None:
            result = _moved(zone, base, int(found[1]), found[2])
        else:
            instant = datetime.fromisoformat(written)
            result = instant.astimezone(UTC) if instant.tzinfo is not None else _at_reading(zone, instant)
    except OverflowError:
        raise _out_of_range(option, text) from None
    except ValueError:
        raise ConfigError(f"{option}: {text!r} is not an instant: {_FORMS}") from None
    # Leaves room for the adjacent days at any offset.
    if not 1900 <= result.year <= 9000:
        raise _out_of_range(option, text)
    return result


def _out_of_range(option: str, text: str) -> ConfigError:
    return ConfigError(f"{option} {text}: the year must be between 1900 and 9000")


def _time_of_day(zone: Zone, base: datetime, hour: int, minute: int, *, after: bool) -> datetime:
    """Return the instant of a time of day on the date of ``base``; with ``after``, the first one after it."""
    reading = local(zone, base).replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=None)
    found = _at_reading(zone, reading)
    return found if found > base or not after else _at_reading(zone, reading + timedelta(days=1))


def _moved(zone: Zone, base: datetime, count: int, unit: str) -> datetime:
    if unit in _ELAPSED:
        return base + timedelta(**{_ELAPSED[unit]: count})
    reading = local(zone, base).replace(tzinfo=None) + timedelta(days=count * (7 if unit == "w" else 1))
    return _at_reading(zone, reading)


def _at_reading(zone: Zone, reading: datetime) -> datetime:
    whole = reading.replace(tzinfo=UTC, microsecond=0)
    seconds = zone.instant_of((whole - _EPOCH) // timedelta(seconds=1))
    return _EPOCH + timedelta(seconds=seconds, microseconds=reading.microsecond)


def _show(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
