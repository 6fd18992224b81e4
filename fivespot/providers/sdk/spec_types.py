"""Types for the fields of specs that pydantic's own do not cover."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, WithJsonSchema

from fivespot.api.types import INSTANT_PATTERN, instant_message
from fivespot.runtime.crd import Cel
from fivespot.runtime.objects import parse_rfc3339

__all__ = ["Instant"]

_LONGEST: Final = 64
_PATTERN: Final = re.compile(INSTANT_PATTERN[1:-1], re.ASCII)


def _read(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not _PATTERN.fullmatch(value):
        raise ValueError(instant_message(value))
    return parse_rfc3339(value)


def _utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("must lie in the years 1 to 9999 in UTC") from None


Instant: TypeAlias = Annotated[
    AwareDatetime,
    WithJsonSchema({"type": "string", "maxLength": _LONGEST}),
    BeforeValidator(_read),
    AfterValidator(_utc),
    # The server's rule; the validators above are the same in Python, on a value that is no text any more.
    Cel(f"self.matches(r'{INSTANT_PATTERN}')", instant_message(""), check=lambda _: True),
]
"""An aware ``datetime`` in UTC, which people write as RFC 3339 with an offset: ``2027-01-31T06:00:00+01:00``."""
