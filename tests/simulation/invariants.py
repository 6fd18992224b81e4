"""The invariants of a simulation."""

from __future__ import annotations

from enum import Enum

__all__ = ["Invariant"]


class Invariant(Enum):
    """An invariant; its value describes a violation.

    Most are checked on each write, against the stored state; the last two once the system has settled.
    """

    ONE_MACHINE = "more than one Machine for a ScheduledMachine"
    WANTED = "a Machine created while it is not wanted"
    GRACE = "a Machine deleted before its grace period is over"
    BRAKE = "a lost Machine replaced without back-off"
    FOREIGN = "a foreign object changed"
    MARKED = "a child without the uid of its owner"
    FINALIZER_FIRST = "a child created before the finalizer"
    FINALIZER_LAST = "a ScheduledMachine gone before its children"
    ORDER = "a child deleted while the Machine needs it"
    DRAIN = "a drain that differs from the spec"
    PAUSED = "a write while paused"
    LEASE = "a write without the Lease"
    PRECONDITION = "a write without a precondition"
    SPEC = "a spec, label or annotation changed"
    RIGHTS = "a write of a kind that is not permitted"
    EARLY = "a verdict that the schedule does not give"
    LATE = "overdue work"
    STATUS = "a status that is not true"
    TIMES = "a condition time that does not match its status"
    EMPTY = "a write that changes nothing"
    SETTLED = "a wrong end state"
    REST = "a write while idle"
