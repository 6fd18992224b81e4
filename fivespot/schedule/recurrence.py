"""Recurring dates: the parts of an iCalendar RRULE (RFC 5545, 3.3.10) that make sense for days.

A rule is never expanded. Its dates are computed period by period (day, week, month or year), from the period that is
asked about, so that the cost does not depend on when the rule began or how long it goes on.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum
from typing import Final, TypeVar

from .errors import GrammarError

__all__ = ["MAX_INTERVALS", "Frequency", "Recurrence"]

T = TypeVar("T")

_EPOCH: Final = date(1970, 1, 1)
_FIRST: Final = (date.min - _EPOCH).days
_LAST: Final = (date.max - _EPOCH).days
_HORIZON_YEARS: Final = 400
"""The calendar repeats itself after so many years: a rule without a date in them has none."""
_KEPT: Final = 64
_CODES: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY: Final = re.compile(r"([+-]?[1-5])?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,3}", re.ASCII)
_UNTIL: Final = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})", re.ASCII)
_MOST_PARTS: Final = 32
_TIME_PARTS: Final = frozenset({"BYHOUR", "BYMINUTE", "BYSECOND"})


class Frequency(StrEnum):
    """The period that a rule counts in."""

    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    YEARLY = "YEARLY"


MAX_INTERVALS: Final[Mapping[Frequency, int]] = {
    Frequency.DAILY: 366,
    Frequency.WEEKLY: 53,
    Frequency.MONTHLY: 120,
    Frequency.YEARLY: 10,
}
"""The greatest ``INTERVAL`` of each frequency."""

_PARTS: Final[Mapping[Frequency, frozenset[str]]] = {
    Frequency.DAILY: frozenset(),
    Frequency.WEEKLY: frozenset({"BYDAY", "WKST"}),
    Frequency.MONTHLY: frozenset({"BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS"}),
    Frequency.YEARLY: frozenset({"BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS"}),
}


@dataclass(frozen=True)
class Recurrence:
    """Dates that recur.

    Days of the week are pairs of an ordinal within the month (0: each) and a number, Monday 0.

    :param first: the date from which intervals count; no date before it recurs. None if nothing depends on it.
    :param until: the last date that may recur.
    """

    frequency: Frequency
    interval: int = 1
    first: date | None = None
    until: date | None = None
    days: tuple[tuple[int, int], ...] = ()
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    week_start: int = 0
    _known: dict[int, list[int]] = field(default_factory=dict, repr=False, compare=False, hash=False)

    @classmethod
    def parse(cls, rule: str, first: date | None = None) -> Recurrence:
        """Read a rule such as ``FREQ=MONTHLY;BYDAY=-1FR``, with the date from which it counts.

        :raises GrammarError: it is no rule, or one that makes no sense for days, or names no date.
        """
        parts = _split(rule)
        text = parts.pop("FREQ", None)
        if text is None or text not in Frequency.__members__:
            raise GrammarError(f'"{rule}" must begin with FREQ=DAILY, WEEKLY, MONTHLY or YEARLY', field="rule")
        frequency = Frequency(text)
        interval = _one(parts.pop("INTERVAL", "1"), "INTERVAL", 1, MAX_INTERVALS[frequency])
        until = _until(parts.pop("UNTIL")) if "UNTIL" in parts else None
        for name in parts:
            _check_part(name, frequency)
        found = cls(
            frequency,
            interval,
            first,
            until,
            tuple(sorted(_listed(parts, "BYDAY", _weekday))),
            tuple(sorted(_listed(parts, "BYMONTHDAY", lambda text: _signed(text, "BYMONTHDAY", 31)))),
            tuple(sorted(_listed(parts, "BYMONTH", lambda text: _one(text, "BYMONTH", 1, 12)))),
            tuple(sorted(_listed(parts, "BYSETPOS", lambda text: _signed(text, "BYSETPOS", 366)))),
            _weekday(parts.get("WKST", "MO"))[1],
        )._completed()
        if found.next(0 if first is None else _day_of(first)) is None:
            raise GrammarError(f'"{rule}" names no date: nothing would ever open', field="rule")
        return found

    def matches(self, day: int) -> bool:
        """Whether a date recurs, given in days from 1 January 1970."""
        return self.next(day) == day

    def next(self, day: int) -> int | None:
        """Return the first recurring date that is not before a date, both in days from 1 January 1970."""
        first = _day_of(self.first) if self.first is not None else None
        day = max(day, _FIRST if first is None else first)
        limit = min(_day_of(self.until) if self.until is not None else _LAST, day + _HORIZON_YEARS * 366, _LAST)
        if day > limit:
            return None
        base = self._period_of(first) if first is not None else 0
        period = self._period_of(day)
        period += (base - period) % self.interval
        final = self._period_of(limit)
        while period <= final:
            for found in self._dates(period):
                if found >= day:
                    return found if found <= limit else None
            period += self.interval
        return None

    @property
    def is_weekly(self) -> bool:
        """Whether the rule is the same in every week, without beginning or end."""
        return self.interval == 1 and self.first is None and self.until is None and not self._by_month

    @property
    def _by_month(self) -> bool:
        return self.frequency in (Frequency.MONTHLY, Frequency.YEARLY)

    @property
    def weekdays(self) -> frozenset[int]:
        """The days of the week on which it may fall."""
        if self.frequency is Frequency.DAILY or not self.days:
            return frozenset(range(7))
        return frozenset(weekday for _, weekday in self.days)

    def _completed(self) -> Recurrence:
        """Return the rule with what it leaves out taken from its first date, as RFC 5545 has it."""
        first, days, month_days, months = self.first, self.days, self.month_days, self.months
        if self.frequency is Frequency.WEEKLY and any(ordinal for ordinal, _ in days):
            raise GrammarError("a number before a day needs FREQ=MONTHLY or YEARLY", field="rule")
        wants_day = self.frequency is not Frequency.DAILY and not days and not month_days
        wants_month = self.frequency is Frequency.YEARLY and not months
        if wants_month and not wants_day:
            raise GrammarError(
                "FREQ=YEARLY with BYDAY or BYMONTHDAY needs BYMONTH; for every month write FREQ=MONTHLY", field="rule"
            )
        if first is None and (self.interval > 1 or wants_day or wants_month):
            what = f"INTERVAL={self.interval}" if self.interval > 1 else "the day" if wants_day else "the month"
            raise GrammarError(f"is required: it says from when {what} counts", field="startDate")
        if first is not None and wants_day and self.frequency is Frequency.WEEKLY:
            days = ((0, first.weekday()),)
        elif first is not None and wants_day:
            month_days = (first.day,)
        if first is not None and wants_month:
            months = (first.month,)
        return Recurrence(
            self.frequency,
            self.interval,
            first,
            self.until,
            days,
            month_days,
            months,
            self.positions,
            self.week_start,
        )

    # -- periods -----------------------------------------------------------------------------------------------------

    def _period_of(self, day: int) -> int:
        if self.frequency is Frequency.DAILY:
            return day
        if self.frequency is Frequency.WEEKLY:
            # 1 January 1970 was a Thursday.
            return (day + 3 - self.week_start) // 7
        at = _EPOCH + timedelta(days=day)
        return at.year * 12 + at.month - 1 if self.frequency is Frequency.MONTHLY else at.year

    def _dates(self, period: int) -> list[int]:
        """The recurring dates of a period, sorted, without regard to the first and the last."""
        if self.frequency is Frequency.DAILY:
            return [period]
        found = self._known.get(period)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[period] = self._compute(period)
        return found

    def _compute(self, period: int) -> list[int]:
        if self.frequency is Frequency.WEEKLY:
            monday = period * 7 - 3
            starts = self.week_start
            return sorted(monday + starts + (weekday - starts) % 7 for _, weekday in self.days)
        if self.frequency is Frequency.MONTHLY:
            year, month = divmod(period, 12)
            found = self._in_month(year, month + 1)
        else:
            found = [day for month in self.months for day in self._in_month(period, month)]
        if not self.positions:
            return found
        chosen = {position - 1 if position > 0 else len(found) + position for position in self.positions}
        return [day for index, day in enumerate(found) if index in chosen]

    def _in_month(self, year: int, month: int) -> list[int]:
        if (self.months and month not in self.months) or not date.min.year <= year <= date.max.year:
            return []
        weekday_of_first, length = monthrange(year, month)
        before = _day_of(date(year, month, 1)) - 1
        numbers = set(range(1, length + 1))
        if self.month_days:
            numbers &= {number if number > 0 else length + 1 + number for number in self.month_days}
        if self.days:
            chosen: set[int] = set()
            for ordinal, weekday in self.days:
                each = list(range(1 + (weekday - weekday_of_first) % 7, length + 1, 7))
                if ordinal == 0:
                    chosen.update(each)
                elif abs(ordinal) <= len(each):
                    chosen.add(each[ordinal - 1 if ordinal > 0 else ordinal])
            numbers &= chosen
        return [before + number for number in sorted(numbers)]


def _day_of(day: date) -> int:
    return (day - _EPOCH).days


def _split(rule: str) -> dict[str, str]:
    pieces = [piece for piece in rule.removeprefix("RRULE:").split(";") if piece]
    parts: dict[str, str] = {}
    for piece in pieces[:_MOST_PARTS]:
        name, equals, value = piece.partition("=")
        if not equals or not value:
            raise GrammarError(f'"{piece[:64]}" must be a part such as FREQ=WEEKLY', field="rule")
        if name in parts:
            raise GrammarError(f"{name[:64]} occurs twice", field="rule")
        parts[name] = value
    return parts


def _check_part(name: str, frequency: Frequency) -> None:
    if name == "COUNT":
        raise GrammarError("COUNT is not read: write UNTIL, the last date, such as UNTIL=20271231", field="rule")
    if name in _TIME_PARTS:
        raise GrammarError(f"{name} is not read: the window's start and end say the time of day", field="rule")
    if name not in _PARTS[frequency]:
        known = ", ".join(sorted({"INTERVAL", "UNTIL", *_PARTS[frequency]}))
        hint = "; for days of the week write FREQ=WEEKLY" if (name, frequency) == ("BYDAY", Frequency.DAILY) else ""
        raise GrammarError(f"FREQ={frequency} has no {name[:64]}; it has {known}{hint}", field="rule")


def _listed(parts: Mapping[str, str], name: str, read: Callable[[str], T]) -> Iterable[T]:
    return {read(each) for each in parts[name].split(",")} if name in parts else set()


def _one(text: str, name: str, least: int, most: int) -> int:
    value = int(text) if _NUMBER.fullmatch(text) else least - 1
    if not least <= value <= most:
        raise GrammarError(f'{name}="{text[:16]}" must be a whole number, {least} to {most}', field="rule")
    return value


def _signed(text: str, name: str, most: int) -> int:
    value = int(text) if _NUMBER.fullmatch(text) else 0
    if not 1 <= abs(value) <= most:
        raise GrammarError(f'{name}="{text[:16]}" must be 1 to {most}, or -1 to -{most} from the end', field="rule")
    return value


def _weekday(text: str) -> tuple[int, int]:
    found = _DAY.fullmatch(text)
    if found is None:
        raise GrammarError(
            f'"{text[:16]}" must be MO, TU, WE, TH, FR, SA or SU, with a number before it for one of the month, such '
            "as 1SA or -1FR",
            field="rule",
        )
    return int(found[1] or 0), _CODES.index(found[2])


def _until(text: str) -> date:
    found = _UNTIL.match(text)
    try:
        if found is None or len(text) > 16:
            raise ValueError
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        raise GrammarError(f'UNTIL="{text[:16]}" must be the last date, such as UNTIL=20271231', field="rule") from None
