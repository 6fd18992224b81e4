"""Instants as status and other objects hold them: text with whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["read_instant", "whole_second"]


def read_instant(value: object) -> datetime | None:
    """An RFC 3339 instant in UTC; None for anything else, whoever wrote it."""
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
        # Without an offset it is no instant, and one at the edge of the calendar may not exist in UTC.
        return instant.astimezone(UTC) if instant is not None and instant.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def whole_second(instant: datetime) -> datetime:
    """The next whole second: status holds no fractions, and a wait must not end early for it."""
    return (instant + timedelta(microseconds=999_999)).replace(microsecond=0)
