"""Remembers what the API server refused, so that it is not retried before something relevant changes."""

from __future__ import annotations

import re
from dataclasses import replace

from fivespot.runtime import Key, Random

from .plan import Want
from .snapshot import Refusal, Snapshot
from .status import RefusedStep
from .timings import Timings

__all__ = ["Refusals", "fingerprint"]

_OUTDATED = ""
"""The fingerprint that equals no other."""
_VARYING = re.compile(r"(?<![A-Za-z-])[A-Za-z-]*[0-9](?:[0-9A-Za-z-]|[.:](?=[0-9]))*")
"""Counters, times and ids of requests: words with a digit in them."""


class Refusals:
    """The refusals, one entry per object; an entry is removed with its object or its cause."""

    def __init__(self, timings: Timings, rng: Random) -> None:
        self._timings = timings
        self._rng = rng
        self._found: dict[Key, tuple[Refusal, Want]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, key: Key) -> bool:
        return key in self._found

    def current(self, key: Key, print_: str) -> Refusal | None:
        """Return the refusal if nothing relevant has changed since."""
        found = self._found.get(key)
        return found[0] if found is not None and found[0].fingerprint == print_ else None

    def note(
        self,
        key: Key,
        refused: RefusedStep,
        want: Want,
        print_: str,
        monotonic: float,
        *,
        optional: bool = False,
    ) -> Refusal:
        """Remember a refusal and when the next try is due.

        The wait grows with each refusal of one cause, whatever the message is: it may contain a counter or a request
        id. A message that differs in such words alone is replaced by the first one.
        """
        before = self._found.get(key)
        attempt, message = 1, refused.message
        if before is not None and before[1] is want and before[0].cause == (refused.cause or refused.message):
            attempt = before[0].attempt + 1
            if _VARYING.sub("#", before[0].message) == _VARYING.sub("#", message):
                message = before[0].message
        jitter = 1 + self._rng.uniform(-self._timings.refusal_jitter, self._timings.refusal_jitter)
        seconds = self._timings.refusal_delay(attempt) * jitter
        found = Refusal(
            print_,
            attempt,
            monotonic + seconds,
            refused.reason,
            message,
            refused.stalled,
            optional,
            refused.cause or refused.message,
        )
        self._found[key] = (found, want)
        return found

    def outdate(self, key: Key, want: Want) -> None:
        """Note that the world changed and nothing was tried, so that changing back counts as a change as well.

        A foreign object that the refusal itself revealed, for example, appears in the caches only later, and is
        deleted then. Changes under another purpose do not count, so that flapping schedules cause no further tries.
        """
        found = self._found.get(key)
        if found is not None and found[1] is want:
            self._found[key] = (replace(found[0], fingerprint=_OUTDATED), want)

    def forget(self, key: Key) -> None:
        self._found.pop(key, None)

    def forget_all(self) -> None:
        self._found.clear()


def fingerprint(s: Snapshot) -> str:
    """Return everything watched that could make the next try of a refused step end differently."""
    world = s.world
    children = sorted((str(c.group_kind), c.head.uid, c.deleting, c.ours) for c in world.children)
    machine = (world.machine.head.uid, world.machine.deleting) if world.machine else None
    parts = (
        s.head.uid,
        s.head.generation,
        s.head.deleting,
        world.capi,
        world.cluster,
        world.templates,
        machine,
        children,
        type(world.resolution).__name__,
        getattr(world.resolution, "active", None),
    )
    return repr(parts)
