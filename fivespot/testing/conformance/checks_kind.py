"""Rules about the kind itself, read from its CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fivespot.api.names import LABEL_CLUSTERCTL_MOVE, PROVIDER_GROUP

from .harness import Rig, UnjudgedError, ViolationError

__all__ = ["active_is_required", "moves_along", "served", "status_is_apart"]

_LEGACY = frozenset({"TimeBasedSpotSchedule", "CapitalMarketsSchedule"})
"""Kinds that keep the default for compatibility with the existing 5-Spot."""


async def served(rig: Rig) -> str:
    resource = rig.resource
    if resource.group != PROVIDER_GROUP:
        raise ViolationError(f"its group is {resource.group}, so no ScheduledMachine can refer to it")
    if not resource.namespaced:
        raise ViolationError(f"{resource.kind} is cluster-scoped")
    if rig.definition is None:
        return f"served as {resource}; its CustomResourceDefinition may not be read"
    conditions = (rig.definition.get("status") or {}).get("conditions") or ()
    states = {entry.get("type"): entry.get("status") for entry in conditions}
    if states.get("Established") != "True":
        raise ViolationError(f"{resource.qualified} is not Established")
    if rig.definition["metadata"].get("deletionTimestamp"):
        raise ViolationError(f"{resource.qualified} is being deleted")
    return f"served as {resource}"


async def status_is_apart(rig: Rig) -> None:
    for version in _versions(rig):
        if "status" not in (version.get("subresources") or {}):
            raise ViolationError(f"version {version['name']} has no status subresource")


async def active_is_required(rig: Rig) -> str | None:
    note = None
    for version in _versions(rig):
        where = f"status.active of version {version['name']}"
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        status = (schema.get("properties") or {}).get("status") or {}
        if "default" in status:
            raise ViolationError(f"status of version {version['name']} has a default: {status['default']!r}")
        active = (status.get("properties") or {}).get("active")
        if active is None:
            kept = any(part.get("x-kubernetes-preserve-unknown-fields") for part in (status, schema))
            if not kept:
                raise ViolationError(f"{where} is not in the schema, so the API server drops it")
            raise ViolationError(f"{where} is not in the schema, so nothing keeps it a boolean that is there")
        if active.get("type") != "boolean":
            raise ViolationError(f"{where} has the type {active.get('type')!r} in the schema")
        if "default" in active:
            if rig.resource.kind not in _LEGACY:
                raise ViolationError(f"{where} has the default {active['default']!r}")
            note = f"{where} keeps its default for compatibility"
        elif "active" not in (status.get("required") or ()):
            raise ViolationError(f"{where} is not required")
    return note


async def moves_along(rig: Rig) -> None:
    labels = _definition(rig)["metadata"].get("labels") or {}
    if LABEL_CLUSTERCTL_MOVE not in labels and f"{LABEL_CLUSTERCTL_MOVE}-hierarchy" not in labels:
        raise ViolationError(f"the CustomResourceDefinition has no label {LABEL_CLUSTERCTL_MOVE}")


def _definition(rig: Rig) -> Mapping[str, Any]:
    if rig.definition is None:
        raise UnjudgedError("the CustomResourceDefinition may not be read")
    return rig.definition


def _versions(rig: Rig) -> list[Mapping[str, Any]]:
    return [version for version in _definition(rig)["spec"]["versions"] if version.get("served")]
