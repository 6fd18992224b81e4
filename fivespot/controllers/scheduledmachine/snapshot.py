"""The snapshot that ``decide`` judges: all of its inputs, read once, at one instant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from fivespot.api import names
from fivespot.contract import Resolution
from fivespot.runtime import GroupKind, Head, Resource

from .cluster_api import ClusterApi, ClusterView, Known, MachineView
from .holds import CreationHold
from .ownership import machine_is_ours
from .spec import SpecView
from .stored_status import StoredStatus
from .timings import Timings

__all__ = [
    "Answers",
    "Child",
    "Refusal",
    "Slot",
    "Snapshot",
    "TemplateState",
    "World",
]


class Slot(Enum):
    """The two children beside the Machine."""

    BOOTSTRAP = "bootstrap"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, slots=True)
class TemplateState:
    """Whether objects of a template's kind can be created.

    :param usable: NO where the kind is not installed, not served, or lacks the contract label; ``why`` says which.
    """

    usable: Known
    why: str = ""


@dataclass(frozen=True, slots=True)
class Child:
    """A bootstrap or infrastructure object that has our name.

    :param ours: by the rules of ownership; a foreign one only matters because it occupies the name.
    :param slot: its role; of an object whose kind only an older template named, the role in that one.
    """

    slot: Slot
    resource: Resource
    head: Head
    ours: bool

    @property
    def group_kind(self) -> GroupKind:
        return self.resource.group_kind

    @property
    def deleting(self) -> bool:
        return self.head.deleting

    @property
    def template_hash(self) -> str:
        """Return the hash of the template that it was created from."""
        return self.head.annotations.get(names.ANNOTATION_TEMPLATE_HASH, "")

    @property
    def machine_uid(self) -> str:
        """Return the uid of the Machine that has adopted it; "" if none has."""
        controller = self.head.controller
        return controller.uid if controller is not None else ""

    def __str__(self) -> str:
        return f"{self.group_kind} {self.head.name}"


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to live requests that ``decide`` asked for.

    :param gone: uids of Machines that do not exist any more, by the API server's own answer.
    :param searched: every kind that a child can have was listed by label.
    :param found: what that search found beside the cached objects.
    """

    gone: frozenset[str] = frozenset()
    searched: bool = False
    found: tuple[Child, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A step that the API server refused, kept until something relevant changes.

    :param fingerprint: of everything that could make the next try end differently.
    :param due: monotonic seconds of the next try.
    :param optional: the step was optional, so the steps after it are not held back.
    """

    fingerprint: str
    attempt: int
    due: float
    reason: str
    message: str
    stalled: bool
    optional: bool = False
    cause: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """The caches' view of everything but the ScheduledMachine itself.

    :param machine: the Machine that has our name, ours or not; None when there is none.
    :param machine_why: the reason while ``machine_known`` is UNKNOWN.
    :param children: objects of kinds that the template, the Machine or status names.
    :param children_known: UNKNOWN while an informer of one of those kinds has not synced.
    :param children_error: reading one of those kinds is refused, so it will not sync by itself.
    """

    resolution: Resolution
    capi: ClusterApi
    cluster: ClusterView
    machine: MachineView | None = None
    machine_known: Known = Known.YES
    machine_why: str = ""
    children: tuple[Child, ...] = ()
    children_known: Known = Known.YES
    children_why: str = ""
    children_error: bool = False
    templates: TemplateState = field(default_factory=lambda: TemplateState(Known.YES))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One ScheduledMachine and its world at one instant.

    :param monotonic: seconds on the loop's clock at ``now``.
    :param refusal: the last refused step, while nothing relevant has changed since.
    :param unreadable_for: seconds for which the provider has been unreadable; 0 while it is readable.
    :param unresolved_for: seconds since the provider was seen to give no verdict.
    :param fresh: the object had no finalizer of ours before this run, so no child can exist yet.
    :param force_finalizer: remove the finalizer of an overdue deletion instead of waiting longer.
    :param deletion_wait: seconds for which the administrator's limit holds a deletion by schedule back.
    :param shortest_grace: the administrator's shortest grace for shutdowns by schedule.
    :param stopped: the administrator's stop of everything, with its reason; "" where there is none.
    :param creation_hold: the reason for which nothing is created for this machine yet.
    :param cancelled_uid: the Machine whose shutdown this process cancelled a moment ago: a deletion that another
        process had sent before may still arrive.
    """

    now: datetime
    monotonic: float
    head: Head
    spec: SpecView
    stored: StoredStatus
    world: World
    timings: Timings
    answers: Answers = field(default_factory=Answers)
    refusal: Refusal | None = None
    unreadable_for: float = 0.0
    unresolved_for: float = math.inf
    fresh: bool = False
    force_finalizer: bool = False
    deletion_wait: float = 0.0
    shortest_grace: timedelta = timedelta()
    stopped: str = ""
    creation_hold: CreationHold | None = None
    cancelled_uid: str = ""

    @property
    def machine(self) -> MachineView | None:
        """Return the Machine that has our name, if it is ours."""
        found = self.world.machine
        return found if found is not None and machine_is_ours(found.head, self.head.uid) else None

    @property
    def disowned(self) -> MachineView | None:
        """Return the Machine that has our name, if we created it and its owner reference was removed since."""
        found = self.world.machine
        if found is None or self.machine is not None or found.head.controller is not None:
            return None
        return found if found.head.annotations.get(names.ANNOTATION_UID) == self.head.uid else None

    @property
    def shutdown_begun(self) -> datetime | None:
        """Return the beginning of our own shutdown, None if there is none. An instant in the future (a clock was set
        back) counts as now.
        """
        begun = self.stored.shutdown_requested
        return begun if begun is None or begun <= self.now + timedelta(seconds=1) else None

    @property
    def paused(self) -> bool:
        machine = self.machine
        return (
            self.world.cluster.paused
            or names.ANNOTATION_PAUSED in self.head.annotations
            or (machine is not None and machine.paused)
        )

    def unseen_machines(self, uids: Iterable[str]) -> frozenset[str]:
        """Return the uids, of those given, that are neither in the cache nor known to be gone.

        Caches are not of one instant: what a Machine has adopted may be seen before the Machine.
        """
        seen = self.world.machine.head.uid if self.world.machine is not None else ""
        return frozenset(uids) - self.answers.gone - {seen, ""}

    @property
    def ours(self) -> tuple[Child, ...]:
        return tuple(child for child in self.world.children if child.ours)
