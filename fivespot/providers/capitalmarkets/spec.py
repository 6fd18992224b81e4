"""CapitalMarketsSchedule: the calendar of a market in its time zone.

The schema checks at admission what regular expressions and CEL can check. The provider checks zone names and the rest
of the calendar, and reports problems with `Ready=False`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from fivespot.api.types import (
    ApiModel,
    DayExpression,
    EndTime,
    LocalDate,
    ScheduleStatus,
    StartTime,
    TimeZone,
    whole_hours,
)
from fivespot.runtime.crd import Cel, undefaulted

KIND: Final = "CapitalMarketsSchedule"
PLURAL: Final = "capitalmarketsschedules"

HourExpression = Annotated[str, Field(max_length=128), whole_hours("open and close")]


class Pause(ApiModel):
    """A break within a session."""

    start: StartTime
    """Local time of day "HH:MM" at which the break begins."""
    end: EndTime
    """Local time of day "HH:MM" at which it ends."""


Pauses = Annotated[list[Pause], Field(max_length=4)]

_HAS_LENGTH: Final = Cel(
    "!has(self.open) || !has(self.close) || self.open != self.close",
    "open and close must differ: a session must have a length; the full day is 00:00 to 24:00",
    check=lambda session: session.open is None or session.open != session.close,
)


def _breaks_lie_within(session: TradingSession | SpecialSessionSpec) -> bool:
    opens, closes = session.open, session.close
    if opens is None or closes is None:
        return True

    def marked(time: str) -> str:
        return ("1" if time < opens else "0") + time

    last = "100:00" if closes == "24:00" else ("1" if closes <= opens else "0") + closes
    return all(marked(item.start) < marked(item.end) <= last for item in session.breaks or ())


# Times of a session are compared as strings, with a prefix for those after midnight that sorts later.
_AFTER_OPEN: Final = "((b.{end} < self.open ? '1' : '0') + b.{end})"
_LAST: Final = "(self.close == '24:00' ? '100:00' : (self.close <= self.open ? '1' : '0') + self.close)"
_WITHIN: Final = Cel(
    "!has(self.breaks) || !has(self.open) || !has(self.close) || self.breaks.all(b, "
    f"{_AFTER_OPEN.format(end='start')} < {_AFTER_OPEN.format(end='end')} && "
    f"{_AFTER_OPEN.format(end='end')} <= {_LAST})",
    "breaks must lie within the session, and each must end after it starts",
    check=_breaks_lie_within,
)


def _one_form(session: TradingSession) -> bool:
    if session.open is None and session.close is None:
        return not session.breaks
    return session.open is not None and session.close is not None and not session.hours_of_day


class TradingSession(ApiModel):
    """A session of every week, in one of two forms: {daysOfWeek, hoursOfDay}, or {daysOfWeek, open, close, breaks}."""

    RULES = (
        Cel(
            "has(self.open) && has(self.close) && (!has(self.hoursOfDay) || size(self.hoursOfDay) == 0)"
            " || !has(self.open) && !has(self.close) && (!has(self.breaks) || size(self.breaks) == 0)",
            'a session has either whole hours, such as {daysOfWeek: [mon-fri], hoursOfDay: ["9-15"]}, or times to the '
            'minute, such as {daysOfWeek: [mon-fri], open: "09:30", close: "16:00"}, which alone can have breaks',
            check=_one_form,
        ),
        Cel(
            "!has(self.open) || has(self.daysOfWeek) && size(self.daysOfWeek) > 0",
            "a session with open and close must name its daysOfWeek",
            check=lambda session: session.open is None or bool(session.days_of_week),
        ),
        _HAS_LENGTH,
        _WITHIN,
    )

    # Without a default in the schema: the server would write it into list entries, which users' tools compare with
    # the applied manifest.
    days_of_week: Annotated[list[DayExpression], Field(max_length=16), undefaulted()] = Field(default=[])
    """Days that the session opens on: mon to sun, ranges such as mon-fri, lists with commas."""
    hours_of_day: Annotated[list[HourExpression], Field(max_length=16), undefaulted()] = Field(default=[])
    """Whole hours of those days, 0 to 23; a range such as 9-15 includes its last hour and runs until 15:59. Each hour
    belongs to its own local date."""
    open: StartTime | None = None
    """Local time of day "HH:MM" at which the session opens."""
    close: EndTime | None = None
    """Local time of day "HH:MM" at which it closes; 24:00 is the end of the day, and a close before the open is on the
    next day."""
    breaks: Pauses | None = None
    """Breaks within the session. They count only with spec.breaks: GiveBack."""


class EarlyCloseSpec(ApiModel):
    """A local date on which nothing is open from some time on. The first entry for a date counts."""

    RULES = (
        Cel(
            "has(self.closeHour) != has(self.close)",
            'an early close has either closeHour, the last hour that is open, or close, a time of day "HH:MM"',
            check=lambda entry: (entry.close_hour is None) != (entry.close is None),
        ),
    )

    date: LocalDate
    """The local date YYYY-MM-DD."""
    close_hour: Annotated[int, Field(ge=0, le=23)] | None = None
    """The last whole hour that is open: 12 closes at 13:00."""
    close: StartTime | None = None
    """Local time of day "HH:MM" from which nothing is open on that date."""


class LateOpenSpec(ApiModel):
    """A local date on which nothing is open before some time. The first entry for a date counts."""

    date: LocalDate
    """The local date YYYY-MM-DD."""
    open: StartTime
    """Local time of day "HH:MM" before which nothing is open on that date."""


class SpecialSessionSpec(ApiModel):
    """A session on one local date, in place of all weekly sessions of that date, holiday or not."""

    RULES = (_HAS_LENGTH, _WITHIN)

    date: LocalDate
    """The local date YYYY-MM-DD that the session opens on. A date may have several."""
    open: StartTime
    """Local time of day "HH:MM" at which the session opens."""
    close: EndTime
    """Local time of day "HH:MM" at which it closes; 24:00 is the end of the day, and a close before the open is on the
    next day."""
    breaks: Pauses | None = None
    """Breaks within the session. They count only with spec.breaks: GiveBack."""


class CapitalMarketsScheduleSpec(ApiModel):
    """The opening hours of a market: weekly sessions in its time zone, and dates with exceptions."""

    timezone: TimeZone = "UTC"
    """IANA name of the market's time zone, such as America/New_York."""
    sessions: Annotated[list[TradingSession], Field(max_length=32)] = Field(default=[])
    """The sessions of every week. Without any, the schedule is active in special sessions alone."""
    holidays: Annotated[list[LocalDate], Field(max_length=366)] = Field(default=[])
    """Local dates YYYY-MM-DD on which the market is closed from midnight to midnight."""
    early_closes: Annotated[list[EarlyCloseSpec], Field(max_length=366)] = Field(default=[])
    """Local dates on which nothing is open from some time on."""
    late_opens: Annotated[list[LateOpenSpec], Field(max_length=366)] | None = None
    """Local dates on which nothing is open before some time."""
    special_sessions: Annotated[list[SpecialSessionSpec], Field(max_length=366)] | None = None
    """Sessions on single dates. A date that has any has these and nothing else: no weekly session, and no holiday,
    early close or late open changes them."""
    breaks: Literal["Keep", "GiveBack"] = "Keep"
    """Handling of breaks: with Keep the schedule stays active during them; with GiveBack it is not active, so
    machines are removed and created again.
    """


class CapitalMarketsScheduleStatus(ScheduleStatus):
    """The verdict of the schedule, which ScheduledMachines act on."""

    # The default of 5-Spot's schema. It is a trap (a status written without `active` means "remove the machines"),
    # kept because manifests and clients of 5-Spot rely on it; new kinds require the field.
    active: bool = False
    """Whether machines that refer to this schedule should exist."""
