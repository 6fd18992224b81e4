"""The ScheduledMachine kind. Docstrings of fields are the texts that `kubectl explain` shows."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from fivespot.api.names import (
    GROUP,
    KIND,
    LABEL_CLUSTERCTL,
    LABEL_CLUSTERCTL_MOVE_HIERARCHY,
    MAX_NAME_LENGTH,
    MAX_TAINTS,
    PLURAL,
    PROVIDER_GROUP,
    RESERVED_TAINT_PREFIXES,
    SINGULAR,
    VERSION,
)
from fivespot.api.types import (
    DNS_SUBDOMAIN_PATTERN,
    KIND_PATTERN,
    LABEL_VALUE_PATTERN,
    QUALIFIED_NAME_PATTERN,
    Annotations,
    ApiModel,
    Conditions,
    Duration,
    Labels,
    Timestamp,
    starts_with_any,
)
from fivespot.runtime.crd import Cel, Column, CrdVersion, crd, matches, preserve_unknown_fields, undefaulted


class ScheduleReference(ApiModel):
    """The schedule that decides when the machine exists, in the ScheduledMachine's own namespace."""

    api_version: Annotated[
        str,
        Field(
            min_length=1,
            max_length=253,
            pattern=r"^spotschedules\.5spot\.finos\.org/[A-Za-z0-9][A-Za-z0-9.-]*$",
        ),
        Cel(
            f"self.startsWith('{PROVIDER_GROUP}/')",
            f"schedule.apiVersion must be of the group {PROVIDER_GROUP}, such as {PROVIDER_GROUP}/v1alpha1",
            check=lambda value: value.startswith(f"{PROVIDER_GROUP}/"),
        ),
    ]
    """Group and version of the schedule. The group is spotschedules.5spot.finos.org; the version is any that is
    served.
    """
    kind: Annotated[str, Field(min_length=1, max_length=63, pattern=KIND_PATTERN)]
    """Kind of the schedule, such as TimeBasedSpotSchedule."""
    name: Annotated[str, Field(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN_PATTERN)]
    """Name of the schedule."""


class EmbeddedMetadata(ApiModel):
    """Metadata of the object to create. Name and namespace are the ScheduledMachine's own and cannot be set."""

    RULES = (
        Cel(
            "!has(self.name) && !has(self.__namespace__)",
            "metadata.name and metadata.namespace must not be set: they are the ScheduledMachine's own",
            check=lambda metadata: metadata.name is None and metadata.namespace is None,
            reason="FieldValueForbidden",
        ),
    )

    labels: Labels | None = None
    """Labels to set on the object, beside those that the controller sets."""
    annotations: Annotations | None = None
    """Annotations to set on the object, beside those that the controller sets."""
    name: Annotated[str, Field(max_length=253)] | None = None
    """Must not be set: the object takes the ScheduledMachine's name."""
    namespace: Annotated[str, Field(max_length=253)] | None = None
    """Must not be set: the object lives in the ScheduledMachine's namespace."""


class EmbeddedObject(ApiModel):
    """A Cluster API provider object to create with the machine."""

    api_version: Annotated[
        str,
        Field(max_length=253),
        matches(
            "^[a-z0-9.-]+/[a-z0-9]+$",
            "must be a group and a version such as infrastructure.cluster.x-k8s.io/v1beta2; core versions are refused",
        ),
    ]
    """Group and version of the object."""
    kind: Annotated[str, Field(min_length=1, max_length=63)]
    """Kind of the object."""
    metadata: EmbeddedMetadata | None = None
    """Labels and annotations of the object."""
    spec: Annotated[dict[str, Any], preserve_unknown_fields()]
    """The object's spec, used as it is."""


class MachineTemplate(ApiModel):
    """Settings of the Cluster API Machine."""

    labels: Labels | None = None
    """Labels of the Machine. Cluster API copies those under node-role.kubernetes.io/, node-restriction.kubernetes.io/
    and node.cluster.x-k8s.io/ to the Node."""
    annotations: Annotations | None = None
    """Annotations of the Machine."""
    version: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """Kubernetes version of the Machine, such as v1.34.4."""
    failure_domain: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """Failure domain that the Machine is created in."""


class NodeTaint(ApiModel):
    """A taint that the machine's Node carries from the start."""

    key: Annotated[
        str,
        Field(min_length=1, max_length=253, pattern=QUALIFIED_NAME_PATTERN),
        Cel(
            f"!({starts_with_any('self', RESERVED_TAINT_PREFIXES)})",
            f"taint keys must not begin with the reserved prefixes {', '.join(RESERVED_TAINT_PREFIXES)}",
            check=lambda value: not value.startswith(RESERVED_TAINT_PREFIXES),
            reason="FieldValueForbidden",
        ),
    ]
    """Key of the taint, such as example.com/spot."""
    value: Annotated[str, Field(max_length=63, pattern=LABEL_VALUE_PATTERN)] | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """Effect on pods that do not tolerate the taint."""


NodeTaints = Annotated[
    list[NodeTaint],
    Field(max_length=MAX_TAINTS),
    Cel(
        "self.all(taint, self.exists_one(other, other.key == taint.key && other.effect == taint.effect))",
        "nodeTaints must not hold the same key with the same effect twice",
        check=lambda taints: len({(taint.key, taint.effect) for taint in taints}) == len(taints),
    ),
]


class SecretKeyReference(ApiModel):
    """A key of a Secret in the ScheduledMachine's namespace."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253)] = "value"
    """Key within the Secret."""


class KataReference(ApiModel):
    """A reference to the Kata Containers configuration of the node agent."""

    kind: Literal["ConfigMap", "Secret"]
    """ConfigMap or Secret."""
    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the object."""
    namespace: Annotated[str, Field(min_length=1, max_length=63)] = "5spot-system"
    """Namespace of the object."""
    key: Annotated[str, Field(min_length=1, max_length=253)] = "kata-containers.toml"
    """Key within the object."""
    restart_service: Annotated[str, Field(min_length=1, max_length=253)] = "k0sworker.service"
    """The systemd unit to restart after a change."""


class ScheduledMachineSpec(ApiModel):
    """The desired machine and the schedule that it follows."""

    schedule: ScheduleReference
    """The schedule that decides when the machine exists. While it cannot be read, nothing changes."""
    enabled: bool = True
    """False removes the machine, after grace period and drain, whatever the schedule says."""
    cluster_name: Annotated[
        str,
        Field(min_length=1, max_length=63, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$"),
        Cel(
            "self == oldSelf",
            "clusterName is immutable: machines of the old cluster would be orphaned; create a new ScheduledMachine",
        ),
    ]
    """Name of the Cluster API Cluster that the machine joins. It cannot be changed."""
    bootstrap_spec: EmbeddedObject
    """The bootstrap object to create, such as a K0sWorkerConfig."""
    infrastructure_spec: EmbeddedObject
    """The infrastructure object to create, such as a RemoteMachine."""
    machine_template: MachineTemplate | None = None
    """Labels, annotations and version of the Machine."""
    priority: Annotated[int, Field(ge=0, le=255)] = 50
    """Order among the machines of a namespace that change at the same time; higher values go first."""
    graceful_shutdown_timeout: Duration = "5m"
    """Time for which a machine is kept after it is no longer wanted, before it is drained: a whole number of s, m or
    h, at most 24h; 0s is valid.
    """
    node_drain_timeout: Duration = "5m"
    """Limit on the time for draining: a whole number of s, m or h, at most 24h; 0s means that the node is not
    drained.
    """
    kill_switch: bool = False
    """True removes the machine at once, without grace period and drain."""
    node_taints: Annotated[NodeTaints, undefaulted()] = Field(default=[])
    """Taints of the machine's Node; they need Cluster API's MachineTaintPropagation feature."""
    kill_if_commands: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=100), undefaulted()
    ] = Field(default=[])
    """Accepted for the existing 5-Spot's node agent; not acted on, which condition UnsupportedFields says."""
    kubeconfig_secret_ref: SecretKeyReference | None = None
    """Accepted for the existing 5-Spot's node agent; not acted on, which condition UnsupportedFields says."""
    kata: KataReference | None = None
    """Accepted for the existing 5-Spot's node agent; not acted on, which condition UnsupportedFields says."""


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
    """The kind and name of the schedule that a verdict belongs to."""

    kind: str | None = None
    """Kind of the schedule."""
    name: str | None = None
    """Name of the schedule."""


class SpotScheduleStatus(ApiModel):
    """The last verdict of the schedule, which is held while the schedule gives none."""

    resolved: bool | None = None
    """Whether the schedule can be read and is ready."""
    active: bool | None = None
    """The last verdict of the schedule, which is held while it is not resolved. Absent if there never was one."""
    reason: str | None = None
    """Resolved, or the reason why it is not."""
    message: str | None = None
    """Details for people."""
    provider_generation: int | None = None
    """The schedule's own status.observedGeneration."""
    last_transition_time: Timestamp | None = None
    """The schedule's own status.lastTransitionTime."""
    reference: ScheduleIdentity | None = None
    """The schedule that gave the verdict; a changed reference does not inherit it."""
    reference_changed_time: Timestamp | None = None
    """Time at which spec.schedule changed to this schedule, while it has not given a verdict yet."""


class Replacements(ApiModel):
    """The number of replacements that no schedule asked for, which delays the next one."""

    count: int | None = None
    """Replacements since the machine was last ready for 10 minutes."""
    last_time: Timestamp | None = None
    """Time at which the last one was begun."""
    uid: str | None = None
    """Uid of the Machine that was counted last, so that each is counted once."""


class ScheduledMachineStatus(ApiModel):
    """The observed state of the machine, and the reason for it."""

    phase: str | None = None
    """Pending, Active, ShuttingDown, Inactive, Disabled, Terminated, EmergencyRemove or Error."""
    message: str | None = None
    """The phase in a sentence."""
    conditions: Conditions | None = None
    """Ready: settled as wanted. MachineReady: the machine's node is ready. SpotScheduleResolved: the schedule can be
    read. Scheduled: whether a machine is wanted, and who decided."""
    in_schedule: bool | None = None
    """The schedule's verdict, before enabled and killSwitch are considered."""
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
    """Time at which the current or last Machine was created."""
    next_cleanup: Timestamp | None = None
    """Time at which the grace period ends and the machine is drained."""
    shutdown_requested_time: Timestamp | None = None
    """Time from which the machine has not been wanted; the grace period counts from it."""
    spot_schedule: SpotScheduleStatus | None = None
    """The schedule's verdict."""
    replacements: Replacements | None = None
    """Replacements that the schedule did not ask for."""


class ScheduledMachine(ApiModel):
    """A Cluster API machine that exists while a schedule is active. The ScheduledMachine describes the machine: a
    bootstrap object, an infrastructure object and the Machine that joins them to a cluster.
    """

    spec: ScheduledMachineSpec
    """The desired machine and the schedule that it follows."""
    status: ScheduledMachineStatus | None = None
    """The observed state of the machine, and the reason for it."""


NAME_RULE: Final = Cel(
    f"oldSelf.hasValue() || size(self.metadata.name) <= {MAX_NAME_LENGTH}",
    f"metadata.name must be at most {MAX_NAME_LENGTH} characters: it becomes a label value",
    optional_old_self=True,
)
"""Applies to creation only: for an older object with a longer name, status and finalizer must remain writable."""

COLUMNS: Final = (
    Column("Phase", "string", ".status.phase"),
    Column("Ready", "boolean", ".status.ready"),
    Column("InSchedule", "boolean", ".status.inSchedule"),
    Column("Enabled", "boolean", ".spec.enabled"),
    Column("Schedule", "string", ".spec.schedule.kind"),
    Column("KillSwitch", "boolean", ".spec.killSwitch"),
    Column("Age", "date", ".metadata.creationTimestamp"),
    Column("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
    Column("NextCleanup", "string", ".status.nextCleanup", priority=1),
    Column("Message", "string", ".status.message", priority=1),
)


def definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of ScheduledMachine."""
    return crd(
        group=GROUP,
        kind=KIND,
        plural=PLURAL,
        singular=SINGULAR,
        short_names=("sm",),
        columns=COLUMNS,
        # Labels for `clusterctl move`: objects of the kind, and everything that they own, move along.
        labels={LABEL_CLUSTERCTL: "", LABEL_CLUSTERCTL_MOVE_HIERARCHY: ""},
        versions=(CrdVersion(VERSION, ScheduledMachine, rules=(NAME_RULE,)),),
    )
