"""TimeBasedSpotSchedule: weekly hours and windows in a time zone.

The schema checks at admission what regular expressions and CEL can check. The provider checks zone names and the rest
of the calendar, and reports problems with `Ready=False`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import Field

from fivespot.api.types import (
    SPAN_HAS_LENGTH,
    VALIDITY_IN_ORDER,
    ApiModel,
    DayExpression,
    EndTime,
    FromMoment,
    Instant,
    LocalDate,
    LongDuration,
    ScheduleStatus,
    StartTime,
    TimeZone,
    UntilMoment,
    whole_hours,
)
from fivespot.runtime.crd import Cel, list_map, matches

KIND: Final = "TimeBasedSpotSchedule"
PLURAL: Final = "timebasedspotschedules"

HourExpression = Annotated[str, Field(max_length=128), whole_hours("windows")]
_HAS_LENGTH = Cel(
    "!has(self.start) || !has(self.end) || self.start != self.end",
    "start and end must differ: a window must have a length; the full day is 00:00 to 24:00",
    check=lambda window: window.start is None or window.start != window.end,
)


def _one_form(window: Window) -> bool:
    times = [window.start is not None, window.end is not None]
    span = [window.from_ is not None, window.until is not None]
    dates = [window.days is not None, window.recurrence is not None]
    return (all(times) and sum(dates) == 1 and not any(span)) or (all(span) and not any((*times, *dates)))


class RecurrenceSpec(ApiModel):
    """Dates that recur, such as every other Monday or the last business day of a month."""

    EXAMPLE: ClassVar[str] = "{rule: FREQ=MONTHLY;BYDAY=-1FR}"

    rule: Annotated[
        str,
        Field(max_length=256),
        matches(
            "^(RRULE:)?FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;[A-Z]+=[-+A-Z0-9,]+)*;?$",
            "must be an RRULE of dates in upper case, such as FREQ=WEEKLY;INTERVAL=2;BYDAY=MO or "
            "FREQ=MONTHLY;BYDAY=1SA",
        ),
    ]
    """The parts of an iCalendar RRULE that make sense for dates: FREQ, INTERVAL, BYDAY, BYMONTHDAY, BYMONTH, BYSETPOS,
    WKST and UNTIL, such as FREQ=MONTHLY;BYDAY=1SA."""
    start_date: LocalDate | None = None
    """The local date YYYY-MM-DD from which it counts: required with INTERVAL, and where the rule names no day."""


class Window(ApiModel):
    """A window, in one of three forms: {days, start, end}, {from, until}, or {recurrence, start, end}."""

    EXAMPLE: ClassVar[str] = '{days: [mon-fri], start: "08:00", end: "18:00"}'
    RULES = (
        Cel(
            "has(self.start) && has(self.end) && has(self.days) != has(self.recurrence) && !has(self.from)"
            " && !has(self.until)"
            " || has(self.from) && has(self.until) && !has(self.days) && !has(self.start) && !has(self.end)"
            " && !has(self.recurrence)",
            'a window is either {days, start, end} such as {days: [mon-fri], start: "22:00", end: "06:00"}, or '
            '{from, until} such as {from: "mon 06:00", until: "fri 21:00"}, or {recurrence, start, end} such as '
            '{recurrence: {rule: FREQ=MONTHLY;BYDAY=1SA}, start: "04:00", end: "12:00"}',
            check=_one_form,
        ),
        _HAS_LENGTH,
        SPAN_HAS_LENGTH,
    )

    days: Annotated[list[DayExpression], Field(min_length=1, max_length=7)] | None = None
    """Days that the window starts on, such as mon-fri."""
    start: StartTime | None = None
    """Local time of day "HH:MM" at which the window opens."""
    end: EndTime | None = None
    """Local time of day "HH:MM" at which the window closes; 24:00 is the end of the day, and an end before the start is
    on the next day."""
    from_: Annotated[FromMoment | None, Field(alias="from")] = None
    """Day and local time at which a window of several days opens, such as "mon 06:00"."""
    until: UntilMoment | None = None
    """Day and local time at which it closes: the first such time after from."""
    recurrence: RecurrenceSpec | None = None
    """Dates that the window starts on, in place of days."""


class DayWindow(ApiModel):
    """A window on one date."""

    EXAMPLE: ClassVar[str] = '{start: "08:00", end: "12:00"}'
    RULES = (_HAS_LENGTH,)

    start: StartTime
    """Local time of day "HH:MM" at which the window opens."""
    end: EndTime
    """Local time of day "HH:MM" at which it closes; 24:00 is the end of the day, and an end before the start is on the
    next day."""


class DateExceptionSpec(ApiModel):
    """A local date on which the weekly rules do not apply."""

    EXAMPLE: ClassVar[str] = '{date: "2027-12-24"}'

    date: LocalDate
    """The local date YYYY-MM-DD."""
    windows: Annotated[list[DayWindow], Field(max_length=4)] | None = None
    """Windows that start on that date instead; none if empty or absent. A window that began the day before still ends
    as written.
    """


class TimeBasedSpotScheduleSpec(ApiModel):
    """The times at which machines should exist: the union of weekly hours and windows, in one time zone."""

    RULES = (VALIDITY_IN_ORDER,)

    days_of_week: Annotated[list[DayExpression], Field(max_length=64)] = Field(default=[])
    """Days of the weekly hours: mon to sun, ranges such as mon-fri, lists with commas. None: the weekly hours are
    never active."""
    hours_of_day: Annotated[list[HourExpression], Field(max_length=64)] = Field(default=[])
    """Whole hours of those days, 0 to 23; a range such as 9-17 includes its last hour and runs until 17:59. Each hour
    belongs to its own local date: mon-fri with 22-6 includes Monday 00:00 to 06:59."""
    timezone: TimeZone = "UTC"
    """IANA name of the time zone, such as Europe/Berlin."""
    enabled: bool = True
    """Whether the schedule can be active; false means never."""
    windows: Annotated[list[Window], Field(max_length=32)] | None = None
    """Windows to the minute, of every week or of recurring dates, in addition to the weekly hours. Windows that touch
    or overlap are one."""
    exceptions: Annotated[list[DateExceptionSpec], Field(max_length=366), list_map("date")] | None = None
    """Local dates with other windows, or none, in place of the weekly rules."""
    valid_from: Instant | None = None
    """Not active before this instant, such as 2027-01-01T00:00:00Z."""
    valid_until: Instant | None = None
    """Not active at and after this instant."""
    lead_time: LongDuration | None = None
    """Time by which each window opens earlier, so that machines are up in time: a whole number of s, m or h, at most
    168h.
    """
    lag_time: LongDuration | None = None
    """Time by which each window closes later, so that work in progress can end: a whole number of s, m or h, at most
    168h."""


class TimeBasedSpotScheduleStatus(ScheduleStatus):
    """The verdict of the schedule, which ScheduledMachines act on."""

    # The default of 5-Spot's schema. It is a trap (a status written without `active` means "remove the machines"),
    # kept because manifests and clients of 5-Spot rely on it; new kinds require the field.
    active: bool = False
    """Whether machines that refer to this schedule should exist."""


class TimeBasedSpotSchedule(ApiModel):
    """A schedule of weekly hours and windows in a time zone, for ScheduledMachines to follow."""

    spec: TimeBasedSpotScheduleSpec
    """The times at which machines should exist."""
    status: TimeBasedSpotScheduleStatus | None = None
    """The current verdict, and the time of its next change."""
