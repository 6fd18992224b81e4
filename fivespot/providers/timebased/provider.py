"""TimeBasedSpotSchedule as a provider."""

from __future__ import annotations

from typing import Final

from fivespot.providers.sdk import Provider

from .decide import decide, prepare
from .spec import KIND, PLURAL, TimeBasedSpotScheduleSpec

__all__ = ["PROVIDER"]

PROVIDER: Final = Provider(
    kind=KIND,
    plural=PLURAL,
    spec=TimeBasedSpotScheduleSpec,
    prepare=prepare,
    decide=decide,
    metrics="fivespot_time_based",
)
