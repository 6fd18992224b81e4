"""Whether a market is open at an instant, and the exact instant of the next change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from fivespot.schedule.evaluate import Cause, Evaluation, SkippedWindow, changes_between, skipped_windows
from fivespot.schedule.instants import instant_at, seconds_after, seconds_of
from fivespot.schedule.search import Search

from .pattern import MarketPattern
from .rules import MarketCalendar


class MarketTimeline:
    """A calendar prepared for evaluation. Make it once for each calendar and keep it: it remembers."""

    def __init__(self, calendar: MarketCalendar) -> None:
        self.calendar = calendar
        self._search = Search(calendar.zone, MarketPattern(calendar))

    def evaluate(self, at: datetime) -> Evaluation:
        """The state at ``at``, which must carry an offset (ValueError otherwise)."""
        segment = self._search.find(seconds_of(at))
        return Evaluation(segment.active, instant_at(segment.end), Cause.OPEN if segment.active else Cause.CLOSED)

    def transitions(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, bool]]:
        """Every change after ``start`` and before ``end``, and the state from then on."""
        return changes_between(self.evaluate, start, end)

    def skipped(self, start: datetime, end: datetime) -> list[SkippedWindow]:
        """The sessions (or pieces between breaks) of which a jump of the clock in ``[start, end)`` leaves nothing.

        Hours of sessions by the hour are left out: they are what the clock shows.
        """
        return skipped_windows(self._search.skipped(seconds_after(start), seconds_after(end)))
