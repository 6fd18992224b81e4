"""Objects of the Kubernetes API as the runtime handles them: names, heads, bytes, patches and conditions."""

from .conditions import Condition, ConditionStatus, find_condition, rfc3339, set_conditions
from .kinds import KindAbsent, KindState, KindUnknown
from .object import (
    Change,
    ChangeType,
    Head,
    Object,
    OwnerReference,
    WireMeta,
    decode_head,
    decode_meta,
    head_of,
    parse_version,
    share,
)
from .patch import Patch, finalizer_patch, json_patch, merge_diff, merge_patch
from .resource import GroupKind, Key, Resource, group_of, version_of
from .selection import EVERYTHING, FULL, METADATA, Projection, Selector, exact

__all__ = [
    "EVERYTHING",
    "FULL",
    "METADATA",
    "Change",
    "ChangeType",
    "Condition",
    "ConditionStatus",
    "GroupKind",
    "Head",
    "Key",
    "KindAbsent",
    "KindState",
    "KindUnknown",
    "Object",
    "OwnerReference",
    "Patch",
    "Projection",
    "Resource",
    "Selector",
    "WireMeta",
    "decode_head",
    "decode_meta",
    "exact",
    "finalizer_patch",
    "find_condition",
    "group_of",
    "head_of",
    "json_patch",
    "merge_diff",
    "merge_patch",
    "parse_version",
    "rfc3339",
    "set_conditions",
    "share",
    "version_of",
]
