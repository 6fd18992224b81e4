"""A transport that calls an API server in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Mapping
from functools import partial
from types import coroutine
from typing import Any, Final, TypeVar

from fivespot import apiserver
from fivespot.apiserver import DisconnectedError, Handler
from fivespot.runtime import TransportError
from fivespot.runtime.client import ByteStream, Limits, Request, Response
from fivespot.runtime.client.lines import LineStream
from fivespot.runtime.errors import BrokenStreamError, ConnectError, DeadlineError

__all__ = ["ServerTransport", "continued"]

T = TypeVar("T")


@coroutine
def continued(work: Coroutine[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    """Continue a coroutine after ``work.send(None)`` in the same task.

    ``await`` and ``yield from`` cannot: they would resume the coroutine before the awaited future is done. Exceptions
    that are thrown in, such as a cancellation, are passed to the coroutine.

    :param awaited: the result of ``send``.
    """
    while True:
        try:
            value = yield awaited
        except BaseException as error:  # raised again where the coroutine waits
            step = partial(work.throw, error)
        else:
            step = partial(work.send, value)
        try:
            awaited = step()
        except StopIteration as end:
            result: T = end.value
            return result


_SERVER: Final = "in-process API server"


class ServerTransport:
    """A transport to an :class:`~fivespot.apiserver.ApiServer` that keeps the time-outs of a network transport.

    :param handle: the server's ``handle``, or a fault script.
    :param user_agent: the ``User-Agent``, which is the default field manager.
    """

    def __init__(self, handle: Handler, *, user_agent: str = "fivespot-testing") -> None:
        self._handle = handle
        self._user_agent = user_agent
        self._streams: set[_ServerStream] = set()
        self._closed = False

    async def request(self, request: Request) -> Response:
        await self._turn()
        return await _within(request.limits.total or request.limits.read, self._whole(request))

    async def stream(self, request: Request) -> ByteStream:
        await self._turn()
        answer = await _within(request.limits.read, self._answer(request))
        stream = _ServerStream(answer, request.limits, self._streams)
        self._streams.add(stream)
        return stream

    async def close(self) -> None:
        self._closed = True
        for stream in list(self._streams):
            await stream.close()

    async def _whole(self, request: Request) -> Response:
        answer = await self._answer(request)
        body = answer.body if isinstance(answer.body, bytes) else await _collect(answer.body, request.limits.size)
        return Response(answer.status, _headers(answer), body)

    async def _turn(self) -> None:
        if self._closed:
            raise ConnectError("the transport is closed")
        # A network gives other tasks a turn here; without it a server that answers at once would starve them.
        await asyncio.sleep(0)

    async def _answer(self, request: Request) -> apiserver.ApiResponse:
        headers = {"user-agent": self._user_agent, **{name.lower(): value for name, value in request.headers.items()}}
        asked = apiserver.ApiRequest(
            request.method, request.path, list(request.query.items()), headers, request.body or b""
        )
        try:
            return await self._handle(asked)
        except DisconnectedError as error:
            failure = ConnectError if error.refused else TransportError
            raise failure(f"{_SERVER}: {error}") from error


class _ServerStream(LineStream):
    """The lines of a response."""

    def __init__(self, answer: apiserver.ApiResponse, limits: Limits, streams: set[_ServerStream]) -> None:
        super().__init__(_SERVER, measured=isinstance(answer.body, bytes), longest=limits.size)
        self._body = answer.body
        self._idle = limits.read
        self._waiting_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._silent = False
        self._streams = streams
        self.status = answer.status
        self.headers: Mapping[str, str] = _headers(answer)

    async def close(self) -> None:
        self._ended = True
        self._streams.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not isinstance(self._body, bytes):
            self._body.close()

    async def _read(self) -> bytes:
        if isinstance(self._body, bytes):
            block, self._body = self._body, b""
            return block
        loop = asyncio.get_running_loop()
        self._waiting_since = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._idle, self._look)
        try:
            block = await self._body.read()
        except DisconnectedError as error:
            raise BrokenStreamError(f"{_SERVER}: {error}") from error
        finally:
            self._waiting_since = None
        if self._silent:
            raise DeadlineError(f"{_SERVER}: nothing within {self._idle:g} s")
        return block

    def _look(self) -> None:
        """End the stream when the reader has waited too long. One timer is cheaper than one for each block."""
        self._timer = None
        if self._waiting_since is None or isinstance(self._body, bytes):
            return
        loop = asyncio.get_running_loop()
        left = self._waiting_since + self._idle - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._look)
            return
        self._silent = True
        # This wakes the reader.
        self._body.close()


async def _within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Await with a time-out.

    :raises DeadlineError: it took longer.
    """
    try:
        # Most responses are ready at once, and a timer for each is a tenth of a simulation's cost.
        awaited = work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    try:
        async with asyncio.timeout(seconds) as scope:
            return await continued(work, awaited)
    except TimeoutError as error:
        if not scope.expired():
            raise
        raise DeadlineError(f"{_SERVER}: no answer within {seconds:g} s") from error


async def _collect(stream: apiserver.Stream, limit: int) -> bytes:
    blocks = []
    size = 0
    try:
        while block := await stream.read():
            blocks.append(block)
            size += len(block)
            if size > limit:
                raise TransportError(f"{_SERVER}: the answer is longer than {limit} bytes")
    except DisconnectedError as error:
        raise BrokenStreamError(f"{_SERVER}: {error}") from error
    finally:
        stream.close()
    return b"".join(blocks)


def _headers(answer: apiserver.ApiResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers}
