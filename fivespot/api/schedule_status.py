"""The status that every schedule kind shares: the provider contract, seen from the provider's side."""

from __future__ import annotations

from typing import Annotated

from fivespot.api.types import ApiModel, Conditions, Timestamp
from fivespot.runtime.crd import nullable


class ScheduleStatus(ApiModel):
    """The verdict of a schedule, which ScheduledMachines act on."""

    active: bool
    """True: machines that refer to this schedule should exist. False: they should not."""
    conditions: Conditions | None = None
    """Ready is True while the verdict can be relied on; while it is anything else, machines stay as they are."""
    observed_generation: int | None = None
    """The metadata.generation that this status was computed for."""
    last_transition_time: Timestamp | None = None
    """When active last changed."""
    next_transition_time: Annotated[Timestamp | None, nullable()] = None
    """When active changes next, as far as is known now; null when it never does."""
