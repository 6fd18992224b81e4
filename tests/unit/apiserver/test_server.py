"""The embedded API server without a socket: time, history, middleware, limits. Semantics are in tests/apiserver."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.apiserver import ApiRequest, ApiResponse, ApiServer, Handler, Stream

MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class LoopTime:
    """A wall clock that moves with the loop's own."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return datetime(2026, 1, 5, 12, tzinfo=UTC) + timedelta(seconds=self.monotonic())


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(clock=LoopTime(), seed=1) as made:
        yield made


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"x": "1"}}


async def ask(server: ApiServer, method: str, target: str, body: Any = None, **headers: str) -> Any:
    """The decoded answer of a request that must succeed."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await server.handle(ApiRequest.of(method, target, body, sent))
    assert answer.status in {200, 201}, answer.body
    return answer.json()


async def watch(server: ApiServer, target: str) -> Stream:
    answer = await server.handle(ApiRequest.of("GET", target))
    assert answer.status == 200
    assert not isinstance(answer.body, bytes)
    return answer.body


async def events(stream: Stream) -> list[tuple[str, str]]:
    """Type and name (or reason) of the events of one block."""
    lines = [json.loads(line) for line in (await stream.read()).splitlines()]
    return [(e["type"], e["object"].get("reason") or e["object"]["metadata"].get("name", "")) for e in lines]


@pytest.mark.looptime
async def test_a_watch_is_driven_by_the_clock_of_the_loop(server: ApiServer) -> None:
    """Bookmarks once a minute, one shortly before the end, and the end when it was agreed."""
    stream = await watch(server, f"{MAPS}?watch=1&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=150")
    loop = asyncio.get_running_loop()
    began, at = loop.time(), []
    while block := await stream.read():
        assert json.loads(block)["type"] == "BOOKMARK"
        at.append(round(loop.time() - began))
    assert at == [60, 120, 148]
    assert round(loop.time() - began) == 150


@pytest.mark.looptime
async def test_without_bookmarks_nothing_is_said_until_something_happens(server: ApiServer) -> None:
    stream = await watch(server, f"{MAPS}?watch=1&resourceVersion=5")

    async def later() -> None:
        await asyncio.sleep(1000)
        await ask(server, "POST", MAPS, config_map("a"))

    async with asyncio.TaskGroup() as group:
        group.create_task(later())
        assert await events(stream) == [("ADDED", "a")]
    assert asyncio.get_running_loop().time() >= 1000
    stream.close()
    assert await stream.read() == b""


async def test_a_watch_that_is_closed_while_somebody_reads_it_ends(server: ApiServer) -> None:
    stream = await watch(server, f"{MAPS}?watch=1&resourceVersion=5")
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(stream.read())
        await asyncio.sleep(0)
        stream.close()
    assert reading.result() == b""


async def test_watches_end_with_the_server() -> None:
    async with ApiServer(clock=LoopTime()) as server:
        stream = await watch(server, f"{MAPS}?watch=1&resourceVersion=5")
    assert await stream.read() == b""


async def test_a_forgotten_version_is_told_in_the_stream(server: ApiServer) -> None:
    first = await ask(server, "POST", MAPS, config_map("a"))
    await ask(server, "POST", MAPS, config_map("b"))
    server.compact()
    stream = await watch(server, f"{MAPS}?watch=1&resourceVersion={first['metadata']['resourceVersion']}")
    line = json.loads(await stream.read())
    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert await stream.read() == b""
    newest = await ask(server, "GET", MAPS)
    resumed = await watch(server, f"{MAPS}?watch=1&resourceVersion={newest['metadata']['resourceVersion']}")
    await ask(server, "DELETE", f"{MAPS}/a")
    assert await events(resumed) == [("DELETED", "a")]


async def test_a_continue_token_whose_state_is_forgotten(server: ApiServer) -> None:
    for name in "abc":
        await ask(server, "POST", MAPS, config_map(name))
    first = await ask(server, "GET", f"{MAPS}?limit=1")
    await ask(server, "DELETE", f"{MAPS}/b")
    server.compact()
    answer = await server.handle(ApiRequest.of("GET", f"{MAPS}?limit=1&continue={first['metadata']['continue']}"))
    status = answer.json()
    assert isinstance(status, dict)
    assert (answer.status, status["reason"]) == (410, "Expired")
    rest = await ask(server, "GET", f"{MAPS}?continue={status['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]


async def test_a_reader_that_is_too_slow_loses_its_watch() -> None:
    async with ApiServer(clock=LoopTime(), window=10) as server:
        stream = await watch(server, f"{MAPS}?watch=1&resourceVersion=5")
        for number in range(40):
            await ask(server, "POST", MAPS, config_map(f"c{number}"))
        assert await stream.read() == b""


async def test_the_same_seed_gives_the_same_identifiers() -> None:
    async def made() -> list[str]:
        async with ApiServer(clock=LoopTime(), seed=7) as server:
            body = {"metadata": {"generateName": "x-"}}
            found = [(await ask(server, "POST", MAPS, body))["metadata"] for _ in range(3)]
            return [f"{each['name']} {each['uid']} {each['resourceVersion']}" for each in found]

    assert await made() == await made()


async def test_a_middleware_sees_every_request_and_may_answer_itself(server: ApiServer) -> None:
    seen = []

    async def middle(request: ApiRequest, go_on: Handler) -> ApiResponse:
        seen.append(f"{request.method} {request.path}")
        if request.method == "DELETE":
            return ApiResponse(503, [("Retry-After", "7")], b"busy")
        return await go_on(request)

    server.middleware = middle
    await ask(server, "POST", MAPS, config_map("a"))
    refused = await server.handle(ApiRequest.of("DELETE", f"{MAPS}/a"))
    assert (refused.status, refused.header("retry-after"), refused.body) == (503, "7", b"busy")
    assert (await ask(server, "GET", f"{MAPS}/a"))["data"] == {"x": "1"}
    assert seen == [f"POST {MAPS}", f"DELETE {MAPS}/a", f"GET {MAPS}/a"]


async def test_a_token_is_asked_for_where_one_is_set() -> None:
    async with ApiServer(token="secret") as server:
        for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret"}):
            answer = await server.handle(ApiRequest.of("GET", MAPS, headers=given))
            status = answer.json()
            assert isinstance(status, dict)
            assert (answer.status, status["reason"]) == (401, "Unauthorized")
        answer = await server.handle(ApiRequest.of("GET", MAPS, headers={"Authorization": "Bearer secret"}))
        assert answer.status == 200
        assert (await server.handle(ApiRequest.of("GET", "/readyz"))).status == 200


async def test_what_goes_wrong_inside_is_a_status_too(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> str:
        raise RuntimeError("boom")

    server.cluster.now = broken  # type: ignore[method-assign]
    answer = await server.handle(ApiRequest.of("POST", MAPS, config_map("a")))
    status = answer.json()
    assert isinstance(status, dict)
    assert (answer.status, status["reason"]) == (500, "InternalError")
    assert "boom" not in str(status)
    assert "boom" in caplog.text


async def test_a_long_list_leaves_the_loop_to_others(server: ApiServer) -> None:
    """10,000 objects: others get their turn at least every 50 ms, by the CPU time that this process took."""
    body = {"metadata": {"name": "c", "labels": {"n": "3"}}, "data": {"k": "v" * 100}}
    await ask(server, "POST", MAPS, body)
    store = server.cluster.store
    made = store.collection("", "configmaps").entries["default/c"]
    for number in range(10_000):
        entry = made.at(store.next_version())
        entry.key, entry.uid = f"default/c{number}", f"uid-{number}"
        entry.tail = made.tail.replace(b'"name":"c"', f'"name":"c{number}"'.encode())
        store.put("", "configmaps", entry)
    longest = 0.0
    done = False

    async def others() -> None:
        nonlocal longest
        while not done:
            began = time.process_time()
            await asyncio.sleep(0)
            longest = max(longest, time.process_time() - began)

    table = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    async with asyncio.TaskGroup() as group:
        group.create_task(others())
        for target, headers in ((MAPS, {}), (f"{MAPS}?labelSelector=n%3D3", {}), (MAPS, table)):
            answer = await server.handle(ApiRequest.of("GET", target, headers=headers))
            assert answer.status == 200
        done = True
    assert longest < 0.05


async def test_memory_of_many_objects_is_bounded_by_their_bytes(server: ApiServer) -> None:
    """An object costs its JSON and less than 2 kB more: 10,000 of 3 kB stay well under 60 MB."""
    import tracemalloc  # noqa: PLC0415

    body = {"metadata": {"labels": {"a": "b"}}, "data": {"k": "v" * 500}}
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(100):
            body["metadata"]["name"] = f"c{number}"  # type: ignore[index]
            await server.handle(ApiRequest.of("POST", MAPS, body))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown / 100 < 500 + 2000
