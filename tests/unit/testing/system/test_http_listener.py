"""The HTTP listener on a loop with faster time: clients count real seconds."""

from __future__ import annotations

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
