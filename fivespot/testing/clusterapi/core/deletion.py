"""The next step of a Machine's deletion, in Cluster API's order. Pure.

Pre-drain hooks, cordon and eviction, detaching of volumes, pre-terminate hooks, the infrastructure object, the
bootstrap object, the Node, and last the finalizer.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from .facts import External, MachineFacts

__all__ = ["EXCLUDE_DRAIN", "EXCLUDE_VOLUMES", "Gone", "Step", "next_step"]

Json = dict[str, Any]

EXCLUDE_DRAIN: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
EXCLUDE_VOLUMES: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
_PRE_DRAIN: Final = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
_PRE_TERMINATE: Final = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"


class Gone(enum.Enum):
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

    do: Gone
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
            return Step(Gone.WAIT, "WaitingForPreDrainHook", f"waiting for hooks: {hook}")
        begun = facts.infrastructure.exists and not _deleting(facts.infrastructure)
        if begun and facts.node is not None:
            if not drained and EXCLUDE_DRAIN not in annotations:
                step = _limited(facts, "nodeDrain", now)
                if step is not None:
                    return Step(Gone.DRAIN, "DrainingNode", f"drain of Node {node} not completed yet", True, step)
            if facts.node.volumes and EXCLUDE_VOLUMES not in annotations:
                step = _limited(facts, "nodeVolumeDetach", now)
                if step is not None:
                    message = f"waiting for Node volumes to be detached: {', '.join(facts.node.volumes)}"
                    return Step(Gone.WAIT, "WaitingForVolumeDetach", message, True, step)
        hook = _hook(annotations, _PRE_TERMINATE)
        if hook:
            return Step(Gone.WAIT, "WaitingForPreTerminateHook", f"waiting for hooks: {hook}")
    for external, slot, act in (
        (facts.infrastructure, "Infrastructure", Gone.DELETE_INFRASTRUCTURE),
        (facts.bootstrap, "Bootstrap", Gone.DELETE_BOOTSTRAP),
    ):
        if external.exists or external.problem:
            reason = f"WaitingFor{slot}Deletion"
            message = external.problem or f"{external.kind} deletion in progress"
            wait = _deleting(external) or bool(external.problem)
            return Step(Gone.WAIT if wait else act, reason, message)
    if has_node and facts.node is not None:
        return Step(Gone.DELETE_NODE, "DeletingNode", f"deleting Node {node}")
    return Step(Gone.LET_GO, "DeletionCompleted")


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
