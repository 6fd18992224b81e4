"""The CapitalMarketsSchedule provider: a market's calendar, with messages about unusual openings and closings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

from fivespot.api.names import ProviderReason
from fivespot.providers.calendar_notes import both_times, cause_text, skipped_around
from fivespot.providers.sdk import Column, Provider, SpecError, Verdict
from fivespot.schedule import Cause, Evaluation, HourRule, ScheduleError, SpanWindow, parse_date
from fivespot.schedule.market import MarketCalendar, MarketTimeline, Session, read_calendar
from fivespot.schedule.market.advice import advice_on_calendar

from .spec import KIND, PLURAL, CapitalMarketsScheduleSpec, CapitalMarketsScheduleStatus

__all__ = ["PROVIDER", "Market", "Remarks", "decide", "prepare"]

_DAY: Final = timedelta(days=1)

_DAY_SECONDS: Final = 86_400
_SHOWN: Final = 3


class Remarks:
    """Notes on the changes of a calendar, limited to those that people would ask about."""

    def __init__(self, calendar: MarketCalendar) -> None:
        self._calendar = calendar
        self._special = {special.date for special in calendar.special_sessions}
        self._closes, self._opens = calendar.closes_on(), calendar.opens_on()
        self._days: set[int] = set()
        for session in calendar.sessions:
            self._days.update(_opening_days(session))

    def on_closing(self, until: datetime) -> str:
        """Describe a special closing at an instant; empty for an ordinary one."""
        # A session that ends at midnight belongs to the day before it.
        local = self._local(until)
        last = self._local(until - timedelta(seconds=1)).date()
        if last in self._special:
            return "special session"
        if last != local.date() and self._is_holiday(local.date()):
            return "holiday"
        return "early close" if _seconds(local, last) == self._closes.get(last) else ""

    def on_opening(self, until: datetime) -> str:
        """Describe a special opening at an instant, or special days before it; empty for an ordinary one."""
        local = self._local(until)
        if local.date() in self._special:
            return "special session"
        if _seconds(local, local.date()) == self._opens.get(local.date()):
            return "late open"
        missed = list(self._missed_before(local.date()))
        if not missed:
            return ""
        shown = [day.isoformat() for day in reversed(missed[:_SHOWN])]
        more = f" and {len(missed) - _SHOWN} before" if len(missed) > _SHOWN else ""
        return f"after holiday{'s' if len(missed) > 1 else ''} {', '.join(shown)}{more}"

    def _missed_before(self, day: date) -> Iterator[date]:
        """Return the holidays since the last day with sessions before ``day``, latest first."""
        while self._days and day > date.min + _DAY:
            day -= _DAY
            has_sessions = day.weekday() in self._days
            if self._is_holiday(day) and has_sessions:
                yield day
            elif has_sessions or day in self._special:
                return

    def _is_holiday(self, day: date) -> bool:
        return day in self._calendar.holidays and day not in self._special

    def _local(self, at: datetime) -> datetime:
        """Return the reading of the wall clock, as a datetime without zone."""
        era = self._calendar.zone.era(int(at.timestamp()))
        return (at.astimezone(UTC) + timedelta(seconds=era.offset)).replace(tzinfo=None)


def _opening_days(session: HourRule | Session | SpanWindow) -> frozenset[int]:
    """The days of the week that a session is open on as a rule, so that a holiday on them is missed."""
    if isinstance(session, SpanWindow):
        first, last = session.from_day, session.from_day + (session.from_time + session.length - 1) // _DAY_SECONDS
        return frozenset(day % 7 for day in range(first, last + 1))
    return session.days if isinstance(session, Session) or session.hours else frozenset()


def _seconds(local: datetime, day: date) -> int:
    """Return the seconds from the midnight of ``day``, on the wall clock."""
    return int((local - datetime(day.year, day.month, day.day)).total_seconds())  # noqa: DTZ001


class Market:
    """A compiled calendar, for verdicts and for messages about changes."""

    def __init__(self, timeline: MarketTimeline, holidays: tuple[date, ...] = ()) -> None:
        self.timeline = timeline
        self.holidays = holidays
        self.remarks = Remarks(timeline.calendar)


def prepare(spec: CapitalMarketsScheduleSpec) -> Market:
    """Compile the calendar of a spec.

    :raises SpecError: the spec is invalid; the text begins with the field's path.
    """
    try:
        calendar = read_calendar(spec.model_dump(by_alias=True, exclude_none=True))
        return Market(MarketTimeline(calendar), tuple(parse_date(day) for day in spec.holidays))
    except ScheduleError as error:
        raise SpecError(f"spec.{error}") from error


def decide(market: Market, at: datetime) -> Verdict:
    """Return the verdict at an instant, and the exact instant of the next change."""
    found = market.timeline.evaluate(at)
    reason = ProviderReason.SESSION_OPEN if found.active else ProviderReason.SESSION_CLOSED
    notes, again = skipped_around(market.timeline.skipped, at, "session")
    # Disabling a schedule is the last word: no override brings its machines back.
    final = found.cause is Cause.DISABLED
    return Verdict(found.active, found.until, reason, _message(market, found), notes, again, final)


def _message(market: Market, found: Evaluation) -> str:
    """Return a message that depends on the cause and the next change alone, so that it is stable until then."""
    why, until, calendar = cause_text(found.cause), found.until, market.timeline.calendar
    if until is None:
        if why:
            return f"{why}; no session opens"
        return "open, and never closes" if found.active else "closed, and no session opens"
    if until in (calendar.valid_from, calendar.valid_until):
        remark = "validUntil" if found.active else "validFrom"
    elif found.active:
        remark = market.remarks.on_closing(until - calendar.lag_time)
    else:
        remark = market.remarks.on_opening(until + calendar.lead_time)
    prefix = f"{why}; " if why else ""
    return f"{prefix}{'closes' if found.active else 'opens'} {both_times(calendar.zone, until, remark)}"


PROVIDER: Final = Provider(
    kind=KIND,
    plural=PLURAL,
    spec=CapitalMarketsScheduleSpec,
    prepare=prepare,
    advise=lambda market: advice_on_calendar(market.timeline.calendar, market.holidays),
    decide=decide,
    metrics="fivespot_capital_markets",
    short_names=("cms",),
    columns=(Column("Timezone", "string", ".spec.timezone"),),
    description="A schedule that follows the trading calendar of a market, for ScheduledMachines to follow.",
    status=CapitalMarketsScheduleStatus,
)
