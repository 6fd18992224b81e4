"""The built-in kinds and their strategies."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from .builtin_schemas import SCHEMAS
from .columns import AGE, NAME, age
from .kinds import Served, ServedKind, Strategy, TableColumn
from .schema.validation import format_value
from .status import FieldCause

__all__ = ["built_in_kinds"]

Object = dict[str, Any]

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_WORDS: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def _invalid(field: str, value: Any, words: str) -> FieldCause:
    return FieldCause(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {words}")


def _forbidden(field: str, words: str) -> FieldCause:
    return FieldCause(field, "FieldValueForbidden", f"Forbidden: {words}")


def _required(field: str, words: str = "") -> FieldCause:
    return FieldCause(field, "FieldValueRequired", f"Required value: {words}" if words else "Required value")


class _KeepStatus(Strategy):
    """Kinds with a status subresource: the status is not set on creation, and changed only through it."""

    def prepare_create(self, new: Object) -> None:
        new.pop("status", None)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        kept = "spec" if subresource == "status" else "status"
        new.pop(kept, None)
        if kept in old:
            new[kept] = old[kept]


class _Namespaces(_KeepStatus):
    label_names = True
    deletes_many = False
    selectable = ("status.phase", "name")

    def prepare_create(self, new: Object) -> None:
        new["spec"] = {"finalizers": ["kubernetes"]}
        new["status"] = {"phase": "Active"}

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        new["spec"] = old.get("spec", {})
        if subresource != "status":
            new["status"] = old.get("status", {})

    def default(self, new: Object) -> None:
        metadata = new["metadata"]
        metadata["labels"] = {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata.get("name", "")}

    def fields(self, body: Object) -> Mapping[str, str]:
        return {"status.phase": body.get("status", {}).get("phase", ""), "name": body["metadata"]["name"]}


class _Data(Strategy):
    """ConfigMap and Secret."""

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        causes = [
            _invalid(f"{part}[{key}]", key, _KEY_WORDS)
            for part in ("data", "binaryData")
            for key in new.get(part, {})
            if not _KEY.fullmatch(key) or len(key) > 253
        ]
        if old is not None and old.get("immutable"):
            words = "field is immutable when `immutable` is set"
            if not new.get("immutable"):
                causes.append(_forbidden("immutable", words))
            causes += [
                _forbidden(part, words) for part in ("data", "binaryData") if new.get(part, {}) != old.get(part, {})
            ]
        return causes


class _Secrets(_Data):
    selectable = ("type",)

    def default(self, new: Object) -> None:
        new.setdefault("type", "Opaque")
        plain = new.pop("stringData", None) or {}
        if plain:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
            new["data"] = {**new.get("data", {}), **encoded}

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        causes = super().validate(new, old)
        if old is not None and new.get("type") != old.get("type"):
            causes.append(_invalid("type", new.get("type"), "field is immutable"))
        return causes

    def fields(self, body: Object) -> Mapping[str, str]:
        return {"type": body.get("type", "")}


class _Leases(Strategy):
    unconditional = False
    create_on_update = True

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        spec = new.get("spec", {})
        causes = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            causes.append(_invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            causes.append(_invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return causes


class _Events(Strategy):
    selectable = (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type",
    )  # fmt: skip

    create_on_update = True

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        about: Object = new.get("involvedObject") or new.get("regarding") or {}
        causes = []
        expected = about.get("namespace") or "default"
        if expected != new["metadata"].get("namespace"):
            causes.append(
                _invalid("involvedObject.namespace", about.get("namespace", ""), "does not match event.namespace")
            )
        if self._strict and old is None:
            if new.get("eventTime") is None:
                causes.append(_required("eventTime"))
                return [*causes, *self._type_problems(new)]
            causes += self._strict_problems(new)
        return causes

    @staticmethod
    def _type_problems(new: Object) -> list[FieldCause]:
        given = new.get("type", "")
        return [] if given in {"Normal", "Warning"} else [_invalid("type", "", f"has invalid value: {given}")]

    @classmethod
    def _strict_problems(cls, new: Object) -> list[FieldCause]:
        causes = []
        for name, limit in (("reportingController", 0), ("reportingInstance", 128), ("action", 128), ("reason", 128)):
            value = new.get(name, "")
            if not value:
                causes.append(_required(name))
            elif limit and len(value) > limit:
                causes.append(_invalid(name, "", f"can have at most {limit} characters"))
        if len(new.get("note", "")) > 1024:
            causes.append(_invalid("message", "", "can have at most 1024 characters"))
        return causes + cls._type_problems(new)

    def fields(self, body: Object) -> Mapping[str, str]:
        about = body.get("involvedObject", {})
        found = {f"involvedObject.{name}": value for name, value in about.items() if isinstance(value, str)}
        return {
            **found,
            "reason": body.get("reason", ""),
            "type": body.get("type", ""),
            "reportingComponent": body.get("reportingComponent", ""),
            "source": body.get("source", {}).get("component", "") or body.get("reportingComponent", ""),
        }


class _Nodes(_KeepStatus):
    selectable = ("spec.unschedulable",)

    def prepare_create(self, new: Object) -> None:
        """A kubelet registers its Node with the status in it, and the real server keeps that."""

    def fields(self, body: Object) -> Mapping[str, str]:
        return {"spec.unschedulable": "true" if body.get("spec", {}).get("unschedulable") else "false"}


class _ServiceAccounts(Strategy):
    returns_deleted = True


class _Pods(_KeepStatus):
    returns_deleted = True
    selectable = ("spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase", "status.podIP")

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("restartPolicy", "Always")
        spec.setdefault("terminationGracePeriodSeconds", 30)

    def prepare_create(self, new: Object) -> None:
        new["status"] = {"phase": "Pending"}

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        if subresource == "status":
            new["metadata"].pop("ownerReferences", None)
            if "ownerReferences" in old["metadata"]:
                new["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        containers = new.get("spec", {}).get("containers") or []
        causes = [] if containers else [_required("spec.containers")]
        for number, container in enumerate(containers):
            path = f"spec.containers[{number}]"
            causes += [_required(f"{path}.{name}") for name in ("name", "image") if not container.get(name)]
        return causes

    def fields(self, body: Object) -> Mapping[str, str]:
        spec, status = body.get("spec", {}), body.get("status", {})
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "status.phase": status.get("phase", ""),
            "status.podIP": status.get("podIP", ""),
        }


_RENAMED: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK: Final = {stored: young for young, stored in _RENAMED.items()}


def _renaming(names: Mapping[str, str]) -> Callable[[Object], Object]:
    return lambda body: {names.get(name, name): value for name, value in body.items()}


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


_COLUMNS: Final[Mapping[str, tuple[TableColumn, ...]]] = {
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


def _kind(
    group: str,
    version: str,
    name: str,
    plural: str,
    strategy: Strategy,
    *short: str,
    namespaced: bool = True,
    **options: Any,
) -> ServedKind:
    schema = SCHEMAS[name] if (f"{group}/{name}" not in SCHEMAS) else SCHEMAS[f"{group}/{name}"]
    status = options.pop("status", False)
    served = Served.of(version, schema, status=status, columns=_COLUMNS[name])
    return ServedKind(
        group, name, plural, plural.removesuffix("s"), namespaced, {version: served}, version,
        short_names=short, strategy=strategy, **options,
    )  # fmt: skip


def built_in_kinds(definitions: Strategy) -> list[ServedKind]:
    """The kinds that every server has.

    :param definitions: the strategy of CustomResourceDefinitions.
    """
    return [
        _kind("", "v1", "Namespace", "namespaces", _Namespaces(), "ns", namespaced=False, status=True),
        _kind("", "v1", "ConfigMap", "configmaps", _Data(), "cm"),
        _kind("", "v1", "Secret", "secrets", _Secrets()),
        _kind("", "v1", "ServiceAccount", "serviceaccounts", _ServiceAccounts(), "sa"),
        _kind("", "v1", "Node", "nodes", _Nodes(), "no", namespaced=False, status=True),
        _kind("", "v1", "Pod", "pods", _Pods(), "po", status=True, categories=("all",), generated=True),
        _kind("", "v1", "Event", "events", _Events(strict=False), "ev"),
        _kind(
            "events.k8s.io",
            "v1",
            "Event",
            "events",
            _Events(strict=True),
            "ev",
            stored_as=("", "events"),
            to_storage=_renaming(_RENAMED),
            from_storage=_renaming(_BACK),
        ),
        _kind("coordination.k8s.io", "v1", "Lease", "leases", _Leases()),
        _kind(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            _KeepStatus(),
            "pdb",
            status=True,
            generated=True,
        ),
        _kind(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            definitions,
            "crd",
            "crds",
            namespaced=False,
            status=True,
            generated=True,
            categories=("api-extensions",),
        ),
    ]
