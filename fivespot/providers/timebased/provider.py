"""The TimeBasedSpotSchedule provider: schedule arithmetic, with messages for people."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fivespot.api.names import ProviderReason
from fivespot.providers.calendar_notes import both_times, cause_text, skipped_around
from fivespot.providers.sdk import Column, Provider, SpecError, Verdict
from fivespot.schedule import Cause, Evaluation, ScheduleError, Timeline, read_schedule
from fivespot.schedule.advice import advice_on

from .spec import KIND, PLURAL, TimeBasedSpotScheduleSpec, TimeBasedSpotScheduleStatus

__all__ = ["PROVIDER", "decide", "prepare"]


def prepare(spec: TimeBasedSpotScheduleSpec) -> Timeline:
    """Compile the calendar of a spec.

    :raises SpecError: the spec is invalid; the text begins with the field's path.
    """
    try:
        return Timeline(read_schedule(spec.model_dump(by_alias=True, exclude_none=True)))
    except ScheduleError as error:
        raise SpecError(f"spec.{error}") from error


def decide(timeline: Timeline, at: datetime) -> Verdict:
    """Return the verdict at an instant, and the exact instant of the next change."""
    found = timeline.evaluate(at)
    reason = ProviderReason.WINDOW_OPEN if found.active else ProviderReason.WINDOW_CLOSED
    notes, again = skipped_around(timeline.skipped, at, "window")
    # A disabled schedule is final: no override brings its machines back.
    final = found.cause is Cause.DISABLED
    return Verdict(found.active, found.until, reason, _message(timeline, found), notes, again, final)


def _message(timeline: Timeline, found: Evaluation) -> str:
    why = cause_text(found.cause)
    if found.until is None:
        if why:
            return f"{why}; no window opens"
        return "open, and never closes" if found.active else "closed, and no window opens"
    what = "closes" if found.active else "opens"
    prefix = f"{why}; " if why else ""
    return f"{prefix}{what} {both_times(timeline.schedule.zone, found.until)}"


PROVIDER: Final = Provider(
    kind=KIND,
    plural=PLURAL,
    spec=TimeBasedSpotScheduleSpec,
    prepare=prepare,
    advise=lambda timeline: advice_on(timeline.schedule),
    decide=decide,
    metrics="fivespot_time_based",
    short_names=("tbss",),
    columns=(Column("Enabled", "boolean", ".spec.enabled"), Column("Timezone", "string", ".spec.timezone")),
    description="A schedule of weekly hours and windows in a time zone, for ScheduledMachines to follow.",
    status=TimeBasedSpotScheduleStatus,
)
