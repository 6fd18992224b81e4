"""Reads a schedule from the plain values of a ``TimeBasedSpotSchedule``'s ``spec``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta

from .errors import GrammarError, ScheduleError
from .grammar import parse_duration, parse_instant
from .rules import MAX_LEAD, DailyWindow, DateException, HourRule, SpanWindow, WeeklySchedule
from .zones import load_zone


def read_schedule(spec: Mapping[str, object]) -> WeeklySchedule:
    """The schedule that ``spec`` describes, with the field names of the custom resource.

    Absent fields and nulls mean the defaults; fields that say nothing about time are ignored. Raises
    :class:`ScheduleError` whose ``field`` is the path within ``spec``, such as ``windows[0].start``.
    """
    with _in("timezone"):
        zone = load_zone(_text(spec.get("timezone"), "UTC"))
    days, hours = _texts(spec, "daysOfWeek"), _texts(spec, "hoursOfDay")
    windows = []
    for index, window in _objects(spec, "windows"):
        with _in(f"windows[{index}]"):
            windows.append(_window(window))
    exceptions = []
    for index, exception in _objects(spec, "exceptions"):
        with _in(f"exceptions[{index}]"):
            exceptions.append(_exception(exception))
    lead = timedelta(0)
    if (text := spec.get("leadTime")) is not None:
        with _in("leadTime"):
            lead = parse_duration(_text(text))
            if lead > MAX_LEAD:
                raise GrammarError(f'"{text}" is too long: a lead time is at most 168h', suggestion='"168h"')
    return WeeklySchedule(
        zone=zone,
        hours=HourRule.parse(days, hours) if days or hours else None,
        windows=tuple(windows),
        exceptions=tuple(exceptions),
        valid_from=_instant(spec, "validFrom"),
        valid_until=_instant(spec, "validUntil"),
        lead_time=lead,
        enabled=_flag(spec, "enabled"),
    )


def _window(window: Mapping[str, object]) -> DailyWindow | SpanWindow:
    given = {name for name, value in window.items() if value is not None}
    if given == {"days", "start", "end"}:
        days = _texts(window, "days")
        return DailyWindow.parse(days, _text_of(window, "start"), _text_of(window, "end"))
    if given == {"from", "until"}:
        return SpanWindow.parse(_text_of(window, "from"), _text_of(window, "until"))
    fields = ", ".join(sorted(given)) or "nothing"
    raise GrammarError(f"has {fields}: a window has either days, start and end, or from and until")


def _exception(exception: Mapping[str, object]) -> DateException:
    day = exception.get("date")
    windows = []
    for index, window in _objects(exception, "windows"):
        with _in(f"windows[{index}]"):
            windows.append((_text_of(window, "start"), _text_of(window, "end")))
    if isinstance(day, date) and not isinstance(day, datetime):
        day = day.isoformat()
    with _in("date"):
        text = _text(day)
    return DateException.parse(text, windows)


def _instant(spec: Mapping[str, object], name: str) -> datetime | None:
    value = spec.get(name)
    if value is None:
        return None
    with _in(name):
        return parse_instant(value.isoformat() if isinstance(value, datetime) else _text(value))


def _flag(spec: Mapping[str, object], name: str) -> bool:
    value = spec.get(name)
    if value is None or isinstance(value, bool):
        return value is not False
    raise GrammarError(f"{value!r} is not true or false", field=name)


def _text(value: object, default: str | None = None) -> str:
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise GrammarError("is missing" if value is None else f"{value!r} is not a text")
    return value


def _text_of(item: Mapping[str, object], name: str) -> str:
    with _in(name):
        return _text(item.get(name))


def _texts(item: Mapping[str, object], name: str) -> list[str]:
    with _in(name):
        return [_text(value) for value in _list(item.get(name))]


def _objects(item: Mapping[str, object], name: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    with _in(name):
        values = _list(item.get(name))
    for index, value in enumerate(values):
        if not isinstance(value, Mapping):
            raise GrammarError(f"{value!r} is not an object", field=f"{name}[{index}]")
        yield index, value


def _list(value: object) -> Sequence[object]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise GrammarError(f"{value!r} is not a list")
    return value


@contextmanager
def _in(field: str) -> Iterator[None]:
    try:
        yield
    except ScheduleError as error:
        raise error.within(field) from None
