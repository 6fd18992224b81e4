"""The HTTP transport against servers that misbehave, byte by byte."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from fivespot.runtime.client import Client, HttpTransport, Limits, Request, Watch, WatchEnd, WatchEnded
from fivespot.runtime.client.auth import Access, Credentials
from fivespot.runtime.client.pool import watched_socket
from fivespot.runtime.clock import InlineOffload
from fivespot.runtime.errors import (
    BrokenStreamError,
    ConfigError,
    ConnectDeadlineError,
    ConnectError,
    DeadlineError,
    NotServedError,
    ThrottledError,
    TransportError,
)
from fivespot.runtime.objects import Key, Resource
from support.faulty_servers import Exchange, FixedRandom, ManualClock, Responder, WireServer, serving, status_body

PODS = Resource("", "v1", "pods", "Pod")
LIMITS = Limits(connect=5, read=5, total=10)
EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"%s"}}}\n'


class Tokens:
    """A source of credentials: each load shows the next token, the last one for ever."""

    def __init__(self, server: str, *tokens: str) -> None:
        self._server = server
        self._tokens = list(tokens)
        self.loads = 0

    def __call__(self, now: datetime, interrupt: threading.Event) -> Access:
        self.loads += 1
        token = self._tokens.pop(0) if len(self._tokens) > 1 else self._tokens[0]
        return Access(self._server, authorization=token and f"Bearer {token}")


@asynccontextmanager
async def connected(respond: Responder, *tokens: str) -> AsyncIterator[tuple[HttpTransport, WireServer, Tokens]]:
    async with serving(respond) as wire:
        load = Tokens(wire.url, *(tokens or ("",)))
        credentials = Credentials(load, clock=ManualClock(), offload=InlineOffload())
        transport = HttpTransport(credentials, user_agent="tests/1.0")
        try:
            yield transport, wire, load
        finally:
            await transport.close()


def request(method: str = "GET", *, limits: Limits = LIMITS, body: bytes | None = None) -> Request:
    return Request(method, "/api/v1/pods", limits, {"a": "b c", "d": "é/="}, {"Accept": "application/json"}, body)


def client_on(transport: HttpTransport) -> Client:
    return Client(transport, clock=ManualClock(), rng=FixedRandom())


async def open_watch(transport: HttpTransport, idle: float = 5) -> Watch:
    client = Client(transport, clock=ManualClock(), rng=FixedRandom(), watch_limits=Limits(5, idle, None))
    return await client.watch(PODS, version="1", server_timeout=60)


async def end_of(watch: Watch) -> WatchEnded:
    while True:
        try:
            await watch.next()
        except WatchEnded as ended:
            return ended


# -- what goes out ---------------------------------------------------------------------------------------------------


async def test_requests_say_who_asks_and_reuse_their_connection() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.answer(200, b"{}", X_One="1")

    async with connected(respond, "secret") as (transport, wire, _):
        for _ in range(5):
            response = await transport.request(request("PUT", body=b"{1}"))
        assert (response.status, response.body, response.headers["x-one"]) == (200, b"{}", "1")
        assert wire.connections == 1
    seen = wire.seen[0]
    assert (seen.method, seen.body) == ("PUT", b"{1}")
    assert seen.target == "/api/v1/pods?a=b+c&d=%C3%A9%2F%3D"
    assert seen.headers["authorization"] == "Bearer secret"
    assert seen.headers["user-agent"] == "tests/1.0"
    assert seen.headers["accept-encoding"] == "identity"
    assert "cookie" not in seen.headers


async def test_a_path_of_the_server_stays_in_front() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.answer(200, b"{}")

    async with serving(respond) as wire:
        load = Tokens(f"{wire.url}/k8s/clusters/c-1", "")
        transport = HttpTransport(
            Credentials(load, clock=ManualClock(), offload=InlineOffload()), user_agent="x", compress=True
        )
        await transport.request(Request("GET", "/api/v1/namespaces/a%2Fb/pods", LIMITS))
        await transport.close()
    assert wire.seen[0].target == "/k8s/clusters/c-1/api/v1/namespaces/a%2Fb/pods"
    assert wire.seen[0].headers["accept-encoding"] == "gzip"
    assert "authorization" not in wire.seen[0].headers


async def test_a_redirect_is_not_followed() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.answer(302, Location="http://elsewhere.invalid/")

    async with connected(respond, "secret") as (transport, wire, _):
        assert (await transport.request(request())).status == 302
        assert len(wire.seen) == 1


async def test_repeated_headers_are_joined() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.send(b'HTTP/1.1 200 OK\r\nWarning: 299 - "a"\r\nwarning: 299 - "b"\r\nContent-Length: 0\r\n\r\n')

    async with connected(respond) as (transport, _, _):
        assert (await transport.request(request())).headers["warning"] == '299 - "a", 299 - "b"'


# -- no answer -------------------------------------------------------------------------------------------------------


async def test_a_port_where_nobody_listens_is_a_connect_error_of_one_line() -> None:
    async def respond(exchange: Exchange) -> None:
        raise AssertionError

    async with serving(respond) as wire:
        url = wire.url
    transport = HttpTransport(
        Credentials(Tokens(url, ""), clock=ManualClock(), offload=InlineOffload()), user_agent="x"
    )
    with pytest.raises(ConnectError, match=rf"^cannot reach {url}: .*[Cc]onne") as caught:
        await transport.request(request())
    assert "\n" not in str(caught.value)
    await transport.close()


async def test_a_name_that_does_not_resolve_is_a_connect_error() -> None:
    transport = HttpTransport(
        Credentials(Tokens("http://fivespot.invalid", ""), clock=ManualClock(), offload=InlineOffload()), user_agent="x"
    )
    with pytest.raises(ConnectError, match=r"^cannot reach http://fivespot.invalid: "):
        await transport.request(request())
    await transport.close()


async def test_silence_after_the_request_ends_at_the_read_limit() -> None:
    async with connected(lambda exchange: exchange.silence()) as (transport, _, _):
        with pytest.raises(DeadlineError) as caught:
            await transport.request(request(limits=Limits(5, 0.05, 10)))
        assert not isinstance(caught.value, ConnectError)
        with pytest.raises(DeadlineError):
            await transport.stream(request(limits=Limits(5, 0.05, None)))


async def test_a_slow_drip_ends_at_the_total_limit() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            await exchange.send(b" ")
            await asyncio.sleep(0.01)

    async with connected(respond) as (transport, _, _):
        with pytest.raises(DeadlineError):
            await transport.request(request(limits=Limits(5, 5, 0.1)))


async def test_a_handshake_that_never_ends_is_a_connect_deadline() -> None:
    async with serving(lambda exchange: exchange.answer(200)) as wire:
        # It waits for the end of HTTP headers, which a TLS greeting does not have.
        url = wire.url.replace("http:", "https:")
        transport = HttpTransport(
            Credentials(Tokens(url, ""), clock=ManualClock(), offload=InlineOffload()), user_agent="x"
        )
        with pytest.raises(ConnectDeadlineError):
            await transport.request(request(limits=Limits(0.05, 5, 10)))
        await transport.close()


@pytest.mark.parametrize("how", [Exchange.cut, Exchange.hang_up])
async def test_a_post_whose_connection_breaks_arrives_once(how: Callable[[Exchange], object]) -> None:
    async def respond(exchange: Exchange) -> None:
        await how(exchange)  # type: ignore[misc]

    async with connected(respond) as (transport, wire, _):
        with pytest.raises(TransportError) as caught:
            await client_on(transport).create(PODS, {"metadata": {"name": "a", "namespace": "b"}})
        assert not isinstance(caught.value, ConnectError)
        assert len(wire.seen) == 1


async def test_a_get_whose_connection_breaks_is_sent_again() -> None:
    async def respond(exchange: Exchange) -> None:
        if exchange.connection <= 2:
            await exchange.cut()
        else:
            await exchange.answer(200, b'{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1"}}')

    async with connected(respond) as (transport, _, _):
        obj = await client_on(transport).get(PODS, Key("b", "a"))
        assert obj.key == ("b", "a")


async def test_an_answer_cut_in_the_middle_is_a_broken_stream() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        await exchange.hang_up()

    async with connected(respond) as (transport, _, _):
        with pytest.raises(BrokenStreamError):
            await transport.request(request())


async def test_what_is_not_http_is_a_transport_error() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.send(b"SSH-2.0-x\r\n\r\n")
        await exchange.hang_up()

    async with connected(respond) as (transport, _, _):
        with pytest.raises(TransportError):
            await transport.request(request())


async def test_a_closed_transport_says_so() -> None:
    async with connected(lambda exchange: exchange.answer(200)) as (transport, _, _):
        await transport.request(request())
        await transport.close()
        await transport.close()
        with pytest.raises(ConnectError, match="closed"):
            await transport.request(request())


# -- failing answers -------------------------------------------------------------------------------------------------


async def test_a_throttling_proxy_that_speaks_text_is_understood() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.answer(429, b"slow\ndown", content_type="text/plain", Retry_After="120")

    async with connected(respond) as (transport, wire, _):
        with pytest.raises(ThrottledError, match="slow down") as caught:
            await client_on(transport).get(PODS, Key("a", "b"))
        assert caught.value.retry_after == 120
        assert len(wire.seen) == 1


async def test_an_unserved_path_answers_text() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.answer(404, b"404 page not found\n", content_type="text/plain; charset=utf-8")

    async with connected(respond) as (transport, _, _):
        with pytest.raises(NotServedError, match="404 page not found") as caught:
            await client_on(transport).get(PODS, Key("a", "b"))
        assert caught.value.reason == ""


# -- credentials -----------------------------------------------------------------------------------------------------


async def test_a_401_loads_the_credentials_anew_and_sends_once_more() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.answer(200 if exchange.headers["authorization"] == "Bearer new" else 401, b"{}")

    async with connected(respond, "old", "new") as (transport, wire, load):
        assert (await transport.request(request("POST", body=b"{}"))).status == 200
        assert [exchange.headers["authorization"] for exchange in wire.seen] == ["Bearer old", "Bearer new"]
        assert load.loads == 2


async def test_a_hundred_401s_at_once_cost_one_load() -> None:
    """kube-rs#1950, #831: one refresh for many refused requests."""

    async def respond(exchange: Exchange) -> None:
        await exchange.answer(200 if exchange.headers["authorization"] == "Bearer new" else 401, b"{}")

    async with connected(respond, "old", "new") as (transport, _, load):
        answers = await asyncio.gather(*(transport.request(request()) for _ in range(100)))
        assert {response.status for response in answers} == {200}
        assert load.loads == 2


async def test_a_401_that_nothing_can_change_is_handed_on() -> None:
    async with connected(lambda exchange: exchange.answer(401, b"{}"), "same") as (transport, wire, load):
        assert (await transport.request(request())).status == 401
        assert (await transport.request(request())).status == 401
        assert len(wire.seen) == 2
        assert load.loads == 2


async def test_a_watch_refused_with_401_is_opened_again() -> None:
    async def respond(exchange: Exchange) -> None:
        if exchange.headers["authorization"] != "Bearer new":
            await exchange.answer(401, b"{}")
            return
        await exchange.start_chunks()
        await exchange.chunk(EVENT % b"a")
        await exchange.chunk(b"")

    async with connected(respond, "old", "new") as (transport, _, _):
        watch = await open_watch(transport)
        assert (await watch.next()).type == "ADDED"
        assert (await end_of(watch)).reason is WatchEnd.CLEAN


async def test_credentials_that_cannot_be_loaded_are_a_connect_error() -> None:
    def load(now: datetime, interrupt: threading.Event) -> Access:
        raise ConfigError("token: empty")

    transport = HttpTransport(Credentials(load, clock=ManualClock(), offload=InlineOffload()), user_agent="x")
    with pytest.raises(ConnectError, match="token: empty"):
        await transport.request(request())
    await transport.close()


# -- streams ---------------------------------------------------------------------------------------------------------


async def test_lines_do_not_depend_on_the_chunks_they_come_in() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.start_chunks()
        lines = (EVENT % b"a") + (EVENT % "ü".encode()) + (EVENT % b"c")
        for at in range(0, len(lines), 7):
            await exchange.chunk(lines[at : at + 7])
        await exchange.chunk(b"")

    async with connected(respond) as (transport, _, _):
        watch = await open_watch(transport)
        seen = [json.loads(bytes((await watch.next()).object))["metadata"]["name"] for _ in range(3)]
        assert seen == ["a", "ü", "c"]
        assert (await end_of(watch)).reason is WatchEnd.CLEAN


@pytest.mark.parametrize("cut", [Exchange.cut, Exchange.hang_up])
@pytest.mark.parametrize("tail", [b'{"type":"ADD', '{"type":"ADDED","object":{"metadata":{"name":"ü'.encode()[:-1]])
async def test_a_line_that_is_cut_is_never_taken_for_whole(cut: Callable[[Exchange], object], tail: bytes) -> None:
    """kubernetes-client/python#972: the stream breaks in a line, or in a UTF-8 sequence of it."""
    sent = asyncio.Event()

    async def respond(exchange: Exchange) -> None:
        await exchange.start_chunks()
        await exchange.chunk(EVENT % b"a" + tail)
        await sent.wait()
        await cut(exchange)  # type: ignore[misc]

    async with connected(respond) as (transport, _, _):
        watch = await open_watch(transport)
        assert (await watch.next()).type == "ADDED"
        sent.set()
        assert (await end_of(watch)).reason is WatchEnd.BROKEN


async def test_a_proper_end_in_the_middle_of_a_line_is_broken_too() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.start_chunks()
        await exchange.chunk(b'{"type":"ADDED","object":{}}')
        await exchange.chunk(b"")

    async with connected(respond) as (transport, _, _):
        assert (await end_of(await open_watch(transport))).reason is WatchEnd.BROKEN


async def test_a_line_of_six_megabytes_passes_in_linear_time() -> None:
    big = b'{"type":"ADDED","object":{"metadata":{"name":"' + b"x" * 6_000_000 + b'"}}}\n'

    async def respond(exchange: Exchange) -> None:
        await exchange.start_chunks()
        for at in range(0, len(big), 2000):
            await exchange.chunk(big[at : at + 2000])
        await exchange.chunk(EVENT % b"after")
        await exchange.chunk(b"")

    async with connected(respond) as (transport, _, _):
        watch = await open_watch(transport)
        started = time.process_time()
        event = await watch.next()
        assert len(bytes(event.object)) > 6_000_000
        assert b"after" in bytes((await watch.next()).object)
        # Joining it anew with every chunk would move 9 GB.
        assert time.process_time() - started < 2


async def test_a_half_open_watch_ends_at_its_idle_limit() -> None:
    """nolar/kopf#585 and others: the connection is dead and nobody says so."""

    async def respond(exchange: Exchange) -> None:
        await exchange.start_chunks()
        await exchange.chunk(EVENT % b"a")
        await exchange.silence()

    async with connected(respond) as (transport, _, _):
        watch = await open_watch(transport, idle=0.05)
        assert (await watch.next()).type == "ADDED"
        assert (await end_of(watch)).reason is WatchEnd.IDLE


async def test_a_watch_outlives_its_idle_limit_while_something_comes() -> None:
    """kubernetes_asyncio#325: no limit on the whole of a watch."""

    async def respond(exchange: Exchange) -> None:
        await exchange.start_chunks()
        for _ in range(10):
            await exchange.chunk(EVENT % b"a")
            await asyncio.sleep(0.03)
        await exchange.chunk(b"")

    async with connected(respond) as (transport, _, _):
        watch = await open_watch(transport, idle=0.2)
        for _ in range(10):
            await watch.next()
        assert (await end_of(watch)).reason is WatchEnd.CLEAN


EXPIRED = json.dumps(status_body(410, "Expired", "too old")).encode()


@pytest.mark.parametrize("shape", ["event", "http", "http text", "lone status", "lone status, no newline"])
async def test_every_shape_of_a_410_means_expired(shape: str) -> None:
    """kube-rs#1615, python-base#231: as an event, as an HTTP status, as 200 with a JSON body that is no stream."""

    async def respond(exchange: Exchange) -> None:
        match shape:
            case "event":
                await exchange.start_chunks()
                await exchange.chunk(b'{"type":"ERROR","object":' + EXPIRED + b"}\n")
                await exchange.silence()
            case "http":
                await exchange.answer(410, EXPIRED)
            case "http text":
                await exchange.answer(410, b"gone", content_type="text/plain")
            case "lone status":
                await exchange.answer(200, EXPIRED + b"\n")
            case _:
                await exchange.answer(200, EXPIRED)

    async def both(transport: HttpTransport) -> None:
        watch = await open_watch(transport)
        await watch.next()

    async with connected(respond) as (transport, _, _):
        with pytest.raises(WatchEnded) as ended:
            await both(transport)
        assert ended.value.reason is WatchEnd.EXPIRED
        assert ended.value.error is not None
        assert ended.value.error.status == 410


async def test_closing_a_watch_closes_its_connection_and_wakes_its_reader() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.start_chunks()
        await exchange.silence()

    async with connected(respond) as (transport, _, _):
        watch = await open_watch(transport)
        async with asyncio.TaskGroup() as group:
            reader = group.create_task(end_of(watch))
            await asyncio.sleep(0)
            await watch.close()
            await watch.close()
            ended = await reader
        assert ended.reason in {WatchEnd.BROKEN, WatchEnd.CLEAN}


async def test_the_rest_of_an_answer_is_bounded() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.answer(500, b"line\n" * 100_000)

    async with connected(respond) as (transport, _, _):
        stream = await transport.stream(request())
        assert await stream.readline() == b"line"
        assert len(await stream.read_rest(1000)) == 1000
        await stream.close()


async def test_all_requests_share_one_session_and_watches_do_not_starve_it() -> None:
    """kubernetes_asyncio#103: a pool of its own per watch."""

    async def respond(exchange: Exchange) -> None:
        if "watch" in exchange.target:
            await exchange.start_chunks()
            await exchange.silence()
        else:
            await exchange.answer(200, b"{}")

    async with connected(respond) as (transport, wire, _):
        watches = [await open_watch(transport) for _ in range(150)]
        assert (await transport.request(request())).status == 200
        assert wire.connections == 151
        for watch in watches:
            await watch.close()


def test_the_kernel_looks_after_idle_connections() -> None:
    """kubernetes-client/python#2462, client-go#374: sockets that died without a word, in a pool or under a watch."""
    with watched_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))) as connection:
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert 0 < connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 15
        assert 0 < connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 15_000


def test_the_client_is_imported_without_http() -> None:
    script = (
        "import sys, fivespot.runtime.client as c; "
        "assert not {'aiohttp', 'kubernetes_asyncio', 'pydantic', 'anyio', 'yaml'} & set(sys.modules), 'heavy'; "
        "c.connect; assert not {'aiohttp', 'kubernetes_asyncio'} & set(sys.modules), 'heavy'; "
        "assert all(hasattr(c, name) for name in c.__all__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
