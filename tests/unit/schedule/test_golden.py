"""Schedules whose transitions were worked out twice elsewhere, whatever zone the process itself runs in."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fivespot.schedule import evaluate, read_schedule, transitions

GOLDEN: list[dict[str, Any]] = json.loads(Path(__file__).with_name("golden.json").read_text("utf-8"))


@pytest.fixture(params=["UTC", "Asia/Kolkata", "America/St_Johns"])
def process_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield request.param
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("process_zone")
@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["id"] for golden in GOLDEN])
def test_transitions_are_the_golden_ones(golden: dict[str, Any]) -> None:
    schedule = read_schedule(golden["object"]["spec"])
    start, end = datetime.fromisoformat(golden["from"]), datetime.fromisoformat(golden["to"])

    assert evaluate(schedule, start).active is golden["initialActive"]
    assert list(transitions(schedule, start, end)) == [
        (datetime.fromisoformat(change["at"]), change["active"]) for change in golden["transitions"]
    ]


@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["id"] for golden in GOLDEN])
def test_instants_are_in_utc(golden: dict[str, Any]) -> None:
    schedule = read_schedule(golden["object"]["spec"])
    until = evaluate(schedule, datetime.fromisoformat(golden["from"])).until

    assert until is not None
    assert until.tzinfo is UTC
