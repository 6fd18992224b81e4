"""``spec.overrides`` and ``status.overrides``, which the kit adds to every kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from fivespot.api.types import INSTANT_PATTERN, ApiModel, Instant, Timestamp, instant_message
from fivespot.runtime.crd import Cel, list_map, matches, nullable
from fivespot.runtime.objects import parse_rfc3339, rfc3339

from .overrides import Override, OverrideRecord, OverrideState, Until

__all__ = [
    "FOREVER",
    "MAX_OVERRIDES",
    "NEXT_TRANSITION",
    "OverrideEntry",
    "OverrideStatus",
    "OverrideStatuses",
    "Overrides",
    "read_overrides",
    "read_records",
    "write_records",
]

NEXT_TRANSITION: Final = "nextTransition"
FOREVER: Final = "forever"
MAX_OVERRIDES: Final = 32

OverrideName = Annotated[
    str,
    Field(max_length=63),
    matches(
        "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        "must be a name of lower-case letters, digits, '-' and '.', such as release-night",
    ),
]


def _end_message(text: str) -> str:
    word = text.lower().replace("-", "").replace("_", "").replace(" ", "")
    meant = {each.lower(): each for each in (NEXT_TRANSITION, FOREVER)}.get(word)
    if meant is not None:
        return f"must be an instant, {NEXT_TRANSITION} or {FOREVER}; did you mean {meant}?"
    if re.fullmatch("[0-9]+ ?[a-z]+", text[:64], re.ASCII):
        return (
            f"must be an instant such as 2027-01-31T06:00:00Z, {NEXT_TRANSITION} or {FOREVER}, not a length of time; "
            "fivespot override --for computes the instant"
        )
    return instant_message(text, f", or {NEXT_TRANSITION}, or {FOREVER}")


OverrideEnd = Annotated[
    str,
    Field(max_length=64),
    replace(
        matches(
            f"^({INSTANT_PATTERN[1:-1]}|{NEXT_TRANSITION}|{FOREVER})$",
            f"must be an instant with its offset such as 2027-01-31T06:00:00Z, {NEXT_TRANSITION}, or {FOREVER}",
        ),
        explain=_end_message,
    ),
]


_INSTANT = re.compile(INSTANT_PATTERN[1:-1])


def _in_order(override: OverrideEntry) -> bool:
    begin, end = override.from_, override.until
    if begin is None or not (_INSTANT.fullmatch(begin) and _INSTANT.fullmatch(end)):
        return True
    return parse_rfc3339(begin) < parse_rfc3339(end)


class OverrideEntry(ApiModel):
    """A person's decision for a limited time, which takes precedence over the schedule."""

    EXAMPLE: ClassVar[str] = "{name: release-night, active: true, until: nextTransition}"
    RULES = (
        Cel(
            f"!has(self.from) || !self.from.matches('{INSTANT_PATTERN}') || !self.until.matches('{INSTANT_PATTERN}')"
            " || timestamp(self.from) < timestamp(self.until)",
            "from must be before until",
            check=_in_order,
        ),
    )

    name: OverrideName
    """Name of the override. Each name has one owner, so a person and a repository can have overrides of their own."""
    active: bool
    """Whether machines should exist while it holds."""
    from_: Annotated[Instant | None, Field(alias="from")] = None
    """Start, such as 2027-01-31T06:00:00Z; by default the time at which the controller first sees it."""
    until: OverrideEnd = NEXT_TRANSITION
    """End: an instant such as 2027-01-31T18:00:00Z; nextTransition, the time at which the schedule itself would next
    change; or forever, until it is removed.
    """
    reason: Annotated[str, Field(max_length=256)] | None = None
    """Reason for the override, for people."""


Overrides = Annotated[list[OverrideEntry], Field(max_length=MAX_OVERRIDES), list_map("name")]
"""``spec.overrides``: of those that have started and not ended, the one that started last decides."""


class OverrideStatus(ApiModel):
    """The state of one override, with what was fixed when it started."""

    name: Annotated[str, Field(max_length=63)]
    """The name of the override."""
    active: bool
    """Its verdict. Another value under the same name is another override, which starts when it is seen."""
    state: Literal["Pending", "InForce", "Overruled", "Expired"]
    """Pending: it has not started. InForce: it decides. Overruled: another one that started later decides, or the
    schedule is disabled. Expired: it is over and has no effect; it can be removed."""
    from_: Annotated[Annotated[str, Field(max_length=64)] | None, Field(alias="from")] = None
    """The from of the spec, if it has one."""
    until: Annotated[str, Field(max_length=64)]
    """The until of the spec."""
    started_at: Timestamp | None = None
    """Time at which it started, or will start."""
    ends_at: Annotated[Timestamp | None, nullable()] = None
    """Time at which it ends or ended; null if not known."""
    open_ended: bool | None = None
    """Whether it holds until it is removed: its until is forever, or the schedule itself never changes."""
    base_active: bool | None = None
    """The schedule's verdict at the start of the override, which ends when that changes. Only set where the time of
    the next change is not known in advance.
    """


OverrideStatuses = Annotated[list[OverrideStatus], list_map("name")]
"""``status.overrides``."""


def read_overrides(entries: Iterable[OverrideEntry] | None) -> tuple[Override, ...]:
    """Read ``spec.overrides`` from the validated model."""
    return tuple(
        Override(entry.name, entry.active, _instant(entry.from_), _until(entry.until), entry.reason or "")
        for entry in entries or ()
    )


def read_records(entries: object) -> dict[str, OverrideRecord]:
    """Parse ``status.overrides`` as stored; an invalid entry counts as lost."""
    records = {}
    for entry in entries if isinstance(entries, list) else ():
        try:
            found = _record(entry)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        records[found.name] = found
    return records


def write_records(records: Iterable[OverrideRecord]) -> list[dict[str, Any]]:
    """Render ``status.overrides``; equal records give equal JSON, so that nothing is written while nothing changes."""
    return [
        {
            "name": entry.name,
            "active": entry.active,
            "state": entry.state.value,
            "until": _text(entry.until) if isinstance(entry.until, datetime) else entry.until,
            "startedAt": _text(entry.start),
            **({"from": _text(entry.begin)} if entry.begin is not None else {}),
            **({"endsAt": _text(entry.end)} if entry.end is not None else {}),
            **({"openEnded": True} if entry.open_ended else {}),
            **({"baseActive": entry.base} if entry.base is not None else {}),
        }
        for entry in records
    ]


def _record(entry: Mapping[str, Any]) -> OverrideRecord:
    base = entry.get("baseActive")
    start = _instant(entry["startedAt"])
    if not isinstance(entry["active"], bool) or start is None:
        raise ValueError("no verdict, or no start")
    return OverrideRecord(
        name=entry["name"],
        active=entry["active"],
        state=OverrideState(entry["state"]),
        begin=_instant(entry.get("from")),
        until=_until(entry["until"]),
        start=start,
        end=_instant(entry.get("endsAt")),
        open_ended=entry.get("openEnded") is True,
        base=base if isinstance(base, bool) else None,
    )


def _until(text: str) -> Until:
    if text == NEXT_TRANSITION:
        return "nextTransition"
    if text == FOREVER:
        return "forever"
    return parse_rfc3339(text)


def _instant(text: str | None) -> datetime | None:
    return parse_rfc3339(text) if text is not None else None


def _text(instant: datetime) -> str:
    return rfc3339(instant, fraction=True)
