"""The event recorder against a scripted API server, in virtual time."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog.testing

from fivespot.runtime.clock import LoopClock
from fivespot.runtime.errors import ConnectError, DeadlineError, ProtocolError, StatusCause, api_error
from fivespot.runtime.objects import Key, Object, Patch, Resource
from fivespot.runtime.telemetry import EventLimits, EventRecorder, Metrics, ObjectRef

WEB = ObjectRef("5spot.finos.org/v1beta1", "ScheduledMachine", "prod", "web", "uid-1")

pytestmark = pytest.mark.looptime


class FakeServer:
    """Takes writes; ``script`` may raise for the n-th one."""

    def __init__(self, script: Callable[[int], Exception | None] = lambda number: None, latency: float = 0.0) -> None:
        self.creates: list[dict[str, Any]] = []
        self.patches: list[tuple[Key, dict[str, Any]]] = []
        self._script = script
        self._latency = latency
        self._count = 0

    @property
    def writes(self) -> int:
        return self._count

    async def _answer(self) -> Object:
        self._count += 1
        if self._latency:
            await asyncio.sleep(self._latency)
        error = self._script(self._count)
        if error is not None:
            raise error
        return Object.parse(b'{"metadata":{"name":"e","uid":"u","resourceVersion":"1"}}')

    async def create(self, resource: Resource, body: dict[str, Any], *, namespace: str | None = None) -> Object:
        assert resource.plural == "events"
        assert namespace == body["metadata"]["namespace"]
        answer = await self._answer()
        self.creates.append(body)
        return answer

    async def patch(self, resource: Resource, key: Key, patch: Patch) -> Object:
        answer = await self._answer()
        self.patches.append((key, json.loads(patch.body)))
        return answer


class Bench:
    def __init__(self, server: FakeServer | None, limits: EventLimits | None = None) -> None:
        self.metrics = Metrics(process=False)
        self.recorder = EventRecorder(
            server,
            controller="5spot-controller",
            instance="pod-1",
            clock=LoopClock(datetime(2026, 3, 1, tzinfo=UTC)),
            rng=random.Random(1),
            metrics=self.metrics,
            limits=limits,
        )

    def event(
        self, message: str = "m", *, ref: ObjectRef = WEB, once: str = "", reason: str = "ScheduleActive"
    ) -> None:
        self.recorder.event(ref, type="Normal", reason=reason, message=message, once=once)

    def shown(self, *names: str) -> tuple[float, ...]:
        """The values of metrics without labels."""
        lines = dict(line.split(" ") for line in self.metrics.render().decode().splitlines() if line[0] != "#")
        return tuple(float(lines[name]) for name in names)

    def dropped(self, reason: str) -> float:
        return self.metrics.counter("fivespot_events_dropped_total", "", ("reason",)).child(reason).value

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.recorder.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_an_event_is_written_as_events_k8s_io_wants_it() -> None:
    server = FakeServer()
    bench = Bench(server)
    async with bench.running():
        bench.event("Machine is up")
        await asyncio.sleep(0.1)
    (body,) = server.creates
    assert body["reportingController"] == "5spot-controller"
    assert body["reportingInstance"] == "pod-1"
    assert (body["reason"], body["action"], body["note"]) == ("ScheduleActive", "Reconcile", "Machine is up")
    assert body["regarding"]["uid"] == "uid-1"


async def test_writes_are_counted_when_they_are_done_and_shown_while_they_are_under_way() -> None:
    bench = Bench(FakeServer(latency=1.0))
    async with bench.running():
        for number in range(3):
            bench.event(ref=ObjectRef("v1", "Pod", "prod", f"p{number}", f"u{number}"))
        await asyncio.sleep(0.5)
        assert bench.shown("fivespot_event_writes_in_progress", "fivespot_events_written_total") == (3, 0)
        await asyncio.sleep(1)
        assert bench.shown("fivespot_event_writes_in_progress", "fivespot_events_written_total") == (0, 3)


async def test_a_flood_of_identical_events_is_few_writes_and_blocks_nobody() -> None:
    server = FakeServer(latency=0.02)
    bench = Bench(server)
    async with bench.running():
        for _ in range(100):
            for _ in range(1000):
                bench.event()
            await asyncio.sleep(6)
        await asyncio.sleep(400)
    assert server.writes <= 25 + 1000 / 300
    assert server.patches[-1][1]["series"]["count"] == 100_000


async def test_recording_works_while_nothing_writes_and_memory_stays_bounded() -> None:
    bench = Bench(FakeServer(), EventLimits(pending=50))
    for number in range(1000):
        bench.event(ref=ObjectRef("v1", "Pod", "prod", f"p{number}", f"u{number}"))
    assert bench.dropped("full") == 950


async def test_too_many_different_events_of_one_object_are_counted_as_dropped() -> None:
    bench = Bench(FakeServer())
    for number in range(40):
        bench.event(reason=f"Reason{number}")
    assert bench.dropped("spam") == 15


@pytest.mark.parametrize(
    ("error", "reason", "logged"),
    [
        (
            api_error(
                403,
                "Forbidden",
                "is being terminated",
                request="create events",
                causes=[StatusCause("NamespaceTerminating", "", "")],
            ),
            "namespace_terminating",
            False,
        ),
        (api_error(403, "Forbidden", "no right", request="create events"), "forbidden", True),
        (api_error(404, "NotFound", "namespaces prod not found", request="create events"), "namespace_gone", False),
        (api_error(422, "Invalid", "note too long", request="create events"), "rejected", True),
    ],
)
async def test_a_refused_event_is_dropped_counted_and_said_once_where_a_person_can_help(
    error: Exception, reason: str, logged: bool
) -> None:
    server = FakeServer(lambda number: error)
    bench = Bench(server)
    with structlog.testing.capture_logs() as logs:
        async with bench.running():
            for number in range(5):
                bench.event(f"message {number}")
            await asyncio.sleep(60)
    assert bench.dropped(reason) == 5
    assert server.writes == 5, "a refusal is not tried again"
    assert len([entry for entry in logs if entry["event"] == "event not written"]) == logged


@pytest.mark.parametrize(
    "error",
    [
        ConnectError("refused"),
        DeadlineError("no answer"),
        api_error(429, "TooManyRequests", "slow down", request="create events", retry_after=20),
        api_error(503, "", "busy", request="create events"),
    ],
)
async def test_a_write_that_may_work_later_is_tried_again_and_no_more_than_a_few_times(error: Exception) -> None:
    server = FakeServer(lambda number: error if number < 3 else None)
    bench = Bench(server)
    async with bench.running():
        bench.event()
        await asyncio.sleep(120)
    assert len(server.creates) == 1

    hopeless = FakeServer(lambda number: error)
    bench = Bench(hopeless)
    async with bench.running():
        bench.event()
        await asyncio.sleep(3600)
    assert hopeless.writes == EventLimits().attempts
    assert bench.dropped("failed") == 1


async def test_retry_after_is_waited_for() -> None:
    busy = api_error(429, "TooManyRequests", "slow down", request="create events", retry_after=50)
    server = FakeServer(lambda number: busy if number == 1 else None)
    bench = Bench(server)
    async with bench.running():
        bench.event()
        await asyncio.sleep(49)
        assert not server.creates
        await asyncio.sleep(2)
        assert server.creates


@pytest.mark.parametrize(
    "error",
    [api_error(409, "AlreadyExists", "exists", request="create events"), ProtocolError("no metadata")],
)
async def test_an_event_that_exists_already_counts_as_written(error: Exception) -> None:
    server = FakeServer(lambda number: error)
    bench = Bench(server)
    async with bench.running():
        bench.event(once="activation-1")
        await asyncio.sleep(600)
        bench.event(once="activation-1")
        await asyncio.sleep(600)
    assert server.writes == 1


async def test_a_series_changed_world_when_its_event_has_expired_on_the_server() -> None:
    gone = api_error(404, "NotFound", "events e not found", request="patch events")
    server = FakeServer(lambda number: gone if number == 2 else None)
    bench = Bench(server)
    async with bench.running():
        bench.event()
        await asyncio.sleep(1)
        bench.event()
        await asyncio.sleep(10)
    assert [body.get("series", {}).get("count") for body in server.creates] == [None, 2]
    assert server.creates[0]["metadata"]["name"] != server.creates[1]["metadata"]["name"]


async def test_flushing_waits_for_what_the_server_has_not_heard_of_and_not_longer() -> None:
    server = FakeServer(latency=0.5)
    bench = Bench(server)
    loop = asyncio.get_running_loop()
    async with bench.running():
        bench.event()
        started = loop.time()
        await bench.recorder.flush(5)
        assert loop.time() - started == pytest.approx(0.5, abs=0.1)
        assert len(server.creates) == 1

    stuck = Bench(FakeServer(latency=1000))
    async with stuck.running():
        stuck.event()
        started = loop.time()
        await stuck.recorder.flush(2)
        assert loop.time() - started == pytest.approx(2, abs=0.1)


async def test_a_dry_run_logs_and_writes_nothing() -> None:
    bench = Bench(None)
    with structlog.testing.capture_logs() as logs:
        async with bench.running():
            bench.event("would be up")
            for _ in range(100):
                bench.event("would be up")
            await asyncio.sleep(10)
            await bench.recorder.flush(1)
    assert [entry["note"] for entry in logs] == ["would be up"]


async def test_an_unforeseen_error_ends_the_recorder_instead_of_losing_events_in_silence() -> None:
    bench = Bench(FakeServer(lambda number: RuntimeError("bug")))
    task = asyncio.create_task(bench.recorder.run())
    bench.event()
    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        await task
