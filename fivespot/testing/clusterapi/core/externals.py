"""Tracks the objects of any kind that Machines and Clusters refer to, by the contract label of their definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fivespot.runtime import (
    Change,
    Controller,
    GroupKind,
    Informer,
    InformerSource,
    Key,
    ManagerContext,
    Object,
    Resource,
    merge_patch,
)
from fivespot.runtime.objects import KindState
from fivespot.testing.clusterapi.kinds import CORE_GROUP
from fivespot.testing.clusterapi.views import CLUSTER_LABEL

from .machine_status import CONTRACTS

__all__ = ["ExternalObject", "ExternalReference", "ObjectTracker"]


_RETRY: Final = 1.0


@dataclass(frozen=True, slots=True)
class ExternalReference:
    """A parsed reference ``{apiGroup, kind, name}``."""

    group_kind: GroupKind
    name: str

    @classmethod
    def read(cls, value: object) -> ExternalReference | None:
        """Parse a reference, None if it is incomplete."""
        if not isinstance(value, Mapping) or not value.get("kind") or not value.get("name"):
            return None
        return cls(GroupKind(str(value.get("apiGroup", "")), str(value["kind"])), str(value["name"]))


@dataclass(frozen=True, slots=True)
class ExternalObject:
    """A referenced object, its resource, and the contract that it follows.

    :param problem: why it cannot be read.
    :param wanted: there is a reference.
    """

    resource: Resource | None = None
    contract: str = ""
    obj: Object | None = None
    problem: str = ""
    wanted: bool = False

    @property
    def retry(self) -> float | None:
        """Seconds until the next lookup of a missing object, whose creation triggers no event for its referrer."""
        return _RETRY if self.wanted and self.obj is None else None


class ObjectTracker:
    """Watches every kind that was ever referenced, and maps changes of its objects to the referrers.

    :param mapper: returns the keys of the referrers of a changed object.
    """

    def __init__(
        self, context: ManagerContext, controller: Controller, mapper: Callable[[Change], Iterable[Key]]
    ) -> None:
        self._cache = context.cache
        self._client = context.client
        self._controller = controller
        self._mapper = mapper
        self._open: dict[Resource, tuple[Informer, InformerSource]] = {}

    def find(self, namespace: str, reference: ExternalReference | None) -> ExternalObject:
        """Look up a referenced object in the caches."""
        if reference is None:
            return ExternalObject()
        kinds = self._cache.kinds
        kinds.watch_group(reference.group_kind.group)
        state = kinds.lookup(reference.group_kind)
        if not isinstance(state, KindState) or not state.usable:
            return ExternalObject(wanted=True, problem=f"{reference.group_kind} is not installed, or not known yet")
        contract, version = _contract(state)
        if not contract:
            return ExternalObject(
                wanted=True, problem=f"CustomResourceDefinition {state.crd_name} carries no contract label"
            )
        resource = state.resource(version)
        informer = self._informer(resource)
        if not informer.synced:
            return ExternalObject(wanted=True, problem=f"{resource} is not listed yet")
        return ExternalObject(resource, contract, informer.get(Key(namespace, reference.name)), wanted=True)

    async def adopt(self, found: ExternalObject, owner: Mapping[str, Any], cluster: str) -> str:
        """Make ``owner`` the controller of the object, and label it; returns the obstacle, "" if there is none."""
        if found.obj is None or found.resource is None:
            return ""
        head = found.obj.head
        other = head.controller
        if other is not None and other.uid != owner["uid"]:
            return f"{found.resource.kind} {found.obj.key} is already owned by another controller"
        if other is not None and head.labels.get(CLUSTER_LABEL) == cluster:
            return ""
        others = [entry for entry in _owners(found.obj) if entry.get("uid") != owner["uid"]]
        metadata = {"ownerReferences": [*others, dict(owner)], "labels": {CLUSTER_LABEL: cluster}}
        await self._client.patch(found.resource, found.obj.key, merge_patch({"metadata": metadata}, head))
        return ""

    async def delete(self, found: ExternalObject) -> None:
        """Delete the object unless it is gone or being deleted."""
        if found.obj is not None and found.resource is not None and not found.obj.head.deleting:
            await self._client.delete(found.resource, found.obj.key, uid=found.obj.head.uid)

    def _informer(self, resource: Resource) -> Informer:
        opened = self._open.get(resource)
        if opened is None:
            informer = self._cache.informer(resource)
            # A foreign kind must not delay the start.
            source = self._controller.watches(informer, self._mapper, gate=False)
            opened = self._open[resource] = (informer, source)
        return opened[0]


_LABELS: Final = tuple((contract, f"{CORE_GROUP}/{contract}") for contract in CONTRACTS)


def _contract(state: KindState) -> tuple[str, str]:
    """The newest contract that a kind follows, and the newest served version of it."""
    for contract, label in _LABELS:
        named = state.labels.get(label, "").split("_")
        for version in state.served:
            if version in named:
                return contract, version
    return "", ""


def _owners(obj: Object) -> list[dict[str, Any]]:
    owners: list[dict[str, Any]] = obj.decode()["metadata"].get("ownerReferences") or []
    return owners
