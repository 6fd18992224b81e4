"""Errors in schedules.

ScheduleError           (a ValueError) a schedule that cannot be read
├── GrammarError        a day, hour, time, date or duration is not written as it must be
└── UnknownZone         a time zone name that the zone data does not have
"""

from __future__ import annotations

from typing import Self


class ScheduleError(ValueError):
    """A schedule that cannot be read.

    ``str()`` is one sentence for the author: the field (if known), the given value, what is allowed and, where
    possible, the nearest valid value.
    """

    def __init__(self, problem: str, *, suggestion: str | None = None, field: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.suggestion = suggestion
        self.field = field

    def within(self, field: str) -> Self:
        """The same error, with ``field`` put in front of the path it has: ``windows[0]`` + ``start``."""
        joined = field if not self.field else f"{field}{'' if self.field[0] == '[' else '.'}{self.field}"
        return type(self)(self.problem, suggestion=self.suggestion, field=joined)

    def __str__(self) -> str:
        hint = f"; did you mean {self.suggestion}?" if self.suggestion else ""
        return f"{self.field}: {self.problem}{hint}" if self.field else f"{self.problem}{hint}"


class GrammarError(ScheduleError):
    """A day, hour, time, date or duration is not written as it must be."""


class UnknownZone(ScheduleError):
    """A time zone name that the zone data does not have."""
