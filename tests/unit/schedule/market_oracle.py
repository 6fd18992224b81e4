"""A second implementation of market calendars, for comparison: sets of minutes, and ``whenever`` for the zones.

It shares no code and no method with the product: what a date leaves open is a set of minutes, sessions are runs of
minutes, and each boundary is constructed from its local date. Slow and plain on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from whenever import Date

from unit.schedule.oracle import NAMES, fires, hhmm, local_time

DAY = 1440

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class MarketCase:
    """A calendar as numbers: days 0-6 from Monday, times in minutes from midnight, dates as texts."""

    zone: str
    by_hours: tuple[tuple[frozenset[int], frozenset[int]], ...] = ()
    by_minutes: tuple[tuple[frozenset[int], int, int, Pairs], ...] = ()
    holidays: tuple[str, ...] = ()
    close_hours: tuple[tuple[str, int], ...] = ()
    early: tuple[tuple[str, int], ...] = ()
    """Listed after ``close_hours``, so that these win on a date that has both."""
    late: tuple[tuple[str, int], ...] = ()
    special: tuple[tuple[str, int, int, Pairs], ...] = ()
    give_back: bool = False
    lead: int = 0
    lag: int = 0

    def spec(self) -> dict[str, object]:
        """The same as a custom resource's spec."""
        sessions: list[object] = [
            {"daysOfWeek": names(days), "hoursOfDay": [str(hour) for hour in sorted(hours)]}
            for days, hours in self.by_hours
        ]
        sessions += [
            {"daysOfWeek": names(days), "open": hhmm(opens), "close": hhmm(closes), "breaks": pauses(breaks)}
            for days, opens, closes, breaks in self.by_minutes
        ]
        return {
            "timezone": self.zone,
            "sessions": sessions,
            "holidays": list(self.holidays),
            "earlyCloses": [
                *({"date": day, "closeHour": hour} for day, hour in self.close_hours),
                *({"date": day, "close": hhmm(minute)} for day, minute in self.early),
            ],
            "lateOpens": [{"date": day, "open": hhmm(minute)} for day, minute in self.late],
            "specialSessions": [
                {"date": day, "open": hhmm(opens), "close": hhmm(closes), "breaks": pauses(breaks)}
                for day, opens, closes, breaks in self.special
            ],
            "breaks": "GiveBack" if self.give_back else "Keep",
            "leadTime": f"{self.lead}m",
            "lagTime": f"{self.lag}m",
        }


def names(days: Iterable[int]) -> list[str]:
    return [NAMES[day] for day in sorted(days)]


def pauses(breaks: Pairs) -> list[dict[str, str]]:
    return [{"start": hhmm(start), "end": hhmm(end)} for start, end in breaks]


@dataclass
class MarketOracle:
    """Says whether a market is open at an instant."""

    case: MarketCase
    _known: dict[Date, list[tuple[int, int]]] = field(default_factory=dict, repr=False)

    def active(self, at: int) -> bool:
        first, last = at - self.case.lag * 60, at + self.case.lead * 60
        if any(self._hour(moment) for moment in (first, *range(first - first % 60 + 60, last + 1, 60))):
            return True
        day = local_time(self.case.zone, first).date()
        nearby = (day.add(days=step) for step in range(-4, 4))
        return any(opens <= last and closes > first for near in nearby for opens, closes in self._opening_on(near))

    def _hour(self, at: int) -> bool:
        local = local_time(self.case.zone, at)
        day = local.date()
        minute = local.hour * 60 + local.minute
        return any(
            weekday(day) in days and local.hour in hours and minute in self._left_open(day)
            for days, hours in self.case.by_hours
        )

    def _left_open(self, day: Date) -> set[int]:
        """The minutes of a date that are not taken from its weekly sessions."""
        text = str(day)
        if text in self.case.holidays or any(text == entry[0] for entry in self.case.special):
            return set()
        minutes = set(range(DAY))
        closes = [(hour + 1) * 60 for date, hour in self.case.close_hours if date == text]
        closes += [minute for date, minute in self.case.early if date == text]
        for close in closes[:1]:
            minutes &= set(range(close))
        for opens in [minute for date, minute in self.case.late if date == text][:1]:
            minutes -= set(range(opens))
        return minutes

    def _opening_on(self, day: Date) -> list[tuple[int, int]]:
        if day not in self._known:
            self._known[day] = list(self._make(day))
        return self._known[day]

    def _make(self, day: Date) -> Iterator[tuple[int, int]]:
        found = []
        for days, opens, closes, breaks in self.case.by_minutes:
            if weekday(day) in days:
                left = {m + step * DAY for step in range(3) for m in self._left_open(day.add(days=step))}
                found.append(self._minutes(opens, closes, breaks) & left)
        for text, opens, closes, breaks in self.case.special:
            if text == str(day):
                found.append(self._minutes(opens, closes, breaks))
        for minutes in found:
            for start in minutes:
                if start - 1 not in minutes:
                    end = next(m for m in range(start, 3 * DAY) if m not in minutes)
                    yield fires(self.case.zone, day, start), fires(self.case.zone, day, end)

    def _minutes(self, opens: int, closes: int, breaks: Pairs) -> set[int]:
        minutes = set(range(opens, closes if closes > opens else closes + DAY))
        for start, end in breaks if self.case.give_back else ():
            first, last = (time if time >= opens else time + DAY for time in (start, end))
            minutes -= set(range(first, last))
        return minutes


def weekday(day: Date) -> int:
    return day.day_of_week().value - 1
