"""The smaller parts of a manager: the read-only transport, the plan book, the cycle collector's settings."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from fivespot.runtime.client import DryRunTransport
from fivespot.runtime.client.transport import ByteStream, Limits, Request, Response
from fivespot.runtime.manager import PlanBook
from fivespot.runtime.manager.gc_policy import CollectorPolicy
from fivespot.runtime.objects import Key
from fivespot.runtime.telemetry import Metrics


class Recording:
    def __init__(self) -> None:
        self.sent: list[str] = []
        self.closed = False

    async def request(self, request: Request) -> Response:
        self.sent.append(request.method)
        return Response(200, {}, b"{}")

    async def stream(self, request: Request) -> ByteStream:
        raise NotImplementedError

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "delete", "MADE-UP"])
async def test_nothing_that_could_change_the_cluster_is_sent_in_a_dry_run(method: str) -> None:
    inner = Recording()
    request = Request(method, "/x", Limits(1, 1, 1), what="create machines prod/web")
    answer = await DryRunTransport(inner).request(request)
    assert not inner.sent
    assert answer.status == 403
    assert json.loads(answer.body)["message"] == "dry run: create machines prod/web was not sent"


async def test_reads_go_through_in_a_dry_run() -> None:
    inner = Recording()
    transport = DryRunTransport(inner)
    assert (await transport.request(Request("GET", "/x", Limits(1, 1, 1)))).status == 200
    await transport.close()
    assert (inner.sent, inner.closed) == (["GET"], True)


def test_the_plan_book_keeps_the_latest_plan_of_each_object_and_no_more_than_it_may() -> None:
    book = PlanBook(size=2)
    web, db, api = (Key("prod", name) for name in ("web", "db", "api"))
    book.note("machines", web, {"create": 1})
    book.note("machines", db, {"create": 2})
    book.note("machines", web, {"create": 3})
    book.note("machines", api, {"create": 4})
    assert book.snapshot() == [
        {"controller": "machines", "object": "prod/web", "plan": {"create": 3}},
        {"controller": "machines", "object": "prod/api", "plan": {"create": 4}},
    ]
    book.forget("machines", web)
    book.forget("machines", db)
    assert [entry["object"] for entry in book.snapshot()] == ["prod/api"]


class FakeCollector:
    def __init__(self) -> None:
        self.callbacks: list[Callable[[str, dict[str, int]], object]] = []
        self.threshold = (700, 10, 10)
        self.calls: list[str] = []

    def get_threshold(self) -> tuple[int, int, int]:
        return self.threshold

    def set_threshold(self, threshold0: int, threshold1: int = 10, threshold2: int = 10, /) -> None:
        self.threshold = (threshold0, threshold1, threshold2)

    def collect(self) -> int:
        for callback in self.callbacks:
            callback("start", {"generation": 2})
            callback("stop", {"generation": 2})
        self.calls.append("collect")
        return 0

    def freeze(self) -> None:
        self.calls.append("freeze")

    def unfreeze(self) -> None:
        self.calls.append("unfreeze")


def test_collector_settings_are_raised_measured_and_put_back() -> None:
    collector, metrics = FakeCollector(), Metrics(process=False)
    ticks = iter([1.0, 1.25])
    policy = CollectorPolicy(metrics, lambda: next(ticks), collector)
    policy.start()
    assert collector.threshold == (50_000, 20, 100)
    policy.settle()
    assert collector.calls == ["collect", "freeze"]
    policy.stop()
    policy.stop()
    assert collector.threshold == (700, 10, 10)
    assert collector.calls == ["collect", "freeze", "unfreeze"]
    assert not collector.callbacks
    assert 'fivespot_gc_pause_seconds_sum{generation="2"} 0.25' in metrics.render().decode()
