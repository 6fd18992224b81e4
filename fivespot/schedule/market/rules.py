"""The rules of a market calendar, as plain values.

Times of day are seconds from local midnight, days are numbers (Monday 0). Each value checks itself, so that the
arithmetic never meets one that makes no sense.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from fivespot.schedule.civil import Zone
from fivespot.schedule.errors import GrammarError
from fivespot.schedule.fields import within
from fivespot.schedule.grammar import DAY, HOUR, format_time, parse_date, parse_days, parse_time
from fivespot.schedule.intervals import Interval, merge, subtract
from fivespot.schedule.rules import HourRule, SpanWindow, check_bounds, check_days, window_length


class Breaks(StrEnum):
    """The effect of session breaks on machines."""

    KEEP = "Keep"
    """Nothing: a session is open from its open to its close."""
    GIVE_BACK = "GiveBack"
    """It is closed during its breaks."""


@dataclass(frozen=True)
class TradingHours:
    """From ``open`` until ``close`` (exclusive), with breaks: pairs of start and end.

    A close before the open is on the next day. A break is the first such time after the open.
    """

    open: int
    close: int
    breaks: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if not (0 <= self.open < DAY and 0 <= self.close <= DAY):
            raise GrammarError("times of day are 00:00 to 24:00, and 24:00 can only be an end")
        if self.open == self.close:
            raise GrammarError(
                f'start and end are both "{format_time(self.open)}": a session must have a length; the full day is '
                '00:00 to 24:00, and 24 hours from any other time are {from: "mon 17:00", until: "tue 17:00"}',
                field="end",
            )
        for index, (start, end) in enumerate(self.breaks):
            first, last = self._after_open(start), self._after_open(end)
            if not first < last <= self.open + window_length(self.open, self.close):
                raise GrammarError(
                    f"{format_time(start)} to {format_time(end)} is not a time within the session, which is open from "
                    f"{format_time(self.open)} to {format_time(self.close)}",
                    field=f"breaks[{index}]",
                )

    @classmethod
    def parse(cls, opens: str, closes: str, breaks: Iterable[tuple[str, str]] = ()) -> TradingHours:
        """Read ``start``, ``end`` and ``breaks``. Raises :class:`GrammarError`."""
        with within("start"):
            first = parse_time(opens)
        with within("end"):
            last = parse_time(closes, end=True)
        read = []
        for index, (start, end) in enumerate(breaks):
            with within(f"breaks[{index}].start"):
                begins = parse_time(start)
            with within(f"breaks[{index}].end"):
                read.append((begins, parse_time(end, end=True)))
        return cls(first, last, tuple(read))

    def pieces(self, breaks: Breaks) -> list[Interval]:
        """Return the open spans, in seconds from the midnight before the open."""
        whole = self.open, self.open + window_length(self.open, self.close)
        if breaks is Breaks.KEEP:
            return [whole]
        return subtract(whole, merge((self._after_open(start), self._after_open(end)) for start, end in self.breaks))

    def _after_open(self, time: int) -> int:
        return time if time >= self.open else time + DAY


@dataclass(frozen=True)
class Session:
    """Trading hours that open on each of ``days``."""

    days: frozenset[int]
    hours: TradingHours

    def __post_init__(self) -> None:
        check_days(self.days)

    @classmethod
    def parse(cls, days: Iterable[str], opens: str, closes: str, breaks: Iterable[tuple[str, str]] = ()) -> Session:
        """Read ``{days, start, end, breaks}``. Raises :class:`GrammarError`."""
        with within("days"):
            found = parse_days(days)
            if not found:
                raise GrammarError("is empty: a session with start and end must name its days")
        return cls(found, TradingHours.parse(opens, closes, breaks))


@dataclass(frozen=True)
class SpecialSession:
    """Trading hours that open on one date."""

    date: date
    hours: TradingHours


@dataclass(frozen=True)
class EarlyClose:
    """Nothing is open on ``date`` from the time of day ``close`` on."""

    date: date
    close: int

    def __post_init__(self) -> None:
        if not 0 <= self.close <= DAY:
            raise GrammarError("times of day are 00:00 to 24:00", field="close")


@dataclass(frozen=True)
class LateOpen:
    """Nothing is open on ``date`` before the time of day ``open``."""

    date: date
    open: int

    def __post_init__(self) -> None:
        if not 0 <= self.open < DAY:
            raise GrammarError("times of day are 00:00 to 23:59", field="open")


@dataclass(frozen=True)
class MarketCalendar:
    """A whole calendar, in one zone.

    On each local date, in this order: a date with special sessions has these and nothing else; a holiday has nothing;
    any other has what of the weekly sessions lies between its late open and its early close. Of several early closes
    or late opens for a date the first counts. A session that runs past midnight is judged on each of its dates.

    Then each opening moves earlier by ``lead_time`` and each closing later by ``lag_time`` (elapsed time), what
    overlaps or touches is merged, and ``valid_from`` (inclusive), ``valid_until`` (exclusive) and ``enabled`` are
    applied. Sessions by the hour are what the wall clock shows; every other boundary fires once.
    """

    zone: Zone
    sessions: tuple[HourRule | Session | SpanWindow, ...] = ()
    holidays: frozenset[date] = frozenset()
    early_closes: tuple[EarlyClose, ...] = ()
    late_opens: tuple[LateOpen, ...] = ()
    special_sessions: tuple[SpecialSession, ...] = ()
    breaks: Breaks = Breaks.KEEP
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    lead_time: timedelta = timedelta(0)
    lag_time: timedelta = timedelta(0)
    enabled: bool = True

    def __post_init__(self) -> None:
        check_bounds(self.valid_from, self.valid_until, self.lead_time, self.lag_time)

    def closes_on(self) -> dict[date, int]:
        """The early close that counts for each date that has one."""
        return {entry.date: entry.close for entry in reversed(self.early_closes)}

    def opens_on(self) -> dict[date, int]:
        """The late open that counts for each date that has one."""
        return {entry.date: entry.open for entry in reversed(self.late_opens)}


def parse_early_close(day: str, close: str) -> EarlyClose:
    """Read ``{date, close}``. Raises :class:`GrammarError`."""
    with within("date"):
        found = parse_date(day)
    with within("close"):
        return EarlyClose(found, parse_time(close))


def parse_late_open(day: str, opens: str) -> LateOpen:
    """Read ``{date, open}``. Raises :class:`GrammarError`."""
    with within("date"):
        found = parse_date(day)
    with within("open"):
        return LateOpen(found, parse_time(opens))


def close_after(hour: int) -> int:
    """The time of day that leaves ``hour`` open to its end, as ``closeHour`` does. Raises :class:`GrammarError`."""
    if not 0 <= hour < 24:
        raise GrammarError(f"{hour} is not an hour: write a whole number, 0 to 23")
    return (hour + 1) * HOUR
