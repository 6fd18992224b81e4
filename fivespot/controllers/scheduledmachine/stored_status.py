"""The state that ``status`` of a ScheduledMachine keeps between runs.

Parsing is lenient: a status that an older version, 5-Spot or a person left behind is used where it is valid, and the
rest counts as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict

import msgspec

from fivespot.contract import HeldVerdict, Reference
from fivespot.runtime import GroupKind, Object
from fivespot.runtime.objects import group_of

from .cluster_api import ChildRef
from .instants import read_instant

__all__ = ["ReplacementCount", "StoredStatus", "read_stored_children", "read_stored_status", "stored_status_of"]


@dataclass(frozen=True, slots=True)
class ReplacementCount:
    """The replacements so far: their number, the time of the last, and the Machine for which it was counted."""

    count: int = 0
    last: datetime | None = None
    uid: str = ""


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """The typed part of ``status`` that decisions rest on, and the raw rest that new statuses start from."""

    raw: Mapping[str, Any] = field(default_factory=dict)
    phase: str = ""
    schedule: HeldVerdict | None = None
    reference_changed: datetime | None = None
    machine_uid: str = ""
    bootstrap: ChildRef | None = None
    infrastructure: ChildRef | None = None
    shutdown_requested: datetime | None = None
    replaced: ReplacementCount = field(default_factory=ReplacementCount)

    @property
    def scheduled_reason(self) -> str:
        """The reason of condition Scheduled as last written."""
        for condition in _list(self.raw.get("conditions")):
            if _mapping(condition).get("type") == "Scheduled":
                return _text(_mapping(condition).get("reason"))
        return ""


class _Reported(TypedDict, total=False):
    status: Any


_reported_decoder: msgspec.json.Decoder[Mapping[str, Any]] = msgspec.json.Decoder(_Reported)


def stored_status_of(obj: Object) -> StoredStatus:
    """Read ``status`` of a ScheduledMachine, and decode nothing else of it."""
    return read_stored_status(obj.decode_as(_reported_decoder))


def read_stored_status(body: Mapping[str, Any]) -> StoredStatus:
    """Read ``status`` of a stored ScheduledMachine. Never raises for what it holds."""
    status = _mapping(body.get("status"))
    if not status:
        return StoredStatus()
    return StoredStatus(
        raw=status,
        phase=_text(status.get("phase")),
        schedule=_schedule(status.get("spotSchedule")),
        reference_changed=read_instant(_mapping(status.get("spotSchedule")).get("referenceChangedTime")),
        machine_uid=_text(_mapping(status.get("machineRef")).get("uid")),
        bootstrap=_child(status.get("bootstrapRef")),
        infrastructure=_child(status.get("infrastructureRef")),
        shutdown_requested=read_instant(status.get("shutdownRequestedTime")),
        replaced=_replaced(status.get("replacements")),
    )


def read_stored_children(body: Mapping[str, Any]) -> StoredStatus:
    """Read only the children that ``status`` names; cheap enough for every event."""
    status = _mapping(body.get("status"))
    return StoredStatus(
        bootstrap=_child(status.get("bootstrapRef")), infrastructure=_child(status.get("infrastructureRef"))
    )


def _replaced(value: object) -> ReplacementCount:
    """Read the replacement count as a whole or not at all: without its time it could never be reset."""
    replaced = _mapping(value)
    count, last = replaced.get("count"), read_instant(replaced.get("lastTime"))
    if not isinstance(count, int) or not 0 < count < 1_000_000 or last is None:
        return ReplacementCount()
    return ReplacementCount(count, last, _text(replaced.get("uid")))


def _schedule(value: object) -> HeldVerdict | None:
    remembered = _mapping(value)
    if not remembered:
        return None
    active = remembered.get("active")
    reference = _mapping(remembered.get("reference"))
    whose = None
    if reference:
        whose = Reference(_text(reference.get("kind")), _text(reference.get("name")))
    return HeldVerdict(active if isinstance(active, bool) else None, whose)


def _child(value: object) -> ChildRef | None:
    ref = _mapping(value)
    if not ref:
        return None
    group, kind, name = group_of(_text(ref.get("apiVersion"))), _text(ref.get("kind")), _text(ref.get("name"))
    if not group or not kind or not name:
        return None
    return ChildRef(GroupKind(group, kind), name, _text(ref.get("uid")))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
