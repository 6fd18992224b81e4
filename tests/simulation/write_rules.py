"""Whether one write of a manager keeps what was promised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fivespot.api import names
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import RequestInfo

from .histories import ROUNDING, Moment, Story
from .invariants import Invariant
from .reference import ReferenceModel, Schedule, condition, controller, owner_of
from .world import SCHEDULED_MACHINES

__all__ = ["Breach", "Write", "judge"]

Json = dict[str, Any]
Breach = tuple[Invariant, str]

_BRAKE = 10.0
_NO_DRAIN = "machine.cluster.x-k8s.io/exclude-node-draining"
_NO_VOLUMES = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
_NOTHING_LEFT = ("Inactive", "Disabled", "Terminated")
_DRAIN_FIELDS = {"deletion", "nodeDrainTimeout", "nodeVolumeDetachTimeout"}


@dataclass(frozen=True)
class Write:
    """A write of a manager that had its effect.

    :param made_for: the uid of the ScheduledMachine for which a manager had made the object, "" for all others.
    :param asked: the body of the request.
    :param before: the object that it was about, as it was stored; None for one that was not there.
    :param after: the object as it is stored now; None for one that is gone.
    """

    agent: str
    seen: RequestInfo
    made_for: str
    before: Json | None
    asked: Any = None
    after: Json | None = None

    @property
    def plural(self) -> str:
        return self.seen.resource.partition("/")[0]

    def __str__(self) -> str:
        return f"{self.seen.verb} of {self.seen.resource} {self.seen.name or (self.after or {}).get('metadata')}"


def judge(write: Write, truth: ReferenceModel, foreign: set[str]) -> Iterator[Breach]:
    """Every promise that the write breaks."""
    kind = (write.seen.group, write.plural)
    child = any(kind == (resource.group, resource.plural) for resource in truth.children)
    own = kind == (SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural)
    schedule = write.seen.group == names.PROVIDER_GROUP
    if not _is_its_business(write, child=child, own=own, schedule=schedule):
        yield Invariant.RIGHTS, str(write)
        return
    yield from _conditional(write, related=child or own or schedule)
    if child:
        yield from _judge_child(write, truth, foreign, machine=kind == (MACHINES.group, MACHINES.plural))
    if own or schedule:
        yield from _judge_report(write)
    if own and write.after is not None:
        yield from _judge_own(write, truth)
    if schedule and write.before is not None and write.after is not None:
        yield from _judge_verdict(write, truth)


def _is_its_business(write: Write, *, child: bool, own: bool, schedule: bool) -> bool:
    verb, resource = write.seen.verb, write.seen.resource
    if child:
        return verb in ("create", "delete") or (verb == "patch" and resource == MACHINES.plural)
    if own:
        return verb == "patch" and resource.partition("/")[2] in ("", "status")
    if schedule:
        return verb == "patch" and resource.endswith("/status")
    return write.plural in ("events", "leases")


def _conditional(write: Write, *, related: bool) -> Iterator[Breach]:
    """B2.8: a write that arrives late finds what it was meant for, or nothing."""
    if not related or write.seen.verb == "create":
        return
    asked = write.asked
    if isinstance(asked, list):
        given = {step["path"] for step in asked if step["op"] == "test"}
        wanted = {"/metadata/resourceVersion"}
    elif write.seen.verb == "delete":
        given, wanted = set((asked or {}).get("preconditions") or {}), {"uid"}
    else:
        given, wanted = set((asked or {}).get("metadata") or {}), {"uid", "resourceVersion"}
    if not wanted <= given:
        yield Invariant.PRECONDITION, f"{write} without {', '.join(sorted(wanted - given))}"
    if write.before is not None and write.after is not None and write.seen.verb == "patch":
        metadata = write.after["metadata"]
        # Whatever takes the last finalizer off is answered with the version before.
        gone = "deletionTimestamp" in metadata and not metadata.get("finalizers")
        if not gone and metadata["resourceVersion"] == write.before["metadata"]["resourceVersion"]:
            yield Invariant.EMPTY, str(write)


# Machines and what they are made from --------------------------------------------------------------------------------


def _judge_child(write: Write, truth: ReferenceModel, foreign: set[str], *, machine: bool) -> Iterator[Breach]:
    if write.seen.verb == "create":
        assert write.after is not None
        yield from _judge_creation(write, write.after, truth, machine=machine)
        return
    before = write.before
    if before is None:
        return
    uid = before["metadata"]["uid"]
    if uid in foreign or write.made_for not in truth.stories:
        yield Invariant.FOREIGN, str(write)
        return
    story = truth.stories[write.made_for]
    if not _may_work(story, truth.moment):
        yield Invariant.PAUSED, f"{write}, paused: {story.paused}"
    deleting = "deletionTimestamp" in before["metadata"]
    if write.seen.verb == "delete" and not deleting:
        if machine:
            yield from _judge_end(story, before, truth)
        elif truth.machines_of(write.made_for):
            yield Invariant.ORDER, str(write)
    if write.seen.verb == "patch" and write.after is not None:
        specs = [{k: v for k, v in obj["spec"].items() if k not in _DRAIN_FIELDS} for obj in (before, write.after)]
        if specs[0] != specs[1]:
            yield Invariant.SPEC, str(write)


def _may_work(story: Story, moment: Moment) -> bool:
    """B6.2"""
    return story.paused.was(moment, False) or story.killed.was(moment, True)


def _judge_creation(write: Write, made: Json, truth: ReferenceModel, *, machine: bool) -> Iterator[Breach]:
    metadata, at, moment = made["metadata"], truth.at, truth.moment
    owner = controller(made) if machine else (metadata.get("annotations") or {}).get(names.ANNOTATION_UID, "")
    if owner not in truth.stories:
        yield Invariant.MARKED, str(write)
        return
    story = truth.stories[owner]
    owners = {obj["metadata"]["uid"]: obj["metadata"] for obj in truth.objects(SCHEDULED_MACHINES)}
    if names.FINALIZER not in owners.get(owner, {}).get("finalizers", ()):
        yield Invariant.FINALIZER_FIRST, f"{write} for {story.name}"
    if not _may_work(story, moment):
        yield Invariant.PAUSED, f"{write}, paused: {story.paused}"
    if not story.wanted.was(moment, "up", "either"):
        yield Invariant.WANTED, f"{write}, wanted: {story.wanted}"
    if not machine:
        return
    if len(story.machines.now) > 1:
        yield Invariant.ONE_MACHINE, f"{write} for {story.name}"
    if story.lost is not None and at < story.lost + _BRAKE - ROUNDING:
        yield Invariant.BRAKE, f"{write}, {at - story.lost:.1f} s after another was lost"
    if _drain(made) not in story.drain.lately(moment):
        yield Invariant.DRAIN, f"{write} with {_drain(made)} s, asked for: {story.drain}"


def _drain(machine: Json) -> float:
    """B2.5: how long it is drained at most, in seconds; infinity for no limit."""
    annotations, spec = machine["metadata"].get("annotations") or {}, machine["spec"]
    given = (spec.get("deletion") or {}).get("nodeDrainTimeoutSeconds")
    if _NO_DRAIN in annotations and _NO_VOLUMES in annotations and given is None:
        return 0.0
    return float("inf") if given is None else float(given)


def _judge_end(story: Story, machine: Json, truth: ReferenceModel) -> Iterator[Breach]:
    moment = truth.moment
    if not story.may_delete(moment, truth.idle) and not _cannot_begin(machine, truth):
        yield Invariant.GRACE, f"Machine {story.name}, wanted: {story.wanted}"
    # What was killed until a while ago is drained as any other.
    killed = story.wanted.lately(moment)[-1:] == ["killed"]
    if (
        killed
        and not story.grace_over(moment, truth.idle)
        and _drain(machine)
        and _NO_DRAIN not in (machine["metadata"].get("annotations") or {})
    ):
        yield Invariant.DRAIN, f"Machine {story.name} is killed, and would be drained first"


def _cannot_begin(machine: Json, truth: ReferenceModel) -> bool:
    """What it is made from is gone, so that it would wait for ever: it is replaced."""
    started = machine["spec"].get("providerID") or (machine.get("status") or {}).get("nodeRef")
    name, owner = machine["metadata"]["name"], controller(machine)
    made_from = [resource for resource in truth.children if resource.plural != MACHINES.plural]
    parts = [truth.find(part.group, part.plural, machine["metadata"]["namespace"], name) for part in made_from]
    return not started and not all(part is not None and owner_of(part) == owner for part in parts)


# Reports -------------------------------------------------------------------------------------------------------------


def _judge_report(write: Write) -> Iterator[Breach]:
    """B4.4, and that nobody's spec is edited (GitOps)."""
    before, after = write.before, write.after
    if before is None or after is None:
        return
    for part in ("labels", "annotations"):
        if before["metadata"].get(part) != after["metadata"].get(part):
            yield Invariant.SPEC, f"{write}: {part}"
    if before["spec"] != after["spec"]:
        yield Invariant.SPEC, str(write)
    old, new = ({entry["type"]: entry for entry in _conditions(obj)} for obj in (before, after))
    if len(new) != len(_conditions(after)):
        yield Invariant.TIMES, f"{write}: a condition twice"
    for type_ in old.keys() & new.keys():
        moved = old[type_].get("lastTransitionTime") != new[type_].get("lastTransitionTime")
        flipped = old[type_]["status"] != new[type_]["status"]
        if moved and not flipped:
            yield Invariant.TIMES, f"{write}: {type_} from {old[type_]} to {new[type_]}"
        if flipped and _instant(new[type_]) < _instant(old[type_]):
            yield Invariant.TIMES, f"{write}: {type_} goes back to {new[type_]}"


def _conditions(obj: Json) -> list[Json]:
    found: list[Json] = (obj.get("status") or {}).get("conditions") or []
    return found


def _instant(entry: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(entry["lastTransitionTime"])


def _judge_own(write: Write, truth: ReferenceModel) -> Iterator[Breach]:
    before, after = write.before, write.after
    assert after is not None
    story, moment = truth.stories[after["metadata"]["uid"]], truth.moment
    if write.seen.resource == SCHEDULED_MACHINES.plural:
        held = [names.FINALIZER in ((obj or {}).get("metadata", {}).get("finalizers") or ()) for obj in (before, after)]
        if held == [True, False] and not _may_work(story, moment):
            yield Invariant.PAUSED, f"{write}: let go, paused: {story.paused}"
        return
    status = after.get("status") or {}
    phase, reference = status.get("phase"), (status.get("machineRef") or {}).get("uid")
    if phase in _NOTHING_LEFT and not story.left.was(moment, False):
        yield Invariant.TRUTH, f"{story.name} is said to be {phase}, and has {story.left}"
    if phase == "Active" and not any(story.machines.lately(moment)):
        yield Invariant.TRUTH, f"{story.name} is said to be Active, and has no Machine"
    if status.get("ready") and not story.ready.was(moment, True):
        yield Invariant.TRUTH, f"{story.name} is said to be ready"
    if reference and not any(reference in machines for machines in story.machines.lately(moment)):
        yield Invariant.TRUTH, f"{story.name} names Machine {reference} of {story.machines}"
    if status.get("observedGeneration", 0) > after["metadata"]["generation"]:
        yield Invariant.TRUTH, f"{story.name} has observed the future"


def _judge_verdict(write: Write, truth: ReferenceModel) -> Iterator[Breach]:
    """C8, C9, C10: what the spec says now, or what was said before where it says nothing."""
    assert write.before is not None
    assert write.after is not None
    schedule: Schedule | None = truth.schedules.get(write.after["metadata"]["uid"])
    if schedule is None:
        return
    active = (write.after.get("status") or {}).get("active")
    says = schedule.lately(truth.start, truth.moment)
    if condition(write.after, "Ready") != "True":
        if active != ((write.before.get("status") or {}).get("active") or False):
            yield Invariant.EARLY, f"{write}: {active} without a verdict"
        if None not in says:
            yield Invariant.TRUTH, f"{write}: a verdict is to be had: {_conditions(write.after)}"
    elif active not in says and says != {None}:
        yield Invariant.EARLY, f"{write}: {active}, and it says {says}"
