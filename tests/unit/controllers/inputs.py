"""The inputs of evaluations as caches hold them: everything installed and read, and nothing created."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fivespot.api import names
from fivespot.controllers.scheduledmachine.observe import CLUSTER_KIND, MACHINE_KIND
from fivespot.controllers.scheduledmachine.protocols import NamedKind
from fivespot.runtime import GroupKind, Key, KindAbsent, KindUnknown, Object, Resource
from fivespot.runtime.objects import KindState
from unit.controllers.build import BOOTSTRAP, HOURS, INFRASTRUCTURE, NAME, NAMESPACE

HOURS_KIND = GroupKind(names.PROVIDER_GROUP, HOURS.kind)
CONTRACT = {"cluster.x-k8s.io/v1beta2": "v1beta2"}


def kind(group: str, kind: str, *, served: tuple[str, ...] = ("v1beta2",), **changes: Any) -> KindState:
    plural = f"{kind.lower()}s"
    usual = KindState(
        group=group, kind=kind, plural=plural, crd_name=f"{plural}.{group}", namespaced=True, established=True,
        deleting=False, served=served, storage=served[0] if served else "", labels=CONTRACT, uid="", version=1,
    )  # fmt: skip
    return replace(usual, **changes)


def of(resource: Resource, **changes: Any) -> KindState:
    return kind(resource.group, resource.kind, **changes)


def obj(name: str = NAME, *, api_version: str = "", uid: str = "u", spec: Any = None, **more: Any) -> Object:
    metadata = {"namespace": NAMESPACE, "name": name, "uid": uid, "resourceVersion": "9"}
    metadata |= more.pop("metadata", {})
    body = {"apiVersion": api_version, "metadata": metadata, "spec": spec or {}, **more}
    return Object.parse(json.dumps(body).encode())


@dataclass
class Read:
    """Objects of one kind in a cache; its own reader, status and opened kind."""

    resource: Resource = BOOTSTRAP
    objects: tuple[Object, ...] = ()
    synced: bool = True
    last_error: Exception | None = None
    error_since: float | None = None

    @property
    def informer(self) -> Read:
        return self

    @property
    def status(self) -> Read:
        return self

    def get(self, key: Key) -> Object | None:
        return next((found for found in self.objects if found.key == key), None)

    def list(self) -> Sequence[Object]:
        return self.objects


@dataclass
class Cached:
    """The inputs: everything installed and read, and nothing created."""

    kinds: dict[GroupKind, KindState | KindAbsent | KindUnknown] = field(
        default_factory=lambda: {
            MACHINE_KIND: kind(names.CLUSTER_API_GROUP, "Machine"),
            CLUSTER_KIND: kind(names.CLUSTER_API_GROUP, "Cluster"),
            HOURS_KIND: kind(names.PROVIDER_GROUP, HOURS.kind, served=("v1alpha1",)),
            BOOTSTRAP.group_kind: of(BOOTSTRAP),
            INFRASTRUCTURE.group_kind: of(INFRASTRUCTURE),
        }
    )
    machine_cache: Read | None = field(default_factory=Read)
    cluster_cache: Read | None = field(default_factory=lambda: Read(objects=(obj("prod"),)))
    read: dict[GroupKind, Read] = field(
        default_factory=lambda: {
            HOURS_KIND: Read(objects=(obj("hours", status={"active": True}),)),
            BOOTSTRAP.group_kind: Read(),
            INFRASTRUCTURE.group_kind: Read(INFRASTRUCTURE),
        }
    )

    required: list[GroupKind] = field(default_factory=list)

    @property
    def machines(self) -> Read | None:
        return self.machine_cache

    @property
    def clusters(self) -> Read | None:
        return self.cluster_cache

    def lookup(self, gk: GroupKind, /) -> KindState | KindAbsent | KindUnknown:
        return self.kinds.get(gk, KindAbsent())

    def schedules(self, gk: GroupKind, /) -> Read | None:
        return self.read.get(gk)

    def children(self, gk: GroupKind, /) -> Read | None:
        return self.read.get(gk)

    def in_group(self, group: str, /) -> tuple[KindState, ...] | KindUnknown:
        found = [state for kind, state in self.kinds.items() if kind.group == group]
        unknown = next((state for state in found if isinstance(state, KindUnknown)), None)
        return unknown or tuple(state for state in found if isinstance(state, KindState))

    def require(self, schedule: GroupKind, children: Iterable[NamedKind], /) -> None:
        self.required += [schedule, *(named.group_kind for named in children)]

    async def complete(self) -> bool:
        return False
