"""How schedules that follow a calendar talk to people: local times, and windows that do not take place."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Final

from fivespot.providers.sdk import Note
from fivespot.schedule import SkippedWindow, Zone

__all__ = ["LOOK_BACK", "both_times", "skipped_note"]

LOOK_BACK: Final = timedelta(days=1)
"""For how long after a jump of the clock what it skipped is told."""


def both_times(zone: Zone, instant: datetime, remark: str = "") -> str:
    """An instant as the zone's wall clock shows it, and in UTC; the remark stands between the two."""
    offset = timedelta(seconds=zone.era(int(instant.timestamp())).offset)
    local = f"{instant.astimezone(timezone(offset)):%a %Y-%m-%d %H:%M} {zone.name}"
    return f"{local}{f' ({remark})' if remark else ''} = {instant:%Y-%m-%dT%H:%M:%SZ}"


def skipped_note(window: SkippedWindow, what: str) -> Note:
    """The event for a window that lies wholly inside a jump of the clock; ``what`` is the word for it."""
    message = (
        f"the {what} {window.start}-{window.end} of {window.date.isoformat()} does not take place: "
        f"the clock jumps over all of it at {window.at:%Y-%m-%dT%H:%M:%SZ}"
    )
    return Note("WindowSkipped", message, once=f"{window.date.isoformat()} {window.start}")
