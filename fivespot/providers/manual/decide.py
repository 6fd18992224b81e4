"""How a ManualSchedule decides while no override does: by its switch, or by the schedule that it goes by."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fivespot.contract import PROVIDER_NOT_READY
from fivespot.providers.sdk import UNREADABLE_PATIENCE, Context, NoVerdict, Resolved, Unreadable, Verdict

from .spec import KIND, MANUAL_SCHEDULES, Base, ManualScheduleSpec

__all__ = ["BASE_CYCLE", "BASE_UNRESOLVED", "LONGEST_CHAIN", "decide"]

BASE_UNRESOLVED: Final = "BaseUnresolved"
BASE_CYCLE: Final = "BaseCycle"
"""Reasons of a Ready that is not True."""

LONGEST_CHAIN: Final = 8
"""Schedules that may go by one another, the first base counted as one."""
_RETRY: Final = 60.0
"""Seconds between two looks at a base that gives no verdict (contract, A8); a change is looked at when it comes."""


def decide(spec: ManualScheduleSpec, at: datetime, context: Context) -> Verdict:
    """The switch, or the verdict of the base.

    :raises NoVerdict: the base gives none, or the chain of bases has no end.
    """
    base = spec.base
    if base is None:
        on = bool(spec.enabled)
        return Verdict(on, None, "Enabled" if on else "Disabled", f"switched {'on' if on else 'off'} by spec.enabled")
    _follow(base, context)
    reading = context.schedule(base.kind, base.name, field="spec.base")
    if isinstance(reading, Unreadable):
        # Nothing is known of the base, which is no trouble of its own: it is told only when it lasts.
        raise NoVerdict(BASE_UNRESOLVED, reading.why, ready="Unknown", patience=UNREADABLE_PATIENCE, retry=_RETRY)
    if not isinstance(reading, Resolved):
        # Of the base's own texts none is copied: one that changes them all the time would have this object written
        # as often.
        not_ready = f"{base.kind}/{base.name} is not Ready; its own condition says why"
        why = not_ready if reading.reason == PROVIDER_NOT_READY else reading.message
        raise NoVerdict(BASE_UNRESOLVED, f"{reading.reason}: {why}", retry=_RETRY)
    says = "active" if reading.active else "inactive"
    # When the base changes is the base's to know.
    return Verdict(
        reading.active, None, f"Base{says.capitalize()}", f"{base.kind}/{base.name} is {says}", foreseen=False
    )


def _follow(base: Base, context: Context) -> None:
    """Follow the bases of bases; only ManualSchedules have any.

    :raises NoVerdict: one of them comes twice, or there are too many.
    """
    seen = [(KIND, context.name)]
    step: Base | None = base
    while step is not None:
        here = (step.kind, step.name)
        if here in seen:
            path = " -> ".join(name for _, name in (*seen, here))
            raise NoVerdict(BASE_CYCLE, f"spec.base leads back to ManualSchedule/{step.name}: {path}", retry=_RETRY)
        seen.append(here)
        if len(seen) > LONGEST_CHAIN + 1:
            raise NoVerdict(
                BASE_CYCLE, f"spec.base leads over more than {LONGEST_CHAIN} schedules; shorten the chain", retry=_RETRY
            )
        step = _base_of(context.get(MANUAL_SCHEDULES, step.name)) if step.kind == KIND else None


def _base_of(found: Mapping[str, Any] | None) -> Base | None:
    spec = found.get("spec") if found is not None else None
    base = spec.get("base") if isinstance(spec, Mapping) else None
    if not isinstance(base, Mapping):
        return None
    kind, name = base.get("kind"), base.get("name")
    return Base.model_construct(kind=kind, name=name) if isinstance(kind, str) and isinstance(name, str) else None
