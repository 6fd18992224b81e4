"""Writes of leader-only work are sent only while the Lease is provably held, wherever the process is paused."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.runtime.client import Client, Request, Response, Transport
from fivespot.runtime.client.transport import ByteStream, Limits
from fivespot.runtime.clock import LoopClock
from fivespot.runtime.errors import FivespotError, NotLeaderError
from fivespot.runtime.manager import Election, ElectionSettings
from fivespot.runtime.manager.leader_gate import LeaderGate, Term
from fivespot.runtime.objects import Key, Resource, merge_patch
from support.pausable import PROCESS, PausableLoop

from .fakes import LeaseServer

LIMITS = Limits(1, 1, 1)
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


class HandClock:
    """A clock that is set by hand; suspend moves only the clock that continues in it."""

    def __init__(self) -> None:
        self.time = 100.0
        self.suspended = 0.0

    def monotonic(self) -> float:
        return self.time

    def boottime(self) -> float:
        return self.time + self.suspended

    def now(self) -> datetime:
        return datetime(2026, 3, 1, tzinfo=UTC)


class RecordingTransport:
    def __init__(self) -> None:
        self.sent: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.sent.append(request)
        return Response(200, {}, b"{}")

    async def stream(self, request: Request) -> ByteStream:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def write(method: str = "DELETE") -> Request:
    return Request(method, "/x", LIMITS, description="delete widgets ns/a")


def gated(clock: HandClock, term: Term | None) -> tuple[LeaderGate, RecordingTransport]:
    inner = RecordingTransport()
    gate = LeaderGate(inner, clock)
    gate.term = term
    return gate, inner


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "delete", "MADE-UP"])
async def test_no_write_passes_before_a_term_and_after_its_end(method: str) -> None:
    gate, inner = gated(HandClock(), None)
    with pytest.raises(NotLeaderError, match="this process is not the leader"):
        await gate.request(write(method))
    gate.term = Term(HandClock(), held_until=110)
    await gate.request(write(method))
    gate.term.end()
    with pytest.raises(NotLeaderError, match="delete widgets ns/a: the term of this leader has ended"):
        await gate.request(write(method))
    assert len(inner.sent) == 1


async def test_reads_pass_at_any_time_and_carry_no_permit() -> None:
    gate, inner = gated(HandClock(), None)
    await gate.request(Request("GET", "/x", LIMITS))
    assert inner.sent[0].permit is None


async def test_a_write_carries_the_term_that_it_was_made_in() -> None:
    clock = HandClock()
    term = Term(clock, held_until=110)
    gate, inner = gated(clock, term)
    await gate.request(write())
    assert inner.sent[0].permit is term


@pytest.mark.parametrize("suspend", [False, True], ids=["running", "suspended"])
async def test_the_hold_ends_at_its_instant_also_while_the_machine_is_suspended(suspend: bool) -> None:
    clock = HandClock()
    term = Term(clock, held_until=110)
    for _ in range(11):
        if suspend:
            clock.suspended += 0.9
        else:
            clock.time += 0.9
        assert term.beat()
        term.check()
    clock.time += 0.2
    with pytest.raises(NotLeaderError, match="was not renewed in time"):
        term.check()
    assert not term.beat()


async def test_after_a_gap_nothing_is_written_until_a_renewal_sent_after_it() -> None:
    clock = HandClock()
    asked: list[float] = []
    term = Term(clock, held_until=110, on_gap=lambda: asked.append(clock.boottime()))
    sent_before = clock.boottime()
    clock.time += 1.5
    with pytest.raises(NotLeaderError, match="the process was paused"):
        term.check()
    assert asked == [101.5]
    clock.time += 0.1
    term.renewed(sent_before + 10, sent_before)
    with pytest.raises(NotLeaderError, match="the process was paused"):
        term.check()
    term.renewed(111.6, clock.boottime())
    term.check()


async def test_a_heartbeat_that_is_a_little_late_is_no_gap() -> None:
    clock = HandClock()
    term = Term(clock, held_until=200, on_gap=lambda: pytest.fail("no gap"))
    for late in (0.25, 0.9, 1.0):
        clock.time += late
        term.beat()
        term.check()


async def test_a_renewal_does_not_reopen_a_term_that_has_ended() -> None:
    clock = HandClock()
    term = Term(clock, held_until=110)
    ends: list[str] = []
    term.add_end_callback(lambda: ends.append("first"))
    term.end()
    term.end()
    term.renewed(200, clock.boottime())
    with pytest.raises(NotLeaderError):
        term.check()
    term.add_end_callback(lambda: ends.append("late"))
    assert ends == ["first", "late"]


# Two processes and a server in virtual time, one process paused before every step in turn.


@dataclass
class World:
    """The server: a Lease, and the writes that arrive."""

    leases: LeaseServer = field(default_factory=LeaseServer)
    renewals: list[tuple[str, float]] = field(default_factory=list)
    writes: list[tuple[str, float]] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    def answer(self, process: str, request: Request, sent_at: float) -> Response:
        body = json.loads(request.body or b"{}")
        lease = self.leases
        if "/leases" in request.path:
            if request.method == "GET":
                return found(lease.body) if lease.body is not None else failed(404, "NotFound")
            if request.method == "POST" and lease.body is not None:
                return failed(409, "AlreadyExists")
            if request.method == "PUT" and body["metadata"].get("resourceVersion") != str(lease.version):
                return failed(409, "Conflict")
            lease.store(body)
            self.renewals.append((process, sent_at))
            return found(lease.body)
        if request.method != "GET":
            self.writes.append((process, sent_at))
        return found({"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1"}})


def found(body: Any) -> Response:
    return Response(200, {"content-type": "application/json"}, json.dumps(body).encode())


def failed(code: int, reason: str) -> Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": "no", "details": {"name": "lease"}}
    return Response(code, {"content-type": "application/json"}, json.dumps(body).encode())


class Wire:
    """A process's way to the server: connecting takes time, and what was handed over arrives even if it is paused."""

    def __init__(self, world: World, process: str) -> None:
        self._world = world
        self._process = process

    async def request(self, request: Request) -> Response:
        await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        if request.permit is not None:
            request.permit.check()
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Response] = loop.create_future()
        self._hand_over(request, answered)
        return await answered

    def _hand_over(self, request: Request, answered: asyncio.Future[Response]) -> None:
        loop, world = asyncio.get_running_loop(), self._world
        sent_at = loop.time()
        if request.method != "GET" and "/leases" not in request.path and world.leases.holder != self._process:
            world.late.append(f"{self._process} at {sent_at:.3f}: {request.method} {request.path}")

        def answer() -> None:
            response = world.answer(self._process, request, sent_at)
            if not answered.done():
                answered.set_result(response)

        token = PROCESS.set("server")
        try:
            loop.call_later(0.02, answer)
        finally:
            PROCESS.reset(token)

    async def stream(self, request: Request) -> ByteStream:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def start_process(world: World, name: str, *, with_gate: bool) -> asyncio.Task[None]:
    clock, rng = LoopClock(datetime(2026, 3, 1, tzinfo=UTC)), random.Random(name)
    wire = Wire(world, name)
    gate = LeaderGate(wire, clock) if with_gate else None
    transport: Transport = gate if gate is not None else wire
    client = Client(transport, clock=clock, rng=rng)
    election = Election(
        Client(wire, clock=clock, rng=rng), ElectionSettings("ns", "lease", name, "x"), clock=clock, rng=rng, gate=gate
    )

    async def work() -> None:
        for number in itertools.count():
            await asyncio.sleep(0.5)
            try:
                current = await client.get(WIDGETS, Key("ns", "a"))
                if number % 2:
                    await client.delete(WIDGETS, current.key, uid="u")
                else:
                    await client.patch(WIDGETS, current.key, merge_patch({"spec": {"n": number}}, current.head))
            except FivespotError:
                continue

    token = PROCESS.set(name)
    try:
        return asyncio.create_task(election.run({"work": work}))
    finally:
        PROCESS.reset(token)


FROM, UNTIL = 6.0, 8.1
"""The steps before which the leader is paused: a whole period of renewals, and of the work."""


def play(
    *, pause_at: int = 0, length: float = 0.0, with_gate: bool = True, seconds: float = 8.1
) -> tuple[World, PausableLoop]:
    made: list[PausableLoop] = []

    def factory() -> PausableLoop:
        made.append(PausableLoop(victim="a", pause_at=pause_at, length=length))
        return made[0]

    world = World()

    async def main() -> None:
        first = start_process(world, "a", with_gate=with_gate)
        await asyncio.sleep(0.5)
        second = start_process(world, "b", with_gate=with_gate)
        await asyncio.sleep(seconds + length)
        for task in (first, second):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())
    return world, made[0]


def steps_to_pause_at() -> list[int]:
    _, loop = play(seconds=UNTIL)
    return [step for step, at in enumerate(loop.step_times, 1) if FROM <= at < UNTIL]


STEPS = steps_to_pause_at()


@pytest.mark.contract("B5.5")
@pytest.mark.parametrize("length", [0.6, 3.0, 9.0, 20.0])
def test_a_leader_that_was_paused_before_any_step_writes_nothing_without_its_lease(length: float) -> None:
    assert len(STEPS) > 60
    for step in STEPS if length in {3.0, 20.0} else STEPS[::3]:
        world, loop = play(pause_at=step, length=length, seconds=UNTIL + 3)
        assert not world.late, (step, world.late)
        resumed = loop.resumed_at
        assert resumed is not None
        wrote = [at for process, at in world.writes if process == "a" and at >= resumed]
        if length > 1.3:
            # A pause is noticed by what runs after it; a little less than a second may be taken for a busy loop.
            renewed = [at for process, at in world.renewals if process == "a" and at >= resumed]
            assert not wrote or (renewed and renewed[0] < wrote[0]), (step, "it looked at the Lease first")
        if length < 9:
            assert wrote, (step, "it goes on once the Lease is renewed")
        assert {process for process, _ in world.writes} <= {"a", "b"}


def test_without_the_gate_such_a_leader_does_write() -> None:
    """The scene can show what the gate prevents."""
    runs = (play(pause_at=step, length=20.0, with_gate=False, seconds=UNTIL + 3)[0] for step in STEPS)
    assert any(world.late for world in runs)
