"""Reads a calendar from the plain values of a ``CapitalMarketsSchedule``'s ``spec``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TypeVar

from fivespot.schedule.errors import GrammarError
from fivespot.schedule.fields import Fields, date_as_text, date_text, objects, text_of, texts, values, within, zone_of
from fivespot.schedule.grammar import parse_date
from fivespot.schedule.rules import HourRule

from .rules import (
    Breaks,
    EarlyClose,
    LateOpen,
    MarketCalendar,
    Session,
    SpecialSession,
    TradingHours,
    close_after,
    parse_early_close,
    parse_late_open,
)

Entry = TypeVar("Entry")


def read_calendar(spec: Fields) -> MarketCalendar:
    """The calendar that ``spec`` describes, with the field names of the custom resource.

    Absent fields and nulls mean the defaults; fields that say nothing about time are ignored. Raises
    :class:`~fivespot.schedule.ScheduleError` whose ``field`` is the path within ``spec``, such as
    ``sessions[0].breaks[1]``.
    """
    return MarketCalendar(
        zone=zone_of(spec),
        sessions=_entries(spec, "sessions", _session),
        holidays=frozenset(_holidays(spec)),
        early_closes=_entries(spec, "earlyCloses", _early_close),
        late_opens=_entries(spec, "lateOpens", _late_open),
        special_sessions=_entries(spec, "specialSessions", _special_session),
        breaks=_breaks_of(spec),
    )


def _entries(spec: Fields, name: str, read: Callable[[Fields], Entry]) -> tuple[Entry, ...]:
    found = []
    for index, item in objects(spec, name):
        with within(f"{name}[{index}]"):
            found.append(read(item))
    return tuple(found)


def _session(item: Fields) -> HourRule | Session:
    days, hours = texts(item, "daysOfWeek"), texts(item, "hoursOfDay")
    to_the_minute = item.get("open") is not None or item.get("close") is not None
    if not to_the_minute:
        if values(item, "breaks"):
            raise GrammarError("only a session with open and close can have breaks", field="breaks")
        return HourRule.parse(days, hours)
    if hours:
        raise GrammarError("has both: a session has either hoursOfDay, or open and close", field="hoursOfDay")
    return Session.parse(days, text_of(item, "open"), text_of(item, "close"), _pauses(item))


def _special_session(item: Fields) -> SpecialSession:
    hours = TradingHours.parse(text_of(item, "open"), text_of(item, "close"), _pauses(item))
    day = date_text(item, "date")
    with within("date"):
        return SpecialSession(parse_date(day), hours)


def _pauses(item: Fields) -> list[tuple[str, str]]:
    return list(_entries(item, "breaks", lambda pause: (text_of(pause, "start"), text_of(pause, "end"))))


def _early_close(item: Fields) -> EarlyClose:
    hour = item.get("closeHour")
    if (hour is None) == (item.get("close") is None):
        raise GrammarError('an early close has either closeHour, the last hour that is open, or close "HH:MM"')
    day = date_text(item, "date")
    if hour is None:
        return parse_early_close(day, text_of(item, "close"))
    with within("closeHour"):
        if not isinstance(hour, int) or isinstance(hour, bool):
            raise GrammarError(f"{hour!r} is not an hour: write a whole number, 0 to 23")
        close = close_after(hour)
    with within("date"):
        return EarlyClose(parse_date(day), close)


def _late_open(item: Fields) -> LateOpen:
    return parse_late_open(date_text(item, "date"), text_of(item, "open"))


def _holidays(spec: Fields) -> list[date]:
    found = []
    with within("holidays"):
        listed = values(spec, "holidays")
    for index, value in enumerate(listed):
        with within(f"holidays[{index}]"):
            found.append(parse_date(date_as_text(value)))
    return found


def _breaks_of(spec: Fields) -> Breaks:
    value = spec.get("breaks")
    if value is None:
        return Breaks.KEEP
    known = {item.value: item for item in Breaks}
    if isinstance(value, str) and value in known:
        return known[value]
    nearest = {name.lower(): name for name in known}.get(str(value).lower().replace(" ", ""))
    raise GrammarError(
        f'"{value}" is not what breaks can do: write Keep or GiveBack',
        suggestion=f'"{nearest}"' if nearest else None,
        field="breaks",
    )
