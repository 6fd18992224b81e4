"""Conditions as the API conventions define them, as pure functions over plain lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from .timestamps import rfc3339

__all__ = ["Condition", "ConditionStatus", "find_condition", "set_conditions"]

ConditionStatus = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A statement of a controller about one aspect of an object (API conventions, "Typical status properties").

    The transition time is not part of it: :func:`set_conditions` derives it.
    """

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


def find_condition(conditions: object, type_: str) -> Mapping[str, Any] | None:
    """Find the first entry of that type; anything that is no list of objects has none."""
    if not isinstance(conditions, list):
        return None
    for entry in conditions:
        if isinstance(entry, dict) and entry.get("type") == type_:
            return entry
    return None


def set_conditions(
    existing: object,
    wanted: Iterable[Condition],
    *,
    absent: Sequence[str] = (),
    generation: int,
    now: datetime,
) -> list[dict[str, Any]]:
    """Make the new conditions list: ``wanted`` ones set, ``absent`` ones removed, all others untouched and in place.

    ``lastTransitionTime`` moves only when the status of a condition changes; ``observedGeneration`` is the
    generation that the caller looked at.
    """
    result: list[dict[str, Any]] = []
    ours = {condition.type: condition for condition in wanted}
    gone = set(absent)
    placed = set()
    for entry in existing if isinstance(existing, list) else ():
        if not isinstance(entry, dict):
            continue
        type_ = str(entry.get("type"))
        if type_ in gone or type_ in placed:
            continue
        condition = ours.get(type_)
        if condition is None:
            result.append(dict(entry))
            continue
        placed.add(type_)
        since = entry.get("lastTransitionTime")
        if entry.get("status") != condition.status or not since:
            since = rfc3339(now)
        result.append(_entry(condition, since, generation))
    result.extend(
        _entry(condition, rfc3339(now), generation) for type_, condition in ours.items() if type_ not in placed
    )
    return result


def _entry(condition: Condition, since: str, generation: int) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": since,
        "observedGeneration": generation,
    }
