"""API types of fivespot: ScheduledMachine and what schedule kinds share. Values only; no behaviour.

`fivespot.api.names` holds every name that other people's manifests and dashboards rely on.
"""

from fivespot.api import names
from fivespot.api.machine_spec import (
    EmbeddedMetadata,
    EmbeddedObject,
    KataReference,
    MachineTemplate,
    NodeTaint,
    ScheduledMachineSpec,
    ScheduleReference,
    SecretKeyReference,
)
from fivespot.api.machine_status import (
    NodeReference,
    ObjectReference,
    Replacements,
    ScheduledMachineStatus,
    ScheduleIdentity,
    SpotScheduleStatus,
)
from fivespot.api.names import ConditionType, Phase, ProviderReason, Reason
from fivespot.api.scheduledmachine import ScheduledMachine
from fivespot.api.types import ApiModel, Condition, Conditions, Duration, Instant, Timestamp, duration_seconds
from fivespot.api.validation import InvalidObject, Problem, validate, validate_machine, validate_spec

__all__ = [
    "ApiModel",
    "Condition",
    "ConditionType",
    "Conditions",
    "Duration",
    "EmbeddedMetadata",
    "EmbeddedObject",
    "Instant",
    "InvalidObject",
    "KataReference",
    "MachineTemplate",
    "NodeReference",
    "NodeTaint",
    "ObjectReference",
    "Phase",
    "Problem",
    "ProviderReason",
    "Reason",
    "Replacements",
    "ScheduleIdentity",
    "ScheduleReference",
    "ScheduledMachine",
    "ScheduledMachineSpec",
    "ScheduledMachineStatus",
    "SecretKeyReference",
    "SpotScheduleStatus",
    "Timestamp",
    "duration_seconds",
    "names",
    "validate",
    "validate_machine",
    "validate_spec",
]
