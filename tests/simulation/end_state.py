"""The required end state, and work that is overdue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .fleet import SCHEDULED_MACHINES
from .histories import PROMPT
from .reference import ReferenceModel, condition

__all__ = ["overdue", "unsettled"]

Json = dict[str, Any]

PATIENT = 900.0
"""Seconds for a Machine to be replaced: the longest back-off is ten minutes."""
_SCHEDULED = {"up": "ScheduleActive", "killed": "KillSwitchActivated"}


def overdue(reference: ReferenceModel) -> Iterator[str]:
    """Yield work that should be done by now, while nothing disturbs the managers."""
    at, calm, moment = reference.at, reference.undisturbed_since, reference.moment
    for schedule, obj in reference.stored_schedules():
        wanted, since = schedule.now(reference.now), schedule.since(reference.start, reference.now)
        active = (obj.get("status") or {}).get("active")
        if wanted is not None and active != wanted and at > max(since, calm) + PROMPT:
            yield f"{schedule.kind} {schedule.name} is {active}, expected {wanted} for {at - since:.0f} s"
    for obj in reference.objects(SCHEDULED_MACHINES):
        uid = obj["metadata"]["uid"]
        history, machines = reference.histories[uid], reference.machines_of(uid)
        if history.paused.was(moment, True):
            continue
        kept = any("deletionTimestamp" not in machine["metadata"] for machine in machines)
        if kept and at > max(history.due(), calm) + PROMPT:
            yield f"{history.name} has its Machine, wanted: {history.wanted}"
        free_since = max(history.paused.since, history.machines.since, reference.freed.get(history.name, 0.0))
        missing = history.wanted.now == "up" and not machines and not _name_taken(obj, reference)
        if missing and at > max(history.wanted.since, calm, free_since) + PATIENT:
            yield f"{history.name} has no Machine, wanted: {history.wanted}"


def _name_taken(obj: Json, reference: ReferenceModel) -> bool:
    """Return whether a foreign object has the name of a child."""
    metadata = obj["metadata"]
    namesakes = [
        reference.find(kind.group, kind.plural, metadata["namespace"], metadata["name"]) for kind in reference.children
    ]
    return any(found is not None and found["metadata"]["uid"] not in reference.made for found in namesakes)


def unsettled(reference: ReferenceModel) -> list[str]:
    """Return the differences from the required end state."""
    found = [line for obj in reference.objects(SCHEDULED_MACHINES) for line in _machine(obj, reference)]
    known = {obj["metadata"]["uid"] for obj in reference.objects(SCHEDULED_MACHINES)}
    for uid, history in reference.histories.items():
        if uid not in known and (left := reference.children_of(uid)):
            found.append(f"{history.name} is gone and left behind {', '.join(left)}")
    for schedule, obj in reference.stored_schedules():
        status, wanted = obj.get("status") or {}, schedule.now(reference.now)
        if wanted is not None and (status.get("active"), condition(obj, "Ready")) != (wanted, "True"):
            found.append(f"{schedule.kind} {schedule.name} reports {status}, expected {wanted}")
    return found


def _machine(obj: Json, reference: ReferenceModel) -> Iterator[str]:
    uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
    history, status = reference.histories[uid], obj.get("status") or {}
    state, phase = history.wanted.now, status.get("phase")
    down = "Disabled" if obj["spec"].get("enabled") is False else "Inactive"
    # Without a schedule that is active, `enabled: false` need not be the reason (B1.12, B1.13).
    wanted = {"up": {"Active"}, "down": {down, "Inactive"}, "killed": {"Terminated"}}.get(state, {"gone"})
    if phase not in wanted:
        yield f"{name} is {phase}, wanted: {state} ({status.get('message')})"
    ready = {c["type"]: c["status"] for c in status.get("conditions") or ()}
    if ready.get("Ready") != "True" or "Reconciling" in ready or "Stalled" in ready:
        yield f"{name} is not settled: {ready}"
    machines = reference.machines_of(uid)
    if len(machines) != (state == "up"):
        yield f"{name} has {len(machines)} Machines, wanted: {state}"
    if state != "up" and (left := reference.children_of(uid)):
        yield f"{name} is {state} and still has {', '.join(left)}"
    if "deletionTimestamp" not in obj["metadata"]:
        for field, reported, actual in _mirrored(obj, history.held, machines, reference):
            if reported != actual:
                yield f"{name} reports {reported} for {field}, expected {actual}"


def _mirrored(obj: Json, held: bool, machines: list[Json], reference: ReferenceModel) -> Iterator[tuple[str, Any, Any]]:
    """Yield (field, reported, actual) for status (B4.3, B4.5)."""
    status, name = obj.get("status") or {}, obj["metadata"]["name"]
    machine = machines[0] if machines else {}
    ready = condition(machine, "Ready") == "True"
    yield "observedGeneration", status.get("observedGeneration"), obj["metadata"]["generation"]
    yield "inSchedule", status.get("inSchedule"), held
    yield "ready", bool(status.get("ready")), ready
    yield "MachineReady", condition(obj, "MachineReady") == "True", ready
    yield "machineRef", (status.get("machineRef") or {}).get("uid"), machine.get("metadata", {}).get("uid")
    yield "providerID", status.get("providerID"), machine.get("spec", {}).get("providerID")
    node = ((machine.get("status") or {}).get("nodeRef") or {}).get("name")
    yield "nodeRef", (status.get("nodeRef") or {}).get("name"), node
    _, bootstrap, infrastructure = reference.children
    for field, part in (("bootstrapRef", bootstrap), ("infrastructureRef", infrastructure)):
        found = reference.find(part.group, part.plural, obj["metadata"]["namespace"], name) if machine else None
        yield field, (status.get(field) or {}).get("uid"), (found or {}).get("metadata", {}).get("uid")
    for field in ("nextCleanup", "shutdownRequestedTime"):
        yield field, status.get(field), None
    # Not for `down`: the phase tells whether the schedule or `enabled` decided.
    reason = next((c["reason"] for c in status.get("conditions") or () if c["type"] == "Scheduled"), None)
    expected = _SCHEDULED.get(reference.histories[obj["metadata"]["uid"]].wanted.now, reason)
    yield "Scheduled", reason, expected
