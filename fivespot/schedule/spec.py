"""Reads a schedule from the plain values of a ``TimeBasedSpotSchedule``'s ``spec``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta

from .errors import GrammarError
from .fields import date_text, flag, objects, text, text_of, texts, within, zone_of
from .grammar import parse_date, parse_duration, parse_instant
from .rules import (
    MAX_LEAD,
    DailyWindow,
    DateException,
    HourRule,
    RecurringWindow,
    SpanWindow,
    WeeklySchedule,
)


def read_schedule(spec: Mapping[str, object]) -> WeeklySchedule:
    """The schedule that ``spec`` describes, with the field names of the custom resource.

    Absent fields and nulls mean the defaults; fields that say nothing about time are ignored. Raises
    :class:`ScheduleError` whose ``field`` is the path within ``spec``, such as ``windows[0].start``.
    """
    zone = zone_of(spec)
    days, hours = texts(spec, "daysOfWeek"), texts(spec, "hoursOfDay")
    windows = []
    for index, window in objects(spec, "windows"):
        with within(f"windows[{index}]"):
            windows.append(_window(window))
    exceptions = []
    for index, exception in objects(spec, "exceptions"):
        with within(f"exceptions[{index}]"):
            exceptions.append(_exception(exception))
    return WeeklySchedule(
        zone=zone,
        hours=HourRule.parse(days, hours) if days or hours else None,
        windows=tuple(windows),
        exceptions=tuple(exceptions),
        valid_from=instant(spec, "validFrom"),
        valid_until=instant(spec, "validUntil"),
        lead_time=margin(spec, "leadTime"),
        lag_time=margin(spec, "lagTime"),
        enabled=flag(spec, "enabled"),
    )


def _window(window: Mapping[str, object]) -> DailyWindow | RecurringWindow | SpanWindow:
    given = {name for name, value in window.items() if value is not None}
    if given == {"days", "start", "end"}:
        days = texts(window, "days")
        return DailyWindow.parse(days, text_of(window, "start"), text_of(window, "end"))
    if given == {"from", "until"}:
        return SpanWindow.parse(text_of(window, "from"), text_of(window, "until"))
    if given == {"recurrence", "start", "end"}:
        rule, first = _recurrence(window)
        return RecurringWindow.parse(rule, first, text_of(window, "start"), text_of(window, "end"))
    fields = ", ".join(sorted(given)) or "nothing"
    raise GrammarError(
        f"has {fields}: a window has either days, start and end, or from and until, or recurrence, start and end"
    )


def _recurrence(window: Mapping[str, object]) -> tuple[str, date | None]:
    with within("recurrence"):
        value = window["recurrence"]
        if not isinstance(value, Mapping):
            raise GrammarError("must be an object such as {rule: FREQ=MONTHLY;BYDAY=-1FR}")
        if value.get("startDate") is None:
            return text_of(value, "rule"), None
        written = date_text(value, "startDate")
        with within("startDate"):
            return text_of(value, "rule"), parse_date(written)


def _exception(exception: Mapping[str, object]) -> DateException:
    windows = []
    for index, window in objects(exception, "windows"):
        with within(f"windows[{index}]"):
            windows.append((text_of(window, "start"), text_of(window, "end")))
    return DateException.parse(date_text(exception, "date"), windows)


def margin(spec: Mapping[str, object], name: str) -> timedelta:
    """The ``leadTime`` or ``lagTime`` of a spec, by default none."""
    written = spec.get(name)
    if written is None:
        return timedelta(0)
    with within(name):
        return parse_duration(text(written), at_most=MAX_LEAD)


def instant(spec: Mapping[str, object], name: str) -> datetime | None:
    """An instant of a spec, if it has one of that name."""
    value = spec.get(name)
    if value is None:
        return None
    with within(name):
        return parse_instant(value.isoformat() if isinstance(value, datetime) else text(value))
