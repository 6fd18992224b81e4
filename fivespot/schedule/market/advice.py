"""Advice on calendars that can be followed but probably are not meant: dates without effect, and gaps of a minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from fivespot.schedule.advice import gap_advice, hour_rule_advice, week_of
from fivespot.schedule.grammar import DAY, DAYS, format_time
from fivespot.schedule.intervals import Interval, merge
from fivespot.schedule.rules import HourRule, SpanWindow

from .rules import MarketCalendar

__all__ = ["advice_on_calendar"]


def advice_on_calendar(calendar: MarketCalendar, holidays: tuple[date, ...]) -> list[str]:
    """Return the advice on a calendar, each as a sentence that begins with the field where there is one.

    :param holidays: as they are written, those that are there twice included.
    """
    found: list[str] = []
    for index, session in enumerate(calendar.sessions):
        if isinstance(session, HourRule):
            found += hour_rule_advice(session, f"sessions[{index}].")
    week = _week(calendar)
    return [*found, *gap_advice(week), *_holidays(calendar, holidays, week), *_cuts(calendar, week)]


def _week(calendar: MarketCalendar) -> list[Interval]:
    found = week_of(session for session in calendar.sessions if isinstance(session, HourRule | SpanWindow))
    for session in calendar.sessions:
        if not isinstance(session, HourRule | SpanWindow):
            pieces = session.hours.pieces(calendar.breaks)
            opened = [(start + day * DAY, end + day * DAY) for day in session.days for start, end in pieces]
            found += opened + [(start - 7 * DAY, end - 7 * DAY) for start, end in opened if end > 7 * DAY]
    return merge(found)


def _on(week: list[Interval], weekday: int) -> list[Interval]:
    """Return the open times of one day of the week, in seconds from its midnight."""
    first = weekday * DAY
    return [
        (max(start - first, 0), min(end - first, DAY)) for start, end in week if start < first + DAY and end > first
    ]


def _holidays(calendar: MarketCalendar, holidays: tuple[date, ...], week: list[Interval]) -> Iterator[str]:
    seen: set[date] = set()
    special = {session.date for session in calendar.special_sessions}
    for index, day in enumerate(holidays):
        name = f'holidays[{index}] ("{day}")'
        if day in seen:
            yield f"{name} has no effect: the date is there twice"
        elif not _on(week, day.weekday()) and day not in special:
            yield f"{name} has no effect: it is a {DAYS[day.weekday()]}, on which nothing is open"
        seen.add(day)


def _cuts(calendar: MarketCalendar, week: list[Interval]) -> Iterator[str]:
    special = {session.date for session in calendar.special_sessions}
    closes, opens = [(e.date, e.close) for e in calendar.early_closes], [(e.date, e.open) for e in calendar.late_opens]
    for field, entries, is_close in (("earlyCloses", closes, True), ("lateOpens", opens, False)):
        seen: set[date] = set()
        for index, (day, time) in enumerate(entries):
            usual = _on(week, day.weekday())
            why = ""
            if day in seen:
                why = "the date is there twice, and the first entry counts"
            elif day in special:
                why = "the date has special sessions, which nothing changes"
            elif day in calendar.holidays:
                why = "the date is a holiday"
            elif not usual:
                why = f"it is a {DAYS[day.weekday()]}, on which nothing is open"
            elif is_close and usual[-1][1] <= time:
                why = f"nothing is open after {format_time(usual[-1][1])} on that day of the week"
            elif not is_close and usual[0][0] >= time:
                why = f"nothing opens before {format_time(usual[0][0])} on that day of the week"
            elif is_close and time <= usual[0][0]:
                yield (
                    f'{field}[{index}] ("{day}") closes the whole day, before the open at {format_time(usual[0][0])}: '
                    "write a holiday if that is meant"
                )
            if why:
                yield f'{field}[{index}] ("{day}") has no effect: {why}'
            seen.add(day)
