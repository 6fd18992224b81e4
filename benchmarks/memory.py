"""Measure the memory of a manager with 10,000 active machines and their 30,000 children.

Goal: less than 200 MB resident in all. A real manager, with credentials as in a pod, reads from a server that makes its
objects up, so that nothing else is in its memory; every machine is evaluated and its status written once. The floor
beside it is a process that holds the bytes of the same objects in a dict, as they came.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from datetime import datetime
from pathlib import Path

import trustme

from fivespot.runtime import Client, Resource, SystemClock
from fivespot.runtime.client import HttpTransport
from fivespot.runtime.client.auth import Access, Credentials
from fivespot.runtime.clock import InlineOffload, system_random
from fivespot.runtime.objects import decode_head

from ._report import Row, parser, report, resident
from ._server import REPOSITORY, serving

RESOURCES = (
    Resource("5spot.finos.org", "v1beta1", "scheduledmachines", "ScheduledMachine"),
    Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine"),
    Resource("bootstrap.cluster.x-k8s.io", "v1beta1", "standinbootstraps", "StandInBootstrap"),
    Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "standinmachines", "StandInMachine"),
)
EVALUATED = 'controller_runtime_reconcile_total{controller="scheduledmachine",'
WRITTEN = 'rest_client_requests_total{code="200",method="PATCH"}'
_PATIENCE = 600.0


def managed(count: int) -> float:
    """MiB of a manager at rest that has evaluated so many machines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.crt")
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
        (folder / "token").write_text("none")
        log = folder / "log"
        command = [sys.executable, "-m", "benchmarks._pod", str(folder), "manager", "--bind-address", "127.0.0.1"]
        command += ["--metrics-port", "0", "--health-port", "0", "--controllers", "scheduledmachine"]
        with serving("fleet", count, folder / "server.pem") as url:
            where = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": url.rpartition(":")[2]}
            given = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")} | where
            with log.open("wb") as out, subprocess.Popen(command, cwd=REPOSITORY, stderr=out, env=given) as process:
                try:
                    _wait_until_quiet(log, count)
                    return resident(process.pid)
                finally:
                    process.terminate()


def _wait_until_quiet(log: Path, count: int) -> None:
    end = time.monotonic() + _PATIENCE
    before: tuple[float, float] = (-1.0, -1.0)
    while time.monotonic() < end:
        time.sleep(2)
        found = re.search(r'"metrics_port":(\d+)', log.read_text())
        if found is None or '"msg":"ready"' not in log.read_text():
            continue
        with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        runs = sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(EVALUATED))
        writes = sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(WRITTEN))
        if runs >= count and (runs, writes) == before:
            return
        before = runs, writes
    raise TimeoutError(f"the manager has not evaluated {count} machines:\n{log.read_text()[-2000:]}")


async def held(url: str) -> float:
    """MiB that this process grows by when it holds the bytes of all objects."""

    def load(now: datetime, interrupt: threading.Event) -> Access:
        return Access(url)

    clock = SystemClock()
    transport = HttpTransport(Credentials(load, clock=clock, offload=InlineOffload()), user_agent="bench")
    client = Client(transport, clock=clock, rng=system_random(1))
    await client.raw("GET", "/version")
    before = resident()
    objects: dict[tuple[str, str, str], bytes] = {}
    for resource in RESOURCES:
        token = ""
        while True:
            page = await client.page(resource, limit=500, continue_token=token)
            for item in page.items:
                head = decode_head(item)
                objects[resource.plural, head.namespace, head.name] = bytes(item)
            token = page.continue_token
            if not token:
                break
    grown = resident() - before
    await client.close()
    return grown


def main() -> None:
    options = parser("memory", __doc__)
    options.add_argument("--machines", type=int, default=10_000, metavar="N")
    options.add_argument("--url", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.url:
        print(asyncio.run(held(given.url)))
        return
    count = given.machines
    with serving("fleet", count) as url:
        command = [sys.executable, "-m", "benchmarks.memory", "--url", url]
        floor = float(subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, check=True, text=True).stdout)
    empty, full = managed(0), managed(count)
    rows: list[Row] = [
        _row("bytes in a dict", floor, count, floor),
        _row("manager, no machines", empty),
        _row(f"manager, {count} machines", full),
        _row("its growth", full - empty, count, floor),
    ]
    del given.url
    report(given, f"{count} ScheduledMachines and {3 * count} children of 2 to 3 kB", rows)


def _row(name: str, mib: float, count: int = 0, floor: float = 0.0) -> Row:
    row = {"what": name, "MiB": round(mib, 1)}
    if count:
        row |= {"bytes an object": round(mib * 2**20 / 4 / count), "of the bytes": mib / floor}
    return row


if __name__ == "__main__":
    main()
