"""Messages of schedules that follow a calendar: local times, and windows that do not take place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from fivespot.providers.sdk import EventNote
from fivespot.schedule import Cause, SkippedWindow, Zone

__all__ = ["both_times", "cause_text", "skipped_around"]

_A_DAY: Final = timedelta(days=1)
"""For how long after a clock change skipped windows are reported, and how far ahead the next change is searched: longer
than a schedule ever sleeps."""
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)


_CAUSES: Final = {
    Cause.DISABLED: "disabled by spec.enabled",
    Cause.NOT_YET_VALID: "before validFrom",
    Cause.NO_LONGER_VALID: "after validUntil",
}


def cause_text(cause: Cause) -> str:
    """Explain a schedule that is not active for another reason than its calendar; else empty."""
    return _CAUSES.get(cause, "")


def both_times(zone: Zone, instant: datetime, remark: str = "") -> str:
    """An instant as the zone's wall clock shows it, and in UTC; the remark stands between the two."""
    offset = timedelta(seconds=zone.era(int(instant.timestamp())).offset)
    local = f"{instant.astimezone(timezone(offset)):%a %Y-%m-%d %H:%M} {zone.name}"
    return f"{local}{f' ({remark})' if remark else ''} = {instant:%Y-%m-%dT%H:%M:%SZ}"


def skipped_around(
    skipped: Callable[[datetime, datetime], list[SkippedWindow]], at: datetime, what: str
) -> tuple[tuple[EventNote, ...], datetime | None]:
    """The windows that recent clock changes skipped, as events, and the instant of the next such change.

    :param skipped: the windows skipped from the first instant on and before the second.
    :param what: the word for a window.
    """
    found = skipped(at - min(_A_DAY, at - _FIRST), at + min(_A_DAY, _LAST - at))
    lately = tuple(_note(window, what) for window in found if window.at <= at)
    return lately, min((window.at for window in found if window.at > at), default=None)


def _note(window: SkippedWindow, what: str) -> EventNote:
    message = (
        f"the {what} {window.start}-{window.end} of {window.date.isoformat()} does not take place: "
        f"the clock jumps over all of it at {window.at:%Y-%m-%dT%H:%M:%SZ}"
    )
    return EventNote(
        reason="WindowSkipped", message=message, warning=True, once=f"{window.date.isoformat()} {window.start}"
    )
