"""Table columns of the built-in kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from .columns import AGE, NAME, age
from .kinds import TableColumn
from .workloads import selector_text

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


def _template(body: Object) -> list[Object]:
    found: list[Object] = body.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or []
    return found


def _ready_replicas(body: Object) -> str:
    return f"{_replicas(body, 'readyReplicas')}/{body.get('spec', {}).get('replicas', 0)}"


def _replicas(body: Object, name: str) -> int:
    found: int = body.get("status", {}).get(name, 0)
    return found


def _ports(body: Object) -> str:
    shown = []
    for port in body.get("spec", {}).get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port', 0)}{node}/{port.get('protocol', '')}")
    return ",".join(shown) or "<none>"


def _external_address(body: Object) -> str:
    spec = body.get("spec", {})
    kind = spec.get("type", "")
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    listed = list(spec.get("externalIPs") or ())
    if kind == "LoadBalancer":
        found = body.get("status", {}).get("loadBalancer", {}).get("ingress") or ()
        listed = [each.get("ip") or each.get("hostname", "") for each in found] + listed
        return ",".join(listed) or "<pending>"
    return ",".join(listed) or "<none>"


def _labels(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def _signing_state(body: Object) -> str:
    found = {each.get("type"): each for each in body.get("status", {}).get("conditions") or ()}
    words = ["Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"]
    words += ["Failed"] if "Failed" in found else []
    words += ["Issued"] if body.get("status", {}).get("certificate") else []
    return ",".join(words)


def _duration(seconds: int | None) -> str:
    if seconds is None:
        return "<none>"
    return f"{seconds}s" if seconds < 120 else f"{seconds // 60}m" if seconds < 10_800 else f"{seconds // 3600}h"


_WORKLOAD: Final = (
    _column("Containers", lambda body: ",".join(each.get("name", "") for each in _template(body)), priority=1),
    _column("Images", lambda body: ",".join(each.get("image", "") for each in _template(body)), priority=1),
    _column("Selector", lambda body: selector_text(body.get("spec", {}).get("selector")), priority=1),
)
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
    "Deployment": (
        NAME,
        _column("Ready", _ready_replicas),
        _column("Up-to-date", lambda body: _replicas(body, "updatedReplicas")),
        _column("Available", lambda body: _replicas(body, "availableReplicas")),
        AGE,
        *_WORKLOAD,
    ),
    "ReplicaSet": (
        NAME,
        _column("Desired", lambda body: body.get("spec", {}).get("replicas", 0), "integer"),
        _column("Current", lambda body: _replicas(body, "replicas"), "integer"),
        _column("Ready", lambda body: _replicas(body, "readyReplicas"), "integer"),
        AGE,
        *_WORKLOAD,
    ),
    "Service": (
        NAME,
        _column("Type", lambda body: body.get("spec", {}).get("type", "")),
        _column("Cluster-IP", lambda body: body.get("spec", {}).get("clusterIP") or "<none>"),
        _column("External-IP", _external_address),
        _column("Port(s)", _ports),
        AGE,
        _column("Selector", lambda body: _labels(body.get("spec", {}).get("selector")), priority=1),
    ),
    "CertificateSigningRequest": (
        NAME,
        AGE,
        _column("SignerName", lambda body: body.get("spec", {}).get("signerName", "")),
        _column("Requestor", lambda body: body.get("spec", {}).get("username", "")),
        _column("RequestedDuration", lambda body: _duration(body.get("spec", {}).get("expirationSeconds"))),
        _column("Condition", _signing_state),
    ),
    "CustomResourceDefinition": (
        NAME,
        _column("Created At", lambda body: body["metadata"].get("creationTimestamp", ""), "date"),
    ),
}
