"""The whole system in virtual time: a month of working days, and a day of many machines, with every phase of a Machine.

Goal: each in under a minute on one core of a quiet machine. What counts is the CPU time of a cycle (a machine comes up,
runs, and goes), which the embedded server, the simulated Cluster API and fivespot's controllers share.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from fivespot.runtime import Resource
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.system import EmbeddedSystem
from fivespot.testing.virtual_time import run_virtual

from ._report import Row, parser, report

_MONDAY: Final = datetime(2026, 3, 2, tzinfo=UTC)
_DAY: Final = 86_400.0
_WEEK: Final = 7
_WORKING: Final = 5
_GROUP: Final = "spotschedules.5spot.finos.org"
_SCHEDULES: Final = Resource(_GROUP, "v1alpha1", "timebasedspotschedules", "TimeBasedSpotSchedule")
_MACHINES: Final = Resource("5spot.finos.org", "v1beta1", "scheduledmachines", "ScheduledMachine")
_HOURS: Final = {"timezone": "Europe/Berlin", "windows": [{"days": ["mon-fri"], "start": "08:00", "end": "18:00"}]}


def _body(resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


async def _run(machines: int, days: int) -> int:
    """The writes that it took."""
    async with EmbeddedCluster(start=_MONDAY, stride=3600) as cluster, EmbeddedSystem(cluster) as system:
        await system.add_cluster("default")
        family, client = system.family, cluster.client
        await client.create(_SCHEDULES, _body(_SCHEDULES, "hours", _HOURS))
        spec = {
            "schedule": {"apiVersion": _SCHEDULES.api_version, "kind": _SCHEDULES.kind, "name": "hours"},
            "clusterName": "prod",
            "gracefulShutdownTimeout": "2m",
            "bootstrapSpec": {"apiVersion": family.bootstrap.api_version, "kind": family.bootstrap.kind, "spec": {}},
            "infrastructureSpec": {"apiVersion": family.machine.api_version, "kind": family.machine.kind, "spec": {}},
        }
        async with system.manager():
            for number in range(machines):
                await client.create(_MACHINES, _body(_MACHINES, f"web-{number}", spec))
            await system.sleep_until(days * _DAY)
        return cluster.server.cluster.store.version


def measure(machines: int, days: int) -> Row:
    """One run."""
    wall, cpu = time.perf_counter(), time.process_time()
    writes = run_virtual(_run(machines, days))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    cycles = machines * sum(day % _WEEK < _WORKING for day in range(days))
    return {
        "machines": machines,
        "days": days,
        "cycles": cycles,
        "writes": writes,
        "wall s": wall,
        "CPU s": cpu,
        "CPU ms a cycle": 1000 * cpu / cycles,
    }


def main() -> None:
    """Run both."""
    command = parser("simulation", __doc__)
    command.add_argument("--month-machines", type=int, default=100, help="default: %(default)s")
    command.add_argument("--day-machines", type=int, default=1000, help="default: %(default)s")
    given = command.parse_args()
    # The log of a month is of no use, and is not part of what is measured.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    rows = [measure(given.month_machines, 31), measure(given.day_machines, 1)]
    report(given, "the whole system in virtual time", rows)


if __name__ == "__main__":
    main()
