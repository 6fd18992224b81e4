"""CapitalMarketsSchedule: the calendar of a market in its time zone.

The schema checks at admission what regular expressions and CEL can check. The provider checks zone names and the rest
of the calendar, and reports problems with `Ready=False`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

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
from fivespot.runtime.crd import Cel, undefaulted

KIND: Final = "CapitalMarketsSchedule"
PLURAL: Final = "capitalmarketsschedules"

HourExpression = Annotated[str, Field(max_length=128), whole_hours("start and end")]


class Pause(ApiModel):
    """A break within a session."""

    EXAMPLE: ClassVar[str] = '{start: "12:00", end: "13:00"}'

    start: StartTime
    """Local time of day "HH:MM" at which the break begins."""
    end: EndTime
    """Local time of day "HH:MM" at which it ends."""


Pauses = Annotated[list[Pause], Field(max_length=4)]

_START: Final = "(has(self.start) ? self.start : self.open)"
_END: Final = "(has(self.end) ? self.end : self.close)"
_HAS_BOTH: Final = "(has(self.start) || has(self.open)) && (has(self.end) || has(self.close))"


def _one_name(name: str, other: str, attribute: str, other_attribute: str) -> Cel:
    """The rule of a field with two names."""
    return Cel(
        f"!has(self.{name}) || !has(self.{other})",
        f"{name} and {other} are two names of one field: write {name} alone",
        check=lambda item: not (getattr(item, attribute) and getattr(item, other_attribute)),
    )


_ONE_NAME: Final = (_one_name("start", "open", "start", "open"), _one_name("end", "close", "end", "close"))

_HAS_LENGTH: Final = Cel(
    f"!({_HAS_BOTH}) || {_START} != {_END}",
    "start and end must differ: a session must have a length; the full day is 00:00 to 24:00, and 24 hours from any "
    'other time are {from: "mon 17:00", until: "tue 17:00"}',
    check=lambda session: session.starts is None or session.starts != session.ends,
)


def _breaks_lie_within(session: TradingSession | SpecialSessionSpec) -> bool:
    opens, closes = session.starts, session.ends
    if opens is None or closes is None:
        return True

    def marked(time: str) -> str:
        return ("1" if time < opens else "0") + time

    last = "100:00" if closes == "24:00" else ("1" if closes <= opens else "0") + closes
    return all(marked(item.start) < marked(item.end) <= last for item in session.breaks or ())


# Times of a session are compared as strings, with a prefix for those after midnight that sorts later.
_AFTER_OPEN: Final = f"((b.{{end}} < {_START} ? '1' : '0') + b.{{end}})"
_LAST: Final = f"({_END} == '24:00' ? '100:00' : ({_END} <= {_START} ? '1' : '0') + {_END})"
_WITHIN: Final = Cel(
    f"!has(self.breaks) || !({_HAS_BOTH}) || self.breaks.all(b, "
    f"{_AFTER_OPEN.format(end='start')} < {_AFTER_OPEN.format(end='end')} && "
    f"{_AFTER_OPEN.format(end='end')} <= {_LAST})",
    "breaks must lie within the session, and each must end after it starts",
    check=_breaks_lie_within,
)


def _one_form(session: TradingSession) -> bool:
    if session.from_ is not None or session.until is not None:
        of_a_day = (session.on_days, session.hours_of_day, session.starts, session.ends, session.breaks)
        return session.from_ is not None and session.until is not None and not any(of_a_day)
    if session.starts is None and session.ends is None:
        return not session.breaks
    return session.starts is not None and session.ends is not None and not session.hours_of_day


def _none_of(*names: str) -> str:
    return " && ".join(f"(!has(self.{name}) || size(self.{name}) == 0)" for name in names)


class _Hours:
    """The two names that the ends of a session have."""

    start: str | None
    open: str | None
    end: str | None
    close: str | None

    @property
    def starts(self) -> str | None:
        """Return the local time of day at which the session opens."""
        return self.start or self.open

    @property
    def ends(self) -> str | None:
        """Return the local time of day at which it closes."""
        return self.end or self.close


class TradingSession(_Hours, ApiModel):
    """A session of every week, in one of three forms: {days, start, end, breaks}, {from, until}, or {days,
    hoursOfDay}."""

    EXAMPLE: ClassVar[str] = '{days: [mon-fri], start: "09:30", end: "16:00"}'
    RULES = (
        Cel(
            f"(has(self.from) || has(self.until)) ? has(self.from) && has(self.until) && "
            f"!has(self.start) && !has(self.open) && !has(self.end) && !has(self.close) && "
            f"{_none_of('days', 'daysOfWeek', 'hoursOfDay', 'breaks')} : "
            f"{_HAS_BOTH} && {_none_of('hoursOfDay')} || "
            f"!has(self.start) && !has(self.open) && !has(self.end) && !has(self.close) && {_none_of('breaks')}",
            'a session is either {days, start, end} such as {days: [mon-fri], start: "09:30", end: "16:00"}, which '
            'alone can have breaks, or {from, until} such as {from: "sun 17:00", until: "fri 17:00"}, or has whole '
            'hours, such as {days: [mon-fri], hoursOfDay: ["9-15"]}',
            check=_one_form,
        ),
        Cel(
            "!(has(self.start) || has(self.open)) || has(self.days) && size(self.days) > 0"
            " || has(self.daysOfWeek) && size(self.daysOfWeek) > 0",
            "a session with start and end must name its days",
            check=lambda session: session.starts is None or bool(session.on_days),
        ),
        _one_name("days", "daysOfWeek", "days", "days_of_week"),
        *_ONE_NAME,
        _HAS_LENGTH,
        _WITHIN,
        SPAN_HAS_LENGTH,
    )

    days: Annotated[list[DayExpression], Field(max_length=16)] | None = None
    """Days that the session opens on: mon to sun, ranges such as mon-fri, lists with commas."""
    start: StartTime | None = None
    """Local time of day "HH:MM" at which the session opens."""
    end: EndTime | None = None
    """Local time of day "HH:MM" at which it closes; 24:00 is the end of the day, and an end before the start is on the
    next day."""
    breaks: Pauses | None = None
    """Breaks within the session. They count only with spec.breaks: GiveBack."""
    from_: Annotated[FromMoment | None, Field(alias="from")] = None
    """Day and local time at which a session of a day or several opens, such as "sun 17:00"."""
    until: UntilMoment | None = None
    """Day and local time at which it closes: the first such time after from."""
    # Without a default in the schema: the server would write it into list entries, which users' tools compare with
    # the applied manifest.
    days_of_week: Annotated[list[DayExpression], Field(max_length=16), undefaulted()] = Field(default=[])
    """Another name of days, that of the existing 5-Spot."""
    hours_of_day: Annotated[list[HourExpression], Field(max_length=16), undefaulted()] = Field(default=[])
    """Whole hours of those days, 0 to 23; a range such as 9-15 includes its last hour and runs until 15:59. Each hour
    belongs to its own local date."""
    open: StartTime | None = None
    """Another name of start."""
    close: EndTime | None = None
    """Another name of end."""

    @property
    def on_days(self) -> list[str]:
        """Return the days that the session opens on."""
        return self.days or self.days_of_week


class EarlyCloseSpec(ApiModel):
    """A local date on which nothing is open from some time on. The first entry for a date counts."""

    EXAMPLE: ClassVar[str] = '{date: "2027-12-24", close: "13:00"}'
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

    EXAMPLE: ClassVar[str] = '{date: "2027-12-24", open: "10:00"}'

    date: LocalDate
    """The local date YYYY-MM-DD."""
    open: StartTime
    """Local time of day "HH:MM" before which nothing is open on that date."""


class SpecialSessionSpec(_Hours, ApiModel):
    """A session on one local date, in place of all weekly sessions of that date, holiday or not."""

    EXAMPLE: ClassVar[str] = '{date: "2027-11-08", start: "18:15", end: "19:15"}'
    RULES = (
        Cel(
            _HAS_BOTH,
            'a special session has a date, start and end, such as {date: "2027-11-08", start: "18:15", end: "19:15"}',
            check=lambda session: session.starts is not None and session.ends is not None,
        ),
        *_ONE_NAME,
        _HAS_LENGTH,
        _WITHIN,
    )

    date: LocalDate
    """The local date YYYY-MM-DD that the session opens on. A date may have several."""
    start: StartTime | None = None
    """Local time of day "HH:MM" at which the session opens."""
    end: EndTime | None = None
    """Local time of day "HH:MM" at which it closes; 24:00 is the end of the day, and an end before the start is on the
    next day."""
    breaks: Pauses | None = None
    """Breaks within the session. They count only with spec.breaks: GiveBack."""
    open: StartTime | None = None
    """Another name of start."""
    close: EndTime | None = None
    """Another name of end."""


class CapitalMarketsScheduleSpec(ApiModel):
    """The opening hours of a market: weekly sessions in its time zone, and dates with exceptions."""

    RULES = (VALIDITY_IN_ORDER,)

    timezone: TimeZone = "UTC"
    """IANA name of the market's time zone, such as America/New_York."""
    enabled: bool | None = None
    """False: never active. True by default."""
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
    valid_from: Instant | None = None
    """Not active before this instant, such as 2027-01-01T00:00:00Z."""
    valid_until: Instant | None = None
    """Not active at and after this instant."""
    lead_time: LongDuration | None = None
    """Time by which each session opens earlier, so that machines are up in time: a whole number of s, m or h, at
    most 168h."""
    lag_time: LongDuration | None = None
    """Time by which each session closes later, so that work in progress can end: a whole number of s, m or h, at most
    168h."""


class CapitalMarketsScheduleStatus(ScheduleStatus):
    """The verdict of the schedule, which ScheduledMachines act on."""

    # The default of 5-Spot's schema. It is a trap (a status written without `active` means "remove the machines"),
    # kept because manifests and clients of 5-Spot rely on it; new kinds require the field.
    active: bool = False
    """Whether machines that refer to this schedule should exist."""
