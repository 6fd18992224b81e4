"""Advice on rules that can be followed but probably are not meant: parts without effect, and gaps of a minute.

It depends on the rules alone and not on the time, so that it stays the same until somebody edits them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from .grammar import DAY, DAYS, HOUR, MINUTE, format_time
from .intervals import Interval, merge
from .rules import DailyWindow, HourRule, RecurringWindow, SpanWindow, WeeklySchedule

__all__ = ["advice_on", "gap_advice", "hour_rule_advice", "week_of"]

WEEK = 7 * DAY


def advice_on(schedule: WeeklySchedule) -> list[str]:
    """Return the advice on a schedule, each as a sentence that begins with the field where there is one."""
    rules = [*schedule.windows, *([schedule.hours] if schedule.hours is not None else [])]
    found = list(hour_rule_advice(schedule.hours)) if schedule.hours is not None else []
    found += gap_advice(week_of(rules))
    recurs = any(isinstance(rule, RecurringWindow) for rule in rules)
    if (
        not recurs
        and not any(week_of([rule]) for rule in rules)
        and not any(exception.windows for exception in schedule.exceptions)
    ):
        if schedule.lead_time:
            found.append("leadTime has no effect: nothing opens")
        if schedule.lag_time:
            found.append("lagTime has no effect: nothing opens")
    for index, exception in enumerate(schedule.exceptions):
        name = f'exceptions[{index}] ("{exception.date}")'
        if _is_outside(schedule, exception.date):
            found.append(f"{name} has no effect: the schedule is not valid on that date")
        elif not exception.windows and not _starts_on(rules, exception.date.weekday()):
            day = DAYS[exception.date.weekday()]
            found.append(f"{name} has no effect: it is a {day}, on which nothing starts, and it has no windows")
    return found


def hour_rule_advice(rule: HourRule, field: str = "") -> Iterator[str]:
    """Yield the advice on days without hours, and hours without days."""
    if bool(rule.days) is not bool(rule.hours):
        given, missing = ("days", "hoursOfDay") if rule.days else ("hoursOfDay", "days")
        if not field and given == "days":
            given = "daysOfWeek"
        if not field and missing == "days":
            missing = "daysOfWeek"
        yield f"{field}{given} has no effect without {missing}"


def week_of(rules: Iterable[HourRule | DailyWindow | RecurringWindow | SpanWindow]) -> list[Interval]:
    """The active times of every week, in seconds from Monday 00:00; what runs past its end begins it as well."""
    found: list[Interval] = []
    for rule in rules:
        if isinstance(rule, HourRule):
            found += [
                (day * DAY + hour * HOUR, day * DAY + (hour + 1) * HOUR) for day in rule.days for hour in rule.hours
            ]
        elif isinstance(rule, SpanWindow):
            start = rule.from_day * DAY + rule.from_time
            found.append((start, start + rule.length))
        elif isinstance(rule, DailyWindow):
            found += [(day * DAY + rule.start, day * DAY + rule.start + rule.length) for day in rule.days]
    return merge([*found, *((start - WEEK, end - WEEK) for start, end in found if end > WEEK)])


def gap_advice(week: list[Interval]) -> list[str]:
    """Return the advice on gaps of one minute, which come from an end that is taken to be inclusive."""
    inside = [(start, end) for start, end in week if start < WEEK]
    following = [*inside[1:], *((start + WEEK, end + WEEK) for start, end in inside[:1])]
    gaps = [end for (_, end), (start, _) in zip(inside, following, strict=True) if 0 < start - end <= MINUTE]
    if not gaps:
        return []
    end = gaps[0]
    day, time = DAYS[end // DAY % 7], format_time(end % DAY)
    more = f", and {len(gaps) - 1} times more a week" if len(gaps) > 1 else ""
    again = format_time(end % DAY + MINUTE)
    remedy = f'an end is exclusive, so write "{again}" for it, or machines go and come again'
    return [f"it closes for one minute at {day} {time}{more}: {remedy}"]


def _starts_on(rules: Iterable[HourRule | DailyWindow | RecurringWindow | SpanWindow], weekday: int) -> bool:
    for rule in rules:
        if isinstance(rule, SpanWindow):
            last = rule.from_day + (rule.from_time + rule.length - 1) // DAY
            if any(day % 7 == weekday for day in range(rule.from_day, last + 1)):
                return True
        elif isinstance(rule, RecurringWindow):
            if weekday in rule.recurrence.weekdays:
                return True
        elif weekday in rule.days and (isinstance(rule, DailyWindow) or rule.hours):
            return True
    return False


def _is_outside(schedule: WeeklySchedule, day: date) -> bool:
    """Whether a date, in whatever zone, lies outside of the validity; a window may reach a week beyond it."""
    opens, closes = schedule.valid_from, schedule.valid_until
    reach = timedelta(days=9)
    too_early = opens is not None and day < date.max - reach and day + reach < opens.date()
    return too_early or (closes is not None and day > date.min + reach and day - timedelta(days=1) > closes.date())
