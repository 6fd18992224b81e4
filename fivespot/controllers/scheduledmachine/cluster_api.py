"""Reads the fields of Machines and Clusters that are mirrored or decided on, at either version of Cluster API."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

from fivespot.api import names
from fivespot.contract import clean
from fivespot.runtime import GroupKind, Head, Object, Projection
from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import encode_exact, group_of

from .children import EXCLUDE_DRAIN, EXCLUDE_VOLUMES
from .instants import read_instant

__all__ = [
    "CLUSTER",
    "MACHINE",
    "ChildRef",
    "ClusterApi",
    "ClusterView",
    "Known",
    "MachineView",
    "read_cluster",
    "read_machine",
]

SKIP_REMEDIATION: Final = "cluster.x-k8s.io/skip-remediation"

_ANNOTATIONS: Final = frozenset(
    {
        names.ANNOTATION_UID,
        names.ANNOTATION_SCHEDULE_REF,
        names.ANNOTATION_TEMPLATE_HASH,
        names.ANNOTATION_PAUSED,
        names.ANNOTATION_DRAIN_EXCLUDED_BY,
        EXCLUDE_DRAIN,
        EXCLUDE_VOLUMES,
        SKIP_REMEDIATION,
    }
)

_CONDITIONS: Final = frozenset({"Ready", "Deleting", "OwnerRemediated", "HealthCheckSucceeded"})


class Known(Enum):
    """An answer from the caches, which may not have it yet."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ClusterApi:
    """Whether Cluster API is installed, and the version at which its Machines are used."""

    installed: Known
    version: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The Cluster that the machine belongs to."""

    exists: Known
    paused: bool = False
    deleting: bool = False
    why: str = ""


class _Ref(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    kind: str = ""
    name: str = ""
    api_group: str = ""
    api_version: str = ""
    namespace: str = ""


class _Bootstrap(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    config_ref: _Ref | None = None


class _MachineSpec(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    cluster_name: str = ""
    bootstrap: _Bootstrap | None = None
    infrastructure_ref: _Ref | None = None
    provider_id: str | None = msgspec.field(default=None, name="providerID")
    taints: list[dict[str, Any]] | None = None
    deletion: dict[str, Any] | None = None
    node_drain_timeout: str | None = None


class _Condition(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _NodeRef(msgspec.Struct, gc=False, omit_defaults=True):
    name: str = ""
    uid: str = ""


class _V1Beta2(msgspec.Struct, gc=False, omit_defaults=True):
    conditions: list[_Condition] | None = None


class _Status(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    phase: str = ""
    node_ref: _NodeRef | None = None
    conditions: list[_Condition] | None = None
    v1beta2: _V1Beta2 | None = None


class _Machine(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    api_version: str = ""
    spec: _MachineSpec = msgspec.field(default_factory=_MachineSpec)
    status: _Status = msgspec.field(default_factory=_Status)


_machine_decoder = msgspec.json.Decoder(_Machine)


def _keep(raw: bytes | msgspec.Raw) -> bytes:
    machine = _machine_decoder.decode(raw)
    machine.status.conditions, machine.status.v1beta2 = list(_conditions(machine.status).values()), None
    return encode_exact(machine)


def _conditions(status: _Status) -> dict[str, _Condition]:
    """The conditions that matter, by type.

    At v1beta1 Cluster API keeps the newer ones under ``status.v1beta2``. They take precedence, because the older
    Ready becomes true before there is a Node.
    """
    newer = (status.v1beta2.conditions if status.v1beta2 is not None else None) or []
    found = {c.type: c for c in status.conditions or () if c.type in _CONDITIONS and not (newer and c.type == "Ready")}
    return found | {c.type: c for c in newer if c.type in _CONDITIONS}


MACHINE: Final = Projection("machine", _keep, _ANNOTATIONS)


@dataclass(frozen=True, slots=True)
class ChildRef:
    """A reference that a Machine or our status holds to a bootstrap or infrastructure object."""

    group_kind: GroupKind
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class MachineView:
    """The fields of a Machine that ``decide`` uses."""

    head: Head
    api_version: str = ""
    bootstrap: ChildRef | None = None
    infrastructure: ChildRef | None = None
    provider_id: str = ""
    node: str = ""
    node_uid: str = ""
    phase: str = ""
    ready: bool = False
    ready_since: datetime | None = None
    ready_reason: str = ""
    ready_message: str = ""
    deleting_reason: str = ""
    deleting_message: str = ""
    remediate: bool = False
    has_drain_timeout: bool = False
    taints: int = field(default=0)

    @property
    def deleting(self) -> bool:
        return self.head.deleting

    @property
    def paused(self) -> bool:
        return names.ANNOTATION_PAUSED in self.head.annotations

    @property
    def excludes_drain(self) -> bool:
        """Whether Cluster API neither drains the node nor waits for its volumes."""
        return EXCLUDE_DRAIN in self.head.annotations and EXCLUDE_VOLUMES in self.head.annotations


def read_machine(obj: Object) -> MachineView:
    """Read a Machine from what :data:`MACHINE` keeps of it, or from a whole one.

    :raises ProtocolError: it does not match Cluster API's schema.
    """
    try:
        machine = obj.decode_as(_machine_decoder)
    except ProtocolError as error:
        raise ProtocolError(f"Machine {error}") from error
    spec, status = machine.spec, machine.status
    conditions = _conditions(status)
    ready = conditions.get("Ready", _Condition())
    deleting = conditions.get("Deleting", _Condition())
    marked = (
        conditions.get("OwnerRemediated", _Condition()).status == "False"
        and conditions.get("HealthCheckSucceeded", _Condition()).status == "False"
    )
    deletion = spec.deletion or {}
    return MachineView(
        head=obj.head,
        api_version=machine.api_version,
        bootstrap=_child(spec.bootstrap.config_ref if spec.bootstrap else None),
        infrastructure=_child(spec.infrastructure_ref),
        provider_id=spec.provider_id or "",
        node=status.node_ref.name if status.node_ref else "",
        node_uid=status.node_ref.uid if status.node_ref else "",
        phase=status.phase,
        ready=ready.status == "True",
        ready_since=read_instant(ready.last_transition_time),
        ready_reason=clean(ready.reason, 64),
        ready_message=clean(ready.message, 512),
        deleting_reason=clean(deleting.reason, 64) if deleting.status == "True" else "",
        deleting_message=clean(deleting.message, 512) if deleting.status == "True" else "",
        remediate=marked and SKIP_REMEDIATION not in obj.head.annotations,
        has_drain_timeout=spec.node_drain_timeout is not None or "nodeDrainTimeoutSeconds" in deletion,
        taints=len(spec.taints or ()),
    )


def _child(ref: _Ref | None) -> ChildRef | None:
    if ref is None or not ref.kind or not ref.name:
        return None
    group = ref.api_group or group_of(ref.api_version)
    return ChildRef(GroupKind(group, ref.kind), ref.name)


class _ClusterSpec(msgspec.Struct, gc=False, omit_defaults=True):
    paused: bool | None = None


class _Cluster(msgspec.Struct, gc=False, omit_defaults=True):
    spec: _ClusterSpec | None = None


_cluster_decoder = msgspec.json.Decoder(_Cluster)

CLUSTER: Final = Projection.fields("cluster", _Cluster, annotations=frozenset())


def read_cluster(obj: Object) -> ClusterView:
    """Read a Cluster from what :data:`CLUSTER` keeps of it."""
    spec = obj.decode_as(_cluster_decoder).spec
    return ClusterView(Known.YES, paused=spec is not None and bool(spec.paused), deleting=obj.head.deleting)
