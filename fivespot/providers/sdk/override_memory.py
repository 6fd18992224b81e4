"""Overrides between their JSON and their values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from fivespot.api.types import parse_timestamp

from .override_spec import FOREVER, NEXT_TRANSITION, OverrideEntry
from .overrides import Override, Remembered, State, Until

__all__ = ["read_memory", "read_overrides", "write_memory"]


def read_overrides(entries: Iterable[OverrideEntry] | None) -> tuple[Override, ...]:
    """``spec.overrides`` as validated."""
    return tuple(
        Override(entry.name, entry.active, _instant(entry.from_), _until(entry.until), entry.reason or "")
        for entry in entries or ()
    )


def read_memory(reports: object) -> dict[str, Remembered]:
    """``status.overrides`` as stored; what cannot be read counts as lost."""
    memory = {}
    for report in reports if isinstance(reports, list) else ():
        try:
            found = _remembered(report)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
        memory[found.name] = found
    return memory


def write_memory(memory: Iterable[Remembered]) -> list[dict[str, Any]]:
    """``status.overrides``; the same memory gives the same JSON, so that nothing is written while nothing changes."""
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
        for entry in memory
    ]


def _remembered(report: Mapping[str, Any]) -> Remembered:
    base = report.get("baseActive")
    start = _instant(report["startedAt"])
    if not isinstance(report["active"], bool) or start is None:
        raise ValueError("no verdict, or no start")
    return Remembered(
        name=report["name"],
        active=report["active"],
        state=State(report["state"]),
        begin=_instant(report.get("from")),
        until=_until(report["until"]),
        start=start,
        end=_instant(report.get("endsAt")),
        open_ended=report.get("openEnded") is True,
        base=base if isinstance(base, bool) else None,
    )


def _until(text: str) -> Until:
    if text == NEXT_TRANSITION:
        return "nextTransition"
    if text == FOREVER:
        return "forever"
    return parse_timestamp(text).astimezone(UTC)


def _instant(text: str | None) -> datetime | None:
    return parse_timestamp(text).astimezone(UTC) if text is not None else None


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
