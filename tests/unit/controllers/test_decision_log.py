"""One line per decision: which object, in which run, from what, to what, and why; as JSON and as text."""

from __future__ import annotations

import io
import json
import logging
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
import structlog

from fivespot.controllers.scheduledmachine import status_writer
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.metrics import MachineMetrics
from fivespot.controllers.scheduledmachine.snapshot import Snapshot
from fivespot.controllers.scheduledmachine.sources import CONTROLLER
from fivespot.controllers.scheduledmachine.status_writer import MachineStatusWriter
from fivespot.controllers.scheduledmachine.timings import Timings
from fivespot.runtime import ConflictError, Controller, Key, ManagerContext, Metrics, Object, Result, configure_logging
from fivespot.runtime.clock import LoopClock
from fivespot.runtime.errors import ServerError
from fivespot.runtime.manager import ControllerSettings
from fivespot.runtime.manager.debug import PlanBook
from fivespot.runtime.reconcile import controller as running
from fivespot.runtime.telemetry import LogFormat
from unit.controllers.build import DOWN, NAME, NAMESPACE, UID, UP, ready_machine, snapshot
from unit.controllers.build import stored_status as remembered

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
KEY = Key(NAMESPACE, NAME)


@pytest.fixture(autouse=True)
def _put_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    handlers, level = list(logging.getLogger().handlers), logging.getLogger().level
    for module in (status_writer, running):
        monkeypatch.setattr(module, "_log", None)
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    logging.captureWarnings(False)


class Client:
    """Takes every status, or refuses it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.patches = 0

    async def patch_status(self, *_: Any, **__: Any) -> None:
        self.patches += 1
        if self.error is not None:
            raise self.error


class OneReport:
    """A reconciler that judges one snapshot after the other."""

    def __init__(self, controller_settings: ControllerSettings, client: Client, *snapshots: Snapshot) -> None:
        metrics = Metrics(process=False)
        context = SimpleNamespace(
            client=client,
            clock=LoopClock(NOW),
            rng=random.Random(1),
            settings=controller_settings,
            events=SimpleNamespace(note=lambda *_, **__: None),
            plans=PlanBook(),
        )
        self._writer = MachineStatusWriter(
            cast("ManagerContext", context), MachineMetrics(metrics, lambda: ()), Timings(unresolved_jitter=0)
        )
        self._snapshots = iter(snapshots)
        self.left = len(snapshots)

    async def reconcile(self, key: Key) -> Result:
        self.left -= 1
        judged = next(self._snapshots)
        raw = {"metadata": {"name": NAME, "namespace": NAMESPACE, "uid": UID, "resourceVersion": "7"}}
        await self._writer.write(Object.parse(json.dumps(raw).encode()), judged, decide(judged))
        return Result()


async def lines_of(
    format: LogFormat, *snapshots: Snapshot, dry_run: bool = False, error: Exception | None = None
) -> list[str]:
    """Return the log of a controller that runs once for each snapshot, without its start."""
    stream = io.BytesIO()
    configure_logging(format, stream=stream, now=lambda: NOW)
    for module in (status_writer, running):
        # A logger that was used keeps the configuration that it had then.
        setattr(module, "_log", structlog.get_logger("fivespot.test"))  # noqa: B010 - mypy knows no private name here
    reconciler = OneReport(ControllerSettings(dry_run=dry_run), Client(error), *snapshots)
    controller = Controller(CONTROLLER, reconciler, clock=LoopClock(NOW), rng=random.Random(1), workers=1)
    # One run after the other, each with an identity of its own, without what else a controller does.
    structlog.contextvars.bind_contextvars(controller=CONTROLLER)
    for _ in snapshots:
        await controller._run(KEY)
    assert reconciler.left == 0
    return stream.getvalue().decode().splitlines()


async def test_a_change_of_phase_is_one_line_that_says_all() -> None:
    [line] = await lines_of("json", snapshot(DOWN, stored=remembered(phase="Active")))
    record = json.loads(line)
    assert len(record.pop("reconcile_id")) == 13
    assert record == {
        "time": "2026-11-30T09:00:00.000000Z",
        "level": "info",
        "logger": "fivespot.test",
        "msg": "phase changed",
        "controller": CONTROLLER,
        "namespace": NAMESPACE,
        "name": NAME,
        "before": "Active",
        "after": "Inactive",
        "reason": "ScheduleInactive",
        "why": record["why"],
    }
    assert record["why"]


async def test_as_text_it_is_the_same_line() -> None:
    [line] = await lines_of("text", snapshot(DOWN, stored=remembered(phase="Active")))
    words = line.split()
    assert words[:4] == ["2026-11-30T09:00:00.000000Z", "INFO", "phase", "changed"]
    told = dict(word.split("=", 1) for word in words if "=" in word)
    assert (told["namespace"], told["name"], told["controller"]) == (NAMESPACE, NAME, CONTROLLER)
    assert (told["before"], told["after"], told["reason"]) == ("Active", "Inactive", "ScheduleInactive")
    assert len(told["reconcile_id"]) == 13


@pytest.mark.parametrize("format", get_args(LogFormat))
async def test_a_decision_that_changes_nothing_is_no_line(format: LogFormat) -> None:
    up = snapshot(UP, machine=ready_machine(), stored=remembered(phase="Active"))
    assert await lines_of(format, up, up) == []


async def test_each_run_has_an_identity_of_its_own() -> None:
    turned = snapshot(DOWN, stored=remembered(phase="Active"))
    first, second = await lines_of("json", turned, turned)
    assert json.loads(first)["reconcile_id"] != json.loads(second)["reconcile_id"]


async def test_a_decision_that_was_not_written_is_no_change_but_a_failure() -> None:
    lost = ServerError(500, "InternalError", "etcd is away", request="patch scheduledmachines")
    [line] = await lines_of("json", snapshot(DOWN, stored=remembered(phase="Active")), error=lost)
    record = json.loads(line)
    assert (record["msg"], record["level"], record["name"]) == ("reconcile failed", "warning", NAME)
    assert "etcd is away" in record["error"]
    raced = ConflictError(409, "Conflict", "modified", request="patch scheduledmachines")
    [line] = await lines_of("json", snapshot(DOWN, stored=remembered(phase="Active")), error=raced)
    assert (json.loads(line)["msg"], json.loads(line)["level"]) == ("reconcile failed", "info")


async def test_a_dry_run_tells_what_it_would_do() -> None:
    [line] = await lines_of("json", snapshot(UP, stored=remembered(phase="Inactive")), dry_run=True)
    record = json.loads(line)
    assert (record["msg"], record["steps"]) == ("would act", ["CreateChildren"])
    assert {"namespace", "name", "reconcile_id", "reason"} <= record.keys()
