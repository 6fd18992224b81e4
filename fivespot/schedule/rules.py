"""The rules of a weekly schedule, as plain values.

Times of day are seconds from local midnight, days are numbers (Monday 0), as :mod:`.grammar` parses them. Each value
validates itself, so that the arithmetic only deals with valid ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from .civil import Zone
from .errors import GrammarError
from .grammar import DAY, DAYS, format_time, parse_date, parse_days, parse_hours, parse_moment, parse_time
from .recurrence import Recurrence

MAX_LEAD = timedelta(days=7)
"""The longest lead or lag time: a longer one would join all windows of a weekly rule into one."""

MAX_RECURRING = 8
"""The most windows with a recurrence: each is looked at for every date that is examined."""


@dataclass(frozen=True)
class HourRule:
    """Active while the local weekday is among ``days`` and the local hour among ``hours``.

    Membership is by the wall clock: a repeated hour counts twice, a skipped hour not at all, and nothing extends past
    midnight.
    """

    days: frozenset[int]
    hours: frozenset[int]

    def __post_init__(self) -> None:
        check_days(self.days)
        if not all(0 <= hour < 24 for hour in self.hours):
            raise GrammarError("hours are 0 to 23", field="hours")

    @classmethod
    def parse(cls, days: Iterable[str], hours: Iterable[str]) -> HourRule:
        """Read ``daysOfWeek`` and ``hoursOfDay``. Raises :class:`GrammarError`."""
        return cls(_in_field("daysOfWeek", parse_days, days), _in_field("hoursOfDay", parse_hours, hours))


@dataclass(frozen=True)
class DailyWindow:
    """From ``start`` until ``end`` (exclusive) on each of ``days``.

    An end before the start is on the next day; the window belongs to the day it starts on.
    """

    days: frozenset[int]
    start: int
    end: int

    def __post_init__(self) -> None:
        check_days(self.days)
        _check_times(self.start, self.end)

    @classmethod
    def parse(cls, days: Iterable[str], start: str, end: str) -> DailyWindow:
        """Read ``{days, start, end}``. Raises :class:`GrammarError`."""
        return cls(_in_field("days", parse_days, days), *parse_times(start, end))

    @property
    def length(self) -> int:
        """Wall-clock seconds from start to end."""
        return window_length(self.start, self.end)


@dataclass(frozen=True)
class SpanWindow:
    """From one moment of the week until the first occurrence of another after it: ``mon 06:00`` to ``fri 21:00``."""

    from_day: int
    from_time: int
    until_day: int
    until_time: int

    def __post_init__(self) -> None:
        check_days((self.from_day, self.until_day))
        if not (0 <= self.from_time < DAY and 0 <= self.until_time <= DAY):
            raise GrammarError("times of day are 00:00 to 24:00, and 24:00 can only be an end")
        if (self.from_day, self.from_time) == (self.until_day, self.until_time):
            raise GrammarError(
                f'from and until are both "{DAYS[self.from_day]} {format_time(self.from_time)}": a window must have a '
                'length; the whole week is {from: "mon 00:00", until: "sun 24:00"}',
                field="until",
            )

    @classmethod
    def parse(cls, start: str, until: str) -> SpanWindow:
        """Read ``{from, until}``. Raises :class:`GrammarError`."""
        try:
            from_day, from_time = parse_moment(start)
        except GrammarError as error:
            raise error.within("from") from None
        try:
            until_day, until_time = parse_moment(until, end=True)
        except GrammarError as error:
            raise error.within("until") from None
        return cls(from_day, from_time, until_day, until_time)

    @property
    def length(self) -> int:
        """Wall-clock seconds from start to end: more than 0, at most a week."""
        week = 7 * DAY
        return ((self.until_day - self.from_day) * DAY + self.until_time - self.from_time - 1) % week + 1


@dataclass(frozen=True)
class RecurringWindow:
    """From ``start`` until ``end`` (exclusive) on each recurring date; an end before the start is on the next day."""

    recurrence: Recurrence
    start: int
    end: int

    def __post_init__(self) -> None:
        _check_times(self.start, self.end)

    @classmethod
    def parse(cls, rule: str, first: date | None, start: str, end: str) -> RecurringWindow:
        """Read ``{recurrence: {rule, startDate}, start, end}``. Raises :class:`GrammarError`."""
        try:
            recurrence = Recurrence.parse(rule, first)
        except GrammarError as error:
            raise error.within("recurrence") from None
        return cls(recurrence, *parse_times(start, end))

    @property
    def length(self) -> int:
        """Wall-clock seconds from start to end."""
        return window_length(self.start, self.end)


@dataclass(frozen=True)
class DateException:
    """An exception on one local date: only ``windows``, pairs of start and end, start on it.

    A night that began the day before ends as written; a span is cut at the date's midnights.
    """

    date: date
    windows: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        for start, end in self.windows:
            _check_times(start, end)

    @classmethod
    def parse(cls, day: str, windows: Iterable[tuple[str, str]] = ()) -> DateException:
        """Read ``{date, windows}``. Raises :class:`GrammarError`."""
        read = []
        for index, (start, end) in enumerate(windows):
            try:
                read.append(parse_times(start, end))
            except GrammarError as error:
                raise error.within(f"windows[{index}]") from None
        try:
            return cls(parse_date(day), tuple(read))
        except GrammarError as error:
            raise error.within("date") from None


@dataclass(frozen=True)
class WeeklySchedule:
    """A whole schedule: the union of the hour rule and the windows, in one zone.

    Applied in this order: rules, ``exceptions``, merge, ``lead_time`` (by which each opening moves earlier, in
    elapsed time) and ``lag_time`` (by which each closing moves later), merge, ``valid_from`` (inclusive) and
    ``valid_until`` (exclusive), ``enabled``.
    """

    zone: Zone
    hours: HourRule | None = None
    windows: tuple[DailyWindow | RecurringWindow | SpanWindow, ...] = ()
    exceptions: tuple[DateException, ...] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    lead_time: timedelta = timedelta(0)
    lag_time: timedelta = timedelta(0)
    enabled: bool = True

    def __post_init__(self) -> None:
        check_bounds(self.valid_from, self.valid_until, self.lead_time, self.lag_time)
        recurring = sum(isinstance(window, RecurringWindow) for window in self.windows)
        if recurring > MAX_RECURRING:
            raise GrammarError(
                f"{recurring} windows have a recurrence: at most {MAX_RECURRING} may; one rule takes several days, "
                "such as BYDAY=1MO,3MO",
                field="windows",
            )
        seen: set[date] = set()
        for index, exception in enumerate(self.exceptions):
            if exception.date in seen:
                raise GrammarError(
                    f'"{exception.date}" occurs twice: a date has one exception, with all its windows',
                    field=f"exceptions[{index}].date",
                )
            seen.add(exception.date)


def check_bounds(
    valid_from: datetime | None, valid_until: datetime | None, lead_time: timedelta, lag_time: timedelta
) -> None:
    """Raises :class:`GrammarError` unless the instants have an offset, and lead and lag time are whole seconds."""
    for name, bound in (("validFrom", valid_from), ("validUntil", valid_until)):
        if bound is not None and not _is_instant(bound):
            raise GrammarError("an instant needs an offset, and a year 1 to 9999 in UTC", field=name)
    for name, span in (("leadTime", lead_time), ("lagTime", lag_time)):
        if not timedelta(0) <= span <= MAX_LEAD or span.microseconds:
            raise GrammarError("must be whole seconds, at most 168h", field=name)


def parse_times(start: str, end: str) -> tuple[int, int]:
    """Seconds from midnight of ``start`` and ``end``. Raises :class:`GrammarError` with the field at fault."""
    try:
        first = parse_time(start)
    except GrammarError as error:
        raise error.within("start") from None
    try:
        last = parse_time(end, end=True)
    except GrammarError as error:
        raise error.within("end") from None
    _check_times(first, last)
    return first, last


def window_length(start: int, end: int) -> int:
    """Wall-clock seconds of a window; an end before the start is on the next day."""
    return end - start if end > start else end - start + DAY


def _in_field(field: str, parse: Callable[[Iterable[str]], frozenset[int]], items: Iterable[str]) -> frozenset[int]:
    try:
        return parse(items)
    except GrammarError as error:
        raise error.within(field) from None


def _is_instant(value: datetime) -> bool:
    try:
        return value.tzinfo is not None and value.astimezone(UTC) == value
    except OverflowError:
        return False


def check_days(days: Iterable[int]) -> None:
    """Raises :class:`GrammarError` unless all are 0 to 6."""
    if not all(0 <= day < len(DAYS) for day in days):
        raise GrammarError("days are 0 (Monday) to 6", field="days")


def _check_times(start: int, end: int) -> None:
    if not (0 <= start < DAY and 0 <= end <= DAY):
        raise GrammarError("times of day are 00:00 to 24:00, and 24:00 can only be an end")
    if start == end:
        raise GrammarError(
            f'start and end are both "{format_time(start)}": a window must have a length; the full day is '
            "00:00 to 24:00",
            field="end",
        )
