"""Calendar arithmetic: computes exactly when a weekly schedule is active, in any zone and on any date.

Pure: a rule and an instant give a verdict and the instant of the next change. There is no clock, no I/O except
reading zone data from the ``tzdata`` package, and nothing of Kubernetes.

>>> from datetime import UTC, datetime
>>> schedule = read_schedule({
...     "timezone": "Europe/Berlin",
...     "windows": [{"days": ["mon-fri"], "start": "22:00", "end": "06:00"}],
... })
>>> evaluate(schedule, datetime(2027, 3, 26, 23, 0, tzinfo=UTC)).until
datetime.datetime(2027, 3, 27, 5, 0, tzinfo=datetime.timezone.utc)
"""

from .civil import Zone
from .errors import GrammarError, ScheduleError, UnknownZone
from .evaluate import Cause, Evaluation, SkippedWindow, Timeline, evaluate, skipped, transitions
from .grammar import (
    parse_date,
    parse_days,
    parse_duration,
    parse_hours,
    parse_instant,
    parse_moment,
    parse_time,
)
from .recurrence import Recurrence
from .rules import MAX_LEAD, DailyWindow, DateException, HourRule, RecurringWindow, SpanWindow, WeeklySchedule
from .spec import read_schedule
from .zone_hints import ZoneHint, zone_hint, zone_names
from .zones import TZDATA_RELEASE, load_zone

__all__ = [
    "MAX_LEAD",
    "TZDATA_RELEASE",
    "Cause",
    "DailyWindow",
    "DateException",
    "Evaluation",
    "GrammarError",
    "HourRule",
    "Recurrence",
    "RecurringWindow",
    "ScheduleError",
    "SkippedWindow",
    "SpanWindow",
    "Timeline",
    "UnknownZone",
    "WeeklySchedule",
    "Zone",
    "ZoneHint",
    "evaluate",
    "load_zone",
    "parse_date",
    "parse_days",
    "parse_duration",
    "parse_hours",
    "parse_instant",
    "parse_moment",
    "parse_time",
    "read_schedule",
    "skipped",
    "transitions",
    "zone_hint",
    "zone_names",
]
