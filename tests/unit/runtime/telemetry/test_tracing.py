"""The seam for tracing: what is given a span, under which parent, and that errors pass through it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.runtime.cache import Cache
from fivespot.runtime.client import Client, Request, Response, WatchEnded
from fivespot.runtime.clock import LoopClock
from fivespot.runtime.errors import ConnectError
from fivespot.runtime.objects import Key, Resource
from fivespot.runtime.reconcile import DONE, Controller, Result
from fivespot.runtime.telemetry import NULL_TRACER

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
KEY = Key("prod", "web")

_open: ContextVar[str] = ContextVar("open", default="")


class Open:
    """A span that asks for a header."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self._attributes = attributes

    def set(self, name: str, value: str | float, /) -> None:
        self._attributes[name] = value

    def headers(self) -> Mapping[str, str]:
        return {"traceparent": _open.get()}


class Spans:
    """Remembers each span: its parent, its name, what it says, and how it ended."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str, dict[str, Any], str]] = []

    @contextmanager
    def span(self, name: str, /, **attributes: str | float) -> Iterator[Open]:
        parent, token = _open.get(), _open.set(name)
        end = "ok"
        try:
            yield Open(attributes)
        except BaseException as error:
            end = type(error).__name__
            raise
        finally:
            _open.reset(token)
            self.ended.append((parent, name, attributes, end))


class Wire:
    """Answers once, then cannot be reached."""

    def __init__(self) -> None:
        self.answers = 1
        self.carried: list[str | None] = []

    async def request(self, request: Request) -> Response:
        self.carried.append(request.headers.get("traceparent"))
        self.answers -= 1
        if self.answers < 0:
            raise ConnectError("nobody is there")
        return Response(200, {}, b'{"metadata":{"name":"web","uid":"u","resourceVersion":"1"}}')

    async def stream(self, request: Request) -> Any:
        self.carried.append(request.headers.get("traceparent"))
        raise ConnectError("nobody is there")

    async def close(self) -> None:
        """Nothing to close."""


def clock() -> LoopClock:
    return LoopClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.looptime
async def test_runs_and_the_requests_in_them_get_spans_with_all_attempts_and_how_they_ended() -> None:
    spans, wire = Spans(), Wire()
    client = Client(wire, clock=clock(), rng=random.Random(1), tracer=spans, server="https://here:6443")

    class Reader:
        async def reconcile(self, key: Key) -> Result:
            await client.get(WIDGETS, key)
            return DONE

    controller = Controller("widgets", Reader(), clock=clock(), rng=random.Random(1), tracer=spans)
    await controller._run(KEY)
    request = {
        "method": "GET",
        "server": "https://here:6443",
        "path": "/apis/example.com/v1/namespaces/prod/widgets/web",
        "what": "get widgets.example.com prod/web",
        "attempt": 1,
    }
    inner, run = spans.ended
    assert inner == ("reconcile", "request", {**request, "status": 200}, "ok")
    assert run[:2] + run[3:] == ("", "reconcile", "ok")
    assert run[2].keys() == {"controller", "namespace", "name", "reconcile_id"}
    assert (run[2]["controller"], run[2]["namespace"], run[2]["name"]) == ("widgets", "prod", "web")

    spans.ended.clear()
    await controller._run(KEY)
    assert [(name, end) for _, name, _, end in spans.ended] == [
        *[("request", "ConnectError")] * 4,  # the attempts of the retry policy
        ("reconcile", "ConnectError"),
    ]
    assert [said.get("attempt") for _, _, said, _ in spans.ended] == [1, 2, 3, 4, None]

    spans.ended.clear()
    with pytest.raises(WatchEnded):
        await client.watch(WIDGETS, version="1", server_timeout=60)
    assert [(name, said["path"], end) for _, name, said, end in spans.ended] == [
        ("watch", "/apis/example.com/v1/widgets", "ConnectError")
    ]
    assert wire.carried == [*["request"] * 5, "watch"]


@pytest.mark.looptime
async def test_an_informer_that_a_run_asked_for_is_no_part_of_that_run() -> None:
    spans, wire = Spans(), Wire()
    client = Client(wire, clock=clock(), rng=random.Random(1), tracer=spans)
    async with Cache(client, clock=clock(), rng=random.Random(1)) as cache:
        with spans.span("reconcile"):
            cache.informer(WIDGETS)
        await asyncio.sleep(10)
    inside = [(parent, name) for parent, name, _, _ in spans.ended if name != "reconcile"]
    assert len(inside) > 1
    assert {parent for parent, _ in inside} == {""}


def test_without_a_tracer_a_span_is_nothing_and_hides_no_error() -> None:
    with NULL_TRACER.span("work", size=1) as span:
        span.set("more", 2)
        assert not span.headers()
    with pytest.raises(ZeroDivisionError), NULL_TRACER.span("work"):
        raise ZeroDivisionError
