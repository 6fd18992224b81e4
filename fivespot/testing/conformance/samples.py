"""Specs for the kinds that come with fivespot, so that an installation can be checked by the kind's name alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from fivespot.runtime.objects import rfc3339

from .subject import Soon, Spec, Subject

__all__ = ["SHIPPED"]

_AHEAD = timedelta(seconds=8)
"""Until the boundary that is looked at. The verdict before it has to be there by then, also on a busy machine."""

_ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
_NO_ZONE = "Europe/Nowhere"


def _valid_until(now: datetime) -> tuple[Spec, datetime]:
    ends = (now + _AHEAD).replace(microsecond=0)
    return {**_ALWAYS, "validUntil": rfc3339(ends)}, ends


def _overridden(base: Spec) -> Soon:
    """An override that ends within seconds, over a spec that is inactive."""

    def soon(now: datetime) -> tuple[Spec, datetime]:
        ends = (now + _AHEAD).replace(microsecond=0)
        return {**base, "overrides": [{"name": "conformance", "active": True, "until": rfc3339(ends)}]}, ends

    return soon


_NO_SESSIONS = {"timezone": "UTC", "sessions": []}
_OFF = {"enabled": False}

SHIPPED: Final[Mapping[str, Subject]] = MappingProxyType(
    {
        subject.kind: subject
        for subject in (
            Subject(
                kind="TimeBasedSpotSchedule",
                active=_ALWAYS,
                inactive={"daysOfWeek": [], "hoursOfDay": []},
                invalid={**_ALWAYS, "timezone": _NO_ZONE},
                soon=_valid_until,
            ),
            Subject(
                kind="CapitalMarketsSchedule",
                active={"timezone": "UTC", "sessions": [_ALWAYS]},
                inactive=_NO_SESSIONS,
                invalid={"timezone": _NO_ZONE, "sessions": [_ALWAYS]},
                soon=_overridden(_NO_SESSIONS),
            ),
            Subject(
                kind="ManualSchedule",
                active={"enabled": True},
                inactive=_OFF,
                invalid={"base": {"kind": "ManualSchedule", "name": "conformance-nowhere"}},
                soon=_overridden(_OFF),
            ),
        )
    }
)
"""Kind -> what the kit has to be told of it."""
