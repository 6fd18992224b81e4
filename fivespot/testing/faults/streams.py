"""Streams that end too early, and the blocks that other faults are made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fivespot.apiserver import ApiRequest, ApiResponse, DisconnectedError, Handler, Stream

__all__ = ["Blocks", "Cut", "Drip", "Edited", "HalfOpen", "Latency", "close"]


class Blocks:
    """A stream of blocks that are there already."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)

    async def read(self) -> bytes:
        return next(self._blocks, b"")

    def close(self) -> None:
        self._blocks = iter(())


class Edited:
    """A stream whose lines are edited one by one.

    :param edit: gets a line with its newline and gives what is sent instead, b"" for nothing.
    """

    def __init__(self, inner: Stream, edit: Callable[[bytes], bytes]) -> None:
        self._inner = inner
        self._edit = edit

    async def read(self) -> bytes:
        while block := await self._inner.read():
            edited = b"".join(self._edit(line) for line in block.splitlines(keepends=True))
            if edited:
                return edited
        return b""

    def close(self) -> None:
        self._inner.close()


class _CutShort:
    def __init__(self, inner: Stream, left: int) -> None:
        self._inner = inner
        self._left = left

    async def read(self) -> bytes:
        if self._left <= 0:
            self._inner.close()
            raise DisconnectedError
        block = await self._inner.read()
        block, self._left = block[: self._left], self._left - len(block)
        return block

    def close(self) -> None:
        self._inner.close()


@dataclass(frozen=True)
class Cut:
    """An answer that ends after so many bytes, wherever that is: in a line, in a UTF-8 sequence.

    :param after: bytes that still arrive.
    """

    after: int

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        response = await handler(request)
        inner = response.body if not isinstance(response.body, bytes) else Blocks([response.body])
        return ApiResponse(response.status, response.headers, _CutShort(inner, self.after))


def close(response: ApiResponse) -> None:
    """Let go of an answer that nobody will read."""
    if not isinstance(response.body, bytes):
        response.body.close()


@dataclass(frozen=True)
class Latency:
    """The request reaches the server late.

    :param seconds: on the loop's clock.
    :param answer: the answer is late instead, and what was asked for is done at once.
    """

    seconds: float
    answer: bool = False

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if self.answer:
            response = await handler(request)
            await asyncio.sleep(self.seconds)
            return response
        await asyncio.sleep(self.seconds)
        return await handler(request)


class _Silent:
    """Says what its inner stream says for some time, and then nothing at all, without ending."""

    def __init__(self, inner: Stream, seconds: float) -> None:
        self._inner = inner
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._closed = asyncio.Event()

    async def read(self) -> bytes:
        try:
            async with asyncio.timeout_at(self._deadline):
                if block := await self._inner.read():
                    return block
        except TimeoutError:
            pass
        await self._closed.wait()
        return b""

    def close(self) -> None:
        self._closed.set()
        self._inner.close()


@dataclass(frozen=True)
class HalfOpen:
    """The connection is dead, and nobody says so: no answer, no event, no end.

    :param after: seconds for which a watch still works; 0: the request itself is never answered.
    """

    after: float = 0.0

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if self.after <= 0:
            await asyncio.Event().wait()
        response = await handler(request)
        if isinstance(response.body, bytes):
            return response
        return ApiResponse(response.status, response.headers, _Silent(response.body, self.after))


class _Dripping:
    def __init__(self, inner: Stream, size: int, seconds: float) -> None:
        self._inner = inner
        self._size = size
        self._seconds = seconds
        self._rest = b""

    async def read(self) -> bytes:
        if not self._rest:
            self._rest = await self._inner.read()
        if self._rest:
            await asyncio.sleep(self._seconds)
        drop, self._rest = self._rest[: self._size], self._rest[self._size :]
        return drop

    def close(self) -> None:
        self._inner.close()


@dataclass(frozen=True)
class Drip:
    """An answer that comes a few bytes at a time.

    :param size: bytes at a time.
    :param seconds: between them.
    """

    size: int = 16
    seconds: float = 1.0

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        response = await handler(request)
        inner = response.body if not isinstance(response.body, bytes) else Blocks([response.body])
        return ApiResponse(response.status, response.headers, _Dripping(inner, self.size, self.seconds))
