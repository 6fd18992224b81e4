"""Members start in stages and stop in reverse, within the grace period or by name."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from fivespot.runtime.clock import SystemClock
from fivespot.runtime.errors import ConfigError, StopError
from fivespot.runtime.manager import MemberEndedError, RunnableGroup, leaf_error

from .fakes import hang_deaf


class Book:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def member(self, name: str, *, stop_takes: float = 0) -> Callable[[], Coroutine[Any, Any, None]]:
        async def run() -> None:
            self.lines.append(f"+{name}")
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(stop_takes)
                self.lines.append(f"-{name}")

        return run

    @contextlib.asynccontextmanager
    async def manager(self, name: str) -> AsyncIterator[None]:
        self.lines.append(f"+{name}")
        try:
            yield
        finally:
            self.lines.append(f"-{name}")


def now() -> float:
    return asyncio.get_running_loop().time()


def lifetime(grace: float = 30) -> RunnableGroup:
    return RunnableGroup(clock=SystemClock(), grace=grace)


@pytest.mark.looptime
async def test_stages_stop_in_the_reverse_of_their_start() -> None:
    book, life, stop = Book(), lifetime(), asyncio.Event()
    await life.enter("endpoints", book.manager("endpoints"))
    life.next_stage()
    await life.enter("cache", book.manager("cache"))
    life.next_stage()
    life.spawn("a", book.member("a", stop_takes=2))
    life.spawn("b", book.member("b", stop_takes=1))
    asyncio.get_running_loop().call_later(5, stop.set)
    await life.watch(stop)
    assert list(life.running) == ["endpoints", "cache", "a", "b"]
    await life.close()
    assert book.lines == ["+endpoints", "+cache", "+a", "+b", "-b", "-a", "-cache", "-endpoints"]
    assert not life.running


@pytest.mark.looptime
async def test_a_member_that_dies_is_told_at_once_and_the_others_stop() -> None:
    book, life = Book(), lifetime()

    async def die() -> None:
        await asyncio.sleep(3)
        raise RuntimeError("broken")

    life.spawn("good", book.member("good"))
    life.spawn("bad", die)
    with pytest.raises(RuntimeError, match="broken"):
        await life.watch(asyncio.Event())
    assert now() == pytest.approx(3)
    assert life.dead == "bad"
    await life.close()
    assert book.lines == ["+good", "-good"]


@pytest.mark.looptime
async def test_a_member_that_died_before_anybody_watched_is_told_too() -> None:
    life = lifetime()

    async def die() -> None:
        raise RuntimeError("broken")

    life.spawn("bad", die, may_end=True)
    await asyncio.sleep(1)
    with pytest.raises(RuntimeError, match="broken"):
        await life.watch(asyncio.Event())
    await life.close()


@pytest.mark.looptime
async def test_a_member_that_returns_has_failed_unless_it_may() -> None:
    life, stop = lifetime(), asyncio.Event()

    async def end() -> None:
        await asyncio.sleep(1)

    life.spawn("once", end, may_end=True)
    asyncio.get_running_loop().call_later(5, stop.set)
    await life.watch(stop)
    await life.close()

    life = lifetime()
    life.spawn("for ever", end)
    with pytest.raises(MemberEndedError, match="for ever returned"):
        await life.watch(asyncio.Event())
    await life.close()


@pytest.mark.looptime
async def test_a_member_cancelled_by_somebody_else_is_a_failure() -> None:
    life = lifetime()

    async def run() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(1, task.cancel)
        await asyncio.Event().wait()

    life.spawn("victim", run)
    with pytest.raises(MemberEndedError, match="victim was cancelled from elsewhere"):
        await life.watch(asyncio.Event())
    await life.close()


@pytest.mark.looptime
async def test_what_does_not_stop_in_time_is_named_and_left_behind() -> None:
    """controller-runtime#3247, #1784."""
    book, life = Book(), lifetime(grace=30)
    life.spawn("early", book.member("early"))
    life.next_stage()
    life.spawn("stubborn", lambda: hang_deaf(""))
    life.spawn("willing", book.member("willing"))
    await asyncio.sleep(1)
    began = now()
    with pytest.raises(StopError, match=r"did not stop within 30 s: stubborn$"):
        await life.close()
    assert 25 < now() - began <= 30
    assert book.lines == ["+early", "+willing", "-willing", "-early"], "earlier stages still get to stop"
    await asyncio.sleep(300)


@pytest.mark.looptime
async def test_an_error_while_stopping_is_raised_once_everything_has_stopped() -> None:
    book, life = Book(), lifetime()

    async def fail_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("cannot close the file")

    life.spawn("early", book.member("early"))
    life.next_stage()
    life.spawn("bad", fail_at_the_end)
    await asyncio.sleep(1)
    with pytest.raises(RuntimeError, match="cannot close the file"):
        await life.close()
    assert book.lines == ["+early", "-early"]


@pytest.mark.looptime
async def test_the_first_failure_is_the_one_that_is_told() -> None:
    life = lifetime()

    async def fail_twice() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("and another")

    async def die() -> None:
        raise ValueError("the cause")

    life.spawn("other", fail_twice)
    life.spawn("bad", die)
    await asyncio.sleep(1)
    with pytest.raises(ValueError, match="the cause"):
        await life.watch(asyncio.Event())
    await life.close()


@pytest.mark.looptime
async def test_what_cannot_be_entered_raises_and_leaves_the_rest_to_be_closed() -> None:
    book, life = Book(), lifetime()

    @contextlib.asynccontextmanager
    async def taken(problem: Exception | None) -> AsyncIterator[None]:
        if problem is not None:
            raise problem
        yield

    await life.enter("cache", book.manager("cache"))
    life.next_stage()
    with pytest.raises(ConfigError, match="8080"):
        await life.enter("endpoints", taken(ConfigError("port 8080 is taken")))
    await life.close()
    assert book.lines == ["+cache", "-cache"]


@pytest.mark.looptime
async def test_closing_twice_and_being_cancelled_meanwhile_still_stops_everything_once() -> None:
    """java-operator-sdk#3383, #3526."""
    book, life = Book(), lifetime()
    life.spawn("slow", book.member("slow", stop_takes=10))
    await asyncio.sleep(1)
    first = asyncio.create_task(life.close())
    second = asyncio.create_task(life.close())
    await asyncio.sleep(1)
    first.cancel()
    await asyncio.sleep(1)
    first.cancel()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first
    assert book.lines == ["+slow", "-slow"]
    await life.close()


@pytest.mark.looptime
async def test_getting_ready_to_stop_comes_before_the_cancellation_and_is_bounded() -> None:
    book, life = Book(), lifetime(grace=10)

    async def flush(limit: float) -> None:
        book.lines.append("flush")
        await asyncio.sleep(1000)

    life.spawn("events", book.member("events"), before_stop=flush)
    await asyncio.sleep(1)
    began = now()
    await life.close()
    assert book.lines == ["+events", "flush", "-events"]
    assert now() - began <= 10


@pytest.mark.looptime
async def test_a_stop_that_was_asked_for_before_the_start_is_honoured() -> None:
    life, stop = lifetime(), asyncio.Event()
    stop.set()
    life.spawn("a", Book().member("a"))
    await life.watch(stop)
    await life.close()


def test_the_one_error_in_nested_groups_is_found() -> None:
    error = ConfigError("x")
    assert leaf_error(ExceptionGroup("", [ExceptionGroup("", [error])])) is error
    several = ExceptionGroup("", [error, ValueError()])
    assert leaf_error(several) is several
