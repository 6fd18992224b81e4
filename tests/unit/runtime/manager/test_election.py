"""Leader election in virtual time, against a Lease that can be slow, cut off or lose answers."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import looptime
import pytest
import structlog.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.runtime.clock import LoopClock
from fivespot.runtime.errors import (
    BrokenStreamError,
    ConfigError,
    ConnectError,
    DeadlineError,
    ProtocolError,
    StopError,
    api_error,
)
from fivespot.runtime.manager import Election, ElectionSettings, ElectionTimings

from .fakes import Fault, LeaseServer, hang, hang_deaf, no_fault

ANNOTATION = "5spot.finos.org/reconcilers"


class Stage:
    """The processes of a test, and who works when."""

    def __init__(self) -> None:
        self.server = LeaseServer()
        self.working: list[str] = []
        self.log: list[tuple[str, str, float]] = []
        self.overlap = False

    def work(self, name: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def run() -> None:
            self.working.append(name)
            self.overlap = self.overlap or len(self.working) > 1
            self.log.append((name, "begins", asyncio.get_running_loop().time()))
            try:
                await asyncio.Event().wait()
            finally:
                self.working.remove(name)
                self.log.append((name, "ends", asyncio.get_running_loop().time()))

        return run

    def process(
        self,
        name: str,
        *,
        fault: Fault = no_fault,
        timings: ElectionTimings | None = None,
        members: tuple[str, ...] = ("machines",),
        clock_error: float = 0,
        seed: int = 1,
        grace: float = 30,
        on_silence: Callable[[], None] = lambda: None,
    ) -> Election:
        return Election(
            self.server.client(fault),
            ElectionSettings("ns", "lease", name, ANNOTATION, members, timings or ElectionTimings()),
            clock=LoopClock(datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=clock_error)),
            rng=random.Random(f"{name}{seed}"),
            grace=grace,
            on_silence=on_silence,
        )

    def start(self, election: Election, name: str) -> asyncio.Task[None]:
        return asyncio.create_task(election.run({f"work of {name}": self.work(name)}))

    def at(self, name: str, what: str) -> list[float]:
        return [when for who, happened, when in self.log if (who, happened) == (name, what)]


@contextlib.asynccontextmanager
async def stopping(*tasks: asyncio.Task[None]) -> Any:
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def deaf_ones_have_ended() -> None:
    """End abandoned tasks in virtual time, and not in the real time of the loop's closing."""
    await asyncio.sleep(300)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.mark.looptime
async def test_the_first_candidate_leads_at_once_and_the_second_stands_by(stage: Stage) -> None:
    first, second = stage.process("a"), stage.process("b")
    async with stopping(stage.start(first, "a"), stage.start(second, "b")):
        await asyncio.sleep(120)
        assert stage.working == ["a"]
        assert (first.leading, second.leading) == (True, False)
        assert first.not_ready_reason() == second.not_ready_reason() == "", "a standby is as well as a leader"
    assert stage.server.body is not None
    assert stage.server.body["metadata"]["annotations"] == {ANNOTATION: "machines"}


@pytest.mark.looptime
async def test_a_clean_stop_lets_the_lease_go_after_the_work_has_ended(stage: Stage) -> None:
    first = stage.start(stage.process("a"), "a")
    second = stage.start(stage.process("b"), "b")
    async with stopping(first, second):
        await asyncio.sleep(20)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert stage.server.holder == ""
        await asyncio.sleep(3)
        assert stage.working == ["b"], "nobody waits for a lease that was let go"
    assert stage.at("a", "ends")[0] <= stage.at("b", "begins")[0]
    assert stage.server.spec["leaseTransitions"] == 1


@pytest.mark.looptime
async def test_the_lease_of_a_killed_process_is_taken_over_in_its_duration(stage: Stage) -> None:
    """nolar/kopf#734: leftovers of a dead peer freeze nobody."""
    dead = False

    async def killed(when: str) -> None:
        if dead:
            await asyncio.Event().wait()

    first = stage.start(stage.process("a", fault=killed), "a")
    second = stage.start(stage.process("b"), "b")
    async with stopping(first, second):
        await asyncio.sleep(20)
        dead = True
        await asyncio.sleep(15 + 2 * 2.4)
        assert stage.working == ["b"]


@pytest.mark.looptime
@pytest.mark.parametrize("fault", [hang, hang_deaf], ids=["hangs", "hangs and ignores cancellation"])
async def test_a_renewal_that_hangs_ends_the_work_by_the_deadline(stage: Stage, fault: Fault) -> None:
    """kubernetes#65090, kubernetes#95319."""
    broken_at = 20.0

    async def later(when: str) -> None:
        if asyncio.get_running_loop().time() >= broken_at and "replace" in when:
            await fault(when)

    task = stage.start(stage.process("a", fault=later), "a")
    async with stopping(task):
        await asyncio.sleep(broken_at + 10.1)
        assert not stage.working
        (ended,) = stage.at("a", "ends")
        assert ended <= broken_at + 10
    await deaf_ones_have_ended()


@pytest.mark.looptime
async def test_work_ends_at_the_instant_of_the_deadline_and_not_a_heartbeat_later(stage: Stage) -> None:
    renewed: list[float] = []

    async def later(when: str) -> None:
        now = asyncio.get_running_loop().time()
        if "replace" in when and now >= 20:
            await hang_deaf(when)
        renewed.append(now)

    task = stage.start(stage.process("a", fault=later, timings=ElectionTimings(retry_period=2.1)), "a")
    async with stopping(task):
        await asyncio.sleep(40)
        (ended,) = stage.at("a", "ends")
        assert ended == pytest.approx(renewed[-1] + 10, abs=0.01)
    await deaf_ones_have_ended()


async def refuse_connections(when: str) -> None:
    raise ConnectError("refused")


async def forbid(when: str) -> None:
    raise api_error(403, "Forbidden", "no", request="x")


@pytest.mark.looptime
@pytest.mark.parametrize("fault", [hang, refuse_connections], ids=lambda fault: fault.__name__)
async def test_a_leader_that_loses_contact_says_so_when_it_stops_and_once_per_silence(
    stage: Stage, fault: Fault
) -> None:
    """Its observations may come from connections that died with the one to its Lease, and it may lead again soon."""
    broken = False
    told: list[float] = []

    async def sometimes(when: str) -> None:
        if broken:
            await fault(when)

    def note() -> None:
        told.append(asyncio.get_running_loop().time())

    task = stage.start(stage.process("a", fault=sometimes, on_silence=note), "a")
    async with stopping(task):
        for silences in (1, 2):
            await asyncio.sleep(20)
            broken = True
            since = asyncio.get_running_loop().time()
            await asyncio.sleep(10.1)
            assert len(told) == silences
            assert since < told[-1] <= since + 10
            await asyncio.sleep(60)
            assert len(told) == silences
            broken = False
            await asyncio.sleep(20)
            assert stage.working == ["a"]


@pytest.mark.looptime
async def test_a_standby_without_contact_says_so_too(stage: Stage) -> None:
    broken = False
    told: list[str] = []

    async def sometimes(when: str) -> None:
        if broken:
            await hang(when)

    standby = stage.process("b", fault=sometimes, on_silence=lambda: told.append("b"))
    async with stopping(stage.start(stage.process("a"), "a"), stage.start(standby, "b")):
        await asyncio.sleep(20)
        broken = True
        await asyncio.sleep(9)
        assert not told
        await asyncio.sleep(9)
        assert told == ["b"]


@pytest.mark.looptime
async def test_a_server_that_answers_is_not_silent_whatever_it_says(stage: Stage) -> None:
    broken = False
    told: list[str] = []

    async def sometimes(when: str) -> None:
        if broken:
            await forbid(when)

    election = stage.process("a", fault=sometimes, on_silence=lambda: told.append("a"))
    async with stopping(stage.start(election, "a")):
        await asyncio.sleep(20)
        broken = True
        await asyncio.sleep(100)
        assert not election.leading
        assert not told


@pytest.mark.looptime
@pytest.mark.parametrize("errors", [-3600.0, 3600.0])
async def test_clocks_that_are_an_hour_apart_change_nothing(stage: Stage, errors: float) -> None:
    """client-go#448."""
    first = stage.start(stage.process("a"), "a")
    second = stage.start(stage.process("b", clock_error=errors), "b")
    async with stopping(first, second):
        await asyncio.sleep(300)
        assert stage.working == ["a"]
        assert not stage.overlap


@pytest.mark.looptime
async def test_a_candidate_waits_for_the_duration_of_the_holder(stage: Stage) -> None:
    """kubernetes#114872."""
    dead = False

    async def killed(when: str) -> None:
        if dead:
            await asyncio.Event().wait()

    slow = ElectionTimings(lease_duration=60, renew_deadline=40, retry_period=5)
    first = stage.start(stage.process("a", fault=killed, timings=slow), "a")
    second = stage.start(stage.process("b"), "b")
    async with stopping(first, second):
        await asyncio.sleep(20)
        dead = True
        await asyncio.sleep(39)
        assert "b" not in stage.working
        await asyncio.sleep(30)
        assert stage.working == ["b"]
        assert not stage.overlap


@pytest.mark.looptime
async def test_work_that_dies_lets_the_lease_go_and_its_error_through(stage: Stage) -> None:
    """kubernetes-client/python#2075: it was renewed for ever."""

    async def die() -> None:
        await asyncio.sleep(5)
        raise RuntimeError("work is broken")

    task = asyncio.create_task(stage.process("a").run({"broken": die, "fine": stage.work("a")}))
    with pytest.raises(RuntimeError, match="work is broken"):
        await task
    assert not stage.working
    assert stage.server.holder == ""


@pytest.mark.looptime
async def test_work_that_returns_is_an_error_too(stage: Stage) -> None:
    async def end() -> None:
        pass

    with pytest.raises(Exception, match="short returned, but has to run until"):
        await stage.process("a").run({"short": end})


ERRORS = [
    api_error(403, "Forbidden", "no", request="x"),
    api_error(409, "Conflict", "modified", request="x"),
    api_error(404, "NotFound", "gone", request="x"),
    api_error(429, "TooManyRequests", "slow", request="x"),
    api_error(500, "", "oops", request="x"),
    ConnectError("refused"),
    DeadlineError("slow"),
    BrokenStreamError("cut"),
    ProtocolError("no JSON"),
    TimeoutError(),
]


@pytest.mark.looptime
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{type(error).__name__}")
@pytest.mark.parametrize("where", ["before get", "after get", "before replace", "after replace"])
async def test_whatever_a_request_raises_work_ends_by_the_deadline_and_begins_again_afterwards(
    stage: Stage, error: Exception, where: str
) -> None:
    """kubernetes_asyncio's elector left the led task running on anything but an ApiException."""

    async def faulty(when: str) -> None:
        if 20 <= asyncio.get_running_loop().time() < 60 and when in {where, "before replace"}:
            raise error

    task = stage.start(stage.process("a", fault=faulty), "a")
    other = stage.start(stage.process("b"), "b")
    async with stopping(task, other):
        await asyncio.sleep(59)
        assert stage.working == ["b"]
        other.cancel()
        await asyncio.sleep(40)
        assert stage.working == ["a"]
        assert not stage.overlap
        assert not task.done()


@pytest.mark.looptime
async def test_an_unforeseen_error_ends_the_work_and_is_raised(stage: Stage) -> None:
    async def bug(when: str) -> None:
        if asyncio.get_running_loop().time() > 10:
            raise KeyError("bug")

    task = stage.start(stage.process("a", fault=bug), "a")
    with pytest.raises(KeyError):
        await task
    assert not stage.working


@pytest.mark.looptime
async def test_an_answer_that_was_lost_costs_the_lease_nothing(stage: Stage) -> None:
    lose = True

    async def lossy(when: str) -> None:
        nonlocal lose
        if when in {"after replace", "after create"}:
            lose = not lose
            if not lose:
                raise BrokenStreamError("cut")

    task = stage.start(stage.process("a", fault=lossy), "a")
    async with stopping(task):
        await asyncio.sleep(200)
        assert stage.working == ["a"]
        assert len(stage.at("a", "begins")) == 1


@pytest.mark.looptime
async def test_work_begins_on_a_fresh_claim_and_not_on_one_that_was_found_to_have_arrived(stage: Stage) -> None:
    async def lossy(when: str) -> None:
        now = asyncio.get_running_loop().time()
        if when == "after create":
            raise BrokenStreamError("cut")
        if when == "before get" and 0 < now < 9:
            await asyncio.sleep(4.9)
        if when == "before replace" and now < 9:
            raise ConnectError("cut")

    task = stage.start(stage.process("a", fault=lossy), "a")
    async with stopping(task):
        await asyncio.sleep(8)
        assert stage.server.holder == "a"
        assert not stage.log, "2 seconds would be left of a claim sent 8 seconds ago"
        await asyncio.sleep(60)
        assert len(stage.at("a", "begins")) == 1
        assert stage.working == ["a"]


@pytest.mark.looptime
async def test_a_lease_deleted_by_other_hands_is_made_again_without_losing_it(stage: Stage) -> None:
    task = stage.start(stage.process("a"), "a")
    async with stopping(task):
        await asyncio.sleep(11)
        stage.server.body = None
        await asyncio.sleep(60)
        assert len(stage.at("a", "begins")) == 1
        assert stage.server.holder == "a"


@pytest.mark.looptime
async def test_a_lease_taken_by_other_hands_ends_the_work_at_the_next_renewal(stage: Stage) -> None:
    task = stage.start(stage.process("a"), "a")
    async with stopping(task):
        await asyncio.sleep(11)
        assert stage.server.body is not None
        spec = {**stage.server.spec, "holderIdentity": "thief", "renewTime": "x"}
        stage.server.store({**stage.server.body, "spec": spec})
        await asyncio.sleep(2.1)
        assert not stage.working
        await asyncio.sleep(20)
        assert stage.working == ["a"], "the thief did not renew"
        assert len(stage.at("a", "begins")) == 2


@pytest.mark.looptime
async def test_work_that_does_not_stop_after_the_loss_ends_the_process_with_its_name(stage: Stage) -> None:
    """controller-runtime#3247: and it never lets go of a lease that work of ours may still rely on."""

    async def stubborn() -> None:
        await hang_deaf("")

    broken = False

    async def cut(when: str) -> None:
        if broken:
            raise ConnectError("cut")

    election = stage.process("a", fault=cut, grace=5)
    task = asyncio.create_task(election.run({"controller stubborn": stubborn}))
    await asyncio.sleep(20)
    broken = True
    with pytest.raises(StopError, match="controller stubborn"):
        await task
    assert asyncio.get_running_loop().time() <= 20 + 10 + 5.1
    assert stage.server.holder == "a"
    await deaf_ones_have_ended()


@pytest.mark.looptime
async def test_a_lease_is_renewed_while_the_work_winds_down(stage: Stage) -> None:
    async def slow_to_stop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(25)

    first = asyncio.create_task(stage.process("a").run({"slow": slow_to_stop}))
    second = stage.start(stage.process("b"), "b")
    async with stopping(second):
        await asyncio.sleep(20)
        first.cancel()
        await asyncio.sleep(24)
        assert not stage.working
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(3)
        assert stage.working == ["b"]


@pytest.mark.looptime
@pytest.mark.parametrize("after", [0.0, 0.001, 0.5, 1.0, 1.5, 2.0, 2.5, 10.0])
async def test_a_standby_that_is_stopped_at_any_moment_never_begins_to_work(stage: Stage, after: float) -> None:
    """controller-runtime#2719: and what it took in its last moment it lets go."""

    async def slow(when: str) -> None:
        await asyncio.sleep(0.5)

    task = stage.start(stage.process("a", fault=slow), "a")
    await asyncio.sleep(after)
    began = bool(stage.working)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert bool(stage.log) == began
    assert stage.server.holder == ""


@pytest.mark.looptime
async def test_stopping_does_not_wait_for_a_server_that_is_away(stage: Stage) -> None:
    broken = False

    async def cut(when: str) -> None:
        if broken:
            await asyncio.Event().wait()

    task = stage.start(stage.process("a", fault=cut), "a")
    await asyncio.sleep(5)
    broken = True
    loop = asyncio.get_running_loop()
    started = loop.time()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert loop.time() - started <= 5.1
    assert not stage.working


@pytest.mark.looptime
async def test_a_process_that_may_not_write_the_lease_that_nobody_holds_is_not_ready_and_says_why(
    stage: Stage,
) -> None:
    refused = True

    async def read_only(when: str) -> None:
        if refused and when == "before create":
            raise api_error(403, "Forbidden", "no right to create leases", request="create leases")

    election = stage.process("b", fault=read_only)
    async with stopping(stage.start(election, "b")):
        await asyncio.sleep(70)
        reason = election.not_ready_reason()
        assert "lease ns/lease cannot be acquired for" in reason
        assert "no right to create leases" in reason
        refused = False
        await asyncio.sleep(5)
        assert election.leading
        assert election.not_ready_reason() == ""


@pytest.mark.looptime
async def test_a_standby_whose_claims_fail_in_between_terms_is_ready_while_another_leads(stage: Stage) -> None:
    async def read_only(when: str) -> None:
        if when in ("before create", "before replace"):
            raise api_error(403, "Forbidden", "no right to write leases", request="update leases")

    standby = stage.process("b", fault=read_only)
    async with stopping(stage.start(standby, "b")):
        await asyncio.sleep(30)
        async with stopping(stage.start(stage.process("a"), "a")):
            await asyncio.sleep(120)
            assert standby.not_ready_reason() == ""


@pytest.mark.looptime
async def test_a_process_that_is_cut_off_for_long_is_not_ready_and_says_why(stage: Stage) -> None:
    """controller-runtime#3298."""
    broken = False

    async def cut(when: str) -> None:
        if broken:
            raise ConnectError("cut")

    election = stage.process("b", fault=cut)
    leader = stage.start(stage.process("a"), "a")
    standby = stage.start(election, "b")
    async with stopping(leader, standby):
        await asyncio.sleep(100)
        assert election.not_ready_reason() == ""
        broken = True
        await asyncio.sleep(70)
        assert "no successful read of lease ns/lease" in election.not_ready_reason()
        broken = False
        await asyncio.sleep(3)
        assert election.not_ready_reason() == ""


@pytest.mark.looptime
async def test_a_lease_shared_by_mistake_ends_the_second_deployment(stage: Stage) -> None:
    first = stage.start(stage.process("a", members=("machines",)), "a")
    async with stopping(first):
        await asyncio.sleep(10)
        with pytest.raises(ConfigError, match=r"lease ns/lease is held by a, which runs machines, while .* calendars"):
            await stage.process("b", members=("calendars", "manual")).run({"w": stage.work("b")})
        assert stage.working == ["a"]
        assert stage.server.holder == "a"


@pytest.mark.looptime
@pytest.mark.parametrize("theirs", ["machines,calendars", None])
async def test_a_holder_with_other_reconcilers_or_none_named_is_stood_by_for_with_a_warning(
    stage: Stage, theirs: str | None
) -> None:
    annotations = {} if theirs is None else {ANNOTATION: theirs}
    spec = {"holderIdentity": "old", "leaseDurationSeconds": 15, "renewTime": "t0"}
    stage.server.store({"metadata": {"name": "lease", "annotations": annotations}, "spec": spec})
    with structlog.testing.capture_logs() as logs:
        task = stage.start(stage.process("b"), "b")
        async with stopping(task):
            for number in range(20):
                await asyncio.sleep(2)
                assert stage.server.body is not None
                stage.server.store({**stage.server.body, "spec": {**spec, "renewTime": f"t{number}"}})
            assert not stage.working
    warnings = [entry for entry in logs if "same reconcilers" in entry["event"]]
    assert [(entry["theirs"], entry["ours"]) for entry in warnings] == [
        ("calendars, machines" if theirs else "(unknown)", "machines")
    ]


@pytest.mark.looptime
async def test_a_steady_leader_sends_one_write_per_retry_period_and_reads_nothing(stage: Stage) -> None:
    client = stage.server.client()
    election = stage.process("a")
    election._client = client
    task = stage.start(election, "a")
    async with stopping(task):
        await asyncio.sleep(100.5)
        assert client.requests.count("replace") == 50
        assert client.requests.count("get") == 1


faults = st.sampled_from(["fine", "cut", "lost", "slow", "hang"])


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    scripts=st.lists(st.lists(st.tuples(faults, st.floats(1, 40)), max_size=12), min_size=2, max_size=4),
    clocks=st.lists(st.floats(-3600, 3600), min_size=4, max_size=4),
)
def test_never_two_leaders_whatever_the_network_does_and_one_again_when_it_is_well(
    seed: int, scripts: list[list[tuple[str, float]]], clocks: list[float]
) -> None:
    rng = random.Random(seed)

    def faulty(script: list[tuple[str, float]]) -> Fault:
        async def fault(when: str) -> None:
            now, end, kind = asyncio.get_running_loop().time(), 0.0, "fine"
            for candidate, length in script:
                end += length
                if now < end:
                    kind = candidate
                    break
            if kind == "slow":
                await asyncio.sleep(rng.uniform(0, 7))
            elif kind == "hang":
                await asyncio.Event().wait()
            elif kind == "cut" and when.startswith("before"):
                raise ConnectError("cut")
            elif kind == "lost" and when.startswith("after") and rng.random() < 0.7:
                raise BrokenStreamError("cut")

        return fault

    async def run() -> None:
        stage = Stage()
        names = [f"p{number}" for number in range(len(scripts))]
        tasks = [
            stage.start(stage.process(name, fault=faulty(script), clock_error=clock, seed=seed), name)
            for name, script, clock in zip(names, scripts, clocks, strict=False)
        ]
        longest = max(sum(length for _, length in script) for script in scripts)
        async with stopping(*tasks):
            await asyncio.sleep(longest + 60)
            assert not stage.overlap, stage.log
            assert len(stage.working) == 1, stage.log
            assert not any(task.done() for task in tasks)
        assert stage.server.holder == ""

    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(start=0, noop_cycles=4)) as runner:
        runner.run(run())


@pytest.mark.looptime
@pytest.mark.parametrize("in_progress", [0.05, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("stopped_after", [0.01, 0.04])
async def test_a_release_that_meets_a_renewal_in_progress_is_tried_again(
    stage: Stage, in_progress: float, stopped_after: float
) -> None:
    """The server carries out the renewal although its sender was cancelled."""
    slow = False
    client = stage.server.client()

    class Detached:
        """Requests that reach the server even if whoever sent them does not wait any more."""

        get = client.get
        create = client.create

        async def replace(self, resource: Any, body: dict[str, Any]) -> Any:
            async def carry_out() -> Any:
                if slow and body["spec"]["holderIdentity"]:
                    await asyncio.sleep(in_progress)
                return await client.replace(resource, body)

            sent = asyncio.create_task(carry_out())
            self.pending = sent
            return await asyncio.shield(sent)

    first = stage.process("a")
    first._client = Detached()
    task, other = stage.start(first, "a"), stage.start(stage.process("b"), "b")
    async with stopping(task, other):
        await asyncio.sleep(19.9)
        slow = True
        await asyncio.sleep(0.1 + stopped_after)
        began = asyncio.get_running_loop().time()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(in_progress + 3)
        assert stage.working == ["b"]
        assert stage.at("b", "begins")[0] - began <= in_progress + 3
        await asyncio.sleep(10)
        assert stage.working == ["b"], "and no late renewal takes it back"


@pytest.mark.looptime
async def test_an_ex_leader_that_stops_leaves_the_lease_of_another_alone(stage: Stage) -> None:
    cut_off = False

    async def cut(when: str) -> None:
        if cut_off:
            raise ConnectError("cut")

    first, second = stage.start(stage.process("a", fault=cut), "a"), stage.start(stage.process("b"), "b")
    async with stopping(first, second):
        await asyncio.sleep(20)
        cut_off = True
        await asyncio.sleep(30)
        assert stage.working == ["b"]
        cut_off = False
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert stage.server.holder == "b"
        await asyncio.sleep(30)
        assert len(stage.at("b", "ends")) == 0


@pytest.mark.looptime
@pytest.mark.parametrize("seconds", [1.0, 4.0, 4.9])
async def test_requests_that_are_slow_but_answered_cost_no_term(stage: Stage, seconds: float) -> None:
    """Renewals are paced from their sends: a period on top of each would leave too little time for the next."""
    slow = False

    async def late(when: str) -> None:
        if slow and when.startswith("before"):
            await asyncio.sleep(seconds)

    task = stage.start(stage.process("a", fault=late), "a")
    async with stopping(task):
        await asyncio.sleep(20)
        slow = True
        await asyncio.sleep(600)
        assert len(stage.at("a", "begins")) == 1


@pytest.mark.looptime
async def test_a_standby_whose_reads_are_slow_takes_over_all_the_same(stage: Stage) -> None:
    async def late(when: str) -> None:
        if when == "before get":
            await asyncio.sleep(7)

    first, second = stage.start(stage.process("a"), "a"), stage.start(stage.process("b", fault=late), "b")
    async with stopping(first, second):
        await asyncio.sleep(30)
        first.cancel()
        await asyncio.sleep(20)
        assert stage.working == ["b"]


@pytest.mark.looptime
@pytest.mark.parametrize("cut_off_for", [0.0, 4.0, 9.0])
async def test_a_lease_that_is_deleted_gives_no_second_leader(stage: Stage, cut_off_for: float) -> None:
    """The holder does not know yet and works on until its deadline."""
    cut_until = 0.0

    async def cut(when: str) -> None:
        if asyncio.get_running_loop().time() < cut_until:
            raise ConnectError("cut")

    first, second = stage.start(stage.process("a", fault=cut), "a"), stage.start(stage.process("b"), "b")
    async with stopping(first, second):
        await asyncio.sleep(20)
        cut_until = 20 + cut_off_for
        stage.server.body = None
        await asyncio.sleep(60)
        assert not stage.overlap
        assert stage.working


@pytest.mark.looptime
async def test_a_lease_that_vanished_with_its_holder_is_taken_after_the_holders_duration(stage: Stage) -> None:
    dead = False

    async def killed(when: str) -> None:
        if dead:
            await asyncio.Event().wait()

    first, second = stage.start(stage.process("a", fault=killed), "a"), stage.start(stage.process("b"), "b")
    async with stopping(first, second):
        await asyncio.sleep(20)
        dead, stage.server.body = True, None
        await asyncio.sleep(14.9)
        assert "b" not in stage.working
        await asyncio.sleep(6)
        assert stage.working == ["b"]
