"""A checker inside the API server for the invariants of a simulation, which hold whatever faults occur.

It follows the stored state and every request of fivespot's managers. It knows the contract and nothing of how the
controllers implement it. ``invariants.py`` lists the invariants, and ``test_checker.py`` shows for each of them that a
violation is detected.
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

from .end_state import overdue, unsettled
from .fleet import SCHEDULED_MACHINES
from .histories import LAG, Moment
from .invariants import Invariant
from .reference import ReferenceModel, controller
from .write_rules import Write, check_write

__all__ = ["Checker"]

Json = dict[str, Any]

_WRITES = ("create", "update", "patch", "delete")
_ASIDE = ("leases", "events")
"""Written by managers for their own needs; a Lease also by candidates."""

OnWrite = Callable[[ApiRequest, Handler], Awaitable[ApiResponse]]


class Checker:
    """Check a system from its start.

    :param elected: managers that may write only while they hold the Lease, by user agent.
    :ivar violations: violated invariants, with time and object.
    :ivar foreign: uids of objects created by others.
    :ivar writes: successful writes of fivespot's managers, by verb and resource.
    :ivar on_write: a middleware for the writes of fivespot's managers, for tests that interrupt them.
    """

    def __init__(self, system: EmbeddedSystem, *, prefix: str = "5spot", elected: tuple[str, ...] = ()) -> None:
        self._prefix = prefix
        self._elected = elected
        cluster = system.cluster
        self.reference = ReferenceModel(system, cluster.clock.now() - timedelta(seconds=cluster.elapsed), prefix)
        self.foreign: set[str] = set()
        self.violations: list[str] = []
        self.writes: Counter[tuple[str, str]] = Counter()
        self.on_write: OnWrite | None = None
        cluster.server.cluster.store.listen(self._changed)
        cluster.server.middleware = self._handle

    def objects(self, resource: Resource) -> list[Json]:
        """Return all stored objects of a kind."""
        return self.reference.objects(resource)

    def unsettled(self) -> list[str]:
        """Return the differences from the required end state."""
        return unsettled(self.reference)

    def check_overdue(self) -> None:
        """Report overdue work."""
        if self.reference.at > self.reference.undisturbed_since:
            for what in overdue(self.reference):
                self.report(Invariant.LATE, what)

    def report(self, invariant: Invariant, what: str) -> None:
        """Record a violation."""
        self.violations.append(f"{self.reference.at:.1f} s: {invariant.value}: {what}")

    def _changed(self, group: str, plural: str, event: Any) -> None:
        self.reference.follow(group, plural, event)
        if event.deleted and (group, plural) == (SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural):
            left = self.reference.children_of(event.new.uid)
            if left:
                self.report(Invariant.FINALIZER_LAST, f"{event.new.key} left {', '.join(left)} behind")

    async def _handle(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        seen = RequestInfo.of(request)
        if seen.verb not in _WRITES or request.parameter("dryRun"):
            return await handler(request)
        plural = seen.resource.partition("/")[0]
        before = self.reference.find(seen.group, plural, seen.namespace, seen.name)
        agent = request.header("user-agent")
        if not agent.startswith(self._prefix):
            response = await handler(request)
            self._record_loss(seen, before, response)
            return response
        # Read before the request, which may end the object.
        made_for = self.reference.made.get(before["metadata"]["uid"], "") if before is not None else ""
        if plural not in _ASIDE:
            self._check_lease(agent, seen)
            self.check_overdue()
        response = await (self.on_write(request, handler) if self.on_write is not None else handler(request))
        if response.status < 300:
            self.writes[seen.verb, seen.resource] += 1
            self._check_write(Write(agent, seen, made_for, before), request, response)
        return response

    def _check_write(self, write: Write, request: ApiRequest, response: ApiResponse) -> None:
        seen = write.seen
        asked = msgspec.json.decode(request.body) if request.body else None
        if seen.verb == "delete":
            after = self.reference.find(seen.group, seen.resource, seen.namespace, seen.name)
        else:
            assert isinstance(response.body, bytes)
            after = msgspec.json.decode(response.body)
        for invariant, what in check_write(replace(write, asked=asked, after=after), self.reference, self.foreign):
            self.report(invariant, what)

    def _check_lease(self, agent: str, seen: RequestInfo) -> None:
        if agent not in self._elected:
            return
        holder, until = self.reference.lease()
        if holder != agent or until < self.reference.at:
            who = f"{holder or 'nobody'} until {until:.1f} s"
            self.report(Invariant.LEASE, f"{agent}: {seen.verb} of {seen.resource} {seen.name}; held by {who}")

    def _record_loss(self, seen: RequestInfo, before: Json | None, response: ApiResponse) -> None:
        """Record that someone else deletes a Machine that has been wanted for some time (B7)."""
        machine = (seen.group, seen.resource, seen.verb) == (MACHINES.group, MACHINES.plural, "delete")
        if not machine or before is None or response.status >= 300 or "deletionTimestamp" in before["metadata"]:
            return
        history = self.reference.histories.get(controller(before))
        if history is None or history.wanted.lately(Moment(self.reference.at, LAG)) != ["up"]:
            return
        # A Machine that no status names yet cannot be missed. And while status reports our own shutdown, a manager that
        # was down since then cannot tell that someone else deleted the Machine.
        reported = self.reference.find(
            SCHEDULED_MACHINES.group, SCHEDULED_MACHINES.plural, seen.namespace, history.name
        )
        status = (reported or {}).get("status") or {}
        named = (status.get("machineRef") or {}).get("uid") == before["metadata"]["uid"]
        if named and "shutdownRequestedTime" not in status:
            history.lost = self.reference.at
