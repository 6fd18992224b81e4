"""A timeline as an iCalendar file (RFC 5545): one event for each active time."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from fivespot import __version__
from fivespot.cli.timeline.days import total
from fivespot.cli.timeline.forecast import Forecast, Interval, Period
from fivespot.cli.timeline.formats import length
from fivespot.cli.timeline.margins import margins
from fivespot.runtime import ConfigError
from fivespot.runtime.objects import rfc3339

__all__ = ["export"]


def export(
    title: str, identity: str, forecast: Forecast, period: Period, now: datetime, *, core: Forecast | None = None
) -> bytes:
    """Build the calendar of a period.

    The uid of an event is derived from the schedule and the end of the event, not from the period, so that another
    import replaces events instead of adding them.

    :param identity: of the schedule: kind, namespace and name.
    :param now: the time of creation, for ``DTSTAMP``.
    :param core: the same schedule without lead and lag time, if it has any.
    :raises ConfigError: icalendar is not installed.
    """
    try:
        from icalendar import Calendar, Event, Timezone, TimezoneStandard  # noqa: PLC0415 - only who exports pays for the import
    except ImportError as error:
        raise ConfigError("--ics: icalendar is not installed; pip install 'fivespot[cli]'") from error

    calendar = Calendar()
    calendar.add("prodid", f"-//fivespot//timeline {__version__}//EN")
    calendar.add("version", "2.0")
    calendar.add("calscale", "GREGORIAN")
    calendar.add("x-wr-calname", title)
    intervals = forecast.intervals(period)
    if not intervals:
        # A calendar must have a component (RFC 5545, 3.6); this one is neutral.
        zone, standard = Timezone(), TimezoneStandard()
        zone.add("tzid", "UTC")
        standard.add("dtstart", datetime(1970, 1, 1))  # noqa: DTZ001 - local time by definition (RFC 5545, 3.6.5)
        standard.add("tzoffsetfrom", timedelta(0))
        standard.add("tzoffsetto", timedelta(0))
        zone.add_component(standard)
        calendar.add_component(zone)
    for interval in intervals:
        start, end = _whole_seconds(interval)
        if start == end:
            # An event must have a length, and iCalendar has no fractions of seconds.
            continue
        event = Event()
        event.add("uid", _uid(identity, interval))
        event.add("dtstamp", now.replace(microsecond=0))
        event.add("dtstart", start)
        event.add("dtend", end)
        event.add("summary", f"{title} active")
        event.add("description", _description(interval, period, core))
        # The event does not make anybody busy.
        event.add("transp", "TRANSPARENT")
        calendar.add_component(event)
    text: bytes = calendar.to_ical()
    return text


def _whole_seconds(interval: Interval) -> tuple[datetime, datetime]:
    return interval.start.replace(microsecond=0), interval.end.replace(microsecond=0)


def _uid(identity: str, interval: Interval) -> str:
    end = interval.whole_end.isoformat() if interval.whole_end is not None else "open"
    return f"{hashlib.sha256(f'{identity} {end}'.encode()).hexdigest()[:32]}@timeline.5spot.finos.org"


def _description(interval: Interval, period: Period, core: Forecast | None) -> str:
    text = f"Active for {length(interval.end - interval.start)}."
    if core is not None and (added := total(margins([interval], core.intervals(period)))):
        text += f" Lead and lag time are {length(added)} of it."
    if interval.start == period.start:
        text += f" It may have begun earlier: the calendar starts at {rfc3339(period.start)}."
    if interval.whole_end is None:
        text += " No end is known."
    elif interval.whole_end > interval.end:
        text += f" It ends at {rfc3339(interval.whole_end)}, after the calendar does."
    return text
