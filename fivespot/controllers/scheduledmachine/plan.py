"""The result of ``decide``: steps to take, and the state to report afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from fivespot.api import Phase, Reason
from fivespot.contract import EffectiveVerdict
from fivespot.runtime.telemetry import EventNote

from .cluster_api import MachineView
from .snapshot import Child, Slot
from .stored_status import ReplacementCount

__all__ = [
    "CreateChildren",
    "DeleteChildren",
    "DeleteMachine",
    "DropFinalizer",
    "PatchMachine",
    "Plan",
    "Question",
    "Step",
    "Want",
]


class Want(Enum):
    """The deciding party, in order of precedence; ``down`` is the decision."""

    KILLED = Reason.KILL_SWITCH_ACTIVATED.value
    CLUSTER_DELETING = Reason.CLUSTER_DELETING.value
    DISABLED = Reason.SCHEDULE_DISABLED.value
    INACTIVE = Reason.SCHEDULE_INACTIVE.value
    ACTIVE = Reason.SCHEDULE_ACTIVE.value

    @property
    def down(self) -> bool:
        return self is not Want.ACTIVE


@dataclass(frozen=True, slots=True)
class CreateChildren:
    """Create the missing children: bootstrap and infrastructure objects together, then the Machine.

    :param slots: the children to create; the others exist and are reused.
    :param rehearse: send the Machine with ``dryRun=All`` before anything else (it has taints).
    """

    slots: tuple[Slot, ...]
    rehearse: bool


@dataclass(frozen=True, slots=True)
class PatchMachine:
    """Set annotations, labels or spec fields on our Machine.

    :param annotations: keys and values; a value of None removes the annotation.
    :param optional: the steps after it are carried out whether or not it succeeds.
    """

    machine: MachineView
    annotations: tuple[tuple[str, str | None], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    drain_seconds: int | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class DeleteMachine:
    """Delete our Machine at the version that was decided on. Cluster API then drains and removes the rest."""

    machine: MachineView


@dataclass(frozen=True, slots=True)
class DeleteChildren:
    """Delete our leftovers once the Machine is gone, at the versions that were decided on."""

    children: tuple[Child, ...]


@dataclass(frozen=True, slots=True)
class DropFinalizer:
    """Remove our finalizer from the ScheduledMachine. Always the last step.

    :param forced: also when the steps before it failed: the clean-up is overdue, and the administrator asked for it.
    """

    forced: bool = False


Step = CreateChildren | PatchMachine | DeleteMachine | DeleteChildren | DropFinalizer


class Question(Enum):
    """A question that only the API server can answer, because a cache may be behind."""

    MACHINE_GONE = "is the Machine that status or a leftover names gone?"
    LEFTOVERS = "does any kind have leftovers?"


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of one decision.

    :param quiet: status stays as it is, because nothing is known yet (a restart, a cache that has not synced).
    :param stalled: only a person can help.
    :param stopped: an administrator has stopped everything, so the plan has no steps.
    :param settled: the machine is as wanted, and no step is in progress.
    :param wake: the earliest instant at which the decision changes by itself.
    :param recheck: evaluate again within a jittered minute, because no event may tell.
    :param overdue: the deletion of the ScheduledMachine has outlasted its limit.
    :param repeated: the failure was reported before, perhaps with another message.
    :param undecided: nothing could be concluded about the machine; status keeps its last known state.
    :param why_waiting: the reason why a quiet plan waits.
    """

    want: Want
    verdict: EffectiveVerdict
    phase: Phase
    reason: str
    message: str
    steps: tuple[Step, ...] = ()
    ask: Question | None = None
    quiet: bool = False
    settled: bool = False
    stalled: bool = False
    paused: bool = False
    stopped: bool = False
    machine: MachineView | None = None
    bootstrap: Child | None = None
    infrastructure: Child | None = None
    nothing_left: bool = False
    shutdown_requested: datetime | None = None
    next_cleanup: datetime | None = None
    replaced: ReplacementCount = field(default_factory=ReplacementCount)
    replacement: str = ""
    events: tuple[EventNote, ...] = ()
    wake: datetime | None = None
    recheck: bool = False
    overdue: bool = False
    repeated: bool = False
    undecided: bool = False
    why_waiting: str = ""
