"""Instants as status and other objects hold them: text with whole seconds."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta

__all__ = ["read_instant", "whole_second"]


def read_instant(value: object) -> datetime | None:
    """An RFC 3339 instant in UTC; None for anything else, whoever wrote it."""
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    # Without an offset it is no instant. At the edge of the calendar no offset and no wait can be added to it.
    if instant is None or instant.tzinfo is None or not MINYEAR < instant.year < MAXYEAR:
        return None
    return instant.astimezone(UTC)


def whole_second(instant: datetime) -> datetime:
    """The next whole second: status holds no fractions, and a wait must not end early for it."""
    return (instant + timedelta(microseconds=999_999)).replace(microsecond=0)
