"""Watch lines of 3 kB to enqueued keys, through client, store, indexes, handlers and work queue.

Goals: 60,000 events a second bare and 25,000 with all metrics, on a machine whose floor below is 900,000. Besides
absolute numbers there is the ratio to the bare minimum of the same bytes in the same process (split into lines, look
at each line's type), which is what can be compared between machines.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

import msgspec

from fivespot.runtime import (
    DONE,
    METADATA,
    Cache,
    Change,
    Client,
    Controller,
    Informer,
    Key,
    Metrics,
    Projection,
    Resource,
    Result,
    SystemClock,
    generation_or_metadata_changed,
)
from fivespot.runtime.cache import ReflectorSettings
from fivespot.runtime.client import Request, Response
from fivespot.runtime.client.lines import LineSplitter
from fivespot.runtime.clock import system_random
from fivespot.runtime.objects import FULL
from fivespot.runtime.workqueue import WorkQueue

from ._bodies import encoded_machine
from ._report import Row, parser, report

MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
OBJECTS = 10_000
ROUNDS = 5
BLOCK = 128 * 1024
"""The most bytes that one read of a connection returns."""


class Slim(msgspec.Struct, gc=False):
    """Roughly the fields that the machine controller reads."""

    class Status(msgspec.Struct, gc=False, rename="camel"):
        phase: str = ""
        node_ref: dict[str, str] | None = None

    status: Status | None = None


SLIM = Projection.fields("slim", Slim, annotations=frozenset())


class Routed(msgspec.Struct, gc=False):
    """A watch event of which only the type is decoded."""

    type: str
    object: msgspec.Raw


def blocks(data: bytes) -> Iterator[bytes]:
    """Copies, as a socket gives them: in the processor's cache, and gone after use."""
    return (data[start : start + BLOCK] for start in range(0, len(data), BLOCK))


class Lines:
    """A watch whose bytes have all arrived."""

    def __init__(self, data: bytes) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self._blocks = blocks(data)
        self._lines = LineSplitter()
        self.drained = asyncio.Event()

    async def readline(self) -> bytes:
        while not (line := self._lines.pop()):
            block = next(self._blocks, b"")
            if not block:
                self.drained.set()
                await asyncio.Event().wait()
            self._lines.feed(block)
        return line

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


async def bare(data: bytes) -> None:
    rest = b""
    for block in blocks(data):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if b'"type":"MODIFIED"' not in line[:24]:
                raise AssertionError


async def routed(data: bytes) -> None:
    decode = msgspec.json.Decoder(Routed).decode
    rest = b""
    for block in blocks(data):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if decode(line).type != "MODIFIED":
                raise AssertionError


def ingest(projection: Projection) -> Callable[[bytes], Awaitable[None]]:
    """Into a store with one index; a handler that adds the key to a queue without metrics."""

    async def run(data: bytes) -> None:
        clock = SystemClock()
        queue: WorkQueue[Key] = WorkQueue("bench", clock=clock, rng=system_random(1))

        def handler(change: Change) -> None:
            if change.old is None or change.old.head.generation != change.head.generation:
                queue.add(change.key)

        def consume(informer: Informer) -> None:
            informer.subscribe(handler)

        await _through_cache(data, projection, clock, consume)
        assert len(queue) == min(OBJECTS, data.count(b"\n"))
        queue.shut_down()

    return run


def controlled(projection: Projection) -> Callable[[bytes], Awaitable[None]]:
    """Into the source of a controller with predicate, priorities and every metric there is."""

    async def run(data: bytes) -> None:
        clock, rng = SystemClock(), system_random(1)
        metrics = Metrics(process=False)
        controller = Controller(
            "bench",
            _Idle(),
            clock=clock,
            rng=rng,
            priority=lambda key: len(key.name) % 10,
            metrics=metrics.controller("bench"),
            queue_metrics=metrics.queue("bench"),
        )

        def consume(informer: Informer) -> None:
            controller.watches(informer, predicate=generation_or_metadata_changed).attach()

        await _through_cache(data, projection, clock, consume, observe=metrics.requests)
        assert len(controller.queue) == min(OBJECTS, data.count(b"\n"))
        assert b"workqueue_adds_total" in metrics.render()
        controller.queue.shut_down()

    return run


class _Idle:
    async def reconcile(self, key: Key) -> Result:
        return DONE


async def _through_cache(
    data: bytes,
    projection: Projection,
    clock: SystemClock,
    consume: Callable[[Informer], None],
    observe: Callable[[str, int], None] | None = None,
) -> None:
    lines, rng = Lines(data), system_random(1)
    client = Client(Wire(lines), clock=clock, rng=rng, observe_request=observe)
    settings = ReflectorSettings(streaming=False)
    async with Cache(client, clock=clock, rng=rng, settings=settings) as cache:
        informer = cache.informer(MACHINES, projection=projection)
        informer.add_index("team", lambda change: [change.head.labels["team"]])
        consume(informer)
        await lines.drained.wait()
        assert len(informer) == min(OBJECTS, data.count(b"\n"))


def main() -> None:
    options = parser("ingest", __doc__)
    options.add_argument("--events", type=int, default=30_000, metavar="N")
    given = options.parse_args()
    data = b"".join(
        b'{"type":"MODIFIED","object":' + encoded_machine(number % OBJECTS, number + 2) + b"}\n"
        for number in range(given.events)
    )
    scenarios: list[tuple[str, Callable[[bytes], Awaitable[None]]]] = [
        ("split only", bare),
        ("split + event type", routed),
        ("enqueued, full", ingest(FULL)),
        ("enqueued, slim", ingest(SLIM)),
        ("enqueued, metadata", ingest(METADATA)),
        ("all metrics, full", controlled(FULL)),
        ("all metrics, slim", controlled(SLIM)),
    ]
    rows: list[Row] = []
    base = 0.0
    for name, work in scenarios:
        best = 0.0
        for _ in range(ROUNDS):
            # CPU time of this process, so that what else runs on the machine counts little.
            start = time.process_time()
            asyncio.run(work(data))  # type: ignore[arg-type]
            best = max(best, given.events / (time.process_time() - start))
        base = base or best
        rows.append({"stage": name, "events/CPU s": best, "us": 1e6 / best, "of split only": best / base})
    about = f"{given.events} events of {len(data) // given.events} bytes, {OBJECTS} objects; best of {ROUNDS}"
    report(given, about, rows)


if __name__ == "__main__":
    main()
