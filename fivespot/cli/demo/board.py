"""The current state of the demo's objects, updated by their changes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from fivespot.runtime import Change, ChangeType, Resource
from fivespot.runtime.objects import parse_rfc3339
from fivespot.testing.clusterapi.core import MACHINES

from .sample import HOURS, MANUAL, MARKET, NODES, SCHEDULED_MACHINES

__all__ = ["WATCHED", "Board", "MachineRow", "ScheduleRow", "in_one_zone"]

Json = Mapping[str, Any]

WATCHED: Final = (HOURS, MARKET, MANUAL, SCHEDULED_MACHINES, MACHINES, NODES)
_SCHEDULES: Final = frozenset({HOURS, MARKET, MANUAL})
_READY: Final = "Ready"
_INSTANT: Final = re.compile(
    r"(?:[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d [\w/+-]+(?: \([^)]*\))? = )?"
    r"(?P<instant>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
)
"""An instant in UTC, with the time in another zone before it."""
_ACTIVE: Final = {True: "active", False: "inactive"}


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A row of the view for a schedule.

    :param active: None before the first verdict.
    """

    kind: str
    name: str
    active: bool | None
    ready: str
    message: str
    next: datetime | None


@dataclass(frozen=True, slots=True)
class MachineRow:
    """A row of the view for a ScheduledMachine, with its Machine and Node.

    :param conditions: type -> status.
    """

    name: str
    follows: str
    phase: str
    message: str
    machine: str
    node: str
    conditions: Mapping[str, str]


class Board:
    """All rows, and a line for each change of state.

    :param say: receives the object of a line, and its text.
    :param local: shows an instant in the zone of the demo, for instants in texts.
    """

    def __init__(self, say: Callable[[str, str], None], local: Callable[[datetime], str]) -> None:
        self._say = say
        self._local = local
        self._bodies: dict[tuple[Resource, str], Json] = {}
        self._said: dict[tuple[Resource, str], str] = {}

    def changed(self, resource: Resource, change: Change) -> None:
        """Record a change of an object of a kind in :data:`WATCHED`."""
        at = (resource, change.key.name)
        if change.type is ChangeType.DELETED:
            self._bodies.pop(at, None)
            state, why = "gone", ""
        else:
            body = change.object.decode()
            self._bodies[at] = body
            state, why = _in_words(resource, body)
        # Messages may change often; they are in the tables.
        if state and self._said.get(at) != state:
            self._said[at] = state
            text = f"{state}: {in_one_zone(why, self._local)}" if why else state
            self._say(f"{resource.kind}/{change.key.name}", text)

    def schedules(self) -> list[ScheduleRow]:
        """Rows of schedules, sorted by kind and name."""
        rows = [
            self._schedule(resource, body) for (resource, _), body in self._bodies.items() if resource in _SCHEDULES
        ]
        return sorted(rows, key=lambda row: (row.kind, row.name))

    def machines(self) -> list[MachineRow]:
        """Rows of machines, sorted by name."""
        found = [(name, body) for (resource, name), body in self._bodies.items() if resource == SCHEDULED_MACHINES]
        return [self._machine(name, body) for name, body in sorted(found, key=lambda pair: pair[0])]

    def _machine(self, name: str, body: Json) -> MachineRow:
        status = body.get("status") or {}
        machine = self._bodies.get((MACHINES, name))
        node = ((machine or {}).get("status") or {}).get("nodeRef") or {}
        known = self._bodies.get((NODES, node.get("name", "")))
        return MachineRow(
            name=name,
            follows=body["spec"]["schedule"]["name"],
            phase=status.get("phase", ""),
            message=in_one_zone(status.get("message", ""), self._local),
            machine=_machine_phase(machine) if machine is not None else "",
            node=_readiness(known) if known is not None else "",
            conditions={each["type"]: each["status"] for each in status.get("conditions") or ()},
        )

    def _schedule(self, resource: Resource, body: Json) -> ScheduleRow:
        row = _schedule(resource, body)
        return replace(row, message=in_one_zone(row.message, self._local))


def in_one_zone(text: str, local: Callable[[datetime], str]) -> str:
    """Replace the instants in a message, which has them in UTC or in two zones, by local ones."""

    def shown(found: re.Match[str]) -> str:
        try:
            return local(datetime.fromisoformat(found["instant"]))
        except ValueError:
            return found[0]

    return _INSTANT.sub(shown, text)


def _schedule(resource: Resource, body: Json) -> ScheduleRow:
    status = body.get("status") or {}
    ready = _condition(body, _READY)
    following = status.get("nextTransitionTime")
    return ScheduleRow(
        kind=resource.kind,
        name=body["metadata"]["name"],
        active=status.get("active"),
        ready=ready.get("reason", ""),
        message=ready.get("message", ""),
        next=parse_rfc3339(following) if following else None,
    )


def _in_words(resource: Resource, body: Json) -> tuple[str, str]:
    """The state of an object and its message; "" before it has a state."""
    ready = _condition(body, _READY)
    if resource in _SCHEDULES:
        row = _schedule(resource, body)
        return ("", "") if row.active is None else (f"{_ACTIVE[row.active]} ({row.ready})", row.message)
    if resource == SCHEDULED_MACHINES:
        status = body.get("status") or {}
        phase = status.get("phase")
        return (f"{phase} ({ready.get('reason', '')})", status.get("message", "")) if phase else ("", "")
    if resource == MACHINES:
        return _machine_phase(body), ""
    return _readiness(body), ""


def _readiness(node: Json) -> str:
    return "ready" if _condition(node, _READY).get("status") == "True" else "not ready"


def _machine_phase(body: Json) -> str:
    if body["metadata"].get("deletionTimestamp"):
        return "Deleting"
    return (body.get("status") or {}).get("phase") or "Pending"


def _condition(body: Json, type_: str) -> Json:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})
