"""Time zones by name, from the ``tzdata`` package and from nothing else.

The machine's own zone files are never read: they may be a year older than the package, and a search path that
prefers them makes the older rules win without a word.
"""

from __future__ import annotations

import difflib
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.resources import files

from ._windows_zones import WINDOWS_ZONES
from .civil import CYCLE, Zone
from .errors import UnknownZone
from .tzif import read_tzif

TZDATA_RELEASE: str = str(import_module("tzdata").IANA_VERSION)
"""The release of the IANA zone data in use, such as ``2026f``."""


@cache
def zone_names() -> frozenset[str]:
    """All names of zones, links such as ``US/Eastern`` included."""
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split())


def load_zone(name: str) -> Zone:
    """The zone of that name; the same object each time.

    Raises :class:`UnknownZone` with the nearest right name where one can be told (for
    ``W. Europe Standard Time`` it is ``Europe/Berlin``).
    """
    # The list of names is what keeps a name from being used as a path out of the package.
    if name not in zone_names():
        nearest = nearest_zone(name)
        raise UnknownZone(
            f'"{name}" is not a time zone: use a name of the IANA database, such as Europe/Berlin or UTC',
            suggestion=f'"{nearest}"' if nearest else None,
        )
    return _load(name)


@cache
def _load(name: str) -> Zone:
    zone = read_tzif(files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes())
    instants, offsets = list(zone.instants), list(zone.offsets)
    last = instants[-1] if instants else 0
    year = datetime.fromtimestamp(last, UTC).year
    if not zone.tail.changes(year):
        return Zone(name, instants, offsets)
    for later in range(year, year + 406):
        for instant, offset in zone.tail.changes(later):
            if instant > last:
                instants.append(instant)
                offsets.append(offset)
    # A year after the last listed change even the period before this instant comes from the rule.
    cycle_start = int(datetime(year + 2, 1, 1, tzinfo=UTC).timestamp())
    assert instants[-1] > cycle_start + CYCLE
    return Zone(name, instants, offsets, cycle_start)


def nearest_zone(name: str) -> str | None:
    """The zone that was probably meant: by Windows' name for it, by its city, or by a slip of the pen."""
    wanted = " ".join(name.split()).lower()
    if wanted in WINDOWS_ZONES:
        return WINDOWS_ZONES[wanted]
    wanted = wanted.replace(" ", "_")
    by_name = {zone.lower(): zone for zone in sorted(zone_names())}
    by_city = {zone.lower().rpartition("/")[2]: zone for zone in sorted(zone_names(), reverse=True)}
    city = wanted.rpartition("/")[2]
    if wanted in by_name:
        return by_name[wanted]
    if city in by_city:
        return by_city[city]
    close = difflib.get_close_matches(wanted, by_name, n=1, cutoff=0.75)
    if close:
        return by_name[close[0]]
    close = difflib.get_close_matches(city, by_city, n=1, cutoff=0.8)
    return by_city[close[0]] if close else None
