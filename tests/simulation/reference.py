"""A reference model of the stored state, which follows the changes inside the API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fivespot.api import names
from fivespot.runtime import Resource
from fivespot.testing.clusterapi.core import CLUSTERS, MACHINES
from fivespot.testing.system import EmbeddedSystem

from .fleet import SCHEDULED_MACHINES
from .histories import LAG, PROMPT, History, MachineHistory, Moment
from .schedules import edges, verdict_of

__all__ = ["ReferenceModel", "Schedule", "condition", "controller"]

Json = dict[str, Any]


@dataclass
class Schedule:
    """The specs of one schedule over time."""

    kind: str
    name: str
    specs: History[str] = field(default_factory=History)
    parsed: dict[str, Json] = field(default_factory=dict)

    def record(self, at: float, spec: Json) -> None:
        text = repr(sorted(spec.items()))
        self.parsed[text] = spec
        self.specs.record(at, text)

    def now(self, at: datetime) -> bool | None:
        return verdict_of(self.kind, self.parsed[self.specs.now], at)

    def since(self, start: datetime, at: datetime) -> float:
        """Return when the present verdict began, in seconds after ``start``."""
        before = edges(self.kind, self.parsed[self.specs.now], at - timedelta(days=1), at)
        last = (before[-1] - start).total_seconds() if before else float("-inf")
        return max(self.specs.since, last)

    def lately(self, start: datetime, moment: Moment) -> set[bool | None]:
        """Return every verdict within the lag."""
        found: set[bool | None] = set()
        at, lag = moment.at, moment.lag
        for begin, end, text in self.specs.spans():
            if begin > at or end < at - lag:
                continue
            first, last = (start + timedelta(seconds=t) for t in (max(begin, at - lag), min(end, at)))
            spec = self.parsed[text]
            found |= {verdict_of(self.kind, spec, t) for t in (first, *edges(self.kind, spec, first, last))}
        return found


class ReferenceModel:
    """The stored state and its history.

    :ivar histories: of ScheduledMachines by uid, deleted ones included.
    :ivar made: the uid of the ScheduledMachine for which a manager created an existing object, by that object's uid.
    :ivar failed_patches: the time of the last failed patch of each Machine, by name, as far as the test records it.
    :ivar freed: the time at which a foreign object last freed a name that a child may need.
    :ivar undisturbed_since: the time since which managers have met no fault, in seconds on the cluster's clock; from
        then on everything has to be done in time.
    :ivar unattended: whether no manager for machines is running, as recorded by the test that starts and kills them.
    """

    def __init__(self, system: EmbeddedSystem, start: datetime, prefix: str) -> None:
        self._system = system
        self._prefix = prefix
        self.start = start
        self._store = system.cluster.server.cluster.store
        self.children = (MACHINES, system.family.bootstrap, system.family.machine)
        self.histories: dict[str, MachineHistory] = {}
        self.schedules: dict[str, Schedule] = {}
        self.made: dict[str, str] = {}
        self.freed: dict[str, float] = {}
        self.failed_patches: dict[str, float] = {}
        self.undisturbed_since = float("inf")
        self.unattended: History[bool] = History()
        self.unattended.record(0.0, False)

    @property
    def at(self) -> float:
        return self._system.cluster.elapsed

    @property
    def moment(self) -> Moment:
        return Moment(self.at, PROMPT if self.at > self.undisturbed_since + PROMPT else LAG)

    @property
    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.at)

    def objects(self, resource: Resource) -> list[Json]:
        """All stored objects of a kind."""
        return [entry.decode() for entry in self._store.collection(resource.group, resource.plural).snapshot("")]

    def find(self, group: str, plural: str, namespace: str, name: str) -> Json | None:
        key = f"{namespace}/{name}" if namespace else name
        entry = self._store.collection(group, plural).entries.get(key)
        return entry.decode() if entry is not None else None

    def machines_of(self, uid: str) -> list[Json]:
        return [machine for machine in self.objects(MACHINES) if controller(machine) == uid]

    def children_of(self, uid: str) -> list[str]:
        """Return the existing children of a ScheduledMachine, by their marks or by the record of who created them."""
        return [
            f"{resource.kind} {obj['metadata']['name']}"
            for resource in self.children
            for obj in self.objects(resource)
            if uid in (owner_of(obj), self.made.get(obj["metadata"]["uid"]))
        ]

    # Changes ------------------------------------------------------------------------------------------------

    def follow(self, group: str, plural: str, event: Any) -> None:
        """Record a change of a stored object."""
        if group == names.PROVIDER_GROUP:
            self._schedule(plural, event)
            self._update_all()
        elif (group, plural) == (CLUSTERS.group, CLUSTERS.plural):
            self._update_all()
        elif (group, plural) == (SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural):
            self._update(event.new.uid, event.new.decode(), gone=event.deleted)
        elif any((group, plural) == (child.group, child.plural) for child in self.children):
            if event.old is None:
                self._note_maker(event.new)
            owners = {owner_of(event.new.decode()), self.made.get(event.new.uid, "")}
            if event.deleted and self.made.pop(event.new.uid, None) is None:
                self.freed[event.new.name] = self.at
            for uid in owners & set(self.histories):
                self.count(uid)

    def _note_maker(self, entry: Any) -> None:
        """Record who created an object, from the stored managedFields: a manager that dies gets no answer."""
        obj = entry.decode()
        makers = {fields["manager"] for fields in obj["metadata"].get("managedFields") or ()}
        if not any(maker.startswith(self._prefix) for maker in makers):
            return
        owner = owner_of(obj)
        if owner not in self.histories:
            kind = SCHEDULED_MACHINES
            namesake = self.find(kind.group, kind.plural, entry.namespace, entry.name)
            owner = namesake["metadata"]["uid"] if namesake is not None else ""
        if owner:
            self.made[entry.uid] = owner

    def count(self, uid: str) -> None:
        """Record the present children of a ScheduledMachine."""
        history, at, machines = self.histories[uid], self.at, self.machines_of(uid)
        history.machines.record(at, frozenset(machine["metadata"]["uid"] for machine in machines))
        history.ready.record(at, any(condition(machine, "Ready") == "True" for machine in machines))
        history.left.record(at, bool(self.children_of(uid)))

    def _schedule(self, plural: str, event: Any) -> None:
        body = event.new.decode()
        kind = {"manualschedules": "ManualSchedule", "timebasedspotschedules": "TimeBasedSpotSchedule"}.get(plural)
        if event.deleted:
            self.schedules.pop(event.new.uid, None)
        elif kind is not None:
            schedule = self.schedules.setdefault(event.new.uid, Schedule(kind, body["metadata"]["name"]))
            schedule.record(self.at, body["spec"])

    def _update_all(self) -> None:
        for obj in self.objects(SCHEDULED_MACHINES):
            self._update(obj["metadata"]["uid"], obj)

    def _update(self, uid: str, obj: Json, *, gone: bool = False) -> None:
        new = uid not in self.histories
        history = self.histories.setdefault(uid, MachineHistory(obj["metadata"]["name"]))
        spec, metadata = obj["spec"], obj["metadata"]
        history.record_verdict(self.moment, self.verdict(metadata["namespace"], spec["schedule"]), self.unattended)
        if gone or "deletionTimestamp" in metadata:
            state = "deleted"
        elif spec.get("killSwitch"):
            state = "killed"
        elif spec.get("enabled") is False:
            state = "down"
        else:
            state = history.scheduled_state()
        cluster = self.find(CLUSTERS.group, CLUSTERS.plural, metadata["namespace"], spec["clusterName"]) or {}
        paused = bool(cluster.get("spec", {}).get("paused"))
        paused = paused or names.ANNOTATION_PAUSED in (metadata.get("annotations") or {})
        history.spec(self.at, state, spec, paused=paused)
        if new:
            self.count(uid)

    def verdict(self, namespace: str, reference: Mapping[str, str]) -> bool | None:
        """Return the verdict in the schedule's status (A4, A5); None if it is unresolved."""
        found = self.find(names.PROVIDER_GROUP, f"{reference['kind'].lower()}s", namespace, reference["name"])
        status = (found or {}).get("status") or {}
        ready = [entry["status"] for entry in status.get("conditions") or () if entry["type"] == "Ready"]
        active = status.get("active")
        return active if isinstance(active, bool) and all(state == "True" for state in ready) else None

    def lease(self) -> tuple[str, float]:
        """Return the holder of the managers' Lease and the time until which it is held."""
        found = self.find("coordination.k8s.io", "leases", "default", names.LEADER_LEASE)
        spec = (found or {}).get("spec") or {}
        renewed = spec.get("renewTime")
        if not renewed:
            return "", float("-inf")
        until = datetime.fromisoformat(renewed).astimezone(UTC) + timedelta(seconds=spec["leaseDurationSeconds"])
        return spec.get("holderIdentity") or "", (until - self.start).total_seconds()

    def stored_schedules(self) -> Iterator[tuple[Schedule, Json]]:
        """Yield each schedule of a form that the model evaluates, with the stored object."""
        for schedule in self.schedules.values():
            found = self.find(names.PROVIDER_GROUP, f"{schedule.kind.lower()}s", "default", schedule.name)
            if found is not None:
                yield schedule, found


def controller(obj: Json) -> str:
    """Return the uid of the controller reference."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def owner_of(obj: Json) -> str:
    """Return the uid of the ScheduledMachine that an object names as its owner."""
    annotated: str = (obj["metadata"].get("annotations") or {}).get(names.ANNOTATION_UID, "")
    return annotated or controller(obj)


def condition(obj: Json, type_: str) -> str:
    """The status of a condition, "" without one."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((entry["status"] for entry in conditions if entry["type"] == type_), "")
