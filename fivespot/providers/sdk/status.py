"""The status of a schedule as the provider contract wants it. Pure.

``active`` is in every status, because the schema of older kinds defaults it to false; timestamps move only on a flip;
and while nothing changes, the status computed is the one that is stored, so nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fivespot.runtime.objects import Condition, rfc3339, set_conditions

from .verdict import Verdict

__all__ = ["INVALID_SPEC", "broken_status", "decided_status", "stored_active"]

INVALID_SPEC: Final = "InvalidSpec"
_MESSAGE_LIMIT: Final = 1024


def stored_active(status: Mapping[str, Any]) -> bool | None:
    """The verdict that is stored, None when there is none yet."""
    active = status.get("active")
    if not isinstance(active, bool):
        return None
    # A default that the schema filled in is no verdict: one that was decided carries the time of its decision.
    return active if active or status.get("lastTransitionTime") else None


def decided_status(status: Mapping[str, Any], verdict: Verdict, *, generation: int, now: datetime) -> dict[str, Any]:
    """The status for a verdict."""
    flipped = stored_active(status) is not verdict.active
    since = rfc3339(now) if flipped else status.get("lastTransitionTime") or rfc3339(now)
    ready = Condition("Ready", "True", verdict.reason, verdict.message[:_MESSAGE_LIMIT])
    return {
        **status,
        "active": verdict.active,
        "conditions": set_conditions(status.get("conditions"), [ready], generation=generation, now=now),
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "nextTransitionTime": rfc3339(verdict.until) if verdict.until is not None else None,
    }


def broken_status(
    status: Mapping[str, Any], reason: str, message: str, *, generation: int, now: datetime
) -> dict[str, Any]:
    """The status of a schedule that gives no verdict: ``active`` stays as it was, and Ready says why."""
    ready = Condition("Ready", "False", reason, message[:_MESSAGE_LIMIT])
    return {
        **status,
        "active": status.get("active") is True,
        "conditions": set_conditions(status.get("conditions"), [ready], generation=generation, now=now),
        "observedGeneration": generation,
        "nextTransitionTime": None,
    }
