"""Instants as whole seconds from 1970 in UTC, and as datetimes for whoever asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)

LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _SECOND
"""The last second that a datetime can hold."""


def seconds_of(at: datetime) -> int:
    """The second that ``at`` lies in. Raises ValueError without an offset from UTC."""
    if at.tzinfo is None:
        raise ValueError("an instant needs an offset from UTC")
    return (at - _EPOCH) // _SECOND


def seconds_after(at: datetime) -> int:
    """The first whole second that is not before ``at``."""
    return -((_EPOCH - at) // _SECOND)


def instant_at(seconds: int) -> datetime | None:
    """The instant in UTC; None after the year 9999."""
    return _EPOCH + timedelta(seconds=seconds) if seconds <= LAST else None
