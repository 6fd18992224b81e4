"""Reads a calendar from the plain values of a ``CapitalMarketsSchedule``'s ``spec``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import TypeVar

from fivespot.schedule.errors import GrammarError, ScheduleError
from fivespot.schedule.fields import (
    Fields,
    date_as_text,
    date_text,
    flag,
    objects,
    text_of,
    texts,
    values,
    within,
    zone_of,
)
from fivespot.schedule.grammar import parse_date
from fivespot.schedule.rules import HourRule, SpanWindow
from fivespot.schedule.spec import instant, margin

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
        valid_from=instant(spec, "validFrom"),
        valid_until=instant(spec, "validUntil"),
        lead_time=margin(spec, "leadTime"),
        lag_time=margin(spec, "lagTime"),
        enabled=flag(spec, "enabled"),
    )


def _entries(spec: Fields, name: str, read: Callable[[Fields], Entry]) -> tuple[Entry, ...]:
    found = []
    for index, item in objects(spec, name):
        with within(f"{name}[{index}]"):
            found.append(read(item))
    return tuple(found)


def _session(item: Fields) -> HourRule | Session | SpanWindow:
    if item.get("from") is not None or item.get("until") is not None:
        given = [name for name in _OF_A_DAY if item.get(name) not in (None, [])]
        if given:
            raise GrammarError(f"has {given[0]} as well: a session of several days has from and until alone")
        return SpanWindow.parse(text_of(item, "from"), text_of(item, "until"))
    days, start, end = _names(item)
    hours = texts(item, "hoursOfDay")
    if item.get(start) is None and item.get(end) is None:
        if values(item, "breaks"):
            raise GrammarError("only a session with start and end can have breaks", field="breaks")
        with _named(daysOfWeek=days):
            return HourRule.parse(texts(item, days), hours)
    if hours:
        raise GrammarError("has both: a session has either hoursOfDay, or start and end", field="hoursOfDay")
    with _named(days=days, start=start, end=end):
        return Session.parse(texts(item, days), text_of(item, start), text_of(item, end), _pauses(item))


_OF_A_DAY = ("days", "daysOfWeek", "hoursOfDay", "start", "open", "end", "close", "breaks")


def _names(item: Fields) -> tuple[str, str, str]:
    """Return the names under which an item has days, start and end, each of which has two."""
    other = item.get("open") is not None or item.get("close") is not None
    days = _one_of(item, "days", "daysOfWeek", other_by_default=other or "daysOfWeek" in item)
    start = _one_of(item, "start", "open", other_by_default=other)
    return days, start, _one_of(item, "end", "close", other_by_default=other)


def _one_of(item: Fields, name: str, other: str, *, other_by_default: bool) -> str:
    has_name, has_other = (item.get(each) not in (None, []) for each in (name, other))
    if has_name and has_other:
        raise GrammarError(f"{name} is there as well: the two are names of one field, write {name} alone", field=other)
    if has_name or has_other:
        return other if has_other else name
    return other if other_by_default else name


@contextmanager
def _named(**names: str) -> Iterator[None]:
    """Give fields in errors the names that the item has them under."""
    try:
        yield
    except ScheduleError as error:
        first = error.field.split("[")[0].split(".")[0]
        field = f"{names.get(first, first)}{error.field[len(first) :]}"
        raise type(error)(error.problem, suggestion=error.suggestion, field=field) from None


def _special_session(item: Fields) -> SpecialSession:
    _, start, end = _names(item)
    with _named(start=start, end=end):
        hours = TradingHours.parse(text_of(item, start), text_of(item, end), _pauses(item))
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
