"""The objects of the demo, and the actions of its operator. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from fivespot.runtime import Key, Resource
from fivespot.runtime.objects import rfc3339
from fivespot.testing.clusterapi import SIMULATED, KindFamily
from fivespot.testing.clusterapi.core import MACHINES

__all__ = [
    "HOURS",
    "MANUAL",
    "MARKET",
    "NAMESPACE",
    "NODES",
    "SCHEDULED_MACHINES",
    "STAND_INS",
    "START_OF_DAY",
    "ZONE",
    "OperatorAction",
    "acts",
    "bodies",
]

Json = dict[str, Any]

NAMESPACE: Final = "default"
STAND_INS: Final = KindFamily("SimulatedK0s", bootstrap_kind="K0sWorkerConfig", machine_kind="RemoteMachine")
"""Simulated kinds under the names of k0smotron's, so that the manifests of the documentation work in the demo."""
ZONE: Final = "Europe/Berlin"
START_OF_DAY: Final = timedelta(hours=7, minutes=50)
"""Start of the demo, on a Monday in :data:`ZONE`: ten real seconds before the office opens, at the default speed."""

_GROUP: Final = "spotschedules.5spot.finos.org"
HOURS: Final = Resource(_GROUP, "v1alpha1", "timebasedspotschedules", "TimeBasedSpotSchedule")
MARKET: Final = Resource(_GROUP, "v1alpha1", "capitalmarketsschedules", "CapitalMarketsSchedule")
MANUAL: Final = Resource(_GROUP, "v1alpha1", "manualschedules", "ManualSchedule")
SCHEDULED_MACHINES: Final = Resource("5spot.finos.org", "v1beta1", "scheduledmachines", "ScheduledMachine")

NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)

_SHORT: Final = {
    HOURS: "tbss",
    MARKET: "capitalmarketsschedule",
    MANUAL: "manualschedule",
    SCHEDULED_MACHINES: "sm",
    MACHINES: "machine",
}
"""Names of the kinds for kubectl and fivespot."""


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """An action of the operator.

    :param after: time since midnight of the first day.
    :param command: the command that does the same.
    :param change: merge patch of the object; None deletes it.
    """

    after: timedelta
    command: str
    resource: Resource
    name: str
    change: Json | None

    @property
    def key(self) -> Key:
        return Key(NAMESPACE, self.name)


def bodies() -> list[tuple[Resource, Json]]:
    """Build three schedules, and six machines that refer to them."""
    return [
        _body(
            HOURS,
            "office-hours",
            {"timezone": ZONE, "windows": [{"days": ["mon-fri"], "start": "08:00", "end": "18:00"}]},
        ),
        _body(
            MARKET,
            "new-york",
            {
                "timezone": "America/New_York",
                "sessions": [{"daysOfWeek": ["mon-fri"], "open": "09:30", "close": "16:00"}],
            },
        ),
        _body(MANUAL, "build-farm", {"enabled": False}),
        _machine("ci-1", MANUAL, "build-farm", grace="2m", seconds=60),
        _machine("pricing-1", MARKET, "new-york", grace="10m", seconds=120),
        _machine("pricing-2", MARKET, "new-york", grace="10m", seconds=150),
        _machine("web-1", HOURS, "office-hours", grace="5m", seconds=75),
        _machine("web-2", HOURS, "office-hours", grace="5m", seconds=90),
        _machine("web-3", HOURS, "office-hours", grace="5m", seconds=180),
    ]


def acts(midnight: datetime) -> list[OperatorAction]:
    """The actions of the first day.

    :param midnight: the start of that day in :data:`ZONE`.
    """
    until = rfc3339(midnight + timedelta(hours=8, minutes=10))
    evening = rfc3339(midnight + timedelta(hours=20))
    early = {"name": "early-build", "active": True, "until": until, "reason": "release 4.2"}
    late = {"name": "late-shift", "active": True, "until": evening, "reason": "end of quarter"}
    return [
        _override(7, 52, MANUAL, "build-farm", early, "08:10"),
        _patch(10, 0, SCHEDULED_MACHINES, "web-3", {"spec": {"killSwitch": True}}),
        _patch(10, 30, SCHEDULED_MACHINES, "web-3", {"spec": {"killSwitch": False}}),
        OperatorAction(_at(12, 0), f"kubectl delete {_SHORT[MACHINES]} web-2", MACHINES, "web-2", None),
        _patch(13, 0, SCHEDULED_MACHINES, "web-1", {"spec": {"enabled": False}}),
        _patch(14, 0, SCHEDULED_MACHINES, "web-1", {"spec": {"enabled": True}}),
        _override(17, 30, HOURS, "office-hours", late, "20:00"),
    ]


def _patch(hour: int, minute: int, resource: Resource, name: str, change: Json) -> OperatorAction:
    patch = json.dumps(change, separators=(",", ":"))
    command = f"kubectl patch {_SHORT[resource]} {name} --type=merge -p '{patch}'"
    return OperatorAction(_at(hour, minute), command, resource, name, change)


def _override(hour: int, minute: int, resource: Resource, name: str, entry: Json, until: str) -> OperatorAction:
    zone = f" --timezone {ZONE}" if resource == MANUAL else ""
    flags = f'--name {entry["name"]} --on --until {until}{zone} --reason "{entry["reason"]}"'
    command = f"fivespot override set {_SHORT[resource]}/{name} {flags}"
    return OperatorAction(_at(hour, minute), command, resource, name, {"spec": {"overrides": [entry]}})


def _at(hour: int, minute: int) -> timedelta:
    return timedelta(hours=hour, minutes=minute)


def _machine(name: str, kind: Resource, schedule: str, *, grace: str, seconds: float) -> tuple[Resource, Json]:
    """Build a ScheduledMachine whose machine takes that long to be provisioned, and its Node a minute more."""
    node = {"createAfterSeconds": 30, "readyAfterSeconds": 20}
    script = {"createAfterSeconds": seconds, "deleteAfterSeconds": 40, "node": node}
    return _body(
        SCHEDULED_MACHINES,
        name,
        {
            "schedule": {"apiVersion": kind.api_version, "kind": kind.kind, "name": schedule},
            "clusterName": "prod",
            "gracefulShutdownTimeout": grace,
            "bootstrapSpec": _embedded(SIMULATED.bootstrap, {"createAfterSeconds": 10}),
            "infrastructureSpec": _embedded(SIMULATED.machine, script),
        },
    )


def _embedded(resource: Resource, spec: Json) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}


def _body(resource: Resource, name: str, spec: Json) -> tuple[Resource, Json]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
