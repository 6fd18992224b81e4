"""The objects that Machines and Clusters refer to, of any kind: found by the contract label of their definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fivespot.runtime import (
    Change,
    Controller,
    GroupKind,
    Head,
    Informer,
    InformerSource,
    Key,
    KindState,
    ManagerContext,
    Object,
    Resource,
    merge_patch,
)
from fivespot.testing.clusterapi.kinds import CORE_GROUP
from fivespot.testing.clusterapi.views import CLUSTER_LABEL

from .facts import EXTERNAL_KNOWN

__all__ = ["ExternalReference", "Externals", "Found", "owner_reference"]


_RETRY: Final = 1.0


@dataclass(frozen=True, slots=True)
class ExternalReference:
    """What a ``{apiGroup, kind, name}`` refers to."""

    group_kind: GroupKind
    name: str

    @classmethod
    def read(cls, value: object) -> ExternalReference | None:
        """None where there is no complete reference."""
        if not isinstance(value, Mapping) or not value.get("kind") or not value.get("name"):
            return None
        return cls(GroupKind(str(value.get("apiGroup", "")), str(value["kind"])), str(value["name"]))


@dataclass(frozen=True, slots=True)
class Found:
    """An object, its resource, and the contract that it keeps.

    :param problem: why nothing can be said of it.
    :param wanted: something is referred to.
    """

    resource: Resource | None = None
    contract: str = ""
    obj: Object | None = None
    problem: str = ""
    wanted: bool = False

    @property
    def retry(self) -> float | None:
        """Seconds until it is worth another look: what is not there yet names nobody to be told of its coming."""
        return _RETRY if self.wanted and self.obj is None else None


class Externals:
    """Watches every kind that was ever referred to, and leads its changes back to whoever refers.

    :param back: the keys that a change of a referred object concerns.
    """

    def __init__(
        self, context: ManagerContext, controller: Controller, back: Callable[[Change], Iterable[Key]]
    ) -> None:
        self._cache = context.cache
        self._client = context.client
        self._controller = controller
        self._back = back
        self._open: dict[Resource, tuple[Informer, InformerSource]] = {}

    def find(self, namespace: str, reference: ExternalReference | None) -> Found:
        """The object that is referred to, as far as it is known."""
        if reference is None:
            return Found()
        kinds = self._cache.kinds
        kinds.watch_group(reference.group_kind.group)
        state = kinds.lookup(reference.group_kind)
        if not isinstance(state, KindState) or not state.usable:
            return Found(wanted=True, problem=f"{reference.group_kind} is not installed, or not known yet")
        contract, version = _contract(state)
        if not contract:
            return Found(wanted=True, problem=f"CustomResourceDefinition {state.crd_name} carries no contract label")
        resource = state.resource(version)
        informer = self._informer(resource)
        if not informer.synced:
            return Found(wanted=True, problem=f"{resource} is not listed yet")
        return Found(resource, contract, informer.get(Key(namespace, reference.name)), wanted=True)

    async def adopt(self, found: Found, owner: Mapping[str, Any], cluster: str) -> str:
        """Make ``owner`` the controller of the object, and label it; what is in the way, if anything."""
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

    async def delete(self, found: Found) -> None:
        """Ask for the deletion of the object."""
        if found.obj is not None and found.resource is not None and not found.obj.head.deleting:
            await self._client.delete(found.resource, found.obj.key, uid=found.obj.head.uid)

    def _informer(self, resource: Resource) -> Informer:
        opened = self._open.get(resource)
        if opened is None:
            informer = self._cache.informer(resource)
            # A kind of somebody else must not hold back the start.
            source = self._controller.watches(informer, self._back, gate=False)
            opened = self._open[resource] = (informer, source)
        return opened[0]


_LABELS: Final = tuple((contract, f"{CORE_GROUP}/{contract}") for contract in EXTERNAL_KNOWN)


def _contract(state: KindState) -> tuple[str, str]:
    """The newest contract that a kind keeps, and the newest served version that keeps it."""
    for contract, label in _LABELS:
        named = state.labels.get(label, "").split("_")
        for version in state.served:
            if version in named:
                return contract, version
    return "", ""


def _owners(obj: Object) -> list[dict[str, Any]]:
    owners: list[dict[str, Any]] = obj.decode()["metadata"].get("ownerReferences") or []
    return owners


def owner_reference(resource: Resource, head: Head) -> dict[str, Any]:
    """What makes an object of ours the controller of another one, as Cluster API writes it."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": head.name,
        "uid": head.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
