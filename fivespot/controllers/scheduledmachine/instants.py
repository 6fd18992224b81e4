"""Instants as API objects hold them: text with whole seconds."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, datetime, timedelta

from fivespot.runtime.objects import parse_rfc3339

__all__ = ["read_instant", "whole_second"]


def read_instant(value: object) -> datetime | None:
    """Parse an RFC 3339 instant, in UTC; None for anything else."""
    try:
        instant = parse_rfc3339(value) if isinstance(value, str) else None
    except ValueError:
        return None
    # No wait can be added at the edge of the calendar.
    return instant if instant is not None and MINYEAR < instant.year < MAXYEAR else None


def whole_second(instant: datetime) -> datetime:
    """Round up to a whole second: status holds no fractions, and a wait must not end early."""
    return (instant + timedelta(microseconds=999_999)).replace(microsecond=0)
