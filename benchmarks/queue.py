"""Work queue throughput: add, get and done of many keys with turns, priorities and metrics.

Goal: 100,000 keys a second on a quiet machine. The ratio to a bare ``asyncio.Queue`` of the same keys in the same
process is what can be compared between machines.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from fivespot.runtime import Key, SystemClock
from fivespot.runtime.clock import system_random
from fivespot.runtime.workqueue import WorkQueue
from fivespot.runtime.workqueue.queue import ObservableQueue

from ._report import Row, parser, report

NAMESPACES = 50
PRIORITIES = 10
WORKERS = 8
ROUNDS = 5


class CountingMetrics:
    """As cheap as an exporter that keeps plain numbers."""

    def __init__(self) -> None:
        self.adds = self.retries = 0
        self.waited = self.worked = 0.0

    def added(self) -> None:
        self.adds += 1

    def picked(self, wait_seconds: float, /) -> None:
        self.waited += wait_seconds

    def finished(self, work_seconds: float, /) -> None:
        self.worked += work_seconds

    def retried(self) -> None:
        self.retries += 1

    def bind(self, queue: ObservableQueue, /) -> None:
        self.queue = queue


async def bare(keys: list[Key]) -> None:
    queue: asyncio.Queue[Key] = asyncio.Queue()
    for key in keys:
        queue.put_nowait(key)
    for _ in keys:
        await queue.get()
        queue.task_done()


async def burst(keys: list[Key]) -> None:
    """All keys are added, then all are worked off: a start or a flip of everything at once."""
    queue: WorkQueue[Key] = WorkQueue("bench", clock=SystemClock(), rng=system_random(1), metrics=CountingMetrics())
    for index, key in enumerate(keys):
        queue.add(key, priority=index % PRIORITIES)
    for _ in keys:
        queue.done(await queue.get())


async def steady(keys: list[Key]) -> None:
    """Workers wait while keys arrive in small groups, with duplicates."""
    queue: WorkQueue[Key] = WorkQueue("bench", clock=SystemClock(), rng=system_random(1), metrics=CountingMetrics())
    left = len(keys)
    finished = asyncio.Event()

    async def work() -> None:
        nonlocal left
        while True:
            queue.done(await queue.get())
            left -= 1
            if not left:
                finished.set()

    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(work()) for _ in range(WORKERS)]
        for index, key in enumerate(keys):
            queue.add(key, priority=index % PRIORITIES)
            queue.add(key)
            if index % WORKERS == 0:
                await asyncio.sleep(0)
        await finished.wait()
        for worker in workers:
            worker.cancel()


async def delayed(keys: list[Key]) -> None:
    """Every key gets a far delay, then an event, which makes the delay outdated; then it is worked off."""
    queue: WorkQueue[Key] = WorkQueue("bench", clock=SystemClock(), rng=system_random(1), metrics=CountingMetrics())
    for index, key in enumerate(keys):
        queue.add_after(key, 3600.0 + index, priority=index % PRIORITIES)
    for key in keys:
        queue.add(key)
    for _ in keys:
        queue.done(await queue.get())
    queue.shut_down()


def rate(scenario: Callable[[list[Key]], Awaitable[None]], keys: list[Key]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):

        async def timed() -> float:
            started = time.perf_counter()
            await scenario(keys)
            return time.perf_counter() - started

        best = min(best, asyncio.run(timed()))
    return len(keys) / best


def main() -> None:
    options = parser("queue", __doc__)
    options.add_argument("--keys", type=int, default=100_000, metavar="N")
    given = options.parse_args()
    keys = [Key(f"namespace-{index % NAMESPACES}", f"object-{index}") for index in range(given.keys)]
    floor = rate(bare, keys)
    rows: list[Row] = [{"scenario": "asyncio.Queue, no features", "keys/s": floor, "of the bare queue": 1.0}]
    for name, scenario in (
        ("burst (add all, work all)", burst),
        ("steady (8 waiting workers)", steady),
        ("delay, event, work", delayed),
    ):
        found = rate(scenario, keys)
        rows.append({"scenario": name, "keys/s": found, "of the bare queue": found / floor})
    report(given, f"{given.keys} keys in {NAMESPACES} namespaces; best of {ROUNDS}", rows)


if __name__ == "__main__":
    main()
