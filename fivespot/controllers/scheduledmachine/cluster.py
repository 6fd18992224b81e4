"""Reads a Cluster as far as manners ask: whether it is paused or being deleted."""

from __future__ import annotations

from typing import Final

import msgspec

from fivespot.runtime.objects import Object, Projection

from .model import ClusterView, Known

__all__ = ["CLUSTER", "read_cluster"]


class _Spec(msgspec.Struct, gc=False, omit_defaults=True):
    paused: bool | None = None


class _Cluster(msgspec.Struct, gc=False, omit_defaults=True):
    spec: _Spec | None = None


_decoder = msgspec.json.Decoder(_Cluster)

CLUSTER: Final = Projection.fields("cluster", _Cluster, annotations=frozenset())


def read_cluster(obj: Object) -> ClusterView:
    """Read a Cluster from what :data:`CLUSTER` keeps of it."""
    spec = obj.decode_as(_decoder).spec
    return ClusterView(Known.YES, paused=spec is not None and bool(spec.paused), deleting=obj.head.deleting)
