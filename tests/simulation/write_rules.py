"""Check one write of a manager against the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fivespot.api import names
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import RequestInfo

from .fleet import SCHEDULED_MACHINES
from .histories import ROUNDING, MachineHistory, Moment
from .invariants import Invariant
from .reference import ReferenceModel, Schedule, condition, controller, owner_of

__all__ = ["Violation", "Write", "check_write"]

Json = dict[str, Any]
Violation = tuple[Invariant, str]

_BRAKE = 10.0
_NO_DRAIN = "machine.cluster.x-k8s.io/exclude-node-draining"
_NO_VOLUMES = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
_NOTHING_LEFT = ("Inactive", "Disabled", "Terminated")
_DRAIN_FIELDS = {"deletion", "nodeDrainTimeout", "nodeVolumeDetachTimeout"}


@dataclass(frozen=True)
class Write:
    """A successful write of a manager.

    :param made_for: the uid of the ScheduledMachine for which a manager created the object, "" for all others.
    :param asked: the body of the request.
    :param before: the stored object before the write, None if there was none.
    :param after: the stored object after the write, None if it is gone.
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


def check_write(write: Write, reference: ReferenceModel, foreign: set[str]) -> Iterator[Violation]:
    """Yield every invariant that the write violates."""
    kind = (write.seen.group, write.plural)
    child = any(kind == (resource.group, resource.plural) for resource in reference.children)
    own = kind == (SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural)
    schedule = write.seen.group == names.PROVIDER_GROUP
    if not _is_permitted(write, child=child, own=own, schedule=schedule):
        yield Invariant.RIGHTS, str(write)
        return
    yield from _conditional(write, related=child or own or schedule)
    if child:
        yield from _check_child(write, reference, foreign, machine=kind == (MACHINES.group, MACHINES.plural))
    if own or schedule:
        yield from _check_status(write)
    if own and write.after is not None:
        yield from _check_own_status(write, reference)
    if schedule and write.before is not None and write.after is not None:
        yield from _check_verdict(write, reference)


def _is_permitted(write: Write, *, child: bool, own: bool, schedule: bool) -> bool:
    verb, resource = write.seen.verb, write.seen.resource
    if child:
        return verb in ("create", "delete") or (verb == "patch" and resource == MACHINES.plural)
    if own:
        return verb == "patch" and resource.partition("/")[2] in ("", "status")
    if schedule:
        return verb == "patch" and resource.endswith("/status")
    return write.plural in ("events", "leases")


def _conditional(write: Write, *, related: bool) -> Iterator[Violation]:
    """B2.8: a write that arrives late must only reach the version it was meant for."""
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
        # A write that removes the last finalizer is answered with the version before it.
        gone = "deletionTimestamp" in metadata and not metadata.get("finalizers")
        if not gone and metadata["resourceVersion"] == write.before["metadata"]["resourceVersion"]:
            yield Invariant.EMPTY, str(write)


# Machines and their references --------------------------------------------------------------------------------


def _check_child(write: Write, reference: ReferenceModel, foreign: set[str], *, machine: bool) -> Iterator[Violation]:
    if write.seen.verb == "create":
        assert write.after is not None
        yield from _check_creation(write, write.after, reference, machine=machine)
        return
    before = write.before
    if before is None:
        return
    uid = before["metadata"]["uid"]
    if uid in foreign or write.made_for not in reference.histories:
        yield Invariant.FOREIGN, str(write)
        return
    history = reference.histories[write.made_for]
    if not _may_work(history, reference.moment):
        yield Invariant.PAUSED, f"{write}, paused: {history.paused}"
    deleting = "deletionTimestamp" in before["metadata"]
    if write.seen.verb == "delete" and not deleting:
        if machine:
            yield from _check_deletion(history, before, reference)
        elif reference.machines_of(write.made_for):
            yield Invariant.ORDER, str(write)
    if write.seen.verb == "patch" and write.after is not None:
        specs = [{k: v for k, v in obj["spec"].items() if k not in _DRAIN_FIELDS} for obj in (before, write.after)]
        if specs[0] != specs[1]:
            yield Invariant.SPEC, str(write)


def _may_work(history: MachineHistory, moment: Moment) -> bool:
    """B6.2"""
    return history.paused.was(moment, False) or history.killed.was(moment, True)


def _check_creation(write: Write, made: Json, reference: ReferenceModel, *, machine: bool) -> Iterator[Violation]:
    metadata, at, moment = made["metadata"], reference.at, reference.moment
    owner = controller(made) if machine else (metadata.get("annotations") or {}).get(names.ANNOTATION_UID, "")
    if owner not in reference.histories:
        yield Invariant.MARKED, str(write)
        return
    history = reference.histories[owner]
    owners = {obj["metadata"]["uid"]: obj["metadata"] for obj in reference.objects(SCHEDULED_MACHINES)}
    if names.FINALIZER not in owners.get(owner, {}).get("finalizers", ()):
        yield Invariant.FINALIZER_FIRST, f"{write} for {history.name}"
    if not _may_work(history, moment):
        yield Invariant.PAUSED, f"{write}, paused: {history.paused}"
    if not history.wanted.was(moment, "up", "either"):
        yield Invariant.WANTED, f"{write}, wanted: {history.wanted}"
    if not machine:
        return
    if len(history.machines.now) > 1:
        yield Invariant.ONE_MACHINE, f"{write} for {history.name}"
    if history.lost is not None and at < history.lost + _BRAKE - ROUNDING:
        yield Invariant.BRAKE, f"{write}, {at - history.lost:.1f} s after the loss of another"
    if _drain(made) not in history.drain.lately(moment):
        yield Invariant.DRAIN, f"{write} with {_drain(made)} s, spec: {history.drain}"


def _drain(machine: Json) -> float:
    """Return the drain timeout of a Machine in seconds (B2.5); infinity for no limit."""
    annotations, spec = machine["metadata"].get("annotations") or {}, machine["spec"]
    given = (spec.get("deletion") or {}).get("nodeDrainTimeoutSeconds")
    if _NO_DRAIN in annotations and _NO_VOLUMES in annotations and given is None:
        return 0.0
    return float("inf") if given is None else float(given)


def _check_deletion(history: MachineHistory, machine: Json, reference: ReferenceModel) -> Iterator[Violation]:
    moment = reference.moment
    if not history.may_delete(moment, reference.unattended) and not _cannot_begin(machine, reference):
        yield Invariant.GRACE, f"Machine {history.name}, wanted: {history.wanted}"
    # A machine whose kill switch was cleared some time ago is drained like any other.
    killed = history.wanted.lately(moment)[-1:] == ["killed"]
    # B1.14: a preparation that fails does not hold back the deletion.
    prepared = reference.failed_patches.get(history.name, float("-inf")) < history.killed.since
    if (
        killed
        and prepared
        and not history.grace_over(moment, reference.unattended)
        and _drain(machine)
        and _NO_DRAIN not in (machine["metadata"].get("annotations") or {})
    ):
        yield Invariant.DRAIN, f"Machine {history.name} is killed and would be drained first"


def _cannot_begin(machine: Json, reference: ReferenceModel) -> bool:
    """Return whether a referenced object is gone before the machine started, so that Cluster API would wait forever."""
    started = machine["spec"].get("providerID") or (machine.get("status") or {}).get("nodeRef")
    name, owner = machine["metadata"]["name"], controller(machine)
    made_from = [resource for resource in reference.children if resource.plural != MACHINES.plural]
    parts = [reference.find(part.group, part.plural, machine["metadata"]["namespace"], name) for part in made_from]
    return not started and not all(part is not None and owner_of(part) == owner for part in parts)


# Status -------------------------------------------------------------------------------------------------------------


def _check_status(write: Write) -> Iterator[Violation]:
    """B4.4, and that no spec, label or annotation is changed (GitOps)."""
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
        yield Invariant.TIMES, f"{write}: duplicate condition"
    for type_ in old.keys() & new.keys():
        moved = old[type_].get("lastTransitionTime") != new[type_].get("lastTransitionTime")
        flipped = old[type_]["status"] != new[type_]["status"]
        if moved and not flipped:
            yield Invariant.TIMES, f"{write}: {type_} from {old[type_]} to {new[type_]}"
        if flipped and _instant(new[type_]) < _instant(old[type_]):
            yield Invariant.TIMES, f"{write}: {type_} moves back to {new[type_]}"


def _conditions(obj: Json) -> list[Json]:
    found: list[Json] = (obj.get("status") or {}).get("conditions") or []
    return found


def _instant(entry: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(entry["lastTransitionTime"])


def _check_own_status(write: Write, reference: ReferenceModel) -> Iterator[Violation]:
    before, after = write.before, write.after
    assert after is not None
    history, moment = reference.histories[after["metadata"]["uid"]], reference.moment
    if write.seen.resource == SCHEDULED_MACHINES.plural:
        held = [names.FINALIZER in ((obj or {}).get("metadata", {}).get("finalizers") or ()) for obj in (before, after)]
        if held == [True, False] and not _may_work(history, moment):
            yield Invariant.PAUSED, f"{write}: finalizer removed, paused: {history.paused}"
        return
    status = after.get("status") or {}
    phase, machine_uid = status.get("phase"), (status.get("machineRef") or {}).get("uid")
    if phase in _NOTHING_LEFT and not history.left.was(moment, False):
        yield Invariant.STATUS, f"{history.name} reports {phase} and still has {history.left}"
    if phase == "Active" and not any(history.machines.lately(moment)):
        yield Invariant.STATUS, f"{history.name} reports Active and has no Machine"
    if status.get("ready") and not history.ready.was(moment, True):
        yield Invariant.STATUS, f"{history.name} reports ready"
    if machine_uid and not any(machine_uid in machines for machines in history.machines.lately(moment)):
        yield Invariant.STATUS, f"{history.name} names Machine {machine_uid} of {history.machines}"
    if status.get("observedGeneration", 0) > after["metadata"]["generation"]:
        yield Invariant.STATUS, f"{history.name} has an observedGeneration above its generation"


def _check_verdict(write: Write, reference: ReferenceModel) -> Iterator[Violation]:
    """C8, C9, C10: the verdict follows the spec, or stays as it was where the spec gives none."""
    assert write.before is not None
    assert write.after is not None
    schedule: Schedule | None = reference.schedules.get(write.after["metadata"]["uid"])
    if schedule is None:
        return
    active = (write.after.get("status") or {}).get("active")
    says = schedule.lately(reference.start, reference.moment)
    if condition(write.after, "Ready") != "True":
        if active != ((write.before.get("status") or {}).get("active") or False):
            yield Invariant.EARLY, f"{write}: {active} without a verdict"
        if None not in says:
            yield Invariant.STATUS, f"{write}: the spec gives a verdict: {_conditions(write.after)}"
    elif active not in says and says != {None}:
        yield Invariant.EARLY, f"{write}: {active}, while the spec gives {says}"
