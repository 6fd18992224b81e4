"""Requests with a permit: none of their bytes reaches the kernel once the permit has ended."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from fivespot.runtime.client import HttpTransport, Limits, Request
from fivespot.runtime.client.auth import Access, Credentials
from fivespot.runtime.clock import InlineOffload
from fivespot.runtime.errors import NotLeaderError, TransportError
from support.faulty_servers import Exchange, ManualClock, WireServer, serving

LIMITS = Limits(connect=5, read=5, total=10)
LARGE = b"x" * 1_000_000
MORE_THAN_THE_KERNEL_TAKES = b"x" * 16_000_000


class Permit:
    """Valid for a number of checks, or until it is ended."""

    def __init__(self, checks: float = float("inf")) -> None:
        self.left = checks
        self.checked = 0
        self._callbacks: list[Callable[[], None]] = []

    def check(self) -> None:
        self.checked += 1
        self.left -= 1
        if self.left < 0:
            raise NotLeaderError("the permit has ended")

    def add_end_callback(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def end(self) -> None:
        self.left = 0
        for callback in self._callbacks:
            callback()


@asynccontextmanager
async def transport_to(url: str) -> AsyncIterator[HttpTransport]:
    def load(now: datetime, cancelled: threading.Event) -> Access:
        return Access(url)

    credentials = Credentials(load, clock=ManualClock(), offload=InlineOffload())
    transport = HttpTransport(credentials, user_agent="tests")
    try:
        yield transport
    finally:
        await transport.close()


async def ok(exchange: Exchange) -> None:
    await exchange.answer(200, b"{}")


def write(permit: Permit | None, body: bytes = b"{}") -> Request:
    return Request("POST", "/api/v1/pods", LIMITS, body=body, permit=permit)


async def served(wire: WireServer) -> int:
    """The requests that arrived whole, once everything that was sent has arrived."""
    await asyncio.sleep(0.05)
    return len(wire.seen)


@pytest.mark.parametrize("body", [b"{}", LARGE], ids=["small", "large"])
async def test_a_permit_that_ends_before_any_of_its_checks_lets_no_whole_request_out(body: bytes) -> None:
    """Every place at which bytes may be handed over, one after another, until a request passes all of them."""
    async with serving(ok) as wire:
        for checks in range(1000):
            async with transport_to(wire.url) as transport:
                permit = Permit(checks)
                try:
                    await transport.request(write(permit, body))
                except NotLeaderError:
                    if permit.checked <= checks:
                        raise
                    assert await served(wire) == 0, checks
                else:
                    break
        assert checks >= 1, "it is checked at all"
        assert await served(wire) == 1


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
@pytest.mark.parametrize("cut", [True, False], ids=["asked to cut", "found out when sending"])
async def test_bytes_still_in_the_process_when_the_permit_ends_are_not_sent(cut: bool) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        loop = asyncio.get_running_loop()
        if not cut and not isinstance(loop, asyncio.SelectorEventLoop):
            return  # other loops send by the file descriptor; their connections are cut
        async with transport_to(f"http://127.0.0.1:{server.getsockname()[1]}") as transport:
            permit = Permit()
            sending = asyncio.create_task(transport.request(write(permit, MORE_THAN_THE_KERNEL_TAKES)))
            peer, _ = await loop.sock_accept(server)
            await asyncio.sleep(0.1)
            if cut:
                permit.end()
            else:
                permit.left = 0
            received = 0
            with peer:
                peer.setblocking(False)
                try:
                    while chunk := await asyncio.wait_for(loop.sock_recv(peer, 1 << 20), 5):
                        received += len(chunk)
                except ConnectionError:
                    pass
            assert 0 < received < len(MORE_THAN_THE_KERNEL_TAKES)
            with pytest.raises(NotLeaderError):
                await sending


async def test_a_permit_shares_no_connection_with_others() -> None:
    async with serving(ok) as wire, transport_to(wire.url) as transport:
        first, second = Permit(), Permit()
        for permit in (None, first, None, first, second, second):
            await transport.request(write(permit))
        assert [exchange.connection for exchange in wire.seen] == [1, 2, 1, 2, 3, 3]


async def test_the_end_of_a_permit_leaves_other_requests_alone() -> None:
    async with serving(ok) as wire, transport_to(wire.url) as transport:
        permit = Permit()
        await transport.request(write(permit))
        permit.end()
        assert (await transport.request(write(None))).status == 200
        with pytest.raises(NotLeaderError):
            await transport.request(write(permit))
        assert await served(wire) == 2


async def test_a_failure_while_the_permit_is_valid_is_a_transport_error() -> None:
    async def cut(exchange: Exchange) -> None:
        exchange.writer.transport.abort()

    async with serving(cut) as wire, transport_to(wire.url) as transport:
        with pytest.raises(TransportError):
            await transport.request(write(Permit()))
