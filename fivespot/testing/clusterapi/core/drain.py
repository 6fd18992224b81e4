"""One look at a Node that is to be drained: cordon it, evict what has to go, and say what is still there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from fivespot.runtime import (
    ApiError,
    Client,
    Informer,
    InvalidError,
    Key,
    MethodNotAllowedError,
    NotFoundError,
    Object,
    ThrottledError,
    merge_patch,
)
from fivespot.testing.clusterapi.kubelet import PODS
from fivespot.testing.clusterapi.nodes import NODES

from .facts import NodeFacts

__all__ = ["drain", "to_evict"]

_DRAIN_LABEL: Final = "cluster.x-k8s.io/drain"
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENDED: Final = ("Succeeded", "Failed")


async def drain(client: Client, node: NodeFacts, pods: Informer, index: str) -> str:
    """What still has to go, and why it has not, by Pod; "" when nothing has.

    :param index: the index of ``pods`` by the name of their Node.
    """
    if not node.unschedulable:
        await _cordon(client, node)
    problems = []
    for pod in to_evict(pods.by_index(index, node.name)):
        if pod.head.deleting:
            problems.append(f"Pod {pod.key}: deletionTimestamp set, but still not removed from the Node")
        else:
            problem = await _evict(client, pod)
            problems.append(f"Pod {pod.key}: {problem or 'eviction requested'}")
    return "\n".join(f"* {problem}" for problem in sorted(problems))


def to_evict(pods: Iterable[Object]) -> list[Object]:
    """The Pods that a drain waits for: not those that have ended, belong to the Node, or are to be skipped."""
    return [pod for pod in pods if not _stays(pod)]


def _stays(pod: Object) -> bool:
    head = pod.head
    if head.labels.get(_DRAIN_LABEL) == "skip" or _MIRROR in head.annotations:
        return True
    status: Mapping[str, Any] = pod.decode().get("status") or {}
    controller = head.controller
    return status.get("phase") in _ENDED or (controller is not None and controller.kind == "DaemonSet")


async def _cordon(client: Client, node: NodeFacts) -> None:
    patch = {"metadata": {"uid": node.uid}, "spec": {"unschedulable": True}}
    try:
        await client.patch(NODES, Key("", node.name), merge_patch(patch))
    except NotFoundError:
        return


async def _evict(client: Client, pod: Object) -> str:
    """Why the Pod may not go; "" when it was asked to."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.key.name, "namespace": pod.key.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.head.uid}},
    }
    path = PODS.object_path(pod.key, "eviction")
    try:
        await client.raw("POST", path, body=msgspec.json.encode(body))
    except ThrottledError as error:
        # Which budget it is stands in the causes alone.
        return " ".join([error.message, *(cause.message for cause in error.causes)])
    except (MethodNotAllowedError, NotFoundError):
        # The Pod is gone, or the server knows no evictions, and then no budgets either.
        await client.delete(PODS, pod.key, uid=pod.head.uid)
    except InvalidError as error:
        return error.message
    except ApiError as error:
        if error.status != 409:
            raise
    return ""
