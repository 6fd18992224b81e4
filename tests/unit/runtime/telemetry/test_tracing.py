"""The seam for tracing: what is given a span, under which parent, and that errors pass through it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.runtime.client import Client, Request, Response
from fivespot.runtime.clock import LoopClock
from fivespot.runtime.errors import ConnectError
from fivespot.runtime.objects import Key, Resource
from fivespot.runtime.reconcile import DONE, Controller, Result
from fivespot.runtime.telemetry import NULL_TRACER

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
KEY = Key("prod", "web")

_open: ContextVar[str] = ContextVar("open", default="")


class Spans:
    """Remembers each span: its parent, its name, what it says, and how it ended."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str, dict[str, Any], str]] = []

    @contextmanager
    def span(self, name: str, /, **attributes: str | float) -> Iterator[None]:
        parent, token = _open.get(), _open.set(name)
        end = "ok"
        try:
            yield
        except BaseException as error:
            end = type(error).__name__
            raise
        finally:
            _open.reset(token)
            self.ended.append((parent, name, dict(attributes), end))


class Wire:
    """Answers once, then cannot be reached."""

    def __init__(self) -> None:
        self.answers = 1

    async def request(self, request: Request) -> Response:
        self.answers -= 1
        if self.answers < 0:
            raise ConnectError("nobody is there")
        return Response(200, {}, b'{"metadata":{"name":"web","uid":"u","resourceVersion":"1"}}')

    async def stream(self, request: Request) -> Any:
        raise AssertionError

    async def close(self) -> None:
        """Nothing to close."""


def clock() -> LoopClock:
    return LoopClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.looptime
async def test_runs_and_the_requests_in_them_get_spans_with_all_attempts_and_how_they_ended() -> None:
    spans = Spans()
    client = Client(Wire(), clock=clock(), chance=random.Random(1), tracer=spans)

    class Reader:
        async def reconcile(self, key: Key) -> Result:
            await client.get(WIDGETS, key)
            return DONE

    controller = Controller("widgets", Reader(), clock=clock(), chance=random.Random(1), tracer=spans)
    await controller._run(KEY)
    request = {"method": "GET", "what": "get widgets.example.com prod/web"}
    inner, run = spans.ended
    assert inner == ("reconcile", "request", request, "ok")
    assert run[:2] + run[3:] == ("", "reconcile", "ok")
    assert run[2].keys() == {"controller", "namespace", "name", "reconcile_id"}
    assert (run[2]["controller"], run[2]["namespace"], run[2]["name"]) == ("widgets", "prod", "web")

    spans.ended.clear()
    await controller._run(KEY)
    assert [(name, end) for _, name, _, end in spans.ended] == [
        *[("request", "ConnectError")] * 4,  # the attempts of the retry policy
        ("reconcile", "ConnectError"),
    ]


def test_without_a_tracer_a_span_is_nothing_and_hides_no_error() -> None:
    with pytest.raises(ZeroDivisionError), NULL_TRACER.span("work", size=1):
        raise ZeroDivisionError
