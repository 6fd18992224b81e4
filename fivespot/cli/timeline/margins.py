"""Lead and lag time in a timeline: the active times that ``leadTime`` and ``lagTime`` alone account for.

They are found by comparison with the same schedules without these fields, so that merging, validity and overrides
need no rules of their own here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from fivespot.cli.timeline.forecast import Interval
from fivespot.cli.timeline.schedules import Schedule
from fivespot.providers.registry import SHIPPED

__all__ = ["margins", "without_margins"]

_FIELDS: Final = frozenset({"leadTime", "lagTime"})


def without_margins(schedules: Sequence[Schedule]) -> list[Schedule] | None:
    """Return the schedules without lead and lag time; None if none of them has any.

    Only kinds that come with fivespot are changed: in another kind the fields may mean something else.
    """
    if not any(_has_margins(schedule) for schedule in schedules):
        return None
    return [_stripped(schedule) if _has_margins(schedule) else schedule for schedule in schedules]


def margins(active: Iterable[Interval], core: Sequence[Interval]) -> list[tuple[datetime, datetime]]:
    """Return the parts of active times that lie outside of the core, the times without lead and lag time."""
    found: list[tuple[datetime, datetime]] = []
    for interval in active:
        start = interval.start
        for part in core:
            if part.end <= start or part.start >= interval.end:
                continue
            if part.start > start:
                found.append((start, part.start))
            start = part.end
        if start < interval.end:
            found.append((start, interval.end))
    return found


def _has_margins(schedule: Schedule) -> bool:
    return schedule.kind in SHIPPED and any(schedule.spec.get(name) is not None for name in _FIELDS)


def _stripped(schedule: Schedule) -> Schedule:
    spec = {name: value for name, value in schedule.spec.items() if name not in _FIELDS}
    return replace(schedule, body={**schedule.body, "spec": spec})
