"""How everything has to be when nothing is to happen any more, and what has to be done by now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .histories import PROMPT
from .reference import ReferenceModel, condition
from .world import SCHEDULED_MACHINES

__all__ = ["late", "unsettled"]

Json = dict[str, Any]

PATIENT = 900.0
"""Seconds for a Machine to come back: the longest brake is ten minutes."""
_SCHEDULED = {"up": "ScheduleActive", "killed": "KillSwitchActivated"}


def late(truth: ReferenceModel) -> Iterator[str]:
    """What should have been done by now, in calm times."""
    at, calm, moment = truth.at, truth.calm, truth.moment
    for schedule, obj in truth.stored_schedules():
        wanted, since = schedule.now(truth.now), schedule.since(truth.start, truth.now)
        active = (obj.get("status") or {}).get("active")
        if wanted is not None and active != wanted and at > max(since, calm) + PROMPT:
            yield f"{schedule.kind} {schedule.name} is {active}, and {wanted} for {at - since:.0f} s"
    for obj in truth.objects(SCHEDULED_MACHINES):
        uid = obj["metadata"]["uid"]
        story, machines = truth.stories[uid], truth.machines_of(uid)
        if story.paused.was(moment, True):
            continue
        kept = any("deletionTimestamp" not in machine["metadata"] for machine in machines)
        if kept and at > max(story.due(), calm) + PROMPT:
            yield f"{story.name} has its Machine, wanted: {story.wanted}"
        hindered = max(story.paused.since, story.machines.since, truth.freed.get(story.name, 0.0))
        missing = story.wanted.now == "up" and not machines and not _squatted(obj, truth)
        if missing and at > max(story.wanted.since, calm, hindered) + PATIENT:
            yield f"{story.name} has no Machine, wanted: {story.wanted}"


def _squatted(obj: Json, truth: ReferenceModel) -> bool:
    """Whether somebody else's object has the name of a child."""
    metadata = obj["metadata"]
    namesakes = [
        truth.find(kind.group, kind.plural, metadata["namespace"], metadata["name"]) for kind in truth.children
    ]
    return any(found is not None and found["metadata"]["uid"] not in truth.made for found in namesakes)


def unsettled(truth: ReferenceModel) -> list[str]:
    """What is not yet as it has to be in the end."""
    found = [line for obj in truth.objects(SCHEDULED_MACHINES) for line in _machine(obj, truth)]
    known = {obj["metadata"]["uid"] for obj in truth.objects(SCHEDULED_MACHINES)}
    for uid, story in truth.stories.items():
        if uid not in known and (left := truth.children_of(uid)):
            found.append(f"{story.name} is gone, but has left {', '.join(left)}")
    for schedule, obj in truth.stored_schedules():
        status, wanted = obj.get("status") or {}, schedule.now(truth.now)
        if wanted is not None and (status.get("active"), condition(obj, "Ready")) != (wanted, "True"):
            found.append(f"{schedule.kind} {schedule.name} says {status}, and {wanted} is true")
    return found


def _machine(obj: Json, truth: ReferenceModel) -> Iterator[str]:
    uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
    story, status = truth.stories[uid], obj.get("status") or {}
    state, phase = story.wanted.now, status.get("phase")
    down = "Disabled" if obj["spec"].get("enabled") is False else "Inactive"
    # A schedule that is off comes before a switch that is: B1.12, B1.13 by what decides.
    wanted = {"up": {"Active"}, "down": {down, "Inactive"}, "killed": {"Terminated"}}.get(state, {"gone"})
    if phase not in wanted:
        yield f"{name} is {phase}, and {state} is wanted ({status.get('message')})"
    ready = {c["type"]: c["status"] for c in status.get("conditions") or ()}
    if ready.get("Ready") != "True" or "Reconciling" in ready or "Stalled" in ready:
        yield f"{name} is not settled: {ready}"
    machines = truth.machines_of(uid)
    if len(machines) != (state == "up"):
        yield f"{name} has {len(machines)} Machines, and {state} is wanted"
    if state != "up" and (left := truth.children_of(uid)):
        yield f"{name} is {state}, but has {', '.join(left)}"
    if "deletionTimestamp" not in obj["metadata"]:
        for field, said, true in _mirrored(obj, story.held, machines, truth):
            if said != true:
                yield f"{name} says {said} for {field}, and {true} is true"


def _mirrored(obj: Json, held: bool, machines: list[Json], truth: ReferenceModel) -> Iterator[tuple[str, Any, Any]]:
    """B4.3, B4.5: what status tells, what it should tell."""
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
    _, bootstrap, infrastructure = truth.children
    for field, part in (("bootstrapRef", bootstrap), ("infrastructureRef", infrastructure)):
        found = truth.find(part.group, part.plural, obj["metadata"]["namespace"], name) if machine else None
        yield field, (status.get(field) or {}).get("uid"), (found or {}).get("metadata", {}).get("uid")
    for field in ("nextCleanup", "shutdownRequestedTime"):
        yield field, status.get(field), None
    # Without `down`: whether the schedule or the switch decided is told by the phase.
    reason = next((c["reason"] for c in status.get("conditions") or () if c["type"] == "Scheduled"), None)
    expected = _SCHEDULED.get(truth.stories[obj["metadata"]["uid"]].wanted.now, reason)
    yield "Scheduled", reason, expected
