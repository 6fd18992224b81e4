"""CapitalMarketsSchedule as a provider."""

from __future__ import annotations

from typing import Final

from fivespot.providers.sdk import Column, Provider

from .decide import decide, prepare
from .spec import KIND, PLURAL, CapitalMarketsScheduleSpec, CapitalMarketsScheduleStatus

__all__ = ["PROVIDER"]

PROVIDER: Final = Provider(
    kind=KIND,
    plural=PLURAL,
    spec=CapitalMarketsScheduleSpec,
    prepare=prepare,
    decide=decide,
    metrics="fivespot_capital_markets",
    short_names=("cms",),
    columns=(Column("Timezone", "string", ".spec.timezone"),),
    description="A schedule that follows the trading calendar of a market, for ScheduledMachines to follow.",
    status=CapitalMarketsScheduleStatus,
)
