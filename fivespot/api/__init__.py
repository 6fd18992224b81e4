"""API types of fivespot: ScheduledMachine, and the types that schedule kinds share. Values only; no behaviour.

`fivespot.api.names` holds every name that other people's manifests and dashboards rely on.
"""

from fivespot.api import names
from fivespot.api.names import ConditionType, Phase, ProviderReason, Reason
from fivespot.api.scheduledmachine import (
    EmbeddedMetadata,
    EmbeddedObject,
    KataReference,
    MachineTemplate,
    NodeReference,
    NodeTaint,
    ObjectReference,
    Replacements,
    ScheduledMachine,
    ScheduledMachineSpec,
    ScheduledMachineStatus,
    ScheduleIdentity,
    ScheduleReference,
    SecretKeyReference,
    SpotScheduleStatus,
)
from fivespot.api.types import ApiModel, Conditions, Duration, Instant, StatusCondition, Timestamp, duration_seconds
from fivespot.api.validation import InvalidObject, Problem, validate, validate_machine, validate_spec

__all__ = [
    "ApiModel",
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
    "StatusCondition",
    "Timestamp",
    "duration_seconds",
    "names",
    "validate",
    "validate_machine",
    "validate_spec",
]
