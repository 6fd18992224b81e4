"""A provider whose spec has types that JSON has no values for, on the embedded API server."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, time
from enum import Enum
from functools import partial
from typing import Any

import pytest

from fivespot.providers.sdk import ApiModel, Provider, Verdict, build_controller
from fivespot.runtime import InvalidError, Key
from fivespot.testing.cluster import EmbeddedCluster

SPEC = {
    "since": "2020-01-31T06:00:00Z",
    "holidays": ["2027-01-31"],
    "opens": "08:30",
    "mode": "fast",
    "days": ["mon", "tue"],
    "share": [1, 2],
}


class Mode(Enum):
    FAST = "fast"
    SLOW = "slow"


class RichSpec(ApiModel):
    """Every type that is written as another one."""

    since: datetime
    holidays: tuple[date, ...] = ()
    opens: time = time(8)
    mode: Mode = Mode.SLOW
    days: frozenset[str] = frozenset({"wed", "mon"})
    share: tuple[int, int]


def decide(spec: RichSpec, at: datetime) -> Verdict:
    assert spec.since == datetime(2020, 1, 31, 6, tzinfo=UTC)
    assert spec.holidays == (date(2027, 1, 31),)
    assert (spec.opens, spec.mode, spec.days, spec.share) == (time(8, 30), Mode.FAST, frozenset({"mon", "tue"}), (1, 2))
    return Verdict(True, message="read")


RICH = Provider("RichHours", spec=RichSpec, decide=decide)


def body(**changes: Any) -> dict[str, Any]:
    metadata = {"name": "rich", "namespace": "default"}
    return {
        "apiVersion": RICH.resource.api_version,
        "kind": "RichHours",
        "metadata": metadata,
        "spec": {**SPEC, **changes},
    }


async def test_such_a_spec_is_admitted_and_decided(fivespot_cluster: EmbeddedCluster) -> None:
    cluster = fivespot_cluster
    await cluster.install(RICH.definition())
    async with cluster.manager(partial(build_controller, RICH)):
        await cluster.client.create(RICH.resource, body())
        await asyncio.sleep(5)
        status = (await cluster.client.get(RICH.resource, Key("default", "rich"))).decode()["status"]
        assert (status["active"], status["conditions"][0]["message"]) == (True, "read")


@pytest.mark.parametrize(
    "changes",
    [
        {"since": "2020-01-31"},
        {"holidays": ["31.1."]},
        {"opens": "8:30"},
        {"mode": "quick"},
        {"share": [1]},
        {"days": [1]},
    ],
)
async def test_other_values_are_refused_at_admission(
    fivespot_cluster: EmbeddedCluster, changes: dict[str, Any]
) -> None:
    await fivespot_cluster.install(RICH.definition())
    with pytest.raises(InvalidError):
        await fivespot_cluster.client.create(RICH.resource, body(**changes))
