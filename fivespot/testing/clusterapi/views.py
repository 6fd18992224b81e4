"""Views of Cluster API's own objects: the fields that the simulated providers read, the same at every version."""

from __future__ import annotations

from typing import Final

import msgspec

from fivespot.runtime import GroupKind, Head, Key, Object, OwnerReference
from fivespot.runtime.objects import group_of

from .kinds import CORE_GROUP

__all__ = [
    "CLUSTER_KIND",
    "CLUSTER_LABEL",
    "MACHINE_KIND",
    "PAUSED_ANNOTATION",
    "ClusterState",
    "MachineState",
    "cluster_of",
    "machine_owner",
    "read_cluster",
    "read_machine",
]

MACHINE_KIND: Final = GroupKind(CORE_GROUP, "Machine")
CLUSTER_KIND: Final = GroupKind(CORE_GROUP, "Cluster")
CLUSTER_LABEL: Final = f"{CORE_GROUP}/cluster-name"
PAUSED_ANNOTATION: Final = f"{CORE_GROUP}/paused"


class _Reference(msgspec.Struct, gc=False):
    kind: str = ""
    name: str = ""


class _Bootstrap(msgspec.Struct, rename="camel", gc=False):
    config_ref: _Reference | None = None
    data_secret_name: str | None = None


class _MachineSpec(msgspec.Struct, rename="camel", gc=False):
    cluster_name: str = ""
    bootstrap: _Bootstrap = msgspec.field(default_factory=_Bootstrap)
    infrastructure_ref: _Reference = msgspec.field(default_factory=_Reference)


class MachineState(msgspec.Struct, gc=False):
    """The fields of a Machine that a provider reads; they are the same in v1beta1 and v1beta2."""

    spec: _MachineSpec = msgspec.field(default_factory=_MachineSpec)

    @property
    def cluster(self) -> str:
        return self.spec.cluster_name

    @property
    def bootstrapped(self) -> bool:
        """Whether bootstrap data exist."""
        return bool(self.spec.bootstrap.data_secret_name)


class _Initialization(msgspec.Struct, rename="camel", gc=False):
    infrastructure_provisioned: bool | None = None


class _ClusterStatus(msgspec.Struct, rename="camel", gc=False):
    initialization: _Initialization | None = None
    infrastructure_ready: bool | None = None


class _ClusterSpec(msgspec.Struct, gc=False):
    paused: bool | None = None


class ClusterState(msgspec.Struct, gc=False):
    """The fields of a Cluster that a provider reads."""

    spec: _ClusterSpec = msgspec.field(default_factory=_ClusterSpec)
    status: _ClusterStatus = msgspec.field(default_factory=_ClusterStatus)

    @property
    def paused(self) -> bool:
        return bool(self.spec.paused)

    @property
    def infrastructure_ready(self) -> bool:
        """Whether the infrastructure is provisioned; v1beta2 has another field for it."""
        newer = self.status.initialization
        return bool(self.status.infrastructure_ready or (newer is not None and newer.infrastructure_provisioned))


_machine_decoder = msgspec.json.Decoder(MachineState)
_cluster_decoder = msgspec.json.Decoder(ClusterState)


def read_machine(obj: Object) -> MachineState:
    """Decode a Machine.

    :raises ProtocolError: it does not match Cluster API's schema.
    """
    return obj.decode_as(_machine_decoder)


def read_cluster(obj: Object) -> ClusterState:
    """Decode a Cluster.

    :raises ProtocolError: it does not match Cluster API's schema.
    """
    return obj.decode_as(_cluster_decoder)


def machine_owner(head: Head) -> OwnerReference | None:
    """The owner reference to the Machine that has adopted an object, None if none has."""
    for owner in head.owners:
        if owner.kind == MACHINE_KIND.kind and group_of(owner.api_version) == CORE_GROUP:
            return owner
    return None


def cluster_of(head: Head) -> Key | None:
    """The key of the Cluster that an object's label names."""
    name = head.labels.get(CLUSTER_LABEL)
    return Key(head.namespace, name) if name else None
