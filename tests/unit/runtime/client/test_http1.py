"""One HTTP/1.1 connection: framing, TLS, proxies, and what is dropped when a request is given up."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import threading
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest
import trustme

from fivespot.runtime.client import HttpTransport, Limits, Request
from fivespot.runtime.client.auth import Access, Credentials
from fivespot.runtime.clock import InlineOffload
from fivespot.runtime.errors import BrokenStreamError, ConnectError, DeadlineError, ProtocolError, TransportError
from support.faulty_servers import Exchange, ManualClock, Responder, serving

LIMITS = Limits(connect=5, read=5, total=10)
GET = Request("GET", "/x", LIMITS)


@asynccontextmanager
async def transport_to(url: str, *, compress: bool = False, **access: object) -> AsyncIterator[HttpTransport]:
    def load(now: datetime, interrupt: threading.Event) -> Access:
        return Access(url, **access)  # type: ignore[arg-type]

    credentials = Credentials(load, clock=ManualClock(), offload=InlineOffload())
    transport = HttpTransport(credentials, user_agent="tests", compress=compress)
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def connected(respond: Responder, **options: object) -> AsyncIterator[HttpTransport]:
    async with serving(respond) as wire, transport_to(wire.url, **options) as transport:  # type: ignore[arg-type]
        yield transport


def raw(*parts: bytes) -> Responder:
    async def respond(exchange: Exchange) -> None:
        for part in parts:
            await exchange.send(part)
            await asyncio.sleep(0.01)

    return respond


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("parts", "body"),
    [
        ((OK + b"Content-Length: 4\r\n\r\nab", b"cd"), b"abcd"),
        (
            (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r", b"\n2;note=1\r\ncd\r\n0\r\nTrailer: x\r\n\r\n"),
            b"abcd",
        ),
        (
            (
                b"HTTP/1.1 100 Continue\r\n\r\n",
                b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n",
                OK + b"Content-Length: 1\r\n\r\na",
            ),
            b"a",
        ),
        ((b"HTTP/1.1 204 No Content\r\n\r\n",), b""),
        ((OK + b"Content-Length: 0\r\n\r\n",), b""),
    ],
    ids=["length", "chunked", "interim", "no content", "empty"],
)
async def test_every_framing_is_read_whole_and_keeps_the_connection(parts: tuple[bytes, ...], body: bytes) -> None:
    async with serving(raw(*parts)) as wire, transport_to(wire.url) as transport:
        for _ in range(2):
            response = await transport.request(GET)
            assert (response.body, "link" in response.headers) == (body, False)
        assert wire.connections == 1


async def test_an_answer_that_ends_with_its_connection_is_whole_and_its_connection_is_not_used_again() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.send(OK + b"\r\nab")
        await exchange.send(b"cd")
        await exchange.hang_up()

    async with serving(respond) as wire, transport_to(wire.url) as transport:
        assert [(await transport.request(GET)).body for _ in range(2)] == [b"abcd", b"abcd"]
        assert wire.connections == 2


async def test_the_length_of_an_answer_to_head_is_not_waited_for() -> None:
    async with connected(raw(OK + b"Content-Length: 4\r\n\r\n")) as transport:
        response = await transport.request(Request("HEAD", "/x", LIMITS))
        assert (response.status, response.body) == (200, b"")


async def test_a_server_that_closes_after_its_answer_is_asked_on_a_new_connection() -> None:
    async with serving(raw(OK + b"Connection: close\r\nContent-Length: 1\r\n\r\na")) as wire:
        async with transport_to(wire.url) as transport:
            for _ in range(3):
                assert (await transport.request(GET)).body == b"a"
        assert wire.connections == 3


async def test_what_a_server_says_on_an_idle_connection_answers_nothing() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.answer(200, b"first" if exchange.connection == 1 else b"second")
        await asyncio.sleep(0.02)
        await exchange.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")

    async with connected(respond) as transport:
        assert (await transport.request(GET)).body == b"first"
        await asyncio.sleep(0.1)
        response = await transport.request(GET)
        assert (response.status, response.body) == (200, b"second")


SMALL = Limits(connect=5, read=5, total=10, size=100_000)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
async def test_an_answer_that_does_not_end_is_given_up_at_its_limit(packed: bool) -> None:
    sent = 0

    async def respond(exchange: Exchange) -> None:
        nonlocal sent
        compress = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
        encoding = b"Content-Encoding: gzip\r\n" if packed else b""
        await exchange.send(OK + encoding + b"Transfer-Encoding: chunked\r\n\r\n")
        while sent < 100 * SMALL.size:
            block = b" " * 50_000
            sent += len(block)
            if packed:
                block = compress.compress(block) + compress.flush(zlib.Z_SYNC_FLUSH)
            await exchange.send(b"%x\r\n%b\r\n" % (len(block), block))
            await asyncio.sleep(0)

    async with connected(respond) as transport:
        with pytest.raises(TransportError, match="longer than 100000 bytes"):
            await transport.request(Request("GET", "/x", SMALL))
    assert sent < 100 * SMALL.size


async def test_a_line_that_does_not_end_is_given_up_at_its_limit() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        for line in (b"a" * 90_000 + b"\n", b"b" * 90_000 + b"\n", b"c" * 200_000):
            await exchange.send(b"%x\r\n%b\r\n" % (len(line), line))

    async with connected(respond) as transport:
        stream = await transport.stream(Request("GET", "/x", SMALL))
        assert [len(await stream.readline()) for _ in range(2)] == [90_000, 90_000]
        with pytest.raises(ProtocolError, match="a line is longer than 100000 bytes"):
            await stream.readline()
        await stream.close()


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (OK + b"X: " + b"y" * 2_000_000, TransportError, "longer than"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", TransportError, "switches protocols"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", BrokenStreamError, "middle of the answer"),
        (OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n", TransportError, "before the answer"),
        (OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope", BrokenStreamError, "decompressed"),
        (
            OK + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + gzip.compress(b"x" * 5000)[:20],
            BrokenStreamError,
            "compressed answer was cut",
        ),
    ],
    ids=["endless head", "upgrade", "bad chunk", "two lengths", "no gzip", "cut gzip"],
)
async def test_what_cannot_be_an_answer_ends_the_request(data: bytes, error: type[Exception], says: str) -> None:
    async with connected(raw(data)) as transport:
        with pytest.raises(error, match=says):
            await transport.request(GET)


async def test_compressed_answers_are_read_where_they_are_asked_for() -> None:
    packed = gzip.compress(b"hello" * 1000)

    async def respond(exchange: Exchange) -> None:
        assert exchange.headers["accept-encoding"] == "gzip"
        await exchange.answer(200, packed, Content_Encoding="gzip")

    async with connected(respond, compress=True) as transport:
        assert (await transport.request(GET)).body == b"hello" * 1000


@pytest.mark.parametrize("value", ["a\r\nX-Remote-User: admin", "a\nb", "a\x00b"])
async def test_a_header_that_would_end_its_line_is_never_sent(value: str) -> None:
    async with connected(raw(OK + b"Content-Length: 0\r\n\r\n")) as transport:
        with pytest.raises(TransportError, match="control character"):
            await transport.request(Request("GET", "/x", LIMITS, headers={"Accept": value}))


@pytest.mark.parametrize("path", ["/a b", "/a\r\nHost: b", "/ä"])
async def test_a_path_that_would_end_its_line_is_never_sent(path: str) -> None:
    async with connected(raw(OK + b"Content-Length: 0\r\n\r\n")) as transport:
        with pytest.raises(TransportError, match="cannot be sent"):
            await transport.request(Request("GET", path, LIMITS))


async def test_of_a_request_that_is_given_up_nothing_is_sent_any_more() -> None:
    """A request that a former leader has not handed to the kernel must not reach the server after its time."""
    received = 0
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        received += len(await reader.read(1))
        begun.set()
        await go_on.wait()
        while data := await _read(reader):
            received += len(data)
        ended.set()
        writer.close()

    async def _read(reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.read(65536)
        except ConnectionError:
            return b""

    size = 64 * 1024 * 1024
    server = await asyncio.start_server(slow_reader, "127.0.0.1", 0, limit=1024)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with transport_to(url) as transport:
            task = asyncio.create_task(transport.request(Request("POST", "/x", LIMITS, body=b"x" * size)))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            go_on.set()
            async with asyncio.timeout(10):
                await ended.wait()
    assert 0 < received < size


async def test_a_slow_reader_of_a_stream_is_no_silence_and_holds_the_server_back() -> None:
    sent = 0

    async def respond(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.start_chunks()
        for _ in range(400):
            await exchange.chunk(b"x" * 65_536 + b"\n")
            sent += 1
        await exchange.chunk(b"")

    async with connected(respond) as transport:
        stream = await transport.stream(Request("GET", "/x", Limits(5, 0.2, None)))
        await asyncio.sleep(0.6)
        assert sent < 400, "an unread stream does not fill the memory"
        lines = 0
        while await stream.readline():
            lines += 1
        assert lines == 400
        await stream.close()


# TLS


class Authority:
    def __init__(self) -> None:
        self.ca = trustme.CA()

    def server(self, *names: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*names).configure_cert(context)
        return context

    def client(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        return context


@pytest.mark.parametrize("limit", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_large_bodies_pass_through_tls_both_ways(limit: ssl.TLSVersion) -> None:
    body = bytes(range(256)) * 8192
    authority = Authority()
    tls = authority.server("127.0.0.1")
    tls.maximum_version = limit

    async def respond(exchange: Exchange) -> None:
        await exchange.answer(200, exchange.body)

    async with serving(respond, tls) as wire, transport_to(wire.url, tls=authority.client()) as transport:
        for _ in range(3):
            assert (await transport.request(Request("POST", "/x", LIMITS, body=body))).body == body
        assert wire.connections == 1


@pytest.mark.parametrize(
    ("names", "trusted", "server_name", "says"),
    [
        (["127.0.0.1"], False, "", "certificate verify failed"),
        (["example.com"], True, "", "127.0.0.1"),
        (["127.0.0.1"], True, "example.com", "example.com"),
    ],
    ids=["unknown authority", "wrong address", "wrong name"],
)
async def test_a_certificate_that_does_not_fit_is_a_connect_error_that_says_why(
    names: list[str], trusted: bool, server_name: str, says: str
) -> None:
    authority = Authority()
    client = authority.client() if trusted else Authority().client()
    async with (
        serving(raw(), authority.server(*names)) as wire,
        transport_to(wire.url, tls=client, tls_server_name=server_name) as transport,
    ):
        with pytest.raises(ConnectError, match=says) as raised:
            await transport.request(GET)
        assert "\n" not in str(raised.value)


async def test_the_name_that_a_certificate_must_have_can_be_given() -> None:
    authority = Authority()
    async with (
        serving(raw(OK + b"Content-Length: 0\r\n\r\n"), authority.server("kubernetes.default")) as wire,
        transport_to(wire.url, tls=authority.client(), tls_server_name="kubernetes.default") as transport,
    ):
        assert (await transport.request(GET)).status == 200


async def test_an_answer_cut_under_tls_is_not_taken_for_whole() -> None:
    """Without a length an answer ends with its connection, and anybody between may end that."""
    authority = Authority()

    async def respond(exchange: Exchange) -> None:
        await exchange.send(OK + b"\r\nab")
        await asyncio.sleep(0.05)
        transport = exchange.writer.transport
        transport.get_extra_info("socket")
        transport.abort()
        exchange.keep = False

    async with (
        serving(respond, authority.server("127.0.0.1")) as wire,
        transport_to(wire.url, tls=authority.client()) as transport,
    ):
        with pytest.raises(BrokenStreamError):
            await transport.request(GET)


# Proxies


@asynccontextmanager
async def proxy(tls: ssl.SSLContext | None = None, *, status: int = 200) -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy for CONNECT; yields its URL without scheme, and the heads that it got."""
    heads: list[str] = []

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while block := await source.read(65536):
                sink.write(block)
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            sink.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        if status != 200:
            writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())
            writer.close()
            return
        host, _, port = head.split(" ")[1].rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        async with asyncio.TaskGroup() as group:
            group.create_task(pump(reader, far_writer))
            group.create_task(pump(far_reader, writer))

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


@pytest.mark.parametrize("encrypted", [False, True], ids=["http", "https"])
async def test_a_server_with_tls_is_reached_through_a_tunnel(encrypted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority()
    monkeypatch.setattr("fivespot.runtime.client.pool._system_trust", authority.client)

    async def respond(exchange: Exchange) -> None:
        await exchange.answer(200, exchange.headers.get("proxy-authorization", "none").encode())

    tls = authority.server("127.0.0.1") if encrypted else None
    async with serving(respond, authority.server("127.0.0.1")) as wire, proxy(tls) as (address, heads):
        url = f"{'https' if encrypted else 'http'}://me:s%40cret@{address}"
        async with transport_to(wire.url, tls=authority.client(), proxy=url) as transport:
            for _ in range(2):
                assert (await transport.request(GET)).body == b"none", "the server does not see the proxy's credentials"
    assert len(heads) == 1
    assert heads[0].startswith(f"CONNECT 127.0.0.1:{wire.port} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6c0BjcmV0\r\n" in heads[0]


async def test_a_server_without_tls_is_named_in_full_to_its_proxy() -> None:
    async with serving(raw(OK + b"Content-Length: 0\r\n\r\n")) as wire:
        async with transport_to("http://far.example:8001/base", proxy=wire.url) as transport:
            assert (await transport.request(GET)).status == 200
        assert wire.seen[0].target == "http://far.example:8001/base/x"
        assert wire.seen[0].headers["host"] == "far.example:8001"


async def test_a_proxy_that_refuses_is_named_with_its_status_and_without_its_password() -> None:
    authority = Authority()
    async with proxy(status=407) as (address, _):
        through = f"http://me:secret@{address}"
        async with transport_to("https://127.0.0.1:1", tls=authority.client(), proxy=through) as transport:
            with pytest.raises(ConnectError, match="the proxy answers 407") as raised:
                await transport.request(GET)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("silent_at", ["handshake", "tunnel"])
async def test_a_connection_that_is_never_made_ends_at_its_limit(silent_at: str) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    authority = Authority()
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        url, through = (
            (f"https://{address}", "") if silent_at == "handshake" else ("https://127.0.0.1:1", f"http://{address}")
        )
        async with transport_to(url, tls=authority.client(), proxy=through) as transport:
            with pytest.raises(ConnectError) as raised:
                await transport.request(Request("GET", "/x", Limits(0.1, 5, 10)))
            assert isinstance(raised.value, DeadlineError) or silent_at == "tunnel"
