"""The server of the endpoints against peers that connect, send and read as they like."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import structlog

from fivespot.runtime.manager import http_server
from fivespot.runtime.manager.http_server import (
    MAX_CONNECTIONS,
    HttpServer,
    ServerRequest,
    ServerResponse,
    raise_descriptor_limit,
)

PROBE = b"GET /healthz?verbose HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(http_server, "SEND_SECONDS", 0.3)


@pytest.fixture
def logged() -> Iterator[list[structlog.typing.EventDict]]:
    with structlog.testing.capture_logs() as records:
        yield records


async def answer(request: ServerRequest) -> ServerResponse:
    if request.path == "/broken":
        raise RuntimeError("bug in a view")
    if request.path == "/large":
        return ServerResponse(200, b"x" * 50_000_000)
    shown = "&".join(sorted(request.query))
    return ServerResponse.of_text(f"{request.path} {shown}\n")


@asynccontextmanager
async def serving() -> AsyncIterator[int]:
    async with HttpServer(answer, what="health") as server:
        yield await server.listen("127.0.0.1", 0)


async def said(port: int, data: bytes, *, seconds: float = 5.0) -> bytes:
    """All that the server says to some bytes, until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        async with asyncio.timeout(seconds):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """Read until the connection ends, in whatever way."""
    blocks = []
    with contextlib.suppress(ConnectionError):
        while block := await reader.read(65536):
            blocks.append(block)
    return b"".join(blocks)


async def probe(port: int) -> bytes:
    return await said(port, PROBE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(PROBE)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            assert head.startswith(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 17\r\n"
            )
            assert await reader.readexactly(17) == b"/healthz verbose\n"
        writer.close()


async def test_over_a_thousand_half_open_connections_keep_no_probe_out(
    logged: list[structlog.typing.EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_descriptor_limit()
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 10.0)
    async with serving() as port:
        peers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(1100)]
        for _, writer in peers[::2]:
            writer.write(b"GET /heal")
        assert b"200 OK" in await probe(port)
        ended = [reader.at_eof() or reader.exception() is not None for reader, _ in peers]
        assert 0 < ended.count(False) <= MAX_CONNECTIONS, "the oldest made room"
        for _, writer in peers:
            writer.close()
    assert [record["event"] for record in logged] == ["too many connections"]
    assert logged[0]["connections"] == MAX_CONNECTIONS


async def test_a_connection_without_a_request_ends_at_its_limit() -> None:
    async with serving() as port:
        assert await said(port, b"") == b""
        assert await said(port, b"GET /heal") == b""


async def test_a_head_that_comes_byte_by_byte_ends_at_its_limit() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def drip() -> None:
            for byte in PROBE[:-1]:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.05)

        async with asyncio.TaskGroup() as tasks:
            dripping = tasks.create_task(drip())
            async with asyncio.timeout(2):
                assert await _rest(reader) == b""
            dripping.cancel()
        writer.close()


async def test_a_peer_that_does_not_read_its_answer_is_dropped() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0.8)
        assert len(await _rest(reader)) < 50_000_000
        writer.close()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000, b"431"),
        (b"GET / HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n" + b"z" * 70_000, b"413"),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx", b"405"),
        (b"GET /broken HTTP/1.1\r\nConnection: close\r\n\r\n", b"500"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    ],
    ids=["tls", "no version", "long head", "long body", "post", "bug", "http/2"],
)
async def test_what_cannot_be_answered_is_refused_without_a_traceback(
    data: bytes, status: bytes, logged: list[structlog.typing.EventDict]
) -> None:
    async with serving() as port:
        assert (await said(port, data)).split(b" ")[1] == status
        assert b"200 OK" in await probe(port)
    assert [record for record in logged if "exc_info" in record] == []


async def test_nonsense_is_logged_once_a_minute(logged: list[structlog.typing.EventDict]) -> None:
    async with serving() as port:
        for _ in range(20):
            await said(port, b"\x00\x01\x02\r\n\r\n")
    assert [record["event"] for record in logged] == ["a request cannot be read"]


async def test_several_requests_at_once_get_the_first_answer_and_no_more() -> None:
    async with serving() as port:
        text = await said(port, PROBE + b"GET /second HTTP/1.1\r\nHost: x\r\n\r\n")
        assert text.count(b"HTTP/1.1 200 OK") == 1
        assert text.endswith(b"/healthz verbose\n")


async def test_head_has_no_body_and_closing_waits_for_nobody() -> None:
    async with asyncio.timeout(2), serving() as port:
        text = await said(port, b"HEAD /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert b"Content-Length: 10" in text
        assert text.endswith(b"\r\n\r\n")
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


def test_the_soft_limit_of_open_files_is_raised_and_never_lowered() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[1]), before[1]))
        raise_descriptor_limit()
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised[0] == min(before[1], 65_536) if before[1] != resource.RLIM_INFINITY else 65_536
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == raised
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
