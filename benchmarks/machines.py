"""Measure the manager on a real API server: start, memory, flips.

Absolute figures only mean something beside others of the same run on the same machine.

- cold start: process start to ready, and to every machine evaluated, with N machines present;
- resident memory with 0 and with N machines;
- first create: a schedule's status is patched, until the first child's POST is received (both by the audit log);
- a mass flip: CPU of the manager, wall time, and requests per machine, on and off.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controlplane import ControlPlane, read_crds
from controlplane.audit import WRITES, select
from fivespot.runtime.objects import parse_rfc3339
from harness import MANAGER_USER, MANIFESTS, ManagerProcess, install
from harness.providers import ProviderKind
from harness.wait import eventually

from ._report import parser, report

_MACHINE = ("5spot.finos.org/v1beta1", "ScheduledMachine")
_NAMESPACES = 10
_TICKS = 100.0
_PAGE_KIB = 4

Json = dict[str, Any]


def main() -> int:
    """Run and print."""
    options = parser("machines", __doc__)
    options.add_argument("--machines", type=int, default=2000, metavar="N")
    options.add_argument("--flips", type=int, default=100, metavar="N", help="single flips to time")
    given = options.parse_args()
    with ControlPlane(crds=read_crds(MANIFESTS / "crds")) as plane:
        install(plane)
        found = _Run(plane, given.machines, given.flips).measure()
    report(given, f"{given.machines} machines", [{"what": name, "value": value} for name, value in _flat("", found)])
    return 0


def _flat(prefix: str, found: Json) -> Iterator[tuple[str, Any]]:
    for name, value in found.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name} ", value)
        else:
            yield f"{prefix}{name}", value


class _Run:
    def __init__(self, plane: ControlPlane, machines: int, flips: int) -> None:
        self._plane = plane
        self._api = plane.api
        self._machines = machines
        self._flips = flips
        self._provider = ProviderKind(plane.api, "Benched")
        self._provider.install()
        self._spaces = [f"bench-{number}" for number in range(_NAMESPACES)]

    def measure(self) -> Json:
        result: Json = {"machines": self._machines}
        with ManagerProcess(self._plane) as manager:
            result["rss_mib_at_0"] = _rss(manager.pid)
            self._stage()
            _say(f"{self._machines} machines are created")
            self._populate()
            self._wait("Inactive", self._machines)
            result["first_create_ms"] = self._single_flips()
            mark = self._plane.audit_log.mark()
            result["flip_on"] = self._flip(manager, True, "Active")
            result["flip_off"] = self._flip(manager, False, "Inactive")
            result["requests"] = self._requests(mark)
            result["rss_mib_after_flips"] = _rss(manager.pid)
        mark = self._plane.audit_log.mark()
        begun = time.monotonic()
        with ManagerProcess(self._plane) as manager:
            result["cold_start_ready_s"] = round(time.monotonic() - begun, 2)
            eventually(lambda: self._evaluated(manager) >= self._machines, 120, what="all evaluated", poll=0.1)
            result["cold_start_evaluated_s"] = round(time.monotonic() - begun, 2)
            result["cold_start_cpu_s"] = _cpu(manager.pid)
            time.sleep(10)
            result["rss_mib_at_n"] = _rss(manager.pid)
        result["cold_start_writes"] = len(select(self._plane.audit(since=mark), user=MANAGER_USER, verbs=WRITES))
        return result

    def _stage(self) -> None:
        for space in [*self._spaces, "bench-single"]:
            self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
            self._api.create(_cluster(space))
            self._provider.create(space, active=False)

    def _populate(self) -> None:
        bodies = [
            _machine(f"m{number}", self._spaces[number % _NAMESPACES], self._provider)
            for number in range(self._machines)
        ]
        self._api.create_many(bodies)
        self._api.create(_machine("single", "bench-single", self._provider))

    def _single_flips(self) -> Json:
        log = self._plane.audit_log
        waits = []
        for _ in range(self._flips):
            mark = log.mark()
            self._provider.status("bench-single", active=True)
            eventually(lambda: self._phase("bench-single", "single") == "Active", 20, poll=0.02)
            events = log.events(since=mark)
            flip = select(events, verbs="patch", resource=f"{self._provider.kind.lower()}s")[0]
            made = select(events, user=MANAGER_USER, verbs="create", namespace="bench-single")
            first = min(_received(event) for event in made if event["objectRef"]["resource"] != "events")
            waits.append((first - _received(flip)) * 1000)
            self._provider.status("bench-single", active=False)
            eventually(lambda: self._phase("bench-single", "single") == "Inactive", 20, poll=0.02)
        waits.sort()
        return {
            "p50": round(statistics.median(waits), 1),
            "p99": round(waits[min(len(waits) - 1, int(len(waits) * 0.99))], 1),
            "n": len(waits),
        }

    def _flip(self, manager: ManagerProcess, active: bool, phase: str) -> Json:
        before, begun = _cpu(manager.pid), time.monotonic()
        for space in self._spaces:
            self._provider.status(space, active=active)
        self._wait(phase, self._machines)
        wall = time.monotonic() - begun
        spent = _cpu(manager.pid) - before
        scale = 1000 / self._machines
        return {"wall_s": round(wall, 2), "cpu_s_per_1000": round(spent * scale, 2), "rss_mib": _rss(manager.pid)}

    def _requests(self, mark: int) -> Json:
        counts: dict[str, float] = {}
        for event in select(self._plane.audit(since=mark), user=MANAGER_USER):
            ref = event.get("objectRef", {})
            what = "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))
            if event["verb"] not in {"watch", "list"}:
                name = f"{event['verb']} {what}"
                counts[name] = counts.get(name, 0) + 1 / self._machines
        return {name: round(count, 3) for name, count in sorted(counts.items())}

    def _wait(self, phase: str, count: int) -> None:
        def done() -> bool:
            items = [item for space in self._spaces for item in self._api.list(*_MACHINE, space)]
            return len([item for item in items if item.get("status", {}).get("phase") == phase]) >= count

        eventually(done, 600, what=f"all {phase}", poll=1.0)

    def _phase(self, namespace: str, name: str) -> str:
        return str(self._api.get(*_MACHINE, name, namespace).get("status", {}).get("phase"))

    @staticmethod
    def _evaluated(manager: ManagerProcess) -> float:
        name = 'controller_runtime_reconcile_total{controller="scheduledmachine",result="success"}'
        return manager.metrics().get(name, 0)


def _cluster(namespace: str) -> Json:
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "StandInCluster", "name": "prod"}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "prod", "namespace": namespace},
        "spec": {"infrastructureRef": reference},
    }


def _machine(name: str, namespace: str, provider: ProviderKind) -> Json:
    return {
        "apiVersion": _MACHINE[0],
        "kind": _MACHINE[1],
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedule": provider.reference(),
            "clusterName": "prod",
            "gracefulShutdownTimeout": "0s",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "StandInBootstrap",
                "spec": {"token": "x" * 200},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "StandInMachine",
                "spec": {"size": "large"},
            },
        },
    }


def _received(event: Json) -> float:
    return parse_rfc3339(event["requestReceivedTimestamp"]).timestamp()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return round((int(fields[11]) + int(fields[12])) / _TICKS, 2)


def _rss(pid: int) -> float:
    return round(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_KIB / 1024, 1)


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
