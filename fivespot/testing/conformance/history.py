"""What was seen of an object, and who did it. Pure: the rules judge these values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from fivespot.runtime.objects import Key

__all__ = ["MANAGER", "Episode", "ObjectHistory", "Observation", "Write", "brief"]

MANAGER = "fivespot-conformance"
"""The field manager of the kit's own writes."""

_BRIEF = 240


@dataclass(frozen=True, slots=True)
class Observation:
    """One state of an object, as a watch event carried it.

    :param at: when it arrived, in seconds on the loop's clock.
    :param wall: the same by the wall clock.
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
        """``status``; empty when there is none or it is no object."""
        found = self.body.get("status")
        return found if isinstance(found, Mapping) else {}

    @property
    def active(self) -> bool | None:
        """The verdict; None when there is no boolean."""
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
        """Whether fivespot takes ``active`` for a verdict (contract A5)."""
        ready = self.ready
        return self.active is not None and (ready is None or ready.get("status") == "True")

    @property
    def writer(self) -> str:
        """Who wrote the status last, of all but the kit, by ``managedFields``; "" when that does not say."""
        entries = [
            entry
            for entry in self.metadata.get("managedFields") or ()
            if entry.get("subresource") == "status" and entry.get("manager") != MANAGER
        ]
        return str(max(entries, key=lambda entry: str(entry.get("time", "")))["manager"]) if entries else ""


class Write(NamedTuple):
    """One write of somebody else than the kit: the state before it, and after."""

    before: Observation
    after: Observation


@dataclass(frozen=True, slots=True)
class Episode:
    """A stretch in which nothing that decides changes: it begins with something that the kit did.

    :param since: resourceVersion from which on it holds.
    :param generation: ``metadata.generation`` in it.
    :param expected: the verdict that follows from it; None where the spec cannot be followed.
    """

    since: int
    generation: int
    expected: bool | None


@dataclass(slots=True)
class ObjectHistory:
    """The life of one object that the kit made.

    :param seen: every state, in order.
    :param ours: versions that the kit's own writes made.
    """

    key: Key
    seen: list[Observation] = field(default_factory=list)
    ours: set[int] = field(default_factory=set)
    episodes: list[Episode] = field(default_factory=list)

    @property
    def last(self) -> Observation | None:
        """The newest state, None when there is none or the object is gone."""
        return self.seen[-1] if self.seen and self.seen[-1].type != "DELETED" else None

    def writes(self, since: int = 0) -> Iterator[Write]:
        """What others than the kit wrote after a version."""
        for before, after in zip(self.seen, self.seen[1:], strict=False):
            same = before.uid == after.uid and after.type != "DELETED"
            if same and after.version > since and after.version not in self.ours:
                yield Write(before, after)

    def reports(self, since: int = 0) -> Iterator[Write]:
        """Those of them that changed the status."""
        return (write for write in self.writes(since) if write.before.status != write.after.status)

    def episode(self, version: int) -> Episode | None:
        """The episode that a state belongs to."""
        found = None
        for episode in self.episodes:
            if episode.since <= version:
                found = episode
        return found


def brief(value: object) -> str:
    """JSON on one line, short enough for a message."""
    text = json.dumps(value, default=str, separators=(",", ":"), sort_keys=True, ensure_ascii=True)
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}..."
