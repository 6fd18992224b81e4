"""ScheduledMachines and schedules as a person would write them, for tests to vary."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]

MACHINE = ("5spot.finos.org/v1beta1", "ScheduledMachine")
SCHEDULE = ("spotschedules.5spot.finos.org/v1alpha1", "TimeBasedSpotSchedule")
MARKET = ("spotschedules.5spot.finos.org/v1alpha1", "CapitalMarketsSchedule")


def reference(**changes: Any) -> Json:
    """A reference to the schedule ``hours``."""
    return {"apiVersion": SCHEDULE[0], "kind": SCHEDULE[1], "name": "hours", **changes}


def bootstrap(api_version: str = "bootstrap.cluster.x-k8s.io/v1beta1", **changes: Any) -> Json:
    """An embedded bootstrap object."""
    return {"apiVersion": api_version, "kind": "StandInBootstrap", "spec": {}, **changes}


def infrastructure(api_version: str = "infrastructure.cluster.x-k8s.io/v1beta1", **changes: Any) -> Json:
    """An embedded infrastructure object."""
    return {"apiVersion": api_version, "kind": "StandInMachine", "spec": {"size": "large"}, **changes}


def taint(key: str, effect: str = "NoSchedule", **more: Any) -> Json:
    """A node taint."""
    return {"key": key, "effect": effect, **more}


def machine(name: str, namespace: str, **changes: Any) -> Json:
    """A ScheduledMachine that breaks no rule, with ``changes`` to its spec."""
    spec = {
        "schedule": reference(),
        "clusterName": "prod",
        "bootstrapSpec": bootstrap(),
        "infrastructureSpec": infrastructure(),
    }
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": MACHINE[0],
        "kind": MACHINE[1],
        "metadata": metadata,
        "spec": {**spec, **copy.deepcopy(changes)},
    }


def schedule(name: str, namespace: str, spec: Json) -> Json:
    """A TimeBasedSpotSchedule."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": SCHEDULE[0], "kind": SCHEDULE[1], "metadata": metadata, "spec": copy.deepcopy(spec)}


def market(name: str, namespace: str, spec: Json) -> Json:
    """A CapitalMarketsSchedule."""
    return {**schedule(name, namespace, spec), "kind": MARKET[1]}


def without_rules(definition: Json) -> Json:
    """The definition as an older release could have shipped it: the same fields, and nothing that refuses a value."""
    found = copy.deepcopy(definition)
    for version in found["spec"]["versions"]:
        _loosen(version["schema"]["openAPIV3Schema"])
    return found


def _loosen(schema: Json) -> None:
    kept = {"type", "properties", "items", "additionalProperties", "default", "description", "required", "nullable"}
    for key in set(schema) - kept - {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"}:
        # How a list is keyed is not a rule that a server could tolerate afterwards; both releases have it.
        if key not in {"x-kubernetes-list-type", "x-kubernetes-list-map-keys"}:
            del schema[key]
    for member in schema.get("properties", {}).values():
        _loosen(member)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            _loosen(schema[inner])
