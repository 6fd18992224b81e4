"""What the witness watches over, by name."""

from __future__ import annotations

from enum import Enum

__all__ = ["Invariant"]


class Invariant(Enum):
    """One thing that fivespot promises; the value is what the witness calls its breach.

    Most are judged at the moment of a write, from what is stored; the last ones when nothing is to happen any more.
    """

    ONE_MACHINE = "two Machines for one ScheduledMachine"
    WANTED = "a Machine that nobody wants"
    GRACE = "a Machine taken away before its time"
    BRAKE = "a lost Machine replaced at once"
    FOREIGN = "somebody else's object touched"
    MARKED = "a child that does not say whose it is"
    FINALIZER_FIRST = "a child before the finalizer"
    FINALIZER_LAST = "gone before its children"
    ORDER = "a child deleted while the Machine needs it"
    DRAIN = "a drain other than asked for"
    PAUSED = "work on what is paused"
    LEASE = "work without the lease"
    PRECONDITION = "a write that may hit another object"
    SPEC = "a spec, label or annotation edited"
    RIGHTS = "a write that is none of its business"
    EARLY = "a verdict that the schedule does not give"
    LATE = "not done in time"
    TRUTH = "a status that lies"
    TIMES = "a time that moved, or did not, against its condition"
    EMPTY = "a write that changes nothing"
    SETTLED = "not as it has to be in the end"
    REST = "writes at rest"
