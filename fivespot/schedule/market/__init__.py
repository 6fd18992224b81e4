"""The calendar of a market: weekly sessions, and the dates on which something else holds. Pure.

>>> from datetime import UTC, datetime
>>> calendar = read_calendar({
...     "timezone": "America/New_York",
...     "sessions": [{"daysOfWeek": ["mon-fri"], "open": "09:30", "close": "16:00"}],
...     "holidays": ["2026-11-26"],
...     "earlyCloses": [{"date": "2026-11-27", "close": "13:00"}],
... })
>>> MarketTimeline(calendar).evaluate(datetime(2026, 11, 26, 15, 0, tzinfo=UTC)).until
datetime.datetime(2026, 11, 27, 14, 30, tzinfo=datetime.timezone.utc)
"""

from .rules import Breaks, EarlyClose, LateOpen, MarketCalendar, Session, SpecialSession, TradingHours
from .spec import read_calendar
from .timeline import MarketTimeline

__all__ = [
    "Breaks",
    "EarlyClose",
    "LateOpen",
    "MarketCalendar",
    "MarketTimeline",
    "Session",
    "SpecialSession",
    "TradingHours",
    "read_calendar",
]
