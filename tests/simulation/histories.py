"""What was true when: controllers act on what they have heard, which may be a little old."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["LAG", "PROMPT", "ROUNDING", "History", "Moment", "Story", "seconds"]

T = TypeVar("T")

LAG = 180.0
"""Seconds by which a controller may act on what was true: a dead watch is noticed after 90, a request may be late."""
PROMPT = 5.0
"""The same when nothing has been in the way for long, and seconds within which a thing is done then."""
ROUNDING = 1.5
"""Instants in status have no fractions of seconds."""
_UNITS = {"s": 1, "m": 60, "h": 3600}


def seconds(duration: str) -> float:
    """A duration of the spec."""
    return float(duration[:-1]) * _UNITS[duration[-1]]


@dataclass(frozen=True)
class Moment:
    """An instant, and how far behind it a controller may be."""

    at: float
    lag: float


class History(Generic[T]):
    """The values of one thing, each until the next."""

    def __init__(self) -> None:
        self._turns: list[tuple[float, T]] = []

    def turn(self, at: float, value: T) -> None:
        if not self._turns or self._turns[-1][1] != value:
            self._turns.append((at, value))

    @property
    def now(self) -> T:
        return self._turns[-1][1]

    @property
    def since(self) -> float:
        return self._turns[-1][0]

    def spans(self) -> Iterator[tuple[float, float, T]]:
        """Begin, end and value of each time."""
        ends = [begin for begin, _ in self._turns[1:]] + [float("inf")]
        for (begin, value), end in zip(self._turns, ends, strict=True):
            yield begin, end, value

    def lately(self, moment: Moment) -> list[T]:
        """What a controller that is not too far behind may believe."""
        at, lag = moment.at, moment.lag
        return [value for begin, end, value in self.spans() if begin <= at and end >= at - lag]

    def was(self, moment: Moment, *values: T) -> bool:
        return any(value in values for value in self.lately(moment))

    def __bool__(self) -> bool:
        return bool(self._turns)

    def __repr__(self) -> str:
        return repr(self._turns[-3:])


@dataclass
class Story:
    """What was wanted of one ScheduledMachine and what it had, and since when.

    :ivar wanted: ``up``, ``down``, ``killed`` or ``deleted``; ``either`` where the schedule gives no verdict any more
        and its last one may not have been seen, so that a controller may hold another.
    :ivar killed: whether the kill switch was on, deleted or not.
    :ivar held: the last verdict of its schedule that was one.
    :ivar believed: the last that a controller must have seen, because it had the time or acted on it, and those since
        that it may have seen.
    :ivar machines: uids of the Machines that it controls.
    :ivar left: whether anything that was made for it exists.
    :ivar lost: when somebody else last deleted a Machine of its.
    """

    name: str
    wanted: History[str] = field(default_factory=History)
    killed: History[bool] = field(default_factory=History)
    held: bool = False
    believed: set[bool] = field(default_factory=lambda: {False})
    verdicts: History[bool | None] = field(default_factory=History)
    grace: History[float] = field(default_factory=History)
    drain: History[float] = field(default_factory=History)
    paused: History[bool] = field(default_factory=History)
    machines: History[frozenset[str]] = field(default_factory=History)
    left: History[bool] = field(default_factory=History)
    ready: History[bool] = field(default_factory=History)
    lost: float | None = None

    def hear(self, moment: Moment, verdict: bool | None, idle: History[bool]) -> None:
        """What its schedule says from now on."""
        if self.verdicts and (before := self.verdicts.now) is not None and before != verdict:
            begin = self.verdicts.since
            looked = (min(last, moment.at) - max(first, begin) for first, last, nobody in idle.spans() if not nobody)
            had = any(machines and last >= begin for _, last, machines in self.machines.spans())
            if max(looked, default=0.0) >= moment.lag or (before and had):
                self.believed = {before}
            else:
                self.believed = self.believed | {before}
        self.verdicts.turn(moment.at, verdict)
        if verdict is not None:
            self.held = verdict

    def by_schedule(self) -> str:
        """What the schedule wants."""
        if self.verdicts.now is None and len(self.believed) > 1:
            return "either"
        return "up" if self.held else "down"

    def spec(self, at: float, state: str, spec: dict[str, Any], *, paused: bool) -> None:
        self.wanted.turn(at, state)
        self.grace.turn(at, seconds(spec.get("gracefulShutdownTimeout", "5m")))
        self.drain.turn(at, seconds(spec.get("nodeDrainTimeout", "5m")))
        self.paused.turn(at, paused)
        self.killed.turn(at, bool(spec.get("killSwitch")))

    def may_delete(self, moment: Moment, idle: History[bool]) -> bool:
        """Killed or deleted, or down for as long as the grace lasts."""
        return self.wanted.was(moment, "killed", "deleted") or self.grace_over(moment, idle)

    def grace_over(self, moment: Moment, idle: History[bool]) -> bool:
        """B1.21, B5.3: what happened while nobody was there is not known, so status may count on from before."""
        least, since = min(self.grace.lately(moment)), float("inf")
        for begin, end, state in self.wanted.spans():
            if state in ("down", "either"):
                since = min(since, begin)
                if since + least - ROUNDING <= moment.at and end >= moment.at - moment.lag:
                    return True
            elif not _unnoticed(begin, end, idle):
                since = float("inf")
        return False

    def due(self) -> float:
        """When it has to have begun to take the Machine away; never for one that is wanted."""
        if self.wanted.now in ("killed", "deleted"):
            return self.wanted.since
        if self.wanted.now == "down":
            return max(self.wanted.since + self.grace.now, self.grace.since)
        return float("inf")


def _unnoticed(begin: float, end: float, idle: History[bool]) -> bool:
    return any(nobody and first <= begin + LAG and last >= end - LAG for first, last, nobody in idle.spans())
