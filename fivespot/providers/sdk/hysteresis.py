"""Keeps a verdict from flapping: hysteresis, and the least time between two changes. Pure."""

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

    :param active: what holds now (:attr:`Context.active`); None counts as inactive.
    :raises ValueError: ``value`` is no number, because no data is not a low value; or ``on`` equals ``off``.
    """
    if math.isnan(value):
        raise ValueError("the value is not a number: no data says nothing")
    if on == off:
        raise ValueError("on and off must differ, or the verdict would flap between them")
    if on < off:
        value, on, off = -value, -on, -off
    if value >= on:
        return True
    return bool(active) and value > off


@dataclass(frozen=True, slots=True)
class Dwell:
    """What holds after the least time in a state is seen to.

    :param until: the instant at which the change that is wanted may be made; None when none is held back.
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
    """Hold a change back until the present state has lasted for its least time.

    :param wanted: what the rule says now.
    :param active: what holds now (:attr:`Context.active`), ``since`` when (:attr:`Context.since`). When either is not
        known nothing is held back.
    :param least_active: how long to stay active at least, and ``least_inactive`` inactive.
    """
    if active is None or since is None or wanted == active:
        return Dwell(wanted)
    free = since + (least_active if active else least_inactive)
    # A start in the future is a clock that was set: it must not hold a state for as long as it was wrong.
    return Dwell(wanted) if free <= at or since > at else Dwell(active, free)
