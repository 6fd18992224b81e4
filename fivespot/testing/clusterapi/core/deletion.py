"""One look at a Node that is to be drained: cordon it, evict what has to go, and say what is still there."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
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

from .facts import External, MachineFacts, NodeFacts

__all__ = ["EXCLUDE_DRAIN", "EXCLUDE_VOLUMES", "Removed", "Step", "drain", "next_step", "to_evict"]

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


Json = dict[str, Any]

EXCLUDE_DRAIN: Final = "machine.cluster.x-k8s.io/exclude-node-draining"

EXCLUDE_VOLUMES: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"

_PRE_DRAIN: Final = "pre-drain.delete.hook.machine.cluster.x-k8s.io"

_PRE_TERMINATE: Final = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"


class Removed(enum.Enum):
    """What is to be done next."""

    WAIT = "wait"
    DRAIN = "drain"
    """Cordon the Node and evict what runs on it."""
    DELETE_INFRASTRUCTURE = "delete infrastructure"
    DELETE_BOOTSTRAP = "delete bootstrap"
    DELETE_NODE = "delete node"
    LET_GO = "let go"


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    :param reason: of condition Deleting, with ``message``.
    :param slow: nothing tells when it is over: look again after the interval at which Cluster API does.
    :param started: what is noted in ``status.deletion``.
    """

    do: Removed
    reason: str = ""
    message: str = ""
    slow: bool = False
    started: Mapping[str, str] = field(default_factory=dict)


def next_step(facts: MachineFacts, *, drained: bool, now: datetime) -> Step:
    """
    :param drained: a look at the Node found nothing that still has to go.
    """
    annotations = facts.head.annotations
    node = facts.node_name
    has_node = bool(node) and facts.control_plane and not facts.cluster_deleting
    if has_node:
        hook = _hook(annotations, _PRE_DRAIN)
        if hook:
            return Step(Removed.WAIT, "WaitingForPreDrainHook", f"waiting for hooks: {hook}")
        begun = facts.infrastructure.exists and not _deleting(facts.infrastructure)
        if begun and facts.node is not None:
            if not drained and EXCLUDE_DRAIN not in annotations:
                step = _limited(facts, "nodeDrain", now)
                if step is not None:
                    return Step(Removed.DRAIN, "DrainingNode", f"drain of Node {node} not completed yet", True, step)
            if facts.node.volumes and EXCLUDE_VOLUMES not in annotations:
                step = _limited(facts, "nodeVolumeDetach", now)
                if step is not None:
                    message = f"waiting for Node volumes to be detached: {', '.join(facts.node.volumes)}"
                    return Step(Removed.WAIT, "WaitingForVolumeDetach", message, True, step)
        hook = _hook(annotations, _PRE_TERMINATE)
        if hook:
            return Step(Removed.WAIT, "WaitingForPreTerminateHook", f"waiting for hooks: {hook}")
    for external, slot, act in (
        (facts.infrastructure, "Infrastructure", Removed.DELETE_INFRASTRUCTURE),
        (facts.bootstrap, "Bootstrap", Removed.DELETE_BOOTSTRAP),
    ):
        if external.exists or external.problem:
            reason = f"WaitingFor{slot}Deletion"
            message = external.problem or f"{external.kind} deletion in progress"
            wait = _deleting(external) or bool(external.problem)
            return Step(Removed.WAIT if wait else act, reason, message)
    if has_node and facts.node is not None:
        return Step(Removed.DELETE_NODE, "DeletingNode", f"deleting Node {node}")
    return Step(Removed.LET_GO, "DeletionCompleted")


def _limited(facts: MachineFacts, what: str, now: datetime) -> Json | None:
    """The start of a waiting time as it is to be noted; None when its limit has passed. A limit of 0 is none."""
    key = {"nodeDrain": "nodeDrainStartTime", "nodeVolumeDetach": "waitForNodeVolumeDetachStartTime"}[what]
    noted = (facts.status.get("deletion") or {}).get(key)
    limit = (facts.spec.get("deletion") or {}).get(f"{what}TimeoutSeconds") or 0
    if noted and limit and datetime.fromisoformat(noted) + timedelta(seconds=limit) <= now:
        return None
    return {key: noted or now.replace(microsecond=0).isoformat().replace("+00:00", "Z")}


def _hook(annotations: Mapping[str, str], prefix: str) -> str:
    return ", ".join(sorted(name for name in annotations if name.startswith(prefix)))


def _deleting(external: External) -> bool:
    return external.head is not None and external.head.deleting
