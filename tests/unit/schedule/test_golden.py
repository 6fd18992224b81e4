"""Schedules whose transitions were worked out twice elsewhere, whatever zone the process itself runs in.

They go the whole way of an object: the model, the provider's preparation and its decisions.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fivespot.api import validate
from fivespot.providers.capitalmarkets.provider import decide as decide_market
from fivespot.providers.capitalmarkets.provider import prepare as prepare_market
from fivespot.providers.capitalmarkets.spec import CapitalMarketsScheduleSpec
from fivespot.providers.sdk import Verdict
from fivespot.providers.timebased.provider import decide, prepare
from fivespot.providers.timebased.spec import TimeBasedSpotScheduleSpec

GOLDEN: list[dict[str, Any]] = json.loads(Path(__file__).with_name("golden.json").read_text("utf-8"))


class Decider:
    """The verdicts of an object."""

    at: Callable[[datetime], Verdict]

    def __init__(self, golden: dict[str, Any]) -> None:
        kind, spec = golden["object"]["kind"], golden["object"]["spec"]
        if kind == "TimeBasedSpotSchedule":
            timeline = prepare(validate(TimeBasedSpotScheduleSpec, spec))
            self.at = lambda at: decide(timeline, at)
        else:
            assert kind == "CapitalMarketsSchedule"
            market = prepare_market(validate(CapitalMarketsScheduleSpec, spec))
            self.at = lambda at: decide_market(market, at)

    def transitions(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, Verdict]]:
        verdict = self.at(start)
        while verdict.until is not None and verdict.until < end:
            at = verdict.until
            verdict = self.at(at)
            yield at, verdict


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


@pytest.mark.contract("C1", "C2", "C8")
@pytest.mark.usefixtures("process_zone")
@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["id"] for golden in GOLDEN])
def test_transitions_are_the_golden_ones(golden: dict[str, Any]) -> None:
    decider = Decider(golden)
    start, end = datetime.fromisoformat(golden["from"]), datetime.fromisoformat(golden["to"])

    assert decider.at(start).active is golden["initialActive"]
    assert [(at, verdict.active) for at, verdict in decider.transitions(start, end)] == [
        (datetime.fromisoformat(change["at"]), change["active"]) for change in golden["transitions"]
    ]


@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["id"] for golden in GOLDEN])
def test_instants_are_in_utc_and_the_message_gives_the_next_one(golden: dict[str, Any]) -> None:
    verdict = Decider(golden).at(datetime.fromisoformat(golden["from"]))

    assert verdict.until is not None
    assert verdict.until.tzinfo is UTC
    assert verdict.message.endswith(f"= {golden['transitions'][0]['at']}")
