"""Specs for the kinds that come with fivespot, so that an installation can be checked by the kind's name alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from fivespot.runtime.objects import rfc3339

from .subject import Spec, Subject

__all__ = ["SHIPPED"]

_AHEAD = timedelta(seconds=4)
_ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
_NO_ZONE = "Europe/Nowhere"


def _valid_until(now: datetime) -> tuple[Spec, datetime]:
    ends = (now + _AHEAD).replace(microsecond=0)
    return {**_ALWAYS, "validUntil": rfc3339(ends)}, ends


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
                inactive={"timezone": "UTC", "sessions": []},
                invalid={"timezone": _NO_ZONE, "sessions": [_ALWAYS]},
            ),
            Subject(
                kind="ManualSchedule",
                active={"enabled": True},
                inactive={"enabled": False},
                invalid={"base": {"kind": "ManualSchedule", "name": "conformance-nowhere"}},
            ),
        )
    }
)
"""Kind -> what the kit has to be told of it."""
