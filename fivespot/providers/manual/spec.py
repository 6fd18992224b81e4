"""ManualSchedule: a switch, or another schedule to go by while no override says otherwise."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from fivespot.api.names import PROVIDER_GROUP, PROVIDER_VERSION
from fivespot.api.types import DNS_SUBDOMAIN_PATTERN, KIND_PATTERN, ApiModel
from fivespot.runtime.crd import Cel, matches
from fivespot.runtime.objects import Resource

__all__ = ["KIND", "MANUAL_SCHEDULES", "Base", "ManualScheduleSpec"]

KIND: Final = "ManualSchedule"
MANUAL_SCHEDULES: Final = Resource(PROVIDER_GROUP, PROVIDER_VERSION, "manualschedules", KIND)


class Base(ApiModel):
    """Another schedule of the namespace."""

    kind: Annotated[
        str, Field(max_length=63), matches(KIND_PATTERN, "must be a kind such as TimeBasedSpotSchedule, in CamelCase")
    ]
    """Its kind, such as TimeBasedSpotSchedule; any kind of the group spotschedules.5spot.finos.org."""
    name: Annotated[
        str,
        Field(min_length=1, max_length=253),
        matches(DNS_SUBDOMAIN_PATTERN, "must be the name of an object: lower-case letters, digits, '-' and '.'"),
    ]
    """Its name."""


class ManualScheduleSpec(ApiModel):
    """What holds while no override decides: exactly one of enabled and base."""

    RULES = (
        Cel(
            "has(self.enabled) != has(self.base)",
            "exactly one of enabled and base must be given: enabled is a switch, base names a schedule to go by",
            check=lambda spec: (spec.enabled is None) != (spec.base is None),
        ),
    )

    enabled: bool | None = None
    """True: machines exist. False: they do not."""
    base: Base | None = None
    """The schedule that decides while no override does."""
