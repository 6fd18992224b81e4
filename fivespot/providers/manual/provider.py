"""ManualSchedule as a provider."""

from __future__ import annotations

from typing import Final

from fivespot.providers.sdk import SCHEDULES, Column, Provider

from .decide import decide
from .spec import KIND, MANUAL_SCHEDULES, ManualScheduleSpec

__all__ = ["PROVIDER"]

PROVIDER: Final = Provider(
    KIND,
    MANUAL_SCHEDULES.plural,
    spec=ManualScheduleSpec,
    decide=decide,
    version=MANUAL_SCHEDULES.version,
    # Cluster API's MachineSets claim `ms` as well, and kubectl prefers them.
    short_names=("ms", "manual"),
    columns=(Column("Enabled", "boolean", ".spec.enabled"), Column("Base", "string", ".spec.base.name")),
    description="A schedule that people decide by hand: a switch, or another schedule with overrides laid over it.",
    reads=(SCHEDULES, MANUAL_SCHEDULES),
)
