"""Random faults of the API server, a few at a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from fivespot.testing.faults import (
    Cut,
    Drip,
    Duplicate,
    EndMarker,
    Fail,
    Gone,
    HalfOpen,
    Latency,
    NoBookmarks,
    Refuse,
    Reset,
    Rule,
    Stale,
    StaleList,
    Throttle,
)

__all__ = ["FAULTS", "RecentStaleList", "random_faults"]

_BEHIND: Final = 60.0


@dataclass
class RecentStaleList(StaleList):
    """Lists that are at most a minute old: nothing is guaranteed for older ones."""

    _since: float = field(default=0.0)

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        now = asyncio.get_running_loop().time()
        if now > self._since + _BEHIND:
            self._since = now
            self._last.clear()
        return await super().apply(request, handler)


FAULTS: Final = (
    Rule(Latency(8.0), probability=0.1),
    Rule(Latency(5.0, answer=True), probability=0.1),
    Rule(Throttle(retry_after=3), probability=0.2),
    Rule(Fail(500), probability=0.2),
    Rule(Fail(503, shape="html"), probability=0.3),
    Rule(Fail(403), verb="create", resource="machines", probability=0.5),
    Rule(Fail(504, shape="text"), verb="patch", probability=0.3),
    Rule(Refuse(), probability=0.5),
    Rule(Reset(), probability=0.2),
    Rule(Reset(after=True), verb="create", probability=0.5),
    Rule(Reset(after=True), verb="patch", probability=0.3),
    Rule(Reset(after=True), verb="delete", probability=0.5),
    Rule(HalfOpen(), probability=0.05),
    Rule(HalfOpen(after=20.0), verb="watch", probability=0.5),
    Rule(Cut(after=700), verb="watch", probability=0.5),
    Rule(Duplicate(), verb="watch"),
    Rule(Stale(), verb="watch"),
    Rule(NoBookmarks(), verb="watch"),
    Rule(Gone("event"), verb="watch", probability=0.5),
    Rule(Gone("http"), verb="watch", probability=0.5),
    Rule(Gone("body"), verb="watch", probability=0.5),
    Rule(EndMarker("absent"), verb="watch"),
    Rule(EndMarker("refused"), verb="watch"),
    Rule(RecentStaleList(), verb="list"),
    Rule(Drip(size=400, seconds=0.2), verb="list", probability=0.3),
    Rule(HalfOpen(), resource="leases", verb="update", probability=0.3),
    Rule(Fail(500), resource="leases"),
)
"""Each is active for some time, up to three at once. None of them loses a change permanently."""


def random_faults(random: Random) -> list[Rule]:
    """Return the next faults, possibly none."""
    rules = random.sample(FAULTS, random.choice((0, 1, 1, 2, 3)))
    # It keeps its last answers, so each use gets a new one.
    return [
        replace(rule, fault=RecentStaleList()) if isinstance(rule.fault, RecentStaleList) else rule for rule in rules
    ]
