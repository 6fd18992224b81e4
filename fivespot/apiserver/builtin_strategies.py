"""Strategies of the built-in kinds."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from .kinds import Strategy
from .names import qualified_problem, value_problem
from .schema.cel_library import parse_quantity
from .schema.validation import format_value
from .status import FieldCause

__all__ = [
    "DataStrategy",
    "DisruptionBudgetStrategy",
    "LeaseStrategy",
    "NamespaceStrategy",
    "NodeStrategy",
    "PodStrategy",
    "SecretStrategy",
    "ServiceAccountStrategy",
]

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


_SIZE_LIMIT: Final = 1024 * 1024
_SECRET_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_SECRET_DOCUMENTS: Final[Mapping[str, str]] = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PERCENT: Final = re.compile(r"[0-9]+%")


def _key_problem(key: str) -> str:
    if key in {".", ".."}:
        return f"must not be '{key}'"
    if key.startswith(".."):
        return "must not start with '..'"
    return "" if _KEY.fullmatch(key) and len(key) <= 253 else _KEY_WORDS


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def _too_long(field: str) -> FieldCause:
    return FieldCause(field, "FieldValueTooLong", f"Too long: may not be more than {_SIZE_LIMIT} bytes")


def _taint_problems(taints: list[Object]) -> list[FieldCause]:
    causes = []
    seen: set[tuple[str, str]] = set()
    for number, taint in enumerate(taints):
        path = f"metadata.taints[{number}]"
        key, value, effect = (taint.get(name, "") for name in ("key", "value", "effect"))
        if problem := qualified_problem(key):
            causes.append(_invalid(f"{path}.key", key, problem))
        if problem := value_problem(value):
            causes.append(_invalid(f"{path}.value", value, problem))
        if not effect:
            causes.append(_required(f"{path}.effect"))
        elif effect not in _EFFECTS:
            listed = ", ".join(f'"{each}"' for each in _EFFECTS)
            words = f"Unsupported value: {format_value(effect)}: supported values: {listed}"
            causes.append(FieldCause(f"{path}.effect", "FieldValueNotSupported", words))
        if (key, effect) in seen:
            words = f"Duplicate value: {format_value(taint)}: taints must be unique by key and effect pair"
            causes.append(FieldCause(path, "FieldValueDuplicate", words))
        seen.add((key, effect))
    return causes


class StatusStrategy(Strategy):
    """Kinds with a status subresource: the status is not set on creation, and changed only through it."""

    def prepare_create(self, new: Object) -> None:
        new.pop("status", None)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        kept = "spec" if subresource == "status" else "status"
        new.pop(kept, None)
        if kept in old:
            new[kept] = old[kept]


class NamespaceStrategy(StatusStrategy):
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


class DataStrategy(Strategy):
    """ConfigMap and Secret."""

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        causes = [
            _invalid(f"{part}[{key}]", key, problem)
            for part in ("data", "binaryData")
            for key in new.get(part, {})
            if (problem := _key_problem(key))
        ]
        causes += [
            _invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
            for key in new.get("data", {})
            if key in new.get("binaryData", {})
        ]
        causes += self._size_problems(new)
        if old is not None and old.get("immutable"):
            words = "field is immutable when `immutable` is set"
            if not new.get("immutable"):
                causes.append(_forbidden("immutable", words))
            causes += [
                _forbidden(part, words) for part in ("data", "binaryData") if new.get(part, {}) != old.get(part, {})
            ]
        return causes

    def _size_problems(self, new: Object) -> list[FieldCause]:
        size = sum(len(value.encode()) for value in new.get("data", {}).values())
        size += sum(_decoded_size(value) for value in new.get("binaryData", {}).values())
        return [_too_long("[]")] if size > _SIZE_LIMIT else []


class SecretStrategy(DataStrategy):
    selectable = ("type",)

    def default(self, new: Object) -> None:
        if not new.get("type"):
            new["type"] = "Opaque"
        plain = new.pop("stringData", None) or {}
        if plain:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
            new["data"] = {**new.get("data", {}), **encoded}

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        causes = [*super().validate(new, old), *self._type_problems(new)]
        if old is not None and new.get("type") != old.get("type"):
            causes.append(_invalid("type", new.get("type"), "field is immutable"))
        return causes

    def _size_problems(self, new: Object) -> list[FieldCause]:
        size = sum(map(_decoded_size, new.get("data", {}).values()))
        return [_too_long("data")] if size > _SIZE_LIMIT else []

    @staticmethod
    def _type_problems(new: Object) -> list[FieldCause]:
        data, kind = new.get("data", {}), new.get("type", "")
        causes = []
        if kind == "kubernetes.io/service-account-token":
            annotation = "kubernetes.io/service-account.name"
            if not new["metadata"].get("annotations", {}).get(annotation):
                causes.append(_required(f"metadata.annotations[{annotation}]"))
        elif kind == "kubernetes.io/basic-auth":
            if not {"username", "password"} & set(data):
                causes += [_required(f"data[{key}]") for key in ("username", "password")]
        else:
            causes += [_required(f"data[{key}]") for key in _SECRET_KEYS.get(kind, ()) if key not in data]
        key = _SECRET_DOCUMENTS.get(kind, "")
        if key in data:
            try:
                json.loads(base64.b64decode(data[key]))
            except ValueError as error:
                causes.append(_invalid(f"data[{key}]", "<secret contents redacted>", str(error)))
        return causes

    def fields(self, body: Object) -> Mapping[str, str]:
        return {"type": body.get("type", "")}


class LeaseStrategy(Strategy):
    unconditional = False
    create_on_update = True

    def default(self, new: Object) -> None:
        # Fields of a feature that is disabled by default.
        for name in ("strategy", "preferredHolder"):
            new.get("spec", {}).pop(name, None)

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        spec = new.get("spec", {})
        causes = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            causes.append(_invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            causes.append(_invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return causes


class NodeStrategy(StatusStrategy):
    selectable = ("spec.unschedulable",)

    def prepare_create(self, new: Object) -> None:
        """Keep the status: a kubelet registers its Node with it."""

    def default(self, new: Object) -> None:
        status = new.get("status", {})
        if status.get("capacity") and "allocatable" not in status:
            status["allocatable"] = dict(status["capacity"])

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        taints = new.get("spec", {}).get("taints", [])
        causes = [] if old is not None and old.get("spec", {}).get("taints", []) == taints else _taint_problems(taints)
        for part in ("capacity", "allocatable"):
            for name, value in new.get("status", {}).get(part, {}).items():
                if parse_quantity(str(value)) < 0:
                    causes.append(_invalid(f"status.{part}.{name}", value, "must be greater than or equal to 0"))
        return causes

    def fields(self, body: Object) -> Mapping[str, str]:
        return {"spec.unschedulable": "true" if body.get("spec", {}).get("unschedulable") else "false"}


class ServiceAccountStrategy(Strategy):
    returns_deleted = True
    actions = MappingProxyType({"token": {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}})


class PodStrategy(StatusStrategy):
    returns_deleted = True
    actions = MappingProxyType({
        "binding": {"group": "", "version": "v1", "kind": "Binding"},
        "eviction": {"group": "policy", "version": "v1", "kind": "Eviction"},
    })  # fmt: skip
    selectable = ("spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase", "status.podIP")

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("restartPolicy", "Always")
        spec.setdefault("terminationGracePeriodSeconds", 30)

    def prepare_create(self, new: Object) -> None:
        new["status"] = {"phase": "Pending"}

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "binding":
            return
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


class DisruptionBudgetStrategy(StatusStrategy):
    """The strategy of PodDisruptionBudgets."""

    def prepare_create(self, new: Object) -> None:
        names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        new["status"] = dict.fromkeys(names, 0)

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        spec = new.get("spec", {})
        causes = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            causes.append(_invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        causes += [
            _invalid(f"spec.{name}", spec[name], problem)
            for name in ("minAvailable", "maxUnavailable")
            if (problem := _amount_problem(spec.get(name)))
        ]
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in {"AlwaysAllow", "IfHealthyBudget"}:
            words = f'Unsupported value: {format_value(policy)}: supported values: "AlwaysAllow", "IfHealthyBudget"'
            causes.append(FieldCause("spec.unhealthyPodEvictionPolicy", "FieldValueNotSupported", words))
        for key, value in (spec.get("selector") or {}).get("matchLabels", {}).items():
            if problem := qualified_problem(key):
                causes.append(_invalid("spec.selector.matchLabels", key, problem))
            if problem := value_problem(value):
                causes.append(_invalid("spec.selector.matchLabels", value, problem))
        return causes


def _amount_problem(value: Any) -> str:
    if isinstance(value, int):
        return "must be greater than or equal to 0" if value < 0 else ""
    if not isinstance(value, str):
        return ""
    if not _PERCENT.fullmatch(value):
        return (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
            "used for validation is '[0-9]+%')"
        )
    return "must not be greater than 100%" if int(value[:-1]) > 100 else ""
