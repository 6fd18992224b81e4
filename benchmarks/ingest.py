"""Ingest throughput: a watch line of 3 kB to an enqueued key, through client, store, index, handler and work queue.

Run ``python -m benchmarks.ingest [events]`` in the project directory. Besides absolute numbers it prints the ratio to
the bare minimum of the same bytes in the same process (split into lines, and look at each line's type only), which is
what can be compared between machines.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

import msgspec

from fivespot.runtime.cache import Cache, ReflectorSettings
from fivespot.runtime.client import Client, Request, Response, WatchEvent
from fivespot.runtime.clock import SystemClock, system_chance
from fivespot.runtime.objects import FULL, METADATA, Change, Key, Projection, Resource
from fivespot.runtime.workqueue import WorkQueue

MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
OBJECTS = 10_000
ROUNDS = 3


class Slim(msgspec.Struct, gc=False):
    """What the machine controller looks at, more or less."""

    class Status(msgspec.Struct, gc=False, rename="camel"):
        phase: str = ""
        node_ref: dict[str, str] | None = None

    status: Status | None = None


SLIM = Projection.fields("slim", Slim, annotations=frozenset())


def machine(number: int, version: int) -> bytes:
    """A Machine of about 3 kB, a third of it managedFields."""
    fields: dict[str, object] = {f"f:field{index}": {".": {}, "f:value": {}} for index in range(28)}
    body = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": f"worker-{number:05}",
            "namespace": f"team-{number % 50}",
            "uid": f"5f0b6c1e-0000-4000-8000-{number:012}",
            "resourceVersion": str(version),
            "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"cluster.x-k8s.io/cluster-name": "prod", "team": f"team-{number % 50}"},
            "annotations": {"example.com/note": "x" * 120},
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": [
                {"apiVersion": "example.com/v1", "kind": "Owner", "name": "o", "uid": "u", "controller": True}
            ],
            "managedFields": [{"manager": "manager", "operation": "Update", "fieldsV1": {"f:spec": fields}}],
        },
        "spec": {"clusterName": "prod", "providerID": f"stand-in://{number}", "notes": ["y" * 60] * 8},
        "status": {
            "phase": "Running",
            "nodeRef": {"name": f"node-{number}"},
            "conditions": [
                {"type": f"Condition{index}", "status": "True", "reason": "Fine", "message": "z" * 40}
                for index in range(5)
            ],
        },
    }
    return msgspec.json.encode(body)


class Lines:
    """A watch whose bytes have all arrived."""

    def __init__(self, data: bytes) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self._next = iter(data.splitlines()).__next__
        self.drained = asyncio.Event()

    async def readline(self) -> bytes:
        try:
            return self._next()
        except StopIteration:
            self.drained.set()
            await asyncio.Event().wait()
            raise AssertionError from None

    async def read_rest(self, limit: int) -> bytes:
        return b""

    async def close(self) -> None:
        """Nothing to close."""


class Wire:
    """One empty list, one watch."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    async def request(self, request: Request) -> Response:
        return Response(200, {}, b'{"metadata":{"resourceVersion":"1"},"items":[]}')

    async def stream(self, request: Request) -> Lines:
        return self.lines

    async def close(self) -> None:
        """Nothing to close."""


def bare(data: bytes) -> None:
    for line in data.splitlines():
        if b'"type":"MODIFIED"' not in line[:24]:
            raise AssertionError


def routed(data: bytes) -> None:
    decode = msgspec.json.Decoder(WatchEvent).decode
    for line in data.splitlines():
        if decode(line).type != "MODIFIED":
            raise AssertionError


def ingest(projection: Projection) -> Callable[[bytes], Awaitable[None]]:
    async def run(data: bytes) -> None:
        lines = Lines(data)
        clock, chance = SystemClock(), system_chance(1)
        client = Client(Wire(lines), clock=clock, chance=chance)
        queue: WorkQueue[Key] = WorkQueue("bench", clock=clock, chance=chance)

        def handler(change: Change) -> None:
            if change.old is None or change.old.head.generation != change.head.generation or change.head.labels:
                queue.add(change.key)

        async with Cache(client, clock=clock, chance=chance, settings=ReflectorSettings(streaming=False)) as cache:
            informer = cache.informer(MACHINES, projection=projection)
            informer.add_index("team", lambda change: [change.head.labels["team"]])
            informer.subscribe(handler)
            await lines.drained.wait()
            assert len(informer) == len(queue) == min(OBJECTS, data.count(b"\n"))
        queue.shut_down()

    return run


def main(events: int) -> None:
    data = b"".join(
        b'{"type":"MODIFIED","object":' + machine(number % OBJECTS, number + 2) + b"}\n" for number in range(events)
    )
    # CPU time of this process, so that what else runs on the machine counts little.
    print(f"{events} events of {len(data) // events} bytes, {OBJECTS} objects at most; best of {ROUNDS}")
    base = 0.0
    for name, work in (
        ("split only", bare),
        ("split + event type", routed),
        ("enqueued, full", ingest(FULL)),
        ("enqueued, slim", ingest(SLIM)),
        ("enqueued, metadata", ingest(METADATA)),
    ):
        best = 0.0
        for _ in range(ROUNDS):
            start = time.process_time()
            running = work(data)
            if running is not None:
                asyncio.run(running)  # type: ignore[arg-type]
            best = max(best, events / (time.process_time() - start))
        base = base or best
        print(f"{name:20} {best:>10,.0f} events per CPU second {1e6 / best:>7.1f} us {best / base:>7.3f} of split only")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30_000)
