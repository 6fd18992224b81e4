"""Hints for names that are not time zones: the zone that was meant, or what the name stands for.

A hint is given only for the same place: a wrong one moves every window by hours, which nobody notices. A name that
is merely similar to another place's gets none, and an offset such as ``UTC-5`` never gets a zone of the ``Etc`` area,
whose signs are reversed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from ._places import ABBREVIATIONS, PLACES, SEVERAL_ZONES
from ._windows_zones import WINDOWS_ZONES

__all__ = ["ABBREVIATIONS", "OFFSET_HINT", "ZoneHint", "abbreviation_hint", "squeezed", "zone_hint", "zone_names"]

OFFSET_HINT: Final = (
    " is an offset, which does not follow summer time; write the IANA name of the place, such as Europe/Berlin or "
    "America/New_York"
)
"""The explanation of an offset such as ``UTC-5``, after it."""
_LONGEST: Final = 64
_SHORT: Final = 5
_OFFSET: Final = re.compile(r"(?:etc/)?(?:utc|gmt|z)? *[+-] *[0-9]{1,2}(?::?[0-9]{2})?", re.ASCII)
_MACHINE: Final = frozenset({"local", "localtime", "system", "default", "server", "host"})
_COPIES: Final = ("posix/", "right/", "usrsharezoneinfo")


class ZoneHint(NamedTuple):
    """The zone that a name means, or its meanings.

    :param nearest: the zone that was meant, when there is no doubt.
    :param explanation: what the name stands for, and what to write.
    """

    nearest: str | None = None
    explanation: str | None = None


@cache
def zone_names() -> frozenset[str]:
    """All names of zones, links such as ``US/Eastern`` included."""
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split())


def squeezed(name: str) -> str:
    """The letters and digits of a name, in lower case and without accents."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(char for char in plain if char.isascii() and char.isalnum())


def zone_hint(name: str) -> ZoneHint:
    """Return the hint for a name that is not a zone."""
    if len(name) > _LONGEST:
        return ZoneHint()
    written = " ".join(name.split())
    lower = written.lower()
    if lower in WINDOWS_ZONES:
        return ZoneHint(WINDOWS_ZONES[lower])
    if lower == "z":
        return ZoneHint("UTC")
    if _OFFSET.fullmatch(lower):
        if not re.search("[1-9]", lower):
            return ZoneHint("UTC")
        return ZoneHint(None, f"{written}{OFFSET_HINT}")
    if squeezed(lower) in _MACHINE:
        return ZoneHint(None, "the zone of a machine is not known here; write the IANA name of the place")
    if written.upper() in ABBREVIATIONS:
        return ZoneHint(None, abbreviation_hint(written.upper()))
    for copy in _COPIES:
        written = written.removeprefix(copy)
    return _place_hint(written)


def abbreviation_hint(name: str) -> str:
    """Explain one of :data:`ABBREVIATIONS`."""
    meaning, zones = ABBREVIATIONS[name]
    return f"{name} is {meaning}; write an IANA name such as {_either(zones)}"


def _place_hint(written: str) -> ZoneHint:
    whole, last = squeezed(written), squeezed(re.split(r"[/\\]", written)[-1])
    by_name, by_city = _by_name(), _by_city()
    for key, table in ((whole, by_name), (last, by_city), (last, PLACES), (whole, PLACES)):
        if key in table:
            return ZoneHint(table[key])
    if zones := SEVERAL_ZONES.get(last) or SEVERAL_ZONES.get(whole):
        return ZoneHint(
            None, f"{written} stands for several time zones; write the one that is meant, such as {_either(zones)}"
        )
    if len(countries := _by_country().get(last, ())) == 1:
        return ZoneHint(countries[0])
    countries_of_one = {country: zones[0] for country, zones in _by_country().items() if len(zones) == 1}
    return ZoneHint(_slip(last, by_city) or _slip(last, countries_of_one | PLACES))


def _slip(written: str, table: dict[str, str]) -> str | None:
    """Return the zone of the keys that are a slip of the pen away, if it is one; none for short names."""
    if len(written) < _SHORT:
        return None
    found = {zone for key, zone in table.items() if _one_slip(written, key)}
    return found.pop() if len(found) == 1 else None


def _one_slip(a: str, b: str) -> bool:
    """Whether one letter after the first is missing, too many or another one, or two neighbours are exchanged.

    Another letter makes another place of a short name: Chita and China.
    """
    if abs(len(a) - len(b)) > 1 or a[0] != b[:1] or a == b:
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    left, right = a[start:], b[start:]
    exchanged = len(left) > 1 and left[:2] == right[1::-1] and left[2:] == right[2:]
    another = len(a) == len(b) > _SHORT and left[1:] == right[1:]
    return exchanged or another or left[1:] == right or left == right[1:]


def _either(zones: Iterable[str]) -> str:
    *first, last = zones
    return f"{', '.join(first)} or {last}" if first else last


@cache
def _by_name() -> dict[str, str]:
    return {squeezed(zone): zone for zone in sorted(zone_names())}


@cache
def _by_city() -> dict[str, str]:
    """The city of each zone that is a place; those of the areas Etc, US and Canada are none."""
    found: dict[str, str] = {}
    for zone in sorted(zone_names()):
        area, _, city = zone.partition("/")
        if city and area not in {"Etc", "US", "Canada", "Brazil", "Mexico", "Chile", "SystemV"}:
            found.setdefault(squeezed(city.rpartition("/")[2]), zone)
    # A city that two names have is the one that is not a link, as in America/Indianapolis.
    listed = {zone for zones in _by_country().values() for zone in zones}
    return found | {squeezed(zone.rpartition("/")[2]): zone for zone in sorted(listed)}


@cache
def _by_country() -> dict[str, tuple[str, ...]]:
    """The zones of each country, by its name and its codes."""
    directory = files("tzdata").joinpath("zoneinfo")
    zones: dict[str, list[str]] = {}
    for row in _rows(directory.joinpath("zone.tab").read_text("utf-8")):
        zones.setdefault(row[0], []).append(row[2])
    return {
        squeezed(row[1]): tuple(zones.get(row[0], ()))
        for row in _rows(directory.joinpath("iso3166.tab").read_text("utf-8"))
    }


def _rows(table: str) -> list[list[str]]:
    return [line.split("\t") for line in table.splitlines() if line and not line.startswith("#")]
