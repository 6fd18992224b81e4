"""TimeBasedSpotSchedule as a provider."""

from __future__ import annotations

from typing import Final

from fivespot.providers.sdk import Column, Provider

from .decide import decide, prepare
from .spec import KIND, PLURAL, TimeBasedSpotScheduleSpec, TimeBasedSpotScheduleStatus

__all__ = ["PROVIDER"]

PROVIDER: Final = Provider(
    kind=KIND,
    plural=PLURAL,
    spec=TimeBasedSpotScheduleSpec,
    prepare=prepare,
    decide=decide,
    metrics="fivespot_time_based",
    short_names=("tbss",),
    columns=(Column("Enabled", "boolean", ".spec.enabled"), Column("Timezone", "string", ".spec.timezone")),
    description="A schedule of weekly hours and windows in a time zone, for ScheduledMachines to follow.",
    status=TimeBasedSpotScheduleStatus,
)
