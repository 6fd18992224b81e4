"""A whole manager in virtual time: order of start and stop, readiness, leadership, and ends of every kind."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from types import SimpleNamespace, TracebackType
from typing import Any, Self, cast

import pytest
import structlog.testing

from fivespot.runtime.clock import InlineOffload, LoopClock
from fivespot.runtime.errors import ConnectError, StopError
from fivespot.runtime.manager import (
    ControllerSettings,
    ElectionSettings,
    Manager,
    ManagerContext,
    ManagerSettings,
    MemberEndedError,
)
from fivespot.runtime.telemetry import EventRecorder, Metrics

from .fakes import Fault, LeaseServer, hang_deaf, no_fault


class FakeCache:
    """Notes when it is entered and left; can die in between."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    async def __aenter__(self) -> Self:
        self._lines.append("+cache")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.append("-cache")

    def informers(self) -> list[Any]:
        return []

    def reconnect(self) -> None:
        self._lines.append("reconnect")


class FakeController:
    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.order = 0
        self.first_pass_done = True
        self.ready = True
        self.not_ready_reason = ""
        self.staleness = ""
        self.queue = SimpleNamespace(snapshot=list)
        self._lines = lines
        self.failure: Exception | None = None
        self.deaf = False
        self.fail = asyncio.Event()

    def stale_reason(self, limit: float) -> str:
        return self.staleness

    def close_sources(self) -> None:
        pass

    async def run(self) -> None:
        self._lines.append(f"+{self.name}")
        try:
            await (hang_deaf("") if self.deaf else self.fail.wait())
            if self.failure is not None:
                raise self.failure
        finally:
            self._lines.append(f"-{self.name}")


class Bench:
    def __init__(self, *, server: LeaseServer | None = None, name: str = "pod-1", fault: Fault = no_fault) -> None:
        self.lines: list[str] = []
        clock = LoopClock(datetime(2026, 3, 1, tzinfo=UTC))
        rng = random.Random(name)
        metrics = Metrics(process=False)
        client: Any = server.client(fault) if server is not None else None
        self.context = ManagerContext(
            client=client,
            cache=cast("Any", FakeCache(self.lines)),
            clock=clock,
            rng=rng,
            offload=InlineOffload(),
            metrics=metrics,
            events=EventRecorder(None, controller="c", instance=name, clock=clock, rng=rng, metrics=metrics),
        )
        election = ElectionSettings("ns", "lease", name, "annotation", ("machines",)) if server is not None else None
        self.manager = Manager(self.context, ManagerSettings(grace=20, election=election))
        self.controller = FakeController("machines", self.lines)
        self.manager.add(self._build)
        self.stop = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def _build(self, context: ManagerContext) -> Any:
        assert context is self.context
        self.lines.append("built")
        return self.controller

    async def start(self) -> None:
        self.task = asyncio.create_task(self.manager.run(self.stop))
        await asyncio.sleep(1)

    async def end(self) -> None:
        assert self.task is not None
        self.stop.set()
        await self.task

    def sample(self, name: str) -> float | None:
        lines = self.context.metrics.render().decode().splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), None)


@pytest.mark.looptime
async def test_caches_run_before_controllers_are_built_and_until_they_have_stopped() -> None:
    bench = Bench()
    await bench.start()
    assert bench.manager.leading
    assert bench.sample("fivespot_is_leader") == 1
    await bench.end()
    assert bench.lines == ["+cache", "built", "+machines", "-machines", "-cache"]
    assert bench.manager.health.stopping


@pytest.mark.looptime
async def test_runnables_start_before_controllers_and_stop_after_them() -> None:
    bench = Bench()

    async def run() -> None:
        bench.lines.append("+aide")
        try:
            await asyncio.Event().wait()
        finally:
            bench.lines.append("-aide")

    bench.manager.add_runnable("aide", run)
    await bench.start()
    await bench.end()
    assert bench.lines == ["+cache", "built", "+aide", "+machines", "-machines", "-aide", "-cache"]


@pytest.mark.looptime
async def test_a_controller_that_dies_ends_the_manager_with_its_error_and_everything_is_stopped() -> None:
    bench = Bench()
    bench.controller.failure = RuntimeError("bug in a worker")
    await bench.start()
    assert bench.task is not None
    bench.controller.fail.set()
    with pytest.raises(RuntimeError, match="bug in a worker"):
        await bench.task
    assert bench.lines[-1] == "-cache"


@pytest.mark.looptime
async def test_a_controller_that_returns_ends_the_manager_too() -> None:
    bench = Bench()
    await bench.start()
    assert bench.task is not None
    bench.controller.fail.set()
    with pytest.raises(MemberEndedError, match="controller machines"):
        await bench.task


@pytest.mark.looptime
async def test_a_controller_that_does_not_stop_is_named_within_the_grace_period() -> None:
    bench = Bench()
    bench.controller.deaf = True
    await bench.start()
    began = asyncio.get_running_loop().time()
    with pytest.raises(StopError, match="controller machines"):
        await bench.end()
    assert asyncio.get_running_loop().time() - began <= 20
    assert "-cache" in bench.lines
    await asyncio.sleep(300)


@pytest.mark.looptime
async def test_it_is_named_under_an_election_as_well_and_the_lease_is_not_let_go() -> None:
    server = LeaseServer()
    bench = Bench(server=server)
    bench.controller.deaf = True
    await bench.start()
    began = asyncio.get_running_loop().time()
    with pytest.raises(StopError, match="controller machines"):
        await bench.end()
    assert asyncio.get_running_loop().time() - began <= 20
    assert server.holder == "pod-1"
    await asyncio.sleep(300)


@pytest.mark.looptime
async def test_a_factory_that_fails_ends_the_manager_before_anything_works() -> None:
    bench = Bench()

    def broken(context: ManagerContext) -> Any:
        raise ValueError("bad wiring")

    bench.manager.add(broken)
    with pytest.raises(ValueError, match="bad wiring"):
        await bench.manager.run(bench.stop)
    assert bench.lines == ["+cache", "built", "-cache"]


@pytest.mark.looptime
async def test_a_stop_before_and_during_the_start_is_clean() -> None:
    """java-operator-sdk#3383."""
    early = Bench()
    early.stop.set()
    await early.manager.run(early.stop)
    assert early.lines[-1] == "-cache"

    for yields in range(8):
        bench = Bench()
        task = asyncio.create_task(bench.manager.run(bench.stop))
        for _ in range(yields):
            await asyncio.sleep(0)
        bench.stop.set()
        await task
        assert ("+machines" in bench.lines) == ("-machines" in bench.lines)


@pytest.mark.looptime
async def test_cancelling_a_manager_stops_it_in_order_too() -> None:
    bench = Bench()
    await bench.start()
    assert bench.task is not None
    bench.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bench.task
    assert bench.lines[-2:] == ["-machines", "-cache"]


@pytest.mark.looptime
async def test_readiness_follows_the_controllers_and_the_log_says_what_is_waited_for() -> None:
    bench = Bench()
    bench.controller.ready = False
    bench.controller.not_ready_reason = "ScheduledMachine.5spot.finos.org is not installed"
    with structlog.testing.capture_logs() as logs:
        await bench.start()
        assert "is not installed" in bench.manager.health.ready().text()
        await asyncio.sleep(200)
        bench.controller.ready, bench.controller.not_ready_reason = True, ""
        await asyncio.sleep(1)
        await bench.end()
    waits = [entry for entry in logs if entry["event"] == "not ready"]
    assert 3 <= len(waits) <= 5, "once a minute"
    assert "is not installed" in str(waits[0]["waiting_for"])
    assert [entry["event"] for entry in logs if entry["event"] in {"ready", "stopping", "stopped"}] == [
        "ready",
        "stopping",
        "stopped",
    ]


@pytest.mark.looptime
async def test_a_source_that_cannot_be_read_for_long_makes_the_manager_not_ready() -> None:
    bench = Bench()
    bench.controller.staleness = "machines cannot be read since 61 s: forbidden"
    await bench.start()
    assert "cannot be read since 61 s" in bench.manager.health.ready().text()
    assert bench.manager.health.live().ok
    await bench.end()


@pytest.mark.looptime
async def test_a_standby_runs_caches_only_and_takes_over_after_a_clean_stop() -> None:
    server = LeaseServer()
    first, second = Bench(server=server, name="pod-1"), Bench(server=server, name="pod-2")
    await first.start()
    await second.start()
    assert first.manager.leading
    assert second.lines == ["+cache", "built"]
    assert "leader election" not in second.manager.health.ready().problems
    assert (first.sample("fivespot_is_leader"), second.sample("fivespot_is_leader")) == (1, 0)
    assert second.sample('leader_election_master_status{name="lease"}') == 0
    assert second.context.metrics.leading is False
    await first.end()
    await asyncio.sleep(3)
    assert second.lines == ["+cache", "built", "+machines"]
    assert second.sample("fivespot_is_leader") == 1
    await second.end()
    assert server.holder == ""


@pytest.mark.looptime
async def test_losing_the_lease_stops_the_controllers_and_winning_it_back_runs_them_again() -> None:
    server, broken = LeaseServer(), False

    async def cut(when: str) -> None:
        if broken:
            raise ConnectError("cut")

    bench = Bench(server=server, fault=cut)
    await bench.start()
    await asyncio.sleep(20)
    broken = True
    await asyncio.sleep(11)
    assert bench.lines == ["+cache", "built", "+machines", "-machines", "reconnect"], "what it sees may be old"
    assert bench.sample("fivespot_is_leader") == 0
    broken = False
    await asyncio.sleep(3)
    assert bench.lines == ["+cache", "built", "+machines", "-machines", "reconnect", "+machines"]
    await bench.end()
    assert bench.lines[-2:] == ["-machines", "-cache"]


@pytest.mark.looptime
async def test_a_stop_while_the_lease_is_being_lost_and_the_server_is_away_ends_in_time() -> None:
    server, broken = LeaseServer(), False

    async def cut(when: str) -> None:
        if broken:
            await asyncio.Event().wait()

    bench = Bench(server=server, fault=cut)
    await bench.start()
    broken = True
    await asyncio.sleep(9.9)
    began = asyncio.get_running_loop().time()
    await bench.end()
    assert asyncio.get_running_loop().time() - began <= 20
    assert bench.lines[-1] == "-cache"


@pytest.mark.looptime
async def test_debug_views_show_queues_tasks_and_plans() -> None:
    bench = Bench()
    await bench.start()
    views = bench.manager.debug_views
    assert views["queues"]() == {"machines": {"ready": True, "not_ready": "", "keys": []}}
    assert views["informers"]() == []
    assert views["plans"]() == []
    tasks = {task["name"]: task["at"] for task in views["tasks"]()}
    assert "run" in tasks["controller machines"]
    await bench.end()


def build(name: str, bench: Bench, *, order: int = 0) -> Any:
    made = FakeController(name, bench.lines)
    made.order = order
    return made


@pytest.mark.looptime
async def test_two_controllers_or_runnables_of_one_name_are_an_error() -> None:
    bench = Bench()
    bench.manager.add(lambda context: build("machines", bench))
    with pytest.raises(ValueError, match="controller machines exists already"):
        await bench.manager.run(bench.stop)
    assert "+machines" not in bench.lines

    async def wait() -> None:
        await asyncio.Event().wait()

    for leader_only in (True, False):
        bench = Bench()
        bench.manager.add_runnable("aide", wait)
        with pytest.raises(ValueError, match="runnable aide exists already"):
            bench.manager.add_runnable("aide", wait, leader_only=leader_only)
    bench = Bench()
    bench.manager.add_runnable("controller machines", wait)
    with pytest.raises(ValueError, match="controller machines exists already"):
        await bench.manager.run(bench.stop)


@pytest.mark.looptime
@pytest.mark.parametrize("elected", [False, True])
async def test_controllers_and_runnables_may_be_added_and_removed_while_it_runs(elected: bool) -> None:
    bench = Bench(server=LeaseServer() if elected else None)
    await bench.start()
    bench.manager.add(lambda context: build("late", bench))

    async def aide() -> None:
        bench.lines.append("+aide")
        await asyncio.Event().wait()

    bench.manager.add_runnable("aide", aide, leader_only=True)
    await asyncio.sleep(1)
    assert bench.lines[-2:] == ["+late", "+aide"]
    assert "controller late" in bench.manager.health.ready().checks
    bench.context.metrics.queue("late")
    with pytest.raises(ValueError, match="exists already"):
        bench.manager.add(lambda context: build("late", bench))
    await bench.manager.remove("late")
    assert bench.lines[-1] == "-late"
    assert "controller late" not in bench.manager.health.ready().checks
    assert 'workqueue_adds_total{controller="late"' not in bench.context.metrics.render().decode()
    bench.manager.add(lambda context: build("late", bench))
    await asyncio.sleep(1)
    assert bench.lines[-1] == "+late"
    assert bench.task is not None
    assert not bench.task.done()
    await bench.end()
    with pytest.raises(RuntimeError, match="has stopped"):
        bench.manager.add(lambda context: build("too late", bench))


@pytest.mark.looptime
async def test_a_controller_that_was_added_later_and_dies_ends_the_manager() -> None:
    bench = Bench()
    await bench.start()
    late = build("late", bench)
    late.failure = RuntimeError("bug in a late one")
    bench.manager.add(lambda context: late)
    await asyncio.sleep(1)
    late.fail.set()
    assert bench.task is not None
    with pytest.raises(RuntimeError, match="bug in a late one"):
        await bench.task


@pytest.mark.looptime
async def test_a_controller_added_on_a_standby_runs_once_it_leads() -> None:
    server = LeaseServer()
    first, second = Bench(server=server, name="pod-1"), Bench(server=server, name="pod-2")
    await first.start()
    await second.start()
    second.manager.add(lambda context: build("late", second))
    await asyncio.sleep(5)
    assert second.lines == ["+cache", "built"]
    await first.end()
    await asyncio.sleep(3)
    assert second.lines[2:] == ["+machines", "+late"]
    await second.end()


@pytest.mark.looptime
@pytest.mark.parametrize("leader_only", [False, True])
async def test_a_runnable_that_may_end_ends_nothing_else(leader_only: bool) -> None:
    bench = Bench(server=LeaseServer())

    async def once() -> None:
        bench.lines.append("once")

    bench.manager.add_runnable("once", once, leader_only=leader_only, may_end=True)
    await bench.start()
    await asyncio.sleep(60)
    assert bench.task is not None
    assert not bench.task.done()
    assert bench.lines.count("once") == 1
    await bench.end()


@pytest.mark.looptime
async def test_a_check_that_raises_fails_and_ends_nothing() -> None:
    bench = Bench()

    def broken() -> str:
        raise KeyError("bug in a check")

    bench.manager.health.add_readiness("mine", broken)
    bench.manager.health.add_liveness("mine", broken)
    await bench.start()
    await asyncio.sleep(120)
    assert bench.task is not None
    assert not bench.task.done()
    assert "[-]mine: the check failed: KeyError: 'bug in a check'" in bench.manager.health.ready().text()
    assert not bench.manager.health.live().ok
    await bench.end()


@pytest.mark.contract("B5.6")
@pytest.mark.looptime
async def test_a_controller_of_a_higher_order_starts_after_the_first_pass_of_the_others() -> None:
    server = LeaseServer()
    first, second = Bench(server=server, name="pod-1"), Bench(server=server, name="pod-2")
    provider = build("provider", second)
    provider.first_pass_done = False
    second.controller.order = 1
    second.manager.add(lambda context: provider)
    await first.start()
    await second.start()
    await first.end()
    await asyncio.sleep(3)
    assert second.lines[2:] == ["+provider"]
    provider.first_pass_done = True
    await asyncio.sleep(0.2)
    assert second.lines[2:] == ["+provider", "+machines"]
    await second.end()


@pytest.mark.looptime
async def test_a_first_pass_is_waited_for_no_longer_than_its_limit() -> None:
    bench = Bench()
    provider = build("provider", bench)
    provider.first_pass_done = False
    bench.controller.order = 1
    bench.manager.add(lambda context: provider)
    await bench.start()
    await asyncio.sleep(8.5)
    assert "+machines" not in bench.lines
    await asyncio.sleep(1)
    assert "+machines" in bench.lines
    await bench.end()


def test_an_empty_list_of_namespaces_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="namespaces is empty; name at least one, or None for all"):
        ControllerSettings(namespaces=())
