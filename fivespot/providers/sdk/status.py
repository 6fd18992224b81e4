"""Compute the status of a schedule as the provider contract requires it. Pure.

``active`` is in every status, because the schema of older kinds defaults it to false; timestamps change only with the
verdict; and while nothing changes, the computed status equals the stored one, so that nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from fivespot.runtime import Condition, find_condition, merge_diff, set_conditions
from fivespot.runtime.objects import parse_rfc3339, rfc3339

from .override_spec import write_records
from .overrides import OVERRIDDEN, OverrideRecord
from .verdict import Verdict

__all__ = [
    "DECISION_FAILED",
    "INVALID_SPEC",
    "SPEC_WARNINGS",
    "advice_text",
    "broken_status",
    "decided_status",
    "only_generations_differ",
    "only_messages_differ",
    "stored_active",
    "stored_overridden",
    "stored_since",
]

INVALID_SPEC: Final = "InvalidSpec"
DECISION_FAILED: Final = "DecisionFailed"
"""Reasons of a Ready that is False."""
SPEC_WARNINGS: Final = "SpecWarnings"
"""The condition on parts of a spec that have no effect or are probably not meant; absent when there are none."""
_MESSAGE_LIMIT: Final = 1024
_ADVICE_SHOWN: Final = 5


def stored_active(status: Mapping[str, Any]) -> bool | None:
    """The verdict that is stored, None when there is none yet."""
    active = status.get("active")
    if not isinstance(active, bool):
        return None
    # A default that the schema filled in is no verdict: one that was decided carries the time of its decision.
    return active if active or status.get("lastTransitionTime") else None


def stored_since(status: Mapping[str, Any]) -> datetime | None:
    """Return the time of the last change of the stored verdict."""
    try:
        return parse_rfc3339(status["lastTransitionTime"])
    except (KeyError, TypeError, ValueError):
        return None


def stored_overridden(status: Mapping[str, Any]) -> bool:
    """Whether an override decided the stored verdict."""
    ready = find_condition(status.get("conditions"), "Ready")
    return ready is not None and ready.get("reason") == OVERRIDDEN


def decided_status(
    status: Mapping[str, Any],
    verdict: Verdict,
    *,
    generation: int,
    now: datetime,
    records: Iterable[OverrideRecord] = (),
    advice: Sequence[str] = (),
) -> dict[str, Any]:
    """The status that reports a verdict."""
    flipped = stored_active(status) is not verdict.active
    since = rfc3339(now) if flipped else status.get("lastTransitionTime") or rfc3339(now)
    ready = Condition("Ready", "True", verdict.reason, verdict.message[:_MESSAGE_LIMIT])
    conditions = [ready]
    stored = status.get("conditions")
    if advice:
        conditions.append(Condition(SPEC_WARNINGS, "True", "CheckSpec", advice_text(advice)))
    elif find_condition(stored, SPEC_WARNINGS) is not None:
        stored = [each for each in stored or () if not isinstance(each, Mapping) or each.get("type") != SPEC_WARNINGS]
    return {
        **status,
        "active": verdict.active,
        "conditions": set_conditions(stored, conditions, generation=generation, now=now),
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "nextTransitionTime": rfc3339(verdict.until) if verdict.until is not None else None,
        "overrides": write_records(records) or None,
    }


def advice_text(advice: Sequence[str]) -> str:
    """Join pieces of advice for a message."""
    more = f"; and {len(advice) - _ADVICE_SHOWN} more" if len(advice) > _ADVICE_SHOWN else ""
    return f"{'; '.join(advice[:_ADVICE_SHOWN])}{more}"[:_MESSAGE_LIMIT]


def broken_status(
    status: Mapping[str, Any],
    reason: str,
    message: str,
    *,
    generation: int,
    now: datetime,
    ready: Literal["False", "Unknown"] = "False",
    records: Iterable[OverrideRecord] | None = None,
) -> dict[str, Any]:
    """The status of a schedule that gives no verdict: ``active`` stays as it was, and Ready says why.

    :param records: of overrides; None keeps the stored ones.
    """
    condition = Condition("Ready", ready, reason, message[:_MESSAGE_LIMIT])
    overrides = status.get("overrides") if records is None else write_records(records) or None
    return {
        **status,
        "active": status.get("active") is True,
        "conditions": set_conditions(status.get("conditions"), [condition], generation=generation, now=now),
        "observedGeneration": generation,
        "nextTransitionTime": None,
        "overrides": overrides,
    }


def only_messages_differ(status: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether two statuses differ in nothing but messages of conditions."""
    return bool(merge_diff(status, wanted)) and _without(status, "message") == _without(wanted, "message")


def only_generations_differ(status: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether two statuses differ in nothing but the generation that they were decided for."""
    name = "observedGeneration"
    return {**_without(status, name), name: None} == {**_without(wanted, name), name: None}


def _without(status: Mapping[str, Any], left_out: str) -> dict[str, Any]:
    """A status as it compares when a field of its conditions is left out."""
    conditions = status.get("conditions")
    found = {name: value for name, value in status.items() if value is not None and name != "conditions"}
    found["conditions"] = [
        {name: value for name, value in condition.items() if name != left_out}
        for condition in (conditions if isinstance(conditions, list) else ())
        if isinstance(condition, Mapping)
    ]
    return found
