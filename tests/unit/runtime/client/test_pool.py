"""Pooled connections that died without a word: something on the way swallows what is sent, and acknowledges it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest
import trustme

from fivespot.runtime.client import Client, HttpTransport, Limits, Request, Watch, WatchEnd, WatchEnded
from fivespot.runtime.client.auth import Access, Credentials
from fivespot.runtime.clock import InlineOffload
from fivespot.runtime.errors import DeadlineError
from fivespot.runtime.objects import Key, Resource
from support.faulty_servers import Exchange, FixedRandom, ManualClock, Responder, WireServer, serving

PODS = Resource("", "v1", "pods", "Pod")
POD = b'{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1"}}'
LIMITS = Limits(connect=5, read=5, total=10)
SHORT = Limits(connect=5, read=0.1, total=10)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting times as short as loopback allows."""
    monkeypatch.setattr("fivespot.runtime.client.http._PATIENCE", 0.2)
    monkeypatch.setattr("fivespot.runtime.client.http._DOUBT", 0.05)


@asynccontextmanager
async def connected(respond: Responder) -> AsyncIterator[tuple[HttpTransport, WireServer]]:
    async with serving(respond) as wire:

        def load(now: datetime, interrupt: threading.Event) -> Access:
            return Access(wire.url)

        transport = HttpTransport(Credentials(load, clock=ManualClock(), offload=InlineOffload()), user_agent="x")
        try:
            yield transport, wire
        finally:
            await transport.close()


class Network:
    """Answers until its connections die; those that are made afterwards live."""

    def __init__(self, last_to_die: int = 0) -> None:
        self.last_to_die = last_to_die
        self.delay = 0.0

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.connection <= self.last_to_die:
            await exchange.silence()
            return
        if "watch=1" in exchange.target:
            await exchange.start_chunks()
            await exchange.silence()
            return
        await asyncio.sleep(self.delay)
        await exchange.answer(200, POD)

    async def warm(self, transport: HttpTransport, wire: WireServer, connections: int) -> None:
        """Leave so many idle connections behind, and let them die."""
        self.delay = 0.05
        await asyncio.gather(*(transport.request(request()) for _ in range(connections)))
        self.delay = 0.0
        assert wire.connections == connections
        self.last_to_die = connections


def used_after_death(wire: WireServer, dead: int) -> list[int]:
    """Over which connections requests came after one had tried one of the dead."""
    first, *others = [exchange.connection for exchange in wire.seen[dead:]]
    assert first <= dead
    return others


def request(method: str = "GET", limits: Limits = LIMITS) -> Request:
    return Request(method, "/api/v1/pods", limits, body=b"{}" if method == "POST" else None)


async def open_watch(transport: HttpTransport, idle: float) -> Watch:
    client = Client(transport, clock=ManualClock(), rng=FixedRandom(), watch_limits=Limits(5, idle, None))
    return await client.watch(PODS, version="1", server_timeout=60)


async def test_a_read_on_a_dead_idle_connection_is_answered_over_a_new_one_within_seconds() -> None:
    """kubernetes/client-go#374, kubernetes#95981: a dead connection poisoned the pool for up to 15 minutes."""
    network = Network()
    async with connected(network) as (transport, wire):
        await network.warm(transport, wire, 3)
        async with asyncio.timeout(2):
            assert (await transport.request(request())).status == 200
            # Nobody has to find out again: neither of the two that nobody has tried is used.
            for _ in range(3):
                await transport.request(request("POST"))
        assert wire.connections == 4
        assert set(used_after_death(wire, 3)) == {4}


async def test_reads_at_once_on_dead_connections_cost_one_new_connection_each() -> None:
    network = Network()
    async with connected(network) as (transport, wire):
        await network.warm(transport, wire, 5)
        async with asyncio.timeout(3):
            answers = await asyncio.gather(*(transport.request(request()) for _ in range(5)))
        assert {answer.status for answer in answers} == {200}
        assert wire.connections <= 10


async def test_a_watch_is_opened_over_a_new_connection_too() -> None:
    network = Network()
    async with connected(network) as (transport, wire):
        await network.warm(transport, wire, 1)
        async with asyncio.timeout(2):
            watch = await open_watch(transport, idle=5)
        assert wire.connections == 2
        await watch.close()


async def test_a_write_is_not_sent_twice_and_its_limit_drops_the_dead_neighbours() -> None:
    network = Network()
    async with connected(network) as (transport, wire):
        await network.warm(transport, wire, 3)
        with pytest.raises(DeadlineError):
            await transport.request(request("POST", SHORT))
        assert (await transport.request(request("POST"))).status == 200
        assert used_after_death(wire, 3) == [4]


async def test_a_delete_that_may_be_repeated_succeeds_on_a_new_connection() -> None:
    network = Network()
    async with connected(network) as (transport, wire):
        await network.warm(transport, wire, 3)
        client = Client(transport, clock=ManualClock(), rng=FixedRandom(), request_limits=SHORT)
        assert await client.delete(PODS, Key("b", "a"), uid="u") is None
        assert used_after_death(wire, 3) == [4]


async def test_a_request_that_its_caller_gave_up_says_that_the_connection_may_be_dead() -> None:
    """An election has limits of its own, and cancels; its next try must not meet the next dead connection."""
    network = Network()
    async with connected(network) as (transport, wire):
        await network.warm(transport, wire, 3)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await transport.request(request("POST"))
        assert (await transport.request(request("POST"))).status == 200
        assert wire.seen[-1].connection == 4


async def test_a_watch_that_fell_silent_makes_the_idle_connections_beside_it_suspect() -> None:
    network = Network()
    async with connected(network) as (transport, wire):
        watch = await open_watch(transport, idle=0.1)
        await transport.request(request())
        network.last_to_die = 2
        with pytest.raises(WatchEnded) as ended:
            await watch.next()
        assert ended.value.reason is WatchEnd.IDLE
        assert (await transport.request(request("POST"))).status == 200
        assert wire.connections == 3


async def test_a_slow_server_gets_each_read_once_and_one_question_whether_it_is_there() -> None:
    """Reads that are repeated because a server is slow make it slower."""
    network = Network()
    async with connected(network) as (transport, wire):
        await network.warm(transport, wire, 10)
        network.last_to_die = 0
        network.delay = 0.4
        answers = await asyncio.gather(*(transport.request(request()) for _ in range(10)))
        assert {answer.status for answer in answers} == {200}
        reads = [exchange.target for exchange in wire.seen[10:]]
        assert (reads.count("/api/v1/pods"), reads.count("/version")) == (10, 1)
        assert (await transport.request(request())).status == 200
        assert [exchange.target for exchange in wire.seen[21:]] == ["/api/v1/pods"], "it is known to be slow"


async def test_a_slow_answer_of_a_quick_server_is_waited_for_the_next_time() -> None:
    """A large list takes long whichever connection it comes over."""

    async def respond(exchange: Exchange) -> None:
        await asyncio.sleep(0.0 if exchange.target in {"/version", "/warm"} else 0.5)
        await exchange.answer(200, POD)

    async with connected(respond) as (transport, wire):
        await transport.request(Request("GET", "/warm", LIMITS))
        for _ in range(2):
            assert (await transport.request(request())).status == 200
        lists = [exchange for exchange in wire.seen if exchange.target == "/api/v1/pods"]
        assert len(lists) == 3, "the first was repeated, the second was not"


async def test_what_no_idle_connection_can_explain_is_waited_for_at_once() -> None:
    """At the beginning, and after the server ended all connections, as one that restarts does and is slow then."""

    async def respond(exchange: Exchange) -> None:
        if exchange.connection > 1:
            await asyncio.sleep(0.4)
        await exchange.answer(200, POD)
        if exchange.connection == 1:
            await exchange.hang_up()

    async with connected(respond) as (transport, wire):
        watch = asyncio.create_task(open_watch(transport, idle=5))
        await transport.request(request())
        await asyncio.sleep(0.05)
        assert (await transport.request(request())).status == 200
        await (await watch).close()
        assert len(wire.seen) == 3, "none was sent twice"


async def test_connections_in_use_are_left_to_their_users_when_the_idle_ones_go() -> None:
    event = b'{"type":"ADDED","object":{"metadata":{"name":"late"}}}\n'
    send = asyncio.Event()

    async def respond(exchange: Exchange) -> None:
        if "watch=1" in exchange.target:
            await exchange.start_chunks()
            await send.wait()
            await exchange.chunk(event)
            await exchange.chunk(b"")
        elif exchange.connection == 2 and len(wire.seen) > 2:
            await exchange.silence()
        else:
            await exchange.answer(200, POD)

    async with connected(respond) as (transport, wire):
        watch = await open_watch(transport, idle=5)
        await transport.request(request())
        assert (await transport.request(request())).status == 200, "over a new connection"
        assert wire.connections == 3
        send.set()
        assert (await watch.next()).type == "ADDED"
        with pytest.raises(WatchEnded) as ended:
            await watch.next()
        assert ended.value.reason is WatchEnd.CLEAN
        await watch.close()
        # It is of the time of the dead one, so nobody gets it after its reader.
        assert (await transport.request(request())).status == 200
        assert wire.seen[-1].connection == 3


async def test_closing_ends_connections_whose_other_side_answers_no_farewell() -> None:
    """A loop that ends with an open transport leaves a warning behind, and asyncio would wait for half a minute."""
    authority = trustme.CA()
    of_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(of_server)
    of_client = ssl.create_default_context()
    authority.configure_trust(of_client)
    dead = asyncio.Event()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while block := await source.read(65536):
            if not dead.is_set():
                sink.write(block)
        sink.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", wire.port)
        with contextlib.suppress(ConnectionError):
            async with asyncio.TaskGroup() as group:
                group.create_task(pump(reader, to_server))
                group.create_task(pump(from_server, writer))

    async with serving(Network(), of_server) as wire, await asyncio.start_server(relay, "127.0.0.1", 0) as between:
        url = f"https://127.0.0.1:{between.sockets[0].getsockname()[1]}"

        def load(now: datetime, interrupt: threading.Event) -> Access:
            return Access(url, tls=of_client)

        transport = HttpTransport(Credentials(load, clock=ManualClock(), offload=InlineOffload()), user_agent="x")
        await transport.request(request())
        dead.set()
        with pytest.raises(DeadlineError):
            await transport.request(request("POST", SHORT))
        async with asyncio.timeout(10):
            await transport.close()
        assert not transport._pool.connections


async def test_answers_within_the_limits_never_cost_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PATIENCE", "_DOUBT"):
        monkeypatch.setattr(f"fivespot.runtime.client.http.{name}", 5.0)
    network = Network()
    async with connected(network) as (transport, wire):
        for _ in range(20):
            await transport.request(request())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await transport.request(request("POST"))
        assert {exchange.method for exchange in wire.seen} <= {"GET", "POST"}
        assert wire.connections <= 22, "one for each request that was cancelled, and none besides"
