"""PacedLoop: order and pace of timers, and slow callbacks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

import pytest

from fivespot.testing.virtual_time import PacedLoop

T = TypeVar("T")


def run(speed: float, main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=partial(PacedLoop, speed)) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()


def test_time_runs_as_many_times_faster_and_no_more() -> None:
    async def main() -> float:
        await asyncio.sleep(60)
        return now()

    begun = time.monotonic()
    assert run(600, main()) == pytest.approx(60)
    assert time.monotonic() - begun >= 0.09


def test_what_waits_is_woken_in_order_and_at_its_time() -> None:
    seen = []

    async def wait(seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((seconds, now()))

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for seconds in (300.0, 0.001, 20.0, 20.5, 7.25):
                group.create_task(wait(seconds))

    run(100_000, main())
    assert [seconds for seconds, _ in seen] == [0.001, 7.25, 20.0, 20.5, 300.0]
    assert all(at == pytest.approx(seconds) for seconds, at in seen)


def test_a_skip_takes_no_real_time_and_fires_timers_in_order() -> None:
    seen = []

    async def wait(seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((seconds, now()))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, PacedLoop)
        async with asyncio.TaskGroup() as group:
            for seconds in (3000.0, 20.0, 3600.1):
                group.create_task(wait(seconds))
            loop.skip(3600)

    begun = time.monotonic()
    run(1, main())
    assert 0.05 <= time.monotonic() - begun < 5
    assert [seconds for seconds, _ in seen] == [20.0, 3000.0, 3600.1]
    assert all(at == pytest.approx(seconds) for seconds, at in seen)


def test_a_limit_is_not_exceeded_because_the_work_before_it_is_slow() -> None:
    async def slow() -> str:
        # Blocks as a busy machine does: 1,000 seconds inside, if they counted.
        threading.Event().wait(0.1)
        await asyncio.sleep(1)
        return "done"

    async def main() -> tuple[str, float]:
        async with asyncio.timeout(2):
            return await slow(), now()

    done, at = run(10_000, main())
    assert done == "done"
    assert at == pytest.approx(1)


def test_what_is_lost_is_caught_up_with_for_a_moment_only() -> None:
    async def main() -> float:
        threading.Event().wait(0.4)
        begun = time.monotonic()
        await asyncio.sleep(400)
        return time.monotonic() - begun

    # A loop that makes up for all of it would not wait at all; this one owes it three quarters.
    assert run(1000, main()) >= 0.25


def test_sockets_work_and_time_changed_world_while_they_are_waited_for() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async def main() -> tuple[bytes, float]:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        async with server:
            asyncio.get_running_loop().call_later(30, writer.write, b"hello\n")
            answer = await reader.readline()
        writer.close()
        return answer, now()

    answer, at = run(1000, main())
    assert answer == b"hello\n"
    assert at >= 30


def test_a_thread_that_answers_is_heard_where_no_timer_is_set() -> None:
    async def main() -> str:
        return await asyncio.to_thread(lambda: "heard")

    assert run(60, main()) == "heard"


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_that_makes_no_sense_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        PacedLoop(speed)
