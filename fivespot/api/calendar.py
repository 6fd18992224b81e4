"""The texts that schedules are written in: days, hours, times of day and dates, as far as a pattern can judge them."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from fivespot.api.types import DATE_PATTERN
from fivespot.runtime.crd import Cel, matches

DAY_PATTERN: Final = "(mon|tue|wed|thu|fri|sat|sun)"
CLOCK_PATTERN: Final = "([01][0-9]|2[0-3]):[0-5][0-9]"
TIMEZONE_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_+\-/]*$"
_HOUR: Final = "0*([0-9]|1[0-9]|2[0-3])"
_SPACE: Final = "[ \\t]*"


def _list_of(value: str) -> str:
    """A pattern for comma-separated values and ranges, with space around each."""
    part = f"{_SPACE}{value}{_SPACE}(-{_SPACE}{value}{_SPACE})?"
    return f"^{part}(,{part})*$"


def whole_hours(for_minutes: str) -> Cel:
    """The rule of an hour expression; its message ends with what to use for minutes."""
    return matches(
        _list_of(_HOUR),
        "must be whole hours: 0 to 23, a range such as 9-17 (which runs until 17:59) or 22-6, or several with commas; "
        f"for minutes use {for_minutes}",
    )


DayExpression = Annotated[
    str,
    Field(max_length=128),
    matches(
        _list_of(DAY_PATTERN),
        "must be days: mon, tue, wed, thu, fri, sat or sun in lower case, a range such as mon-fri or fri-mon, or "
        "several with commas",
    ),
]
StartTime = Annotated[
    str, Field(max_length=32), matches(f"^{CLOCK_PATTERN}$", 'must be a time of day "HH:MM", 00:00 to 23:59')
]
EndTime = Annotated[
    str, Field(max_length=32), matches(f"^({CLOCK_PATTERN}|24:00)$", 'must be a time of day "HH:MM", 00:00 to 24:00')
]
LocalDate = Annotated[str, Field(max_length=32), matches(DATE_PATTERN, "must be a date YYYY-MM-DD that exists")]
TimeZone = Annotated[str, Field(max_length=64, pattern=TIMEZONE_PATTERN)]
