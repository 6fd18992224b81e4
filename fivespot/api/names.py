"""The names that users' manifests, dashboards and scripts rely on.

They are exactly those of 5-Spot, whose objects must apply unchanged; names marked *ours* are additions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

GROUP: Final = "5spot.finos.org"
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "ScheduledMachine"
PLURAL: Final = "scheduledmachines"
SINGULAR: Final = "scheduledmachine"

PROVIDER_GROUP: Final = "spotschedules.5spot.finos.org"
"""Any namespaced kind of this group whose controller writes `status.active` is a schedule provider."""
PROVIDER_VERSION: Final = "v1alpha1"
PROVIDER_API_VERSION: Final = f"{PROVIDER_GROUP}/{PROVIDER_VERSION}"

CLUSTER_API_GROUP: Final = "cluster.x-k8s.io"
BOOTSTRAP_GROUPS: Final = ("bootstrap.cluster.x-k8s.io", "k0smotron.io")
"""Groups that `spec.bootstrapSpec` may name; held by the admission policy, which an administrator may widen."""
INFRASTRUCTURE_GROUPS: Final = ("infrastructure.cluster.x-k8s.io", "k0smotron.io")
"""Groups that `spec.infrastructureSpec` may name; held by the admission policy, which an administrator may widen."""

FINALIZER: Final = f"{GROUP}/scheduledmachine"
FIELD_MANAGER: Final = "5spot-controller"
EVENT_REPORTER: Final = "5spot-controller"
SYSTEM_NAMESPACE: Final = "5spot-system"
LEADER_LEASE: Final = "5spot-leader"
"""The Lease of a manager that runs the machine reconciler; 5-Spot uses the same, so that the two exclude each other.
"""

LABEL_MACHINE: Final = f"{GROUP}/scheduled-machine"
"""On the Machine, bootstrap and infrastructure objects: the ScheduledMachine's name."""
LABEL_CLUSTER: Final = "cluster.x-k8s.io/cluster-name"
LABEL_AGGREGATE: Final = f"{GROUP}/aggregate-to-controller"
"""A ClusterRole with this label set to "true" adds its rules to the machine controller's."""

ANNOTATION_UID: Final = f"{GROUP}/scheduled-machine-uid"
"""Ours, on all three children: the uid of their ScheduledMachine."""
ANNOTATION_SCHEDULE_REF: Final = f"{GROUP}/schedule-ref"
"""Ours: `Kind/name` of the schedule for which the children were created."""
ANNOTATION_TEMPLATE_HASH: Final = f"{GROUP}/template-hash"
"""Ours: the first 16 hex digits of the SHA-256 of the template that the children were created from."""
ANNOTATION_DRAIN_EXCLUDED_BY: Final = f"{GROUP}/drain-excluded-by"
"""Ours, on a Machine: the reason for which its drain is excluded, so that it can be undone."""
ANNOTATION_RECONCILERS: Final = f"{GROUP}/reconcilers"
"""Ours, on a Lease: the holder's reconcilers, so that deployments which share a Lease by mistake notice it."""
ANNOTATION_STOP: Final = f"{GROUP}/stop"
"""Ours, on the manager's Lease: while it is there nothing is created or deleted, kill switches excepted."""
ANNOTATION_PAUSED: Final = "cluster.x-k8s.io/paused"

ADMISSION_POLICY: Final = "scheduledmachine-validation"
"""The ValidatingAdmissionPolicy, and its binding, that judge what users write."""
ADMISSION_POLICIES: Final = (ADMISSION_POLICY, "scheduledmachine-controller")
"""The same, and the policy that bounds the manager's own account."""

LABEL_CLUSTERCTL: Final = "clusterctl.cluster.x-k8s.io"
LABEL_CLUSTERCTL_MOVE: Final = "clusterctl.cluster.x-k8s.io/move"
LABEL_CLUSTERCTL_MOVE_HIERARCHY: Final = "clusterctl.cluster.x-k8s.io/move-hierarchy"

RESERVED_PREFIXES: Final = ("kubernetes.io/", "k8s.io/", "cluster.x-k8s.io/", "5spot.finos.org/")
"""Plain string prefixes of label and annotation keys that templates may not set."""
RESERVED_TAINT_PREFIXES: Final = (
    "5spot.finos.org/",
    "kubernetes.io/",
    "node.kubernetes.io/",
    "node-role.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node.cluster.x-k8s.io/",
)
"""Plain string prefixes of taint keys that `nodeTaints` may not set; the last two are Cluster API's own."""

MAX_NAME_LENGTH: Final = 63
"""A ScheduledMachine's name becomes a label value."""
MAX_TAINTS: Final = 64


class Phase(StrEnum):
    """`status.phase`: reported for people; no decision depends on it."""

    PENDING = "Pending"
    ACTIVE = "Active"
    SHUTTING_DOWN = "ShuttingDown"
    INACTIVE = "Inactive"
    DISABLED = "Disabled"
    TERMINATED = "Terminated"
    EMERGENCY_REMOVE = "EmergencyRemove"
    ERROR = "Error"


class ConditionType(StrEnum):
    """The condition types that the machine controller writes; those of other writers survive beside them."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    MACHINE_READY = "MachineReady"
    SPOT_SCHEDULE_RESOLVED = "SpotScheduleResolved"
    SCHEDULED = "Scheduled"
    UP_TO_DATE = "UpToDate"
    PAUSED = "Paused"
    UNSUPPORTED_FIELDS = "UnsupportedFields"


class Reason(StrEnum):
    """Reasons of conditions and events; those of resolving a schedule reference are in `fivespot.contract`."""

    # Those of 5-Spot. Some are not written by this controller and exist for dashboards and scripts that know them.
    RECONCILE_SUCCEEDED = "ReconcileSucceeded"
    RECONCILE_FAILED = "ReconcileFailed"
    SCHEDULE_ACTIVE = "ScheduleActive"
    SCHEDULE_INACTIVE = "ScheduleInactive"
    SCHEDULE_DISABLED = "ScheduleDisabled"
    MACHINE_CREATED = "MachineCreated"
    MACHINE_DELETED = "MachineDeleted"
    MACHINE_READY = "MachineReady"
    KILL_SWITCH_ACTIVATED = "KillSwitchActivated"
    AWAITING_SCHEDULE = "AwaitingSchedule"
    GRACE_PERIOD_ACTIVE = "GracePeriodActive"
    REFERENCES_INVALID = "ReferencesInvalid"
    NODE_DRAINING = "NodeDraining"
    NODE_DRAINED = "NodeDrained"
    NODE_DRAIN_FAILED = "NodeDrainFailed"
    MACHINE_CREATION_FAILED = "MachineCreationFailed"
    MACHINE_DELETION_FAILED = "MachineDeletionFailed"
    EMERGENCY_RECLAIM = "EmergencyReclaim"
    # Ours.
    MACHINE_DELETING = "MachineDeleting"
    MACHINE_LOST = "MachineLost"
    WAITING_FOR_DELETION = "WaitingForDeletion"
    REMEDIATING = "Remediating"
    DELETING_LEFTOVERS = "DeletingLeftovers"
    DELETION_RATE_LIMITED = "DeletionRateLimited"
    ACTIVATION_RATE_LIMITED = "ActivationRateLimited"
    NAMESPACE_LIMIT_REACHED = "NamespaceLimitReached"
    ADMISSION_POLICY_MISSING = "AdmissionPolicyMissing"
    STOPPED = "Stopped"
    RESUMED = "Resumed"
    SWITCHED = "Switched"
    CLUSTER_NOT_FOUND = "ClusterNotFound"
    CLUSTER_DELETING = "ClusterDeleting"
    NODE_TAINTS_UNSUPPORTED = "NodeTaintsUnsupported"
    SCHEDULE_REFERENCE_UNRESOLVED = "ScheduleReferenceUnresolved"
    TEMPLATE_CHANGED = "TemplateChanged"
    NO_TEMPLATE_HASH = "NoTemplateHash"


class ProviderReason(StrEnum):
    """Ready reasons of the schedule kinds shipped here."""

    WINDOW_OPEN = "WindowOpen"
    WINDOW_CLOSED = "WindowClosed"
    SESSION_OPEN = "SessionOpen"
    SESSION_CLOSED = "SessionClosed"
