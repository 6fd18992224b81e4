"""Credentials that change under live watches, over HTTP."""

from __future__ import annotations

import asyncio

from fivespot.runtime.client import Client, HttpTransport, Limits, Request, Watch
from fivespot.runtime.client.auth import Credentials
from fivespot.runtime.clock import InlineOffload
from fivespot.runtime.objects import Resource
from support.faulty_servers import Exchange, FixedRandom, ManualClock, serving
from unit.runtime.client.test_http import LIMITS, Tokens

PODS = Resource("", "v1", "pods", "Pod")
_WATCHES = 20
_EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"%s","uid":"u","resourceVersion":"2"}}}\n'


async def test_new_credentials_leave_live_watches_alone_and_open_the_next_ones() -> None:
    """nolar/kopf#980: a login after the credentials had changed closed the session of every watch, for good."""
    valid = "Bearer old"
    go_on, end = asyncio.Event(), asyncio.Event()
    refused = 0

    async def respond(exchange: Exchange) -> None:
        nonlocal refused
        if exchange.headers["authorization"] != valid:
            refused += 1
            await exchange.answer(401, b"{}")
        elif "watch" not in exchange.target:
            await exchange.answer(200, b"{}")
        else:
            await exchange.start_chunks()
            await exchange.chunk(_EVENT % b"first")
            await go_on.wait()
            await exchange.chunk(_EVENT % b"second")
            await end.wait()
            await exchange.chunk(b"")

    async with serving(respond) as wire:
        load = Tokens(wire.url, "old", "new")
        transport = HttpTransport(
            Credentials(load, clock=ManualClock(), offload=InlineOffload()), user_agent="tests/1.0"
        )
        client = Client(transport, clock=ManualClock(), rng=FixedRandom(), watch_limits=Limits(5, 30, None))

        async def opened() -> Watch:
            watch = await client.watch(PODS, version="1", server_timeout=60)
            assert (await watch.next()).head().name == "first"
            return watch

        async with asyncio.timeout(30):
            watches = await asyncio.gather(*(opened() for _ in range(_WATCHES)))
            valid = "Bearer new"
            answers = await asyncio.gather(
                *(transport.request(Request("GET", "/api/v1/pods", LIMITS)) for _ in range(_WATCHES))
            )
            assert {answer.status for answer in answers} == {200}
            assert load.loads == 2
            go_on.set()
            for watch in watches:
                assert (await watch.next()).head().name == "second"
            before = refused
            for watch in await asyncio.gather(*(opened() for _ in range(_WATCHES))):
                await watch.close()
            assert refused == before, "the new token is known"
            end.set()
            for watch in watches:
                await watch.close()
            await transport.close()
