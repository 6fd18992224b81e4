"""The ways in which a run of the reconciler can end, as values of one type (contract B8.5).

Every outcome becomes a :class:`RunEnd`, and each leads to a true status and to another run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from fivespot.runtime import ConflictError, Object
from fivespot.runtime.errors import StaleReadError

from .act import StepResults
from .common_plans import undecided
from .plan import Plan
from .snapshot import Snapshot
from .status import after_failure
from .timings import Timings

__all__ = ["Ending", "RunEnd", "plan_to_report"]


class Ending(Enum):
    """The ways in which a run can end."""

    CONCLUDED = "concluded"
    """The plan was carried out, or the server refused a step of it."""
    WAITING = "waiting"
    """A cache has not synced; the key is enqueued when it has."""
    CONFLICT = "conflict"
    """An object is not as it was read; the key runs again at once."""
    FAILED = "failed"
    """A request or the run itself failed."""
    GONE = "gone"
    """The ScheduledMachine does not exist any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The end of one run.

    :param obj: the ScheduledMachine as it was last read or written.
    :param snapshot: the input of the decision; None where it could not be read.
    :param plan: the decision; None where there was none.
    :param error: the error that ended the run.
    """

    obj: Object
    snapshot: Snapshot | None = None
    plan: Plan | None = None
    results: StepResults = field(default_factory=StepResults)
    error: Exception | None = None
    gone: bool = False

    @property
    def ending(self) -> Ending:
        if self.gone:
            return Ending.GONE
        if self.error is not None and not self.results.let_go:
            conflict = isinstance(self.error, ConflictError | StaleReadError)
            return Ending.CONFLICT if conflict else Ending.FAILED
        return Ending.WAITING if self.plan is not None and self.plan.quiet else Ending.CONCLUDED


def plan_to_report(end: RunEnd, lasting: float, timings: Timings) -> Plan | None:
    """Return the plan to report after a run; a quiet one where nothing needs to be reported yet, None without any.

    :param lasting: seconds since the first of the runs that ended without a conclusion.
    """
    s, plan = end.snapshot, end.plan
    if s is None or plan is None:
        return None
    match end.ending:
        case Ending.WAITING if lasting >= timings.unreadable_limit:
            message = f"waiting: {plan.why_waiting}"
            report = undecided(s, plan.verdict, plan.want, message)
            return replace(report, events=plan.events, overdue=plan.overdue, wake=plan.wake)
        case Ending.CONFLICT if lasting < timings.conflict_limit:
            return replace(plan, quiet=True, why_waiting=str(end.error))
        case Ending.CONFLICT | Ending.FAILED:
            assert end.error is not None
            return after_failure(s, plan, end.error)
        case _:
            return plan
