"""How a CapitalMarketsSchedule decides: the calendar's arithmetic, with words for people."""

from __future__ import annotations

from datetime import datetime

from fivespot.api.names import ProviderReason
from fivespot.providers.calendar_words import both_times, skipped_around
from fivespot.providers.sdk import SpecError, Verdict
from fivespot.schedule import ScheduleError
from fivespot.schedule.market import MarketTimeline, read_calendar

from .remarks import Remarks
from .spec import CapitalMarketsScheduleSpec

__all__ = ["Market", "decide", "prepare"]


class Market:
    """A calendar ready to be asked: for verdicts, and for what there is to say about a change."""

    def __init__(self, timeline: MarketTimeline) -> None:
        self.timeline = timeline
        self.remarks = Remarks(timeline.calendar)


def prepare(spec: CapitalMarketsScheduleSpec) -> Market:
    """The calendar of a spec.

    :raises SpecError: it cannot be followed; the text begins with the field's path.
    """
    try:
        return Market(MarketTimeline(read_calendar(spec.model_dump(by_alias=True, exclude_none=True))))
    except ScheduleError as error:
        raise SpecError(f"spec.{error}") from error


def decide(market: Market, at: datetime) -> Verdict:
    """The verdict at an instant, and the exact instant of the next change."""
    found = market.timeline.evaluate(at)
    reason = ProviderReason.SESSION_OPEN if found.active else ProviderReason.SESSION_CLOSED
    message = _message(market, found.active, found.until)
    notes, again = skipped_around(market.timeline.skipped, at, "session")
    return Verdict(found.active, found.until, reason, message, notes, again)


def _message(market: Market, active: bool, until: datetime | None) -> str:
    """Depends on nothing but the next change, so that it stays the same until then."""
    if until is None:
        return "open, and never closes" if active else "closed, and no session opens"
    remark = market.remarks.on_closing(until) if active else market.remarks.on_opening(until)
    return f"{'closes' if active else 'opens'} {both_times(market.timeline.calendar.zone, until, remark)}"
