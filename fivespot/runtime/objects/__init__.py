"""Objects of the Kubernetes API as the runtime handles them: names, heads, bytes, patches and conditions."""

from .callables import same_function
from .conditions import Condition, ConditionStatus, find_condition, set_conditions
from .kinds import KindAbsent, KindState, KindUnknown
from .object import Change, ChangeType, Head, Object, decode_head, head_of, owner_reference, share
from .patch import Patch, finalizer_patch, json_patch, merge_diff, merge_patch
from .resource import CRDS, GroupKind, Key, Resource, group_of, version_of
from .selection import (
    EVERYTHING,
    FULL,
    METADATA,
    DoesNotExist,
    Exists,
    In,
    NotIn,
    Projection,
    Requirement,
    Selector,
)
from .timestamps import parse_rfc3339, rfc3339, rfc3339_micro
from .wire import (
    OwnerReference,
    PartialMeta,
    WireMeta,
    decode,
    decode_meta,
    elements,
    encode_exact,
    members,
    parse_version,
)

__all__ = [
    "CRDS",
    "EVERYTHING",
    "FULL",
    "METADATA",
    "Change",
    "ChangeType",
    "Condition",
    "ConditionStatus",
    "DoesNotExist",
    "Exists",
    "GroupKind",
    "Head",
    "In",
    "Key",
    "KindAbsent",
    "KindState",
    "KindUnknown",
    "NotIn",
    "Object",
    "OwnerReference",
    "PartialMeta",
    "Patch",
    "Projection",
    "Requirement",
    "Resource",
    "Selector",
    "WireMeta",
    "decode",
    "decode_head",
    "decode_meta",
    "elements",
    "encode_exact",
    "finalizer_patch",
    "find_condition",
    "group_of",
    "head_of",
    "json_patch",
    "members",
    "merge_diff",
    "merge_patch",
    "owner_reference",
    "parse_rfc3339",
    "parse_version",
    "rfc3339",
    "rfc3339_micro",
    "same_function",
    "set_conditions",
    "share",
    "version_of",
]
