"""A list of 50,000 objects of 3 kB, from a server in another process to a synced informer.

Goal: the loop never stalls for 100 ms, because an election that shares it has 10 s in all. A stall is counted in
processor time (what other tasks had to wait for) and in wall time (which includes what else the machine runs). Each
case is a process of its own; the first only reads the bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import threading
import time
from datetime import datetime

import msgspec

from fivespot.runtime import METADATA, Cache, Client, Metrics, Projection, Resource, SystemClock
from fivespot.runtime.cache import ReflectorSettings
from fivespot.runtime.client import HttpTransport
from fivespot.runtime.client.auth import Access, Credentials
from fivespot.runtime.clock import InlineOffload, system_random
from fivespot.runtime.manager.gc_policy import CollectorPolicy
from fivespot.runtime.objects import FULL

from ._report import Row, parser, report, resident
from ._server import REPOSITORY, serving

MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")


class Slim(msgspec.Struct, gc=False):
    """Roughly the fields that the machine controller reads."""

    class Spec(msgspec.Struct, gc=False, rename="camel"):
        cluster_name: str = ""
        provider_id: str = ""

    class Status(msgspec.Struct, gc=False, rename="camel"):
        phase: str = ""
        node_ref: dict[str, str] | None = None

    spec: Spec | None = None
    status: Status | None = None


PROJECTIONS = {"full": FULL, "slim": Projection.fields("slim", Slim, annotations=frozenset()), "metadata": METADATA}
CASES = ("bytes", *(f"{way}, {kept}" for way in ("pages", "stream") for kept in PROJECTIONS))


class Stalls:
    """Watches how long the loop takes to come back."""

    def __init__(self) -> None:
        self.processor = self.wall = 0.0

    async def watch(self) -> None:
        while True:
            wall, processor = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            self.wall = max(self.wall, time.perf_counter() - wall - 0.001)
            self.processor = max(self.processor, time.thread_time() - processor)


async def measure(case: str, url: str, count: int) -> Row:
    """One case, in this process."""
    clock, rng = SystemClock(), system_random(1)

    def load(now: datetime, interrupt: threading.Event) -> Access:
        return Access(url)

    transport = HttpTransport(Credentials(load, clock=clock, offload=InlineOffload()), user_agent="bench")
    client = Client(transport, clock=clock, rng=rng)
    await client.raw("GET", "/version")
    collector = CollectorPolicy(Metrics(process=False), asyncio.get_running_loop().time)
    collector.start()
    stalls = Stalls()
    watching = asyncio.create_task(stalls.watch())
    before = resident()
    wall, processor = time.perf_counter(), time.process_time()
    if case == "bytes":
        await read(client)
        wall, processor, steady = time.perf_counter() - wall, time.process_time() - processor, resident()
    else:
        way, _, kept = case.partition(", ")
        settings = ReflectorSettings(streaming=way == "stream")
        async with Cache(client, clock=clock, rng=rng, settings=settings) as cache:
            informer = cache.informer(MACHINES, projection=PROJECTIONS[kept])
            informer.add_index("team", lambda change: [change.head.labels["team"]])
            await informer.wait_synced()
            wall, processor, steady = time.perf_counter() - wall, time.process_time() - processor, resident()
            assert len(informer) == count
    watching.cancel()
    collector.stop()
    await client.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "case": case,
        "wall s": round(wall, 2),
        "CPU s": round(processor, 2),
        "stall ms (CPU)": round(stalls.processor * 1000, 1),
        "stall ms (wall)": round(stalls.wall * 1000, 1),
        "growth MiB": round(steady - before, 1),
        "peak growth MiB": round(peak - before, 1),
    }


async def read(client: Client) -> None:
    """All pages, and nothing done with them."""
    token = ""
    while True:
        token = (await client.page(MACHINES, limit=500, continue_token=token)).continue_token
        if not token:
            return


def main() -> None:
    options = parser("list", __doc__)
    options.add_argument("--objects", type=int, default=50_000, metavar="N")
    options.add_argument("--case", choices=CASES, action="append", help="default: all")
    options.add_argument("--url", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.url:
        print(json.dumps(asyncio.run(measure(given.case[0], given.url, given.objects))))
        return
    rows: list[Row] = []
    with serving("machines", given.objects) as url:
        for case in given.case or CASES:
            command = [sys.executable, "-m", "benchmarks.list", "--case", case, "--url", url]
            command += ["--objects", str(given.objects)]
            done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, check=True, text=True)
            row = json.loads(done.stdout)
            floor = rows[0]["CPU s"] if rows else row["CPU s"]
            rows.append(row | {"CPU of bytes": row["CPU s"] / floor})
    del given.url, given.case
    report(given, f"{given.objects} objects of 3 kB", rows)


if __name__ == "__main__":
    main()
