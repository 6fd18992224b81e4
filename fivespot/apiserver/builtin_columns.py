"""Table columns of the built-in kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from .columns import AGE, NAME, age
from .kinds import TableColumn

__all__ = ["COLUMNS"]

Object = dict[str, Any]


def _column(name: str, value: Callable[[Object], Any], kind: str = "string", priority: int = 0) -> TableColumn:
    return TableColumn(name, kind, lambda body, _: value(body), priority=priority)


def _last_seen(body: Object, now: datetime) -> str:
    series = body.get("series") or {}
    return age(series.get("lastObservedTime") or body.get("lastTimestamp") or body.get("eventTime"), now)


def _about(body: Object) -> str:
    about = body.get("involvedObject", {})
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _node_status(body: Object) -> str:
    ready = [each for each in body.get("status", {}).get("conditions", ()) if each.get("type") == "Ready"]
    words = "Unknown" if not ready else ("Ready" if ready[0].get("status") == "True" else "NotReady")
    return f"{words},SchedulingDisabled" if body.get("spec", {}).get("unschedulable") else words


def _roles(body: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = [key.removeprefix(prefix) for key in body["metadata"].get("labels", {}) if key.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def _pod_ready(body: Object) -> str:
    containers = body.get("spec", {}).get("containers", [])
    ready = sum(each.get("ready") is True for each in body.get("status", {}).get("containerStatuses", ()))
    return f"{ready}/{len(containers)}"


def _pod_status(body: Object) -> str:
    return "Terminating" if "deletionTimestamp" in body["metadata"] else body.get("status", {}).get("phase", "Unknown")


def _restarts(body: Object) -> str:
    return str(sum(each.get("restartCount", 0) for each in body.get("status", {}).get("containerStatuses", ())))


COLUMNS: Final[Mapping[str, tuple[TableColumn, ...]]] = {
    "ConfigMap": (
        NAME,
        _column("Data", lambda body: len(body.get("data", {})) + len(body.get("binaryData", {}))),
        AGE,
    ),
    "Secret": (
        NAME,
        _column("Type", lambda body: body.get("type", "")),
        _column("Data", lambda body: len(body.get("data", {}))),
        AGE,
    ),
    "Namespace": (NAME, _column("Status", lambda body: body.get("status", {}).get("phase", "")), AGE),
    "ServiceAccount": (NAME, AGE),
    "Lease": (NAME, _column("Holder", lambda body: body.get("spec", {}).get("holderIdentity", "")), AGE),
    "Node": (
        NAME,
        _column("Status", _node_status),
        _column("Roles", _roles),
        AGE,
        _column("Version", lambda body: body.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", "")),
    ),
    "Pod": (
        NAME,
        _column("Ready", _pod_ready),
        _column("Status", _pod_status),
        _column("Restarts", _restarts),
        AGE,
        _column("IP", lambda body: body.get("status", {}).get("podIP", "<none>"), priority=1),
        _column("Node", lambda body: body.get("spec", {}).get("nodeName", "<none>"), priority=1),
    ),
    "Event": (
        TableColumn("Last Seen", "string", _last_seen),
        _column("Type", lambda body: body.get("type", "")),
        _column("Reason", lambda body: body.get("reason", "")),
        _column("Object", _about),
        _column("Message", lambda body: body.get("message", "").strip()),
        TableColumn(NAME.name, NAME.type, NAME.value, NAME.format, NAME.description, priority=1),
    ),
    "PodDisruptionBudget": (
        NAME,
        _column("Min Available", lambda body: str(body.get("spec", {}).get("minAvailable", "N/A"))),
        _column("Max Unavailable", lambda body: str(body.get("spec", {}).get("maxUnavailable", "N/A"))),
        AGE,
    ),
    "CustomResourceDefinition": (
        NAME,
        _column("Created At", lambda body: body["metadata"].get("creationTimestamp", ""), "date"),
    ),
}
