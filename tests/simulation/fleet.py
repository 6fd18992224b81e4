"""Helpers that create ScheduledMachines and schedules in the embedded system and count them."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from fivespot.runtime import Key, Resource, merge_patch
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.system import EmbeddedSystem

__all__ = [
    "DAY",
    "SCHEDULED_MACHINES",
    "SCHEDULES",
    "SWITCHES",
    "Trace",
    "add_machine",
    "add_schedule",
    "add_switch",
    "counts",
    "phases",
    "turn",
]

Json = dict[str, Any]

DAY = 86_400.0
SCHEDULES = Resource("spotschedules.5spot.finos.org", "v1alpha1", "timebasedspotschedules", "TimeBasedSpotSchedule")
SWITCHES = Resource("spotschedules.5spot.finos.org", "v1alpha1", "manualschedules", "ManualSchedule")
SCHEDULED_MACHINES = Resource("5spot.finos.org", "v1beta1", "scheduledmachines", "ScheduledMachine")


async def add_schedule(system: EmbeddedSystem, name: str, **spec: Any) -> None:
    """A TimeBasedSpotSchedule in namespace ``default``."""
    metadata = {"name": name, "namespace": "default"}
    body = {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": metadata, "spec": spec}
    await system.cluster.client.create(SCHEDULES, body)


async def add_switch(system: EmbeddedSystem, name: str, *, enabled: bool, namespace: str = "default") -> None:
    """A ManualSchedule."""
    metadata = {"name": name, "namespace": namespace}
    body = {"apiVersion": SWITCHES.api_version, "kind": SWITCHES.kind, "metadata": metadata}
    await system.cluster.client.create(SWITCHES, body | {"spec": {"enabled": enabled}})


async def turn(system: EmbeddedSystem, name: str, *, on: bool) -> None:
    """Turn a ManualSchedule on or off."""
    await system.cluster.client.patch(SWITCHES, Key("default", name), merge_patch({"spec": {"enabled": on}}))


async def add_machine(
    system: EmbeddedSystem,
    name: str,
    schedule: str,
    *,
    kind: str = SCHEDULES.kind,
    namespace: str = "default",
    **spec: Any,
) -> None:
    """A ScheduledMachine of Cluster ``prod``."""
    family = system.family
    given = {
        "schedule": {"apiVersion": SCHEDULES.api_version, "kind": kind, "name": schedule},
        "clusterName": "prod",
        "bootstrapSpec": {"apiVersion": family.bootstrap.api_version, "kind": family.bootstrap.kind, "spec": {}},
        "infrastructureSpec": {"apiVersion": family.machine.api_version, "kind": family.machine.kind, "spec": {}},
        **spec,
    }
    body = {
        "apiVersion": SCHEDULED_MACHINES.api_version,
        "kind": SCHEDULED_MACHINES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": given,
    }
    await system.cluster.client.create(SCHEDULED_MACHINES, body)


async def counts(system: EmbeddedSystem) -> int:
    """Count the Machines that are not being deleted."""
    found = await system.cluster.client.list(MACHINES)
    return sum(not machine.head.deleting for machine in found)


async def phases(system: EmbeddedSystem) -> Counter[str]:
    """Count ScheduledMachines by phase."""
    found = await system.cluster.client.list(SCHEDULED_MACHINES)
    return Counter((obj.decode().get("status") or {}).get("phase", "") for obj in found)


class Trace:
    """A digest of the stored state, equal for equal runs."""

    def __init__(self, system: EmbeddedSystem) -> None:
        self._system = system

    async def digest(self) -> str:
        """Hash every object of the kinds that matter, with uid and version."""
        digest = hashlib.sha256()
        for resource in (SCHEDULED_MACHINES, SCHEDULES, MACHINES):
            for obj in sorted(await self._system.cluster.client.list(resource), key=lambda obj: str(obj.key)):
                digest.update(obj.raw)
                digest.update(f"{obj.key} {obj.head.uid} {obj.head.version}".encode())
        return digest.hexdigest()
