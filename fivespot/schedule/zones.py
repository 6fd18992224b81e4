"""Time zones by name, from the ``tzdata`` package and from nothing else.

The machine's own zone files are never read: they may be a year older than the package, and a search path that
prefers them makes the older rules win without a word.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.resources import files

from .civil import CYCLE, Zone
from .errors import UnknownZone
from .tzif import read_tzif
from .zone_hints import zone_hint, zone_names

__all__ = ["TZDATA_RELEASE", "load_zone", "zone_names"]

TZDATA_RELEASE: str = str(import_module("tzdata").IANA_VERSION)
"""The release of the IANA zone data in use, such as ``2026f``."""


def load_zone(name: str) -> Zone:
    """The zone of that name; the same object each time.

    Raises :class:`UnknownZone` with the zone that was meant where that is beyond doubt (for
    ``W. Europe Standard Time`` it is ``Europe/Berlin``), or with what the name stands for.
    """
    # The list of names is what keeps a name from being used as a path out of the package.
    if name not in zone_names():
        hint = zone_hint(name)
        remark = hint.explanation or "use a name of the IANA database, such as Europe/Berlin or UTC"
        suggestion = f'"{hint.nearest}"' if hint.nearest else None
        raise UnknownZone(f'"{name}" is not a time zone: {remark}', suggestion=suggestion)
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
