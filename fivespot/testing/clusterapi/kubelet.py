"""The simulated kubelet: Pods on simulated Nodes run, and end when they are deleted.

Without one, an evicted Pod keeps its deletionTimestamp for ever, and no drain of a node ever ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fivespot.runtime import (
    DONE,
    METADATA,
    Change,
    Controller,
    Key,
    ManagerContext,
    NotFoundError,
    Object,
    Resource,
    Result,
    Selector,
    merge_patch,
    rfc3339,
)

from .base import Waits
from .nodes import NODES, SIMULATED_LABEL

__all__ = ["PODS", "TERMINATE_AFTER", "Kubelet", "build_kubelet"]

PODS: Final = Resource("", "v1", "pods", "Pod")
TERMINATE_AFTER: Final = "testing.5spot.finos.org/terminate-after"
"""Annotation on a Pod: how many seconds its end takes, or ``never``. Without it a Pod ends at once."""

_NEVER: Final = "never"
_BY_NODE: Final = "node"


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class _Pod(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_decoder = msgspec.json.Decoder(_Pod)


class Kubelet:
    """Brings Pods that are bound to a simulated Node to Running and Ready, and removes those that are deleted."""

    def __init__(self, context: ManagerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._waits = Waits(context)
        self._pods = context.cache.informer(PODS)
        self._pods.add_index(_BY_NODE, _node_of)
        self._nodes = context.cache.informer(NODES, selector=Selector(exists=(SIMULATED_LABEL,)), projection=METADATA)
        self.controller: Controller = context.controller("simulatedkubelet", self)
        self.controller.watches(self._pods)
        self.controller.watches(self._nodes, self._on_node)

    async def reconcile(self, key: Key) -> Result:
        obj = self._pods.get(key)
        if obj is None:
            self._waits.forget(key)
            return DONE
        pod = obj.decode_as(_decoder)
        node = pod.spec.node_name
        if not node or self._nodes.get(Key("", node)) is None:
            return DONE
        if obj.head.deleting:
            return await self._end(obj)
        if pod.status.phase in {"", "Pending"}:
            patch = merge_patch({"status": running(rfc3339(self._clock.now()))}, obj.head)
            await self._client.patch(PODS, key, patch, subresource="status")
        return DONE

    async def _end(self, obj: Object) -> Result:
        after = obj.head.annotations.get(TERMINATE_AFTER, "0")
        if after == _NEVER:
            return DONE
        if left := self._waits.remaining(obj, "end", float(after)):
            return Result(requeue_after=left)
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": obj.head.uid},
        }
        try:
            await self._client.raw("DELETE", PODS.object_path(obj.key), body=msgspec.json.encode(options))
        except NotFoundError:
            return DONE
        return DONE

    def _on_node(self, change: Change) -> list[Key]:
        return [obj.key for obj in self._pods.by_index(_BY_NODE, change.key.name)]


def running(now: str) -> Mapping[str, Any]:
    """The status of a Pod whose containers all run."""
    types = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [{"type": type_, "status": "True", "lastTransitionTime": now} for type_ in types],
    }


def _node_of(change: Change) -> list[str]:
    node = change.object.decode_as(_decoder).spec.node_name
    return [node] if node else []


def build_kubelet(context: ManagerContext) -> Controller:
    """The controller of all Pods on simulated Nodes of the management cluster itself."""
    return Kubelet(context).controller
