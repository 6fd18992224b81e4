"""A world outside of Kubernetes that a provider asks: a small HTTP server on loopback, which answers as a test says."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

__all__ = ["Asked", "Outside", "Say", "outside"]


@dataclass(frozen=True, slots=True)
class Say:
    """The answer of one path.

    :param waits: answer when this is set, and never before.
    :param breaks: cut the connection in the middle of the answer.
    :param token: refuse whoever does not carry it.
    """

    active: bool = True
    status: int = 200
    waits: asyncio.Event | None = None
    breaks: bool = False
    token: str = ""


@dataclass(slots=True)
class Asked:
    """One request: its time and content, and whether the client closed the connection before the response."""

    at: float
    token: str
    left: bool = False


class Outside:
    """Give each place (the path of a URL) something to say before it is asked."""

    def __init__(self) -> None:
        self.says: dict[str, Say] = {}
        self.asked: dict[str, list[Asked]] = defaultdict(list)
        self.address = ""

    def url(self, place: str) -> str:
        return f"{self.address}/{place}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, with one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            place = head.split()[1].strip("/").partition("?")[0]
            fields = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
            asked = Asked(asyncio.get_running_loop().time(), fields.get("Authorization", ""))
            self.asked[place].append(asked)
            say = self.says[place]
            if say.waits is not None and not await _waited(say.waits, reader):
                asked.left = True
                return
            status = 401 if say.token and asked.token != say.token else say.status
            body = f'{{"active": {str(say.active).lower()}}}'
            length = f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\nConnection: close"
            # Not before its first words: a client sends a request again whose connection died without any.
            said = body[:3] if say.breaks else body
            writer.write(f"HTTP/1.1 {status} Said\r\n{length}\r\n\r\n{said}".encode())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


async def _waited(event: asyncio.Event, reader: asyncio.StreamReader) -> bool:
    """Whether the event came before the other side went away."""
    async with asyncio.TaskGroup() as group:
        coming, leaving = group.create_task(event.wait()), group.create_task(reader.read())
        await asyncio.wait((coming, leaving), return_when=asyncio.FIRST_COMPLETED)
        came = coming.done()
        coming.cancel()
        leaving.cancel()
    return came


@asynccontextmanager
async def outside() -> AsyncIterator[Outside]:
    """Open one; clients that still wait for a response at the end are disconnected."""
    world = Outside()
    under_way: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        try:
            await world.answer(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            under_way.discard(task)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    world.address = f"http://{host}:{port}"
    try:
        yield world
    finally:
        server.close()
        for task in list(under_way):
            task.cancel()
        await asyncio.gather(*under_way)
