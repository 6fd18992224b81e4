"""What must hold at every moment of a simulation, whatever goes wrong: seen from inside the API server.

The witness reads the truth as it is stored, and every request of fivespot's managers as it arrives. It knows the
contract, and nothing of how the controllers reach it. ``invariants.py`` lists what it watches over, and
``test_checker.py`` shows of each that its breach does not escape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec

from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from fivespot.runtime import Resource
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import RequestInfo
from fivespot.testing.system import EmbeddedSystem

from .histories import LAG, Moment
from .invariants import Invariant
from .reference import ReferenceModel, controller
from .settled import late, unsettled
from .world import SCHEDULED_MACHINES
from .write_rules import Write, judge

__all__ = ["Checker"]

Json = dict[str, Any]

_WRITES = ("create", "update", "patch", "delete")
_ASIDE = ("leases", "events")
"""Written by managers for their own needs; a Lease by those that do not hold it, too."""

OnWrite = Callable[[ApiRequest, Handler], Awaitable[ApiResponse]]


class Checker:
    """Watches a system from its beginning.

    :param elected: managers that may work only while they hold the Lease, by the name in their user agents.
    :ivar violations: what should never have happened.
    :ivar foreign: uids of objects that somebody else made.
    :ivar writes: successful writes of fivespot's managers, by verb and resource.
    :ivar on_write: stands before each write of fivespot's managers, for those who want to cut it off.
    """

    def __init__(self, system: EmbeddedSystem, *, prefix: str = "5spot", elected: tuple[str, ...] = ()) -> None:
        self._prefix = prefix
        self._elected = elected
        cluster = system.cluster
        self.truth = ReferenceModel(system, cluster.clock.now() - timedelta(seconds=cluster.elapsed), prefix)
        self.foreign: set[str] = set()
        self.violations: list[str] = []
        self.writes: Counter[tuple[str, str]] = Counter()
        self.on_write: OnWrite | None = None
        cluster.server.cluster.store.listen(self._changed)
        cluster.server.middleware = self._asked

    def objects(self, resource: Resource) -> list[Json]:
        """All stored objects of a kind."""
        return self.truth.objects(resource)

    def unsettled(self) -> list[str]:
        """What is not yet as it has to be in the end."""
        return unsettled(self.truth)

    def look(self) -> None:
        """Find what should have been done by now."""
        if self.truth.at > self.truth.calm:
            for what in late(self.truth):
                self.report(Invariant.LATE, what)

    def report(self, promise: Invariant, what: str) -> None:
        """Something is not as promised."""
        self.violations.append(f"{self.truth.at:.1f} s: {promise.value}: {what}")

    def _changed(self, group: str, plural: str, event: Any) -> None:
        self.truth.follow(group, plural, event)
        if event.deleted and (group, plural) == (SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural):
            left = self.truth.children_of(event.new.uid)
            if left:
                self.report(Invariant.FINALIZER_LAST, f"{event.new.key} has left {', '.join(left)}")

    async def _asked(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        seen = RequestInfo.of(request)
        if seen.verb not in _WRITES or request.parameter("dryRun"):
            return await handler(request)
        plural = seen.resource.partition("/")[0]
        before = self.truth.find(seen.group, plural, seen.namespace, seen.name)
        agent = request.header("user-agent")
        if not agent.startswith(self._prefix):
            response = await handler(request)
            self._lost(seen, before, response)
            return response
        # Asked for now: the request may be the end of the object.
        made_for = self.truth.made.get(before["metadata"]["uid"], "") if before is not None else ""
        if plural not in _ASIDE:
            self._leads(agent, seen)
            self.look()
        response = await (self.on_write(request, handler) if self.on_write is not None else handler(request))
        if response.status < 300:
            self.writes[seen.verb, seen.resource] += 1
            self._judge(Write(agent, seen, made_for, before), request, response)
        return response

    def _judge(self, write: Write, request: ApiRequest, response: ApiResponse) -> None:
        seen = write.seen
        asked = msgspec.json.decode(request.body) if request.body else None
        if seen.verb == "delete":
            after = self.truth.find(seen.group, seen.resource, seen.namespace, seen.name)
        else:
            assert isinstance(response.body, bytes)
            after = msgspec.json.decode(response.body)
        for promise, what in judge(replace(write, asked=asked, after=after), self.truth, self.foreign):
            self.report(promise, what)

    def _leads(self, agent: str, seen: RequestInfo) -> None:
        if agent not in self._elected:
            return
        holder, until = self.truth.lease()
        if holder != agent or until < self.truth.at:
            who = f"{holder or 'nobody'} until {until:.1f} s"
            self.report(Invariant.LEASE, f"{agent}: {seen.verb} of {seen.resource} {seen.name}; it is held by {who}")

    def _lost(self, seen: RequestInfo, before: Json | None, response: ApiResponse) -> None:
        """B7: somebody else deletes a Machine that is wanted, and was for some time."""
        machine = (seen.group, seen.resource, seen.verb) == (MACHINES.group, MACHINES.plural, "delete")
        if not machine or before is None or response.status >= 300 or "deletionTimestamp" in before["metadata"]:
            return
        story = self.truth.stories.get(controller(before))
        if story is None or story.wanted.lately(Moment(self.truth.at, LAG)) != ["up"]:
            return
        # Nobody could know of one that no status had named yet. And where the last that was reported is a shutdown of
        # our own, a manager that was away since must not say that somebody else deleted the Machine.
        reported = self.truth.find(SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural, seen.namespace, story.name)
        status = (reported or {}).get("status") or {}
        named = (status.get("machineRef") or {}).get("uid") == before["metadata"]["uid"]
        if named and "shutdownRequestedTime" not in status:
            story.lost = self.truth.at
