"""Statuses that cannot be written, or that another writer undoes, in virtual time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest
import structlog.testing

from fivespot.providers.sdk import ApiModel, Provider, Verdict, build_controller
from fivespot.runtime.client import Request, Response
from fivespot.runtime.errors import DeadlineError, TransportError
from unit.runtime.cache.fakes import TEXT_404, encode, failing

from .stage import START, Stage, SteppedClock, at, on_stage

pytestmark = pytest.mark.looptime


class GateSpec(ApiModel):
    """Open from an instant on."""

    opens: str
    note: str = ""


def prepare(spec: GateSpec) -> datetime:
    return datetime.fromisoformat(spec.opens).astimezone(UTC)


def decide(opens: datetime, at: datetime) -> Verdict:
    return Verdict(True, None, "Open") if at >= opens else Verdict(False, opens, "Closed")


GATE: Final = Provider("Gate", spec=GateSpec, prepare=prepare, decide=decide)
GATES: Final = GATE.resource
NAMED_404: Final = Response(
    404,
    {},
    encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": "NotFound",
            "message": 'gates "noon" not found',
            "code": 404,
            "details": {"name": "noon", "kind": "gates"},
        }
    ),
)


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.serve(GATES)
    return stage


def opens(**after: float) -> dict[str, Any]:
    return {"opens": at(**after).isoformat()}


def patches(request: Request) -> bool:
    return request.method == "PATCH"


def counted(stage: Stage, error: str) -> bool:
    return f'fivespot_errors_total{{error_type="{error}"}}' in stage.metrics.render().decode()


@pytest.mark.contract("B8.5")
@pytest.mark.parametrize(
    "answer",
    [
        failing(403, "Forbidden"),
        failing(422, "Invalid"),
        failing(409, "Conflict"),
        TEXT_404,
        NAMED_404,
        failing(429, "TooManyRequests", **{"retry-after": "9"}),
        failing(503, "ServiceUnavailable"),
        failing(400, "BadRequest"),
        DeadlineError("no answer"),
    ],
    ids=["403", "422", "409", "404 text", "404 Status", "429", "503", "400", "time-out"],
)
async def test_a_status_that_cannot_be_written_is_told_within_a_minute_and_written_once_it_can(
    stage: Stage, answer: Response | TransportError
) -> None:
    stage.apply(GATES, "noon", opens(seconds=10))
    with structlog.testing.capture_logs() as logs:
        async with on_stage(stage, GATE):
            await asyncio.sleep(9)
            fault = stage.fault_while(patches, answer)
            await asyncio.sleep(61)
            assert stage.told().count("StatusNotWritten") == 1
            assert any(line["event"] == "the status cannot be written" for line in logs)
            assert counted(stage, "status_not_written")
            await asyncio.sleep(540)
            assert stage.told().count("StatusNotWritten") == 1, "it is not said with every attempt"
            stage.faults.remove(fault)
            await asyncio.sleep(60)
            assert stage.status(GATES, "noon")["active"] is True


async def test_a_conflict_that_passes_is_not_told(stage: Stage) -> None:
    stage.apply(GATES, "noon", opens(seconds=10))
    with structlog.testing.capture_logs():
        async with on_stage(stage, GATE):
            stage.fault_while(patches, failing(409, "Conflict"), times=5)
            await asyncio.sleep(600)
            assert stage.status(GATES, "noon")["active"] is True
    assert "StatusNotWritten" not in stage.told()


@pytest.mark.contract("C10")
@pytest.mark.parametrize("where", ["spec", "status"])
async def test_an_object_that_cannot_be_decoded_is_invalid_and_affects_no_other(stage: Stage, where: str) -> None:
    depth = 2 * sys.getrecursionlimit()
    nested = msgspec.Raw(b"[" * depth + b"]" * depth)
    stage.apply(GATES, "noon", opens(hours=-1))
    stage.apply(GATES, "good", opens(seconds=10))
    with structlog.testing.capture_logs():
        async with on_stage(stage, GATE):
            content = {"spec": stage.get(GATES, "noon")["spec"], "status": stage.status(GATES, "noon")}
            stage.put(GATES, "noon", **{**content, where: {**content[where], "deep": nested}})
            await asyncio.sleep(60)
            assert stage.status(GATES, "good")["active"] is True
            assert stage.ready(GATES, "noon") == ("False", "InvalidSpec")
            assert "cannot be decoded" in stage.status(GATES, "noon")["conditions"][0]["message"]
            assert len(stage.writes) <= 6, "it is said once"


# Another writer --------------------------------------------------------------------------------------------------


@pytest.mark.contract("C13")
async def test_two_managers_with_clocks_apart_write_no_more_than_a_handful_of_times(stage: Stage) -> None:
    stage.apply(GATES, "noon", opens(minutes=5))
    with structlog.testing.capture_logs() as logs:
        async with on_stage(stage, GATE):
            ahead = stage.clock = SteppedClock(START)
            ahead.step = timedelta(seconds=90)
            async with on_stage(stage, GATE):
                await asyncio.sleep(200)
                assert len(stage.writes) == 1
                await asyncio.sleep(90)
                assert 4 < len(stage.writes) <= 16
                assert stage.told().count("AnotherWriter") == 2, "both say so, once"
                assert any(line["event"] == "another writer undoes the status" for line in logs)
                assert counted(stage, "another_writer")
                await asyncio.sleep(3600)
                assert stage.status(GATES, "noon")["active"] is True
                assert len(stage.writes) <= 18
                assert stage.told().count("AnotherWriter") == 2


@asynccontextmanager
async def meddler(stage: Stage, **status: Any) -> AsyncIterator[None]:
    """Somebody who writes a status of their own a moment after each of the provider's."""

    async def meddle() -> None:
        while True:
            await asyncio.sleep(0.5)
            stored = stage.status(GATES, "noon")
            if any(stored.get(name) != value for name, value in status.items()):
                stage.put(GATES, "noon", status={**stored, **status})

    task = asyncio.create_task(meddle())
    try:
        yield
    finally:
        task.cancel()


@pytest.mark.contract("C13")
@pytest.mark.parametrize(
    "status",
    [{"active": True}, {"conditions": []}, {"nextTransitionTime": "2027-01-01T00:00:00Z"}, {"observedGeneration": 7}],
    ids=["active", "conditions", "time", "generation"],
)
async def test_corrections_of_any_field_become_rare_while_an_edit_takes_effect_at_once(
    stage: Stage, status: dict[str, Any]
) -> None:
    stage.apply(GATES, "noon", opens(hours=8))
    with structlog.testing.capture_logs():
        async with on_stage(stage, GATE):
            async with meddler(stage, **status):
                await asyncio.sleep(3600)
                assert 8 < len(stage.writes) <= 3 + 7 + 14
                assert stage.told().count("AnotherWriter") == 1
                # What changes on our side does not wait.
                stage.apply(GATES, "noon", opens(hours=-1))
                await asyncio.sleep(0.1)
                assert stage.status(GATES, "noon")["active"] is True
            await asyncio.sleep(600)
            assert stage.status(GATES, "noon")["active"] is True
            assert stage.ready(GATES, "noon") == ("True", "Open")
            settled = len(stage.writes)
            await asyncio.sleep(7200)
            assert len(stage.writes) == settled
            # After a calm time a correction is made at once, as if nothing had been.
            stage.put(GATES, "noon", status={**stage.status(GATES, "noon"), "active": False})
            await asyncio.sleep(0.1)
            assert stage.status(GATES, "noon")["active"] is True


@pytest.mark.contract("C13")
async def test_a_boundary_is_on_time_while_another_writer_is_at_work(stage: Stage) -> None:
    stage.apply(GATES, "noon", opens(minutes=50))
    with structlog.testing.capture_logs():
        async with on_stage(stage, GATE), meddler(stage, nextTransitionTime="2027-01-01T00:00:00Z"):
            await asyncio.sleep(50 * 60 + 0.1)
            assert stage.status(GATES, "noon")["active"] is True


@pytest.mark.contract("C13")
async def test_the_writes_of_another_leader_are_no_contest_in_the_next_term(stage: Stage) -> None:
    stage.apply(GATES, "noon", opens(hours=-1))
    with structlog.testing.capture_logs():
        async with on_stage(stage) as context:
            controller = build_controller(GATE, context)
            for _ in range(5):
                term = asyncio.create_task(controller.run())
                await asyncio.sleep(5)
                assert stage.status(GATES, "noon")["active"] is True
                term.cancel()
                await asyncio.wait([term])
                stage.put(GATES, "noon", status={**stage.status(GATES, "noon"), "active": False})
                await asyncio.sleep(5)
    assert "AnotherWriter" not in stage.told()
