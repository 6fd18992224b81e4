"""Deletion of a Machine: the next step, and one pass of a drain (cordon, evict, list the Pods that remain)."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from fivespot.runtime import ApiError, Client, Informer, InvalidError, Key, NotFoundError, Object, merge_patch
from fivespot.runtime.errors import MethodNotAllowedError, NotServedError, ThrottledError
from fivespot.runtime.objects import parse_rfc3339, rfc3339
from fivespot.testing.clusterapi.workload import NODES, PODS

from .machine_status import ExternalState, MachineSnapshot, NodeState

__all__ = [
    "EXCLUDE_DRAIN",
    "EXCLUDE_VOLUMES",
    "DeletionAction",
    "DeletionStep",
    "drain",
    "next_deletion_step",
    "to_evict",
]

Json = dict[str, Any]

EXCLUDE_DRAIN: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
EXCLUDE_VOLUMES: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
_PRE_DRAIN: Final = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
_PRE_TERMINATE: Final = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
_DRAIN_LABEL: Final = "cluster.x-k8s.io/drain"
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENDED: Final = ("Succeeded", "Failed")


class DeletionAction(enum.Enum):
    """The action of a deletion step."""

    WAIT = "wait"
    DRAIN = "drain"
    """Cordon the Node and evict its Pods."""
    DELETE_INFRASTRUCTURE = "delete infrastructure"
    DELETE_BOOTSTRAP = "delete bootstrap"
    DELETE_NODE = "delete node"
    REMOVE_FINALIZER = "remove finalizer"


@dataclass(frozen=True, slots=True)
class DeletionStep:
    """A step of a deletion.

    :param reason: reason of condition Deleting, with ``message``.
    :param slow: no event tells when it is done, so it is checked at Cluster API's interval.
    :param started: start times to record in ``status.deletion``.
    """

    action: DeletionAction
    reason: str = ""
    message: str = ""
    slow: bool = False
    started: Mapping[str, str] = field(default_factory=dict)


def next_deletion_step(machine: MachineSnapshot, *, drained: bool, now: datetime) -> DeletionStep:
    """Compute the next step.

    :param drained: no Pod remains to be evicted.
    """
    annotations = machine.head.annotations
    node = machine.node_name
    has_node = bool(node) and machine.control_plane and not machine.cluster_deleting
    if has_node:
        hook = _hook(annotations, _PRE_DRAIN)
        if hook:
            return DeletionStep(DeletionAction.WAIT, "WaitingForPreDrainHook", f"waiting for hooks: {hook}")
        begun = machine.infrastructure.exists and not _deleting(machine.infrastructure)
        if begun and machine.node is not None:
            if not drained and EXCLUDE_DRAIN not in annotations:
                step = _limited(machine, "nodeDrain", now)
                if step is not None:
                    return DeletionStep(
                        DeletionAction.DRAIN, "DrainingNode", f"drain of Node {node} not completed yet", True, step
                    )
            if machine.node.volumes and EXCLUDE_VOLUMES not in annotations:
                step = _limited(machine, "nodeVolumeDetach", now)
                if step is not None:
                    message = f"waiting for Node volumes to be detached: {', '.join(machine.node.volumes)}"
                    return DeletionStep(DeletionAction.WAIT, "WaitingForVolumeDetach", message, True, step)
        hook = _hook(annotations, _PRE_TERMINATE)
        if hook:
            return DeletionStep(DeletionAction.WAIT, "WaitingForPreTerminateHook", f"waiting for hooks: {hook}")
    for external, slot, action in (
        (machine.infrastructure, "Infrastructure", DeletionAction.DELETE_INFRASTRUCTURE),
        (machine.bootstrap, "Bootstrap", DeletionAction.DELETE_BOOTSTRAP),
    ):
        if external.exists or external.problem:
            reason = f"WaitingFor{slot}Deletion"
            message = external.problem or f"{external.kind} deletion in progress"
            wait = _deleting(external) or bool(external.problem)
            return DeletionStep(DeletionAction.WAIT if wait else action, reason, message)
    if has_node and machine.node is not None:
        return DeletionStep(DeletionAction.DELETE_NODE, "DeletingNode", f"deleting Node {node}")
    return DeletionStep(DeletionAction.REMOVE_FINALIZER, "DeletionCompleted")


def _limited(machine: MachineSnapshot, what: str, now: datetime) -> Json | None:
    """Start time of a wait to record; None once its timeout has passed. A timeout of 0 means none."""
    key = {"nodeDrain": "nodeDrainStartTime", "nodeVolumeDetach": "waitForNodeVolumeDetachStartTime"}[what]
    noted = (machine.status.get("deletion") or {}).get(key)
    limit = (machine.spec.get("deletion") or {}).get(f"{what}TimeoutSeconds") or 0
    if noted and limit and parse_rfc3339(noted) + timedelta(seconds=limit) <= now:
        return None
    return {key: noted or rfc3339(now)}


def _hook(annotations: Mapping[str, str], prefix: str) -> str:
    return ", ".join(sorted(name for name in annotations if name.startswith(prefix)))


def _deleting(external: ExternalState) -> bool:
    return external.head is not None and external.head.deleting


async def drain(client: Client, node: NodeState, pods: Informer, index: str) -> str:
    """Cordon the Node and evict its Pods; returns the Pods that remain and why, "" if there are none.

    :param index: the index of ``pods`` by Node name.
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
    """Filter the Pods that a drain evicts: not those that ended, belong to the Node, or carry the skip label."""
    return [pod for pod in pods if not _is_skipped(pod)]


def _is_skipped(pod: Object) -> bool:
    head = pod.head
    if head.labels.get(_DRAIN_LABEL) == "skip" or _MIRROR in head.annotations:
        return True
    status: Mapping[str, Any] = pod.decode().get("status") or {}
    controller = head.controller
    return status.get("phase") in _ENDED or (controller is not None and controller.kind == "DaemonSet")


async def _cordon(client: Client, node: NodeState) -> None:
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
        # Only the causes name the PodDisruptionBudget.
        return " ".join([error.message, *(cause.message for cause in error.causes)])
    except (MethodNotAllowedError, NotFoundError, NotServedError):
        # The Pod is gone, or the server has no eviction API and so no PodDisruptionBudgets.
        await client.delete(PODS, pod.key, uid=pod.head.uid)
    except InvalidError as error:
        return error.message
    except ApiError as error:
        if error.status != 409:
            raise
    return ""
