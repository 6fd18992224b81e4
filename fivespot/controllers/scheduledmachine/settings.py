"""The settings of the machine controller that an administrator may choose."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from .activation_limiter import ActivationLimits

__all__ = ["MachineSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    """The administrator's settings of the machine controller; the defaults are those of the command line.

    :param capi_version: the version of Cluster API's group to use while it is served; None lets the controller choose.
    :param force_finalizer_on_timeout: remove the finalizer of a deleted ScheduledMachine whose clean-up is overdue.
    :param max_deletions_per_minute: how many deletions by schedule may begin in a minute; None for no limit.
    :param shortest_grace: grace of machines that ask for less; the kill switch and deletions by people know no grace.
    :param activations: limits on creations.
    """

    capi_version: str | None = None
    force_finalizer_on_timeout: bool = False
    max_deletions_per_minute: int | None = None
    shortest_grace: timedelta = timedelta()
    activations: ActivationLimits = field(default_factory=ActivationLimits)
