"""The measured difference between the wall clock and the API server's, in virtual time."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import structlog.testing

from fivespot.runtime.client import Limits, Request, Response
from fivespot.runtime.clock import LoopClock
from fivespot.runtime.manager import Health
from fivespot.runtime.manager.clock_skew import SKEW_LIMIT, ClockSkew, DatedTransport

pytestmark = pytest.mark.looptime

START = datetime(2026, 12, 1, 12, 0, 0, 250_000, tzinfo=UTC)
GET = Request("GET", "/version", Limits(1, 1, 1))


class SteppedClock(LoopClock):
    """A wall clock that a person sets."""

    ahead = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead)


class Server:
    """Dates its responses by a clock that is right."""

    def __init__(self) -> None:
        self.clock = LoopClock(START)
        self.clock.now()
        self.before, self.after = 0.0, 0.0
        self.header: str | None = None

    async def request(self, request: Request) -> Response:
        await asyncio.sleep(self.before)
        dated = self.header if self.header is not None else format_datetime(self.clock.now(), usegmt=True)
        await asyncio.sleep(self.after)
        return Response(200, {"date": dated} if dated else {}, b"{}")

    async def stream(self, request: Request) -> Response:
        return await self.request(request)

    async def close(self) -> None:
        pass


class Bench:
    """A client's requests to that server, and the estimate."""

    def __init__(self) -> None:
        self.server = Server()
        self.clock = SteppedClock(START)
        self.clock.now()
        self.skew = ClockSkew(self.clock)
        self.transport = DatedTransport(self.server, self.clock, self.skew)  # type: ignore[arg-type]

    async def ask(self, times: int = 20, every: float = 1.9) -> None:
        for _ in range(times):
            await self.transport.request(GET)
            await asyncio.sleep(every)


@pytest.mark.contract("C13")
@pytest.mark.parametrize("ahead", [90.0, 2.6, -2.6, -3600.0])
async def test_a_clock_that_is_off_is_measured_logged_and_noted_while_the_process_stays_ready(ahead: float) -> None:
    bench, health = Bench(), Health()
    health.add_note("clock", lambda: bench.skew.note)
    bench.clock.ahead = ahead
    with structlog.testing.capture_logs() as logs:
        await bench.ask()
        assert bench.skew.seconds == pytest.approx(ahead, abs=0.3)
        assert bench.skew.reading() == [((), bench.skew.seconds)]
        assert health.ready().ok
        assert f"{'ahead of' if ahead > 0 else 'behind'} that of the API server" in health.ready().text()
        assert health.ready().text().endswith("\nok\n")
        bench.clock.ahead = 0.0
        await bench.ask()
        assert bench.skew.seconds == pytest.approx(0.0, abs=0.3)
        assert (bench.skew.note, health.ready().text()) == ("", "ok\n")
    told = [line["event"] for line in logs]
    assert told == ["the clock differs from the API server's", "the clock agrees with the API server's"]


@pytest.mark.contract("C13")
@pytest.mark.parametrize("ahead", [0.0, 1.4, -1.4])
async def test_slow_answers_and_small_differences_are_not_reported(ahead: float) -> None:
    bench, rng = Bench(), random.Random(1)
    bench.clock.ahead = ahead
    with structlog.testing.capture_logs() as logs:
        for _ in range(200):
            bench.server.before, bench.server.after = rng.uniform(0, 30), rng.uniform(0, 30)
            await bench.ask(1)
            assert bench.skew.seconds is not None
            assert abs(bench.skew.seconds) <= abs(ahead) + 0.01
    assert not logs
    assert not bench.skew.note


async def test_a_clock_that_is_set_is_noticed_with_the_next_answer() -> None:
    bench = Bench()
    with structlog.testing.capture_logs():
        await bench.ask()
        for ahead in (7200.0, -7200.0, 30.0):
            bench.clock.ahead = ahead
            await bench.ask(3)
            assert bench.skew.seconds == pytest.approx(ahead, abs=1.0)


@pytest.mark.parametrize("header", ["", "yesterday", "Tue, 99 Dec 2026 12:00:00 GMT", "x" * 100_000])
async def test_a_response_without_a_usable_date_says_nothing(header: str) -> None:
    bench = Bench()
    bench.server.header = header
    await bench.ask(3)
    assert bench.skew.seconds is None
    assert bench.skew.reading() == []
    assert bench.skew.note == ""


async def test_a_difference_that_grows_is_logged_again_but_not_with_each_answer() -> None:
    bench = Bench()
    with structlog.testing.capture_logs() as logs:
        for ahead in (5.0, 5.5, 10.0):
            bench.clock.ahead = ahead
            await bench.ask()
    assert len(logs) == 2
    assert SKEW_LIMIT < logs[0]["seconds"] < logs[1]["seconds"]
