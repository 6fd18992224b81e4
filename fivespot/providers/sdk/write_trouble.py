"""Trouble with the status of one object: another writer undoes it (contract C13), or it cannot be written.

Pure; moments are on the monotonic clock. The status itself cannot report either, so events, log and metrics do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fivespot.runtime import Random, find_condition
from fivespot.runtime.workqueue import Backoff

__all__ = ["Contest", "UnwrittenStatus", "summary"]

_FREE_CORRECTIONS: Final = 2
"""Corrections that are made at once, such as that of a status which a person has edited."""
_CALM: Final = 600.0
"""Seconds without an undone status after which corrections are made at once again."""
_WAITS: Final = Backoff(base=5.0, cap=300.0)

_REPORT_AFTER: Final = 15.0
"""Seconds for which a status cannot be written before that is told: conflicts and short outages pass."""
_REPORT_AGAIN: Final = 600.0


@dataclass(slots=True)
class Contest:
    """Another writer of the same status, whom a correction at once would only provoke.

    Only the correction waits: another verdict, or one for an edited spec, is written at once.

    :ivar reported: whether it was reported since it began.
    """

    reported: bool = False
    _written: Mapping[str, Any] | None = None
    _undone: int = 0
    _last: float = 0.0
    _due: float | None = None

    def wait(self, stored: Mapping[str, Any], wanted: Mapping[str, Any], now: float, rng: Random) -> float:
        """Seconds for which a status that differs from the stored one is not written yet.

        :param stored: the status as it was read.
        :param wanted: the status that would be written.
        """
        if self._written is None or _verdict(wanted) != _verdict(self._written):
            self._due = None
            return 0.0
        if _owned(stored) == _owned(self._written):
            # Nobody has touched it: the change is our own.
            return 0.0
        if self._due is None:
            if now - self._last > _CALM:
                self._undone, self.reported = 0, False
            self._undone += 1
            self._last = now
            held = self._undone - _FREE_CORRECTIONS
            self._due = now + (_WAITS.delay(held, rng) if held > 0 else 0.0)
        return max(self._due - now, 0.0)

    def wrote(self, status: Mapping[str, Any]) -> None:
        """Record a status that was written."""
        self._written, self._due = status, None


@dataclass(slots=True)
class UnwrittenStatus:
    """A status that cannot be written."""

    _since: float | None = None
    _reported: float | None = None

    def failed(self, begun: float, now: float) -> bool:
        """Record a write that was begun, with all its retries, at one moment and failed at another.

        :return: whether that is to be reported now.
        """
        if self._since is None:
            self._since = begun
        if now - self._since < _REPORT_AFTER or (self._reported is not None and now - self._reported < _REPORT_AGAIN):
            return False
        self._reported = now
        return True

    def written(self) -> None:
        """Record that the status is as it should be."""
        self._since = self._reported = None


def summary(status: Mapping[str, Any]) -> str:
    """Describe the verdict in a status, for messages."""
    ready = find_condition(status.get("conditions"), "Ready") or {}
    return f"active {str(status.get('active')).lower()}, Ready {ready.get('status')}, {ready.get('reason')}"


def _verdict(status: Mapping[str, Any]) -> tuple[Any, ...]:
    """The verdict in a status, and the spec that it is for."""
    ready = find_condition(status.get("conditions"), "Ready") or {}
    return status.get("active"), status.get("observedGeneration"), ready.get("status"), ready.get("reason")


def _owned(status: Mapping[str, Any]) -> tuple[Any, ...]:
    """The fields of a status that are the provider's, but for a message, which may differ with every decision."""
    names = ("lastTransitionTime", "nextTransitionTime", "overrides")
    return *_verdict(status), *(status.get(name) for name in names)
