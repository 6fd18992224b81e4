"""What is stored, as the witness follows it from the inside of the API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fivespot.api import names
from fivespot.runtime import Resource
from fivespot.testing.clusterapi.core import CLUSTERS, MACHINES
from fivespot.testing.system import EmbeddedSystem

from .histories import LAG, PROMPT, History, Moment, Story
from .schedules import edges, says
from .world import SCHEDULED_MACHINES

__all__ = ["ReferenceModel", "Schedule", "condition", "controller"]

Json = dict[str, Any]


@dataclass
class Schedule:
    """What a schedule's spec said, and since when."""

    kind: str
    name: str
    specs: History[str] = field(default_factory=History)
    parsed: dict[str, Json] = field(default_factory=dict)

    def turn(self, at: float, spec: Json) -> None:
        text = repr(sorted(spec.items()))
        self.parsed[text] = spec
        self.specs.turn(at, text)

    def now(self, at: datetime) -> bool | None:
        return says(self.kind, self.parsed[self.specs.now], at)

    def since(self, start: datetime, at: datetime) -> float:
        """Since when it has said what it says now, in seconds after ``start``."""
        before = edges(self.kind, self.parsed[self.specs.now], at - timedelta(days=1), at)
        last = (before[-1] - start).total_seconds() if before else float("-inf")
        return max(self.specs.since, last)

    def lately(self, start: datetime, moment: Moment) -> set[bool | None]:
        """Everything that it has said within the lag."""
        found: set[bool | None] = set()
        at, lag = moment.at, moment.lag
        for begin, end, text in self.specs.spans():
            if begin > at or end < at - lag:
                continue
            first, last = (start + timedelta(seconds=t) for t in (max(begin, at - lag), min(end, at)))
            spec = self.parsed[text]
            found |= {says(self.kind, spec, t) for t in (first, *edges(self.kind, spec, first, last))}
        return found


class ReferenceModel:
    """The stored state and its history.

    :ivar stories: of ScheduledMachines by uid, those that are gone included.
    :ivar made: the uid of the ScheduledMachine for which a manager made an object that exists, by that one's uid.
    :ivar freed: when somebody else's object last gave back a name that a child may need.
    :ivar calm: since when nothing has been in the way of the managers, in seconds on the cluster's clock; from then
        on everything has to be done in time.
    :ivar idle: whether no manager works on machines, as far as whoever starts and kills them says so.
    """

    def __init__(self, system: EmbeddedSystem, start: datetime, prefix: str) -> None:
        self._system = system
        self._prefix = prefix
        self.start = start
        self._store = system.cluster.server.cluster.store
        self.children = (MACHINES, system.family.bootstrap, system.family.machine)
        self.stories: dict[str, Story] = {}
        self.schedules: dict[str, Schedule] = {}
        self.made: dict[str, str] = {}
        self.freed: dict[str, float] = {}
        self.calm = float("inf")
        self.idle: History[bool] = History()
        self.idle.turn(0.0, False)

    @property
    def at(self) -> float:
        return self._system.cluster.elapsed

    @property
    def moment(self) -> Moment:
        return Moment(self.at, PROMPT if self.at > self.calm + PROMPT else LAG)

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
        """What was made for a ScheduledMachine and is still there, whether it says so or not."""
        return [
            f"{resource.kind} {obj['metadata']['name']}"
            for resource in self.children
            for obj in self.objects(resource)
            if uid in (owner_of(obj), self.made.get(obj["metadata"]["uid"]))
        ]

    # What happens ------------------------------------------------------------------------------------------------

    def follow(self, group: str, plural: str, event: Any) -> None:
        """Take note of a change."""
        if group == names.PROVIDER_GROUP:
            self._schedule(plural, event)
            self._turn_all()
        elif (group, plural) == (CLUSTERS.group, CLUSTERS.plural):
            self._turn_all()
        elif (group, plural) == (SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural):
            self._turn(event.new.uid, event.new.decode(), gone=event.deleted)
        elif any((group, plural) == (child.group, child.plural) for child in self.children):
            if event.old is None:
                self._note_maker(event.new)
            owners = {owner_of(event.new.decode()), self.made.get(event.new.uid, "")}
            if event.deleted and self.made.pop(event.new.uid, None) is None:
                self.freed[event.new.name] = self.at
            for uid in owners & set(self.stories):
                self.count(uid)

    def _note_maker(self, entry: Any) -> None:
        """From what is stored: the answer to a manager that dies meanwhile never comes."""
        obj = entry.decode()
        makers = {fields["manager"] for fields in obj["metadata"].get("managedFields") or ()}
        if not any(maker.startswith(self._prefix) for maker in makers):
            return
        owner = owner_of(obj)
        if owner not in self.stories:
            kind = SCHEDULED_MACHINES
            namesake = self.find(kind.group, kind.plural, entry.namespace, entry.name)
            owner = namesake["metadata"]["uid"] if namesake is not None else ""
        if owner:
            self.made[entry.uid] = owner

    def count(self, uid: str) -> None:
        """Look again at what a ScheduledMachine has."""
        story, at, machines = self.stories[uid], self.at, self.machines_of(uid)
        story.machines.turn(at, frozenset(machine["metadata"]["uid"] for machine in machines))
        story.ready.turn(at, any(condition(machine, "Ready") == "True" for machine in machines))
        story.left.turn(at, bool(self.children_of(uid)))

    def _schedule(self, plural: str, event: Any) -> None:
        body = event.new.decode()
        kind = {"manualschedules": "ManualSchedule", "timebasedspotschedules": "TimeBasedSpotSchedule"}.get(plural)
        if event.deleted:
            self.schedules.pop(event.new.uid, None)
        elif kind is not None:
            schedule = self.schedules.setdefault(event.new.uid, Schedule(kind, body["metadata"]["name"]))
            schedule.turn(self.at, body["spec"])

    def _turn_all(self) -> None:
        for obj in self.objects(SCHEDULED_MACHINES):
            self._turn(obj["metadata"]["uid"], obj)

    def _turn(self, uid: str, obj: Json, *, gone: bool = False) -> None:
        new = uid not in self.stories
        story = self.stories.setdefault(uid, Story(obj["metadata"]["name"]))
        spec, metadata = obj["spec"], obj["metadata"]
        story.hear(self.moment, self.verdict(metadata["namespace"], spec["schedule"]), self.idle)
        if gone or "deletionTimestamp" in metadata:
            state = "deleted"
        elif spec.get("killSwitch"):
            state = "killed"
        elif spec.get("enabled") is False:
            state = "down"
        else:
            state = story.by_schedule()
        cluster = self.find(CLUSTERS.group, CLUSTERS.plural, metadata["namespace"], spec["clusterName"]) or {}
        paused = bool(cluster.get("spec", {}).get("paused"))
        paused = paused or names.ANNOTATION_PAUSED in (metadata.get("annotations") or {})
        story.spec(self.at, state, spec, paused=paused)
        if new:
            self.count(uid)

    def verdict(self, namespace: str, reference: Mapping[str, str]) -> bool | None:
        """A4, A5: what the schedule's status says; None when it says nothing that counts."""
        found = self.find(names.PROVIDER_GROUP, f"{reference['kind'].lower()}s", namespace, reference["name"])
        status = (found or {}).get("status") or {}
        ready = [entry["status"] for entry in status.get("conditions") or () if entry["type"] == "Ready"]
        active = status.get("active")
        return active if isinstance(active, bool) and all(state == "True" for state in ready) else None

    def lease(self) -> tuple[str, float]:
        """Who holds the managers' Lease, and until when."""
        found = self.find("coordination.k8s.io", "leases", "default", names.LEADER_LEASE)
        spec = (found or {}).get("spec") or {}
        renewed = spec.get("renewTime")
        if not renewed:
            return "", float("-inf")
        until = datetime.fromisoformat(renewed).astimezone(UTC) + timedelta(seconds=spec["leaseDurationSeconds"])
        return spec.get("holderIdentity") or "", (until - self.start).total_seconds()

    def stored_schedules(self) -> Iterator[tuple[Schedule, Json]]:
        """Those whose spec the witness can read, with the stored object."""
        for schedule in self.schedules.values():
            found = self.find(names.PROVIDER_GROUP, f"{schedule.kind.lower()}s", "default", schedule.name)
            if found is not None:
                yield schedule, found


def controller(obj: Json) -> str:
    """The uid of what controls an object."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def owner_of(obj: Json) -> str:
    """For which ScheduledMachine an object says that it was made."""
    annotated: str = (obj["metadata"].get("annotations") or {}).get(names.ANNOTATION_UID, "")
    return annotated or controller(obj)


def condition(obj: Json, type_: str) -> str:
    """The status of a condition, "" without one."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((entry["status"] for entry in conditions if entry["type"] == type_), "")
