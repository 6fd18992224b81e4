"""The history of an object: its observed states, the kit's own writes, and the episodes between them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from fivespot.runtime import Key

__all__ = ["CLOCK_SKEW", "MANAGER", "Episode", "ObjectHistory", "Observation", "StatusWrite", "brief"]

MANAGER = "fivespot-conformance"
"""Field manager of the kit's own writes."""

_BRIEF = 240
CLOCK_SKEW = timedelta(seconds=5)
"""Tolerated difference between the wall clocks of the provider and the kit."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A state of an object, as a watch event carried it.

    :param at: time of arrival, in seconds on the monotonic clock.
    :param wall: time of arrival on the wall clock.
    """

    type: str
    version: int
    at: float
    wall: datetime
    body: Mapping[str, Any] = field(repr=False)

    @property
    def metadata(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.body.get("metadata") or {}
        return found

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def generation(self) -> int:
        return int(self.metadata.get("generation", 0))

    @property
    def status(self) -> Mapping[str, Any]:
        """``status``; empty if it is absent or not an object."""
        found = self.body.get("status")
        return found if isinstance(found, Mapping) else {}

    @property
    def active(self) -> bool | None:
        """The verdict; None if it is not a boolean."""
        found = self.status.get("active")
        return found if isinstance(found, bool) else None

    @property
    def ready(self) -> Mapping[str, Any] | None:
        """The first condition Ready, or None."""
        conditions = self.status.get("conditions")
        for entry in conditions if isinstance(conditions, list) else ():
            if isinstance(entry, Mapping) and entry.get("type") == "Ready":
                return entry
        return None

    @property
    def authoritative(self) -> bool:
        """Whether fivespot accepts ``active`` as a verdict (contract A5)."""
        ready = self.ready
        return self.active is not None and (ready is None or ready.get("status") == "True")

    @property
    def writer(self) -> str:
        """Field manager of the latest status write that is not the kit's; "" if ``managedFields`` has none."""
        entries = [
            entry
            for entry in self.metadata.get("managedFields") or ()
            if entry.get("subresource") == "status" and entry.get("manager") != MANAGER
        ]
        return str(max(entries, key=lambda entry: str(entry.get("time", "")))["manager"]) if entries else ""


class StatusWrite(NamedTuple):
    """A write of another writer than the kit: the states before and after it."""

    before: Observation
    after: Observation


@dataclass(frozen=True, slots=True)
class Episode:
    """A period in which the inputs of the decision do not change; it begins with a change by the kit.

    :param since: resourceVersion from which it holds.
    :param generation: ``metadata.generation`` during it.
    :param verdict: the verdict that follows; None if the spec is invalid.
    :param ends: instant at which the verdict changes by the clock; None if it does not during a run.
    """

    since: int
    generation: int
    verdict: bool | None
    ends: datetime | None = None

    def expected(self, seen: Observation) -> bool | None:
        """The verdict that follows in a state of this episode; None if the spec is invalid or the clock decides."""
        return self.verdict if self.ends is None or seen.wall < self.ends - CLOCK_SKEW else None


@dataclass(slots=True)
class ObjectHistory:
    """The history of one object that the kit created.

    :param seen: every observed state, in order.
    :param ours: resourceVersions of the kit's own writes.
    """

    key: Key
    seen: list[Observation] = field(default_factory=list)
    ours: set[int] = field(default_factory=set)
    episodes: list[Episode] = field(default_factory=list)

    @property
    def last(self) -> Observation | None:
        """The newest state, None if there is none or the object is gone."""
        return self.seen[-1] if self.seen and self.seen[-1].type != "DELETED" else None

    def writes(self, since: int = 0) -> Iterator[StatusWrite]:
        """Iterate over the writes of other writers after a version."""
        for before, after in zip(self.seen, self.seen[1:], strict=False):
            same = before.uid == after.uid and after.type != "DELETED"
            if same and after.version > since and after.version not in self.ours:
                yield StatusWrite(before, after)

    def reports(self, since: int = 0) -> Iterator[StatusWrite]:
        """Iterate over the writes of other writers after a version that changed the status."""
        return (write for write in self.writes(since) if write.before.status != write.after.status)

    def episode(self, version: int) -> Episode | None:
        """Find the episode of a version."""
        found = None
        for episode in self.episodes:
            if episode.since <= version:
                found = episode
        return found


def brief(value: object) -> str:
    """Render JSON on one line, truncated for a message."""
    text = json.dumps(value, default=str, separators=(",", ":"), sort_keys=True, ensure_ascii=True)
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}..."
