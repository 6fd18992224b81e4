"""The HTTP listener on a loop with faster time: clients count real seconds."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from fivespot.apiserver import ApiRequest, ApiResponse, ApiServer, Handler, HttpListener

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("watch=1&timeoutSeconds=1", "600"),
        ("watch=true", str(2700 * 600)),
        ("watch=1&timeoutSeconds=0", str(2700 * 600)),
        ("timeoutSeconds=30", "18000"),
        ("limit=5", ""),
        ("watch=1&timeoutSeconds=many", "many"),
        ("watch=1&timeoutSeconds=-1", "-1"),
        ("timeoutSeconds=" + "9" * 5000, "9" * 5000),
    ],
)
async def test_what_a_client_asks_for_is_asked_for_in_the_loops_seconds(query: str, seconds: str) -> None:
    asked = []

    async def note(request: ApiRequest, handler: Handler) -> ApiResponse:
        asked.append(request.parameter("timeoutSeconds"))
        return await handler(ApiRequest(request.method, "/version", (), {}, b""))

    async with (
        ApiServer(middleware=note) as server,
        HttpListener(server, speed=600) as front,
        aiohttp.ClientSession() as session,
        session.get(f"{front.url}{MAPS}?{query}") as answer,
    ):
        assert answer.status == 200
    assert asked == [seconds]


async def test_at_the_speed_of_time_nothing_is_added() -> None:
    asked = []

    async def note(request: ApiRequest, handler: Handler) -> ApiResponse:
        asked.append(list(request.query))
        return await handler(ApiRequest(request.method, "/version", (), {}, b""))

    async with (
        ApiServer(middleware=note) as server,
        HttpListener(server) as front,
        aiohttp.ClientSession() as session,
        session.get(f"{front.url}{MAPS}?watch=1") as answer,
    ):
        assert answer.status == 200
    assert asked == [[("watch", "1")]]


async def test_requests_are_counted_by_verb_and_answer() -> None:
    """The number of writes that a controller needs is read from here."""
    body = {"metadata": {"name": "a"}}
    async with ApiServer() as server, HttpListener(server) as front, aiohttp.ClientSession(front.url) as session:
        for _ in range(2):
            async with session.post(MAPS, json=body) as answer:
                await answer.read()
        for path in (f"{MAPS}/a", f"{MAPS}?watch=1&resourceVersion=0"):
            async with session.get(path) as answer:
                assert answer.status == 200
        lines = (await scraped(session)).splitlines()
    assert 'apiserver_request_total{code="201",verb="POST"} 1.0' in lines
    assert 'apiserver_request_total{code="409",verb="POST"} 1.0' in lines
    assert 'apiserver_request_total{code="200",verb="GET"} 2.0' in lines, "a watch counts when it begins"
    assert 'apiserver_request_duration_seconds_count{verb="POST"} 2.0' in lines
    assert 'apiserver_current_inflight_requests{request_kind="readOnly"} 0.0' in lines, "its stream is no request"


async def test_a_request_without_an_answer_is_in_flight() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def hold(request: ApiRequest, handler: Handler) -> ApiResponse:
        entered.set()
        await leave.wait()
        return await handler(request)

    async with (
        ApiServer(middleware=hold) as server,
        HttpListener(server) as front,
        aiohttp.ClientSession(front.url) as session,
        asyncio.TaskGroup() as group,
    ):
        held = group.create_task(scraped(session, MAPS))
        await entered.wait()
        assert 'apiserver_current_inflight_requests{request_kind="readOnly"} 1.0' in await scraped(session)
        leave.set()
        assert "ConfigMapList" in await held
        assert 'apiserver_current_inflight_requests{request_kind="readOnly"} 0.0' in await scraped(session)


async def scraped(session: aiohttp.ClientSession, path: str = "/metrics") -> str:
    async with session.get(path) as answer:
        assert answer.status == 200
        return await answer.text()
