"""What must hold at every moment of a simulation, whatever goes wrong: seen from inside the API server.

The witness reads the truth as it is stored, and every request of fivespot's managers as it arrives. It knows the
contract, and nothing of how the controllers reach it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fivespot.api import names
from fivespot.apiserver import Handler, Request, Response
from fivespot.runtime import Resource
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import Seen
from fivespot.testing.system import EmbeddedSystem

from .world import SCHEDULED_MACHINES

__all__ = ["LAG", "Story", "Witness"]

Json = dict[str, Any]

LAG = 180.0
"""Seconds by which a controller may act on what was true: a dead watch is noticed after 90, a request may be late."""
_ROUNDING = 1.5
"""Instants in status have no fractions of seconds."""
_WRITES = ("create", "update", "patch", "delete")
_UNITS = {"s": 1, "m": 60, "h": 3600}

OnWrite = Callable[[Request, Handler], Awaitable[Response]]


def seconds(duration: str) -> float:
    """A duration of the spec."""
    return float(duration[:-1]) * _UNITS[duration[-1]]


@dataclass
class Story:
    """What was wanted of one ScheduledMachine, and since when.

    :ivar wanted: instants with ``up``, ``down``, ``killed`` or ``deleted``, each until the next.
    :ivar held: the last verdict of its schedule that was one.
    """

    name: str
    wanted: list[tuple[float, str]] = field(default_factory=list)
    held: bool = False
    graces: list[tuple[float, float]] = field(default_factory=list)

    @property
    def now(self) -> str:
        return self.wanted[-1][1]

    def turn(self, at: float, state: str, grace: float) -> None:
        if not self.wanted or self.wanted[-1][1] != state:
            self.wanted.append((at, state))
        if not self.graces or self.graces[-1][1] != grace:
            self.graces.append((at, grace))

    def spans(self) -> Iterator[tuple[float, float, str]]:
        """Begin, end and state of each time."""
        ends = [begin for begin, _ in self.wanted[1:]] + [float("inf")]
        for (begin, state), end in zip(self.wanted, ends, strict=True):
            yield begin, end, state

    def was(self, at: float, *states: str) -> bool:
        """Whether a controller that is not too far behind may believe so."""
        return any(state in states and begin <= at and end >= at - LAG for begin, end, state in self.spans())

    def may_delete(self, at: float) -> bool:
        """Killed or deleted, or down for as long as the grace lasts."""
        if self.was(at, "killed", "deleted"):
            return True
        ends = [begin for begin, _ in self.graces[1:]] + [float("inf")]
        graces = zip(self.graces, ends, strict=True)
        least = min(grace for (_, grace), end in graces if end >= at - LAG)
        return any(
            state == "down" and begin + least - _ROUNDING <= at and end >= at - LAG
            for begin, end, state in self.spans()
        )


class Witness:
    """Watches a system from its beginning.

    :ivar violations: what should never have happened.
    :ivar writes: successful writes of fivespot's managers, by verb and resource.
    :ivar on_write: stands before each write of fivespot's managers, for those who want to cut it off.
    """

    def __init__(self, system: EmbeddedSystem, *, prefix: str = "5spot") -> None:
        self._system = system
        self._prefix = prefix
        self._store = system.cluster.server.cluster.store
        self._children = (MACHINES, system.family.bootstrap, system.family.machine)
        self.stories: dict[str, Story] = {}
        self.foreign: set[str] = set()
        self.violations: list[str] = []
        self.writes: Counter[tuple[str, str]] = Counter()
        self.on_write: OnWrite | None = None
        self._store.listen(self._changed)
        system.cluster.server.middleware = self._asked

    # The truth ---------------------------------------------------------------------------------------------------

    def objects(self, resource: Resource) -> list[Json]:
        """All stored objects of a kind."""
        return [entry.decode() for entry in self._store.collection(resource.group, resource.plural).snapshot("")]

    def machines_of(self, uid: str) -> list[Json]:
        return [machine for machine in self.objects(MACHINES) if _controller(machine) == uid]

    def children_of(self, uid: str) -> list[str]:
        """What was made for a ScheduledMachine and is still there."""
        return [
            f"{resource.kind} {obj['metadata']['name']}"
            for resource in self._children
            for obj in self.objects(resource)
            if (obj["metadata"].get("annotations") or {}).get(names.ANNOTATION_UID) == uid
        ]

    def _changed(self, group: str, plural: str, event: Any) -> None:
        if group == names.PROVIDER_GROUP:
            self._turn_all()
        elif (group, plural) == (SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural):
            if event.deleted:
                left = self.children_of(event.new.uid)
                if left:
                    self._report(f"{event.new.key} is gone, but {', '.join(left)} is not")
                self._turn(event.new.uid, event.new.decode(), gone=True)
            else:
                self._turn(event.new.uid, event.new.decode())
        elif (group, plural) == (MACHINES.group, MACHINES.plural) and event.old is None:
            owner = _controller(event.new.decode())
            if owner and len(self.machines_of(owner)) > 1:
                self._report(f"{event.new.key} is a second Machine of one ScheduledMachine")

    def _turn_all(self) -> None:
        for obj in self.objects(SCHEDULED_MACHINES):
            self._turn(obj["metadata"]["uid"], obj)

    def _turn(self, uid: str, obj: Json, *, gone: bool = False) -> None:
        story = self.stories.setdefault(uid, Story(obj["metadata"]["name"]))
        spec = obj["spec"]
        verdict = self._verdict(obj["metadata"]["namespace"], spec["schedule"])
        if verdict is not None:
            story.held = verdict
        if gone or "deletionTimestamp" in obj["metadata"]:
            state = "deleted"
        elif spec.get("killSwitch"):
            state = "killed"
        elif spec.get("enabled") is False:
            state = "down"
        else:
            state = "up" if story.held else "down"
        story.turn(self._system.cluster.elapsed, state, seconds(spec.get("gracefulShutdownTimeout", "5m")))

    def _verdict(self, namespace: str, reference: Mapping[str, str]) -> bool | None:
        """A4, A5: what the schedule says; None when it says nothing that counts."""
        plural = f"{reference['kind'].lower()}s"
        entry = self._store.collection(names.PROVIDER_GROUP, plural).entries.get(f"{namespace}/{reference['name']}")
        if entry is None:
            return None
        status = entry.decode().get("status") or {}
        ready = [c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"]
        active = status.get("active")
        return active if isinstance(active, bool) and all(state == "True" for state in ready) else None

    # What the managers do ----------------------------------------------------------------------------------------

    async def _asked(self, request: Request, handler: Handler) -> Response:
        seen = Seen.of(request)
        ours = request.header("user-agent").startswith(self._prefix)
        if not ours or seen.verb not in _WRITES or request.parameter("dryRun"):
            return await handler(request)
        before = self._target(seen)
        response = await (self.on_write(request, handler) if self.on_write is not None else handler(request))
        if response.status < 300:
            self.writes[seen.verb, seen.resource] += 1
            self._judge(seen, before, request)
        return response

    def _target(self, seen: Seen) -> Json | None:
        key = f"{seen.namespace}/{seen.name}" if seen.namespace else seen.name
        entry = self._store.collection(seen.group, seen.resource.partition("/")[0]).entries.get(key)
        return entry.decode() if entry is not None else None

    def _judge(self, seen: Seen, before: Json | None, request: Request) -> None:
        at = self._system.cluster.elapsed
        if before is not None and before["metadata"]["uid"] in self.foreign:
            self._report(f"{seen.verb} of {seen.resource} {seen.name}, which is foreign")
        if (seen.group, seen.resource) != (MACHINES.group, MACHINES.plural):
            return
        if seen.verb == "create":
            # The newest Machine is what this request made.
            made = max(self.objects(MACHINES), key=lambda machine: int(machine["metadata"]["resourceVersion"]))
            story = self.stories[_controller(made)]
            if not story.was(at, "up"):
                self._report(f"a Machine for {story.name}, of which {story.now} is wanted: {story.wanted[-3:]}")
        elif seen.verb == "delete" and before is not None and "deletionTimestamp" not in before["metadata"]:
            story = self.stories[_controller(before)]
            if not story.may_delete(at):
                self._report(f"the Machine of {story.name} deleted while {story.now} is wanted: {story.wanted[-3:]}")

    def _report(self, what: str) -> None:
        self.violations.append(f"{self._system.cluster.elapsed:.1f} s: {what}")

    # The end -----------------------------------------------------------------------------------------------------

    def unsettled(self) -> list[str]:
        """What is not yet as it has to be in the end."""
        found = []
        for obj in self.objects(SCHEDULED_MACHINES):
            uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
            state, phase = self.stories[uid].now, (obj.get("status") or {}).get("phase")
            down = "Disabled" if obj["spec"].get("enabled") is False else "Inactive"
            # A schedule that is off comes before a switch that is: B1.12, B1.13 by what decides.
            wanted = {"up": {"Active"}, "down": {down, "Inactive"}, "killed": {"Terminated"}}.get(state, {"gone"})
            if phase not in wanted:
                message = (obj.get("status") or {}).get("message")
                found.append(f"{name} is {phase}, and {state} is wanted ({message})")
            ready = {c["type"]: c["status"] for c in (obj.get("status") or {}).get("conditions") or ()}
            if ready.get("Ready") != "True" or "Reconciling" in ready or "Stalled" in ready:
                found.append(f"{name} is not settled: {ready}")
            count = len(self.machines_of(uid))
            if count != (state == "up"):
                found.append(f"{name} has {count} Machines, and {state} is wanted")
            if state != "up" and (left := self.children_of(uid)):
                found.append(f"{name} is {state}, but has {', '.join(left)}")
        known = {obj["metadata"]["uid"] for obj in self.objects(SCHEDULED_MACHINES)}
        for uid, story in self.stories.items():
            if uid not in known and (left := self.children_of(uid)):
                found.append(f"{story.name} is gone, but has left {', '.join(left)}")
        return found


def _controller(obj: Json) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")
