"""RFC 3339 timestamps, as Kubernetes writes and reads them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

__all__ = ["parse_rfc3339", "rfc3339", "rfc3339_micro"]

_TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_MICROSECONDS: Final = 1 + 6


def rfc3339(instant: datetime, *, fraction: bool = False) -> str:
    """Format an aware datetime in UTC with whole seconds (``metav1.Time``): ``2027-01-31T06:00:00Z``.

    :param fraction: keep the fraction of a second, where there is one.
    """
    text = instant.astimezone(UTC).isoformat(timespec="auto" if fraction else "seconds")
    return f"{text.removesuffix('+00:00')}Z"


def rfc3339_micro(instant: datetime) -> str:
    """Format an aware datetime in UTC with six decimals (``metav1.MicroTime``): ``2027-01-31T06:00:00.000000Z``."""
    return f"{instant.astimezone(UTC).isoformat(timespec='microseconds').removesuffix('+00:00')}Z"


def parse_rfc3339(text: str) -> datetime:
    """Parse an RFC 3339 timestamp into a datetime in UTC; digits beyond microseconds are dropped.

    :raises ValueError: it is no such timestamp: it has no offset, names a day that does not exist, or lies outside
        the years 1 to 9999.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:64]!r} is not an RFC 3339 timestamp such as 2027-01-31T06:00:00Z")
    date, time, fraction, offset = match.groups()
    zone = "+00:00" if offset in "Zz" else offset
    try:
        return datetime.fromisoformat(f"{date}T{time}{(fraction or '')[:_MICROSECONDS]}{zone}").astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text[:64]!r} lies outside the years 1 to 9999") from None
