"""Histories of values: a controller may act on a state that is a little old."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["LAG", "PROMPT", "ROUNDING", "History", "MachineHistory", "Moment", "seconds"]

T = TypeVar("T")

LAG = 180.0
"""Seconds that a controller may lag behind: a dead watch is noticed after 90 s, and a request may be late."""
PROMPT = 5.0
"""The same after a long time without faults, and the time within which work has to be done then."""
ROUNDING = 1.5
"""Status timestamps have whole seconds."""
_UNITS = {"s": 1, "m": 60, "h": 3600}


def seconds(duration: str) -> float:
    """Parse a duration of the spec."""
    return float(duration[:-1]) * _UNITS[duration[-1]]


@dataclass(frozen=True)
class Moment:
    """An instant, and the lag that a controller may have."""

    at: float
    lag: float


class History(Generic[T]):
    """A sequence of values with the times at which they changed."""

    def __init__(self) -> None:
        self._changes: list[tuple[float, T]] = []

    def record(self, at: float, value: T) -> None:
        if not self._changes or self._changes[-1][1] != value:
            self._changes.append((at, value))

    @property
    def now(self) -> T:
        return self._changes[-1][1]

    @property
    def since(self) -> float:
        return self._changes[-1][0]

    def spans(self) -> Iterator[tuple[float, float, T]]:
        """Yield begin, end and value of each span."""
        ends = [begin for begin, _ in self._changes[1:]] + [float("inf")]
        for (begin, value), end in zip(self._changes, ends, strict=True):
            yield begin, end, value

    def lately(self, moment: Moment) -> list[T]:
        """Return the values that a controller within the lag may act on."""
        at, lag = moment.at, moment.lag
        return [value for begin, end, value in self.spans() if begin <= at and end >= at - lag]

    def was(self, moment: Moment, *values: T) -> bool:
        return any(value in values for value in self.lately(moment))

    def __bool__(self) -> bool:
        return bool(self._changes)

    def __repr__(self) -> str:
        return repr(self._changes[-3:])


@dataclass
class MachineHistory:
    """The desired and actual state of one ScheduledMachine over time.

    :ivar wanted: ``up``, ``down``, ``killed`` or ``deleted``; ``either`` while the schedule gives no verdict and a
        controller may not have seen its last one, so that it may hold another.
    :ivar killed: whether the kill switch was on, also while deleting.
    :ivar held: the last verdict of its schedule.
    :ivar possible_verdicts: the last verdict that a controller must have seen, because it had the time or acted on
        it, and the later ones that it may have seen.
    :ivar machines: uids of the Machines that it controls.
    :ivar left: whether any of its children exist.
    :ivar lost: the time at which someone else last deleted its Machine.
    """

    name: str
    wanted: History[str] = field(default_factory=History)
    killed: History[bool] = field(default_factory=History)
    held: bool = False
    possible_verdicts: set[bool] = field(default_factory=lambda: {False})
    verdicts: History[bool | None] = field(default_factory=History)
    grace: History[float] = field(default_factory=History)
    drain: History[float] = field(default_factory=History)
    paused: History[bool] = field(default_factory=History)
    machines: History[frozenset[str]] = field(default_factory=History)
    left: History[bool] = field(default_factory=History)
    ready: History[bool] = field(default_factory=History)
    lost: float | None = None

    def record_verdict(self, moment: Moment, verdict: bool | None, absences: History[bool]) -> None:
        """Record a verdict of its schedule; None for no verdict."""
        if self.verdicts and (before := self.verdicts.now) is not None and before != verdict:
            begin = self.verdicts.since
            looked = (
                min(last, moment.at) - max(first, begin) for first, last, absent in absences.spans() if not absent
            )
            had = any(machines and last >= begin for _, last, machines in self.machines.spans())
            if max(looked, default=0.0) >= moment.lag or (before and had):
                self.possible_verdicts = {before}
            else:
                self.possible_verdicts = self.possible_verdicts | {before}
        self.verdicts.record(moment.at, verdict)
        if verdict is not None:
            self.held = verdict

    def scheduled_state(self) -> str:
        """Return the state that the schedule asks for."""
        if self.verdicts.now is None and len(self.possible_verdicts) > 1:
            return "either"
        return "up" if self.held else "down"

    def spec(self, at: float, state: str, spec: dict[str, Any], *, paused: bool) -> None:
        self.wanted.record(at, state)
        self.grace.record(at, seconds(spec.get("gracefulShutdownTimeout", "5m")))
        self.drain.record(at, seconds(spec.get("nodeDrainTimeout", "5m")))
        self.paused.record(at, paused)
        self.killed.record(at, bool(spec.get("killSwitch")))

    def may_delete(self, moment: Moment, absences: History[bool]) -> bool:
        """Return whether its Machine may be deleted: killed, deleting, or down with the grace period over."""
        return self.wanted.was(moment, "killed", "deleted") or self.grace_over(moment, absences)

    def grace_over(self, moment: Moment, absences: History[bool]) -> bool:
        """Return whether grace may be over (B1.21). What no manager saw (B5.3) may not have interrupted it."""
        least, since = min(self.grace.lately(moment)), float("inf")
        for begin, end, state in self.wanted.spans():
            if state in ("down", "either"):
                since = min(since, begin)
                if since + least - ROUNDING <= moment.at and end >= moment.at - moment.lag:
                    return True
            elif not _unseen(begin, end, absences):
                since = float("inf")
        return False

    def due(self) -> float:
        """Return the time by which deletion must have begun; infinity while the Machine is wanted."""
        if self.wanted.now in ("killed", "deleted"):
            return self.wanted.since
        if self.wanted.now == "down":
            return max(self.wanted.since + self.grace.now, self.grace.since)
        return float("inf")


def _unseen(begin: float, end: float, absences: History[bool]) -> bool:
    return any(absent and first <= begin + LAG and last >= end - LAG for first, last, absent in absences.spans())
