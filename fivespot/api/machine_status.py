"""`ScheduledMachine.status`: the report, and the small memory that a reconcile needs.

Nothing here is validated beyond its type: a status that an older version or another writer left behind must never make
an object unwritable.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fivespot.api.types import ApiModel, Conditions, Timestamp


class ObjectReference(ApiModel):
    """An object that belongs to the machine."""

    api_version: str | None = None
    """Group and version that the object was written in."""
    kind: str | None = None
    """Kind of the object."""
    name: str | None = None
    """Name of the object."""
    namespace: str | None = None
    """Namespace of the object."""
    uid: str | None = None
    """Uid of the object."""


class NodeReference(ApiModel):
    """The Node in the workload cluster."""

    api_version: str | None = None
    """Version of the Node."""
    kind: str | None = None
    """Always Node."""
    name: str | None = None
    """Name of the Node."""
    uid: str | None = None
    """Uid of the Node, where Cluster API tells it."""


class ScheduleIdentity(ApiModel):
    """Which schedule a verdict belongs to: its kind and name."""

    kind: str | None = None
    """Kind of the schedule."""
    name: str | None = None
    """Name of the schedule."""


class SpotScheduleStatus(ApiModel):
    """What the schedule said last, and what is held while it says nothing."""

    resolved: bool | None = None
    """Whether the schedule can be read and is ready."""
    active: bool | None = None
    """The last verdict of the schedule; held while it is not resolved. Absent: it never gave one."""
    reason: str | None = None
    """Resolved, or why not."""
    message: str | None = None
    """Details for people."""
    provider_generation: int | None = None
    """The schedule's own status.observedGeneration."""
    last_transition_time: Timestamp | None = None
    """The schedule's own status.lastTransitionTime."""
    reference: ScheduleIdentity | None = None
    """The schedule that this was read from; a changed reference does not inherit it."""


class Replacements(ApiModel):
    """How often a machine was replaced without the schedule asking for it; the brake on doing so again."""

    count: int | None = None
    """Replacements since the machine was last ready for 10 minutes."""
    last_time: Timestamp | None = None
    """When the last one was begun."""
    uid: str | None = None
    """Uid of the Machine that the count was last raised for, so that each is counted once."""


class ScheduledMachineStatus(ApiModel):
    """What exists now, and why."""

    phase: str | None = None
    """Pending, Active, ShuttingDown, Inactive, Disabled, Terminated, EmergencyRemove or Error."""
    message: str | None = None
    """The phase in a sentence."""
    conditions: Conditions | None = None
    """Ready: settled as wanted. MachineReady: the machine's node is ready. SpotScheduleResolved: the schedule can be
    read. Scheduled: whether a machine is wanted, and who decided."""
    in_schedule: bool | None = None
    """What the schedule wants, before enabled and killSwitch are considered."""
    ready: bool | None = None
    """Whether the machine's node is ready."""
    provider_id: Annotated[str | None, Field(alias="providerID")] = None
    """The machine's identity at its infrastructure provider."""
    node_ref: NodeReference | None = None
    """The machine's Node."""
    machine_ref: ObjectReference | None = None
    """The Cluster API Machine."""
    bootstrap_ref: ObjectReference | None = None
    """The bootstrap object."""
    infrastructure_ref: ObjectReference | None = None
    """The infrastructure object."""
    observed_generation: int | None = None
    """The metadata.generation that this status was computed for."""
    last_scheduled_time: Timestamp | None = None
    """When the present or last Machine was created."""
    next_cleanup: Timestamp | None = None
    """When the grace period ends and the machine is drained."""
    shutdown_requested_time: Timestamp | None = None
    """When the machine was first no longer wanted; the grace period counts from here."""
    spot_schedule: SpotScheduleStatus | None = None
    """The schedule's verdict."""
    replacements: Replacements | None = None
    """Replacements that the schedule did not ask for."""
