"""Instants as status and other objects hold them: text with whole seconds."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, datetime, timedelta

from fivespot.runtime.objects import parse_rfc3339

__all__ = ["read_instant", "whole_second"]


def read_instant(value: object) -> datetime | None:
    """An RFC 3339 instant in UTC; None for anything else, whoever wrote it."""
    try:
        instant = parse_rfc3339(value) if isinstance(value, str) else None
    except ValueError:
        return None
    # At the edge of the calendar no wait can be added to it.
    return instant if instant is not None and MINYEAR < instant.year < MAXYEAR else None


def whole_second(instant: datetime) -> datetime:
    """The next whole second: status holds no fractions, and a wait must not end early for it."""
    return (instant + timedelta(microseconds=999_999)).replace(microsecond=0)
