"""Schedule provider, machine controller and simulated Cluster API in one process, for some hours of virtual time."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from fivespot.cli.crds.definitions import definitions
from fivespot.controllers import scheduledmachine
from fivespot.providers.registry import shipped_controller
from fivespot.runtime import Key, Resource
from fivespot.testing.cluster import START, EmbeddedCluster
from fivespot.testing.clusterapi import SIMULATED, add_providers, cluster_bodies, create_cluster
from fivespot.testing.clusterapi.core import MACHINES, add_core, core_definitions
from fivespot.testing.clusterapi.workload import NODES
from fivespot.testing.virtual_time import run_virtual

SCHEDULES = Resource("spotschedules.5spot.finos.org", "v1alpha1", "timebasedspotschedules", "TimeBasedSpotSchedule")
SCHEDULED_MACHINES = Resource("5spot.finos.org", "v1beta1", "scheduledmachines", "ScheduledMachine")

WINDOWS = [{"days": ["mon"], "start": "00:30", "end": "01:15"}, {"days": ["mon"], "start": "02:00", "end": "02:45"}]
OPEN = [(0.5, 1.25), (2, 2.75)]
"""The same in hours since the beginning, a Monday at midnight."""
HOURS = 4


def wanted(now: datetime) -> bool:
    hours = (now - START) / timedelta(hours=1)
    return any(begin <= hours < end for begin, end in OPEN)


def bodies() -> list[tuple[Resource, dict[str, Any]]]:
    metadata = {"name": "web", "namespace": "prod"}
    schedule = {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": metadata}
    machine = {
        "schedule": {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "name": "web"},
        "clusterName": "east",
        "bootstrapSpec": {"apiVersion": SIMULATED.bootstrap.api_version, "kind": SIMULATED.bootstrap.kind, "spec": {}},
        "infrastructureSpec": {
            "apiVersion": SIMULATED.machine.api_version,
            "kind": SIMULATED.machine.kind,
            "spec": {"createAfterSeconds": 60, "deleteAfterSeconds": 30},
        },
        "gracefulShutdownTimeout": "5m",
    }
    return [
        (SCHEDULES, {**schedule, "spec": {"windows": WINDOWS}}),
        (
            SCHEDULED_MACHINES,
            {
                "apiVersion": SCHEDULED_MACHINES.api_version,
                "kind": SCHEDULED_MACHINES.kind,
                "metadata": metadata,
                "spec": machine,
            },
        ),
    ]


def test_a_schedule_creates_and_deletes_a_machine_for_each_window_and_leaves_nothing() -> None:
    async def main() -> None:
        async with EmbeddedCluster() as cluster:
            await cluster.install(*definitions(), *core_definitions(), *SIMULATED.definitions())
            await cluster.namespace("prod")

            def setup(manager: Any) -> None:
                add_providers(manager)
                add_core(manager)

            async with (
                cluster.manager(name="simulation", setup=setup),
                cluster.manager(scheduledmachine.build, shipped_controller("TimeBasedSpotSchedule"), name="fivespot"),
            ):
                await create_cluster(cluster.client, cluster_bodies("prod", "east", kubeconfig="none"))
                for resource, body in bodies():
                    await cluster.client.create(resource, body)
                seen = await _watch(cluster)
            assert len(seen) == len(OPEN), "a machine for each window, and no other"
            for resource in (MACHINES, SIMULATED.machine, SIMULATED.bootstrap, NODES):
                assert await cluster.client.list(resource) == [], resource

    run_virtual(main())


async def _watch(cluster: EmbeddedCluster) -> set[str]:
    """Poll every five minutes; returns the uids of all Machines that were ever ready."""
    ready: set[str] = set()
    for _ in range(HOURS * 12):
        await asyncio.sleep(300)
        now = cluster.clock.now()
        found = (await cluster.client.get(SCHEDULED_MACHINES, Key("prod", "web"))).decode().get("status", {})
        if found.get("ready"):
            ready.add(found["machineRef"]["uid"])
        # A minute to be made; five of grace, half a one to be unmade, and the drain of an empty node.
        settled = wanted(now) == wanted(now - timedelta(minutes=9, seconds=59))
        if settled:
            assert found.get("ready", False) is wanted(now), (now, found)
            assert found["phase"] == ("Active" if wanted(now) else "Inactive"), (now, found)
    return ready
