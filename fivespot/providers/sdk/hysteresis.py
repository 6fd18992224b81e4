"""Keep a verdict from flapping: hysteresis, and a minimum time between two changes. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

__all__ = ["Dwell", "dwell", "hysteresis"]

_NONE = timedelta(0)


def hysteresis(value: float, *, on: float, off: float, active: bool | None) -> bool:
    """Whether to be active at a measured value, with a band in which nothing changes.

    With ``on`` above ``off`` high values mean active: active from ``on`` upwards, inactive from ``off`` downwards. With
    ``on`` below ``off`` it is the other way round.

    :param active: the current verdict (:attr:`Context.active`); None counts as inactive.
    :raises ValueError: ``value`` is no number, because no data is not a low value; or ``on`` equals ``off``.
    """
    if math.isnan(value):
        raise ValueError("the value is not a number: missing data is not a low value")
    if on == off:
        raise ValueError("on and off must differ, or the verdict would flap between them")
    if on < off:
        value, on, off = -value, -on, -off
    if value >= on:
        return True
    return bool(active) and value > off


@dataclass(frozen=True, slots=True)
class Dwell:
    """The verdict after the minimum time in a state is applied.

    :param until: the instant at which the wanted change may be made; None when none is held back.
    """

    active: bool
    until: datetime | None = None


def dwell(
    wanted: bool,
    at: datetime,
    *,
    active: bool | None,
    since: datetime | None,
    least_active: timedelta = _NONE,
    least_inactive: timedelta = _NONE,
) -> Dwell:
    """Hold a change back until the current state has lasted for its minimum time.

    :param wanted: the verdict of the rule.
    :param active: the current verdict (:attr:`Context.active`), and ``since`` when (:attr:`Context.since`). When either
        is not known nothing is held back.
    :param least_active: the minimum time to stay active, and ``least_inactive`` inactive.
    """
    if active is None or since is None or wanted == active:
        return Dwell(wanted)
    free = since + (least_active if active else least_inactive)
    # A start in the future is a clock that was set: it must not hold a state for as long as it was wrong.
    return Dwell(wanted) if free <= at or since > at else Dwell(active, free)
