"""Faults of response streams: truncation, latency, dead connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fivespot.apiserver import ApiRequest, ApiResponse, DisconnectedError, Handler, Stream

__all__ = ["BlockStream", "Cut", "Drip", "EditedStream", "HalfOpen", "Latency", "close"]


class BlockStream:
    """A stream of given blocks."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)

    async def read(self) -> bytes:
        return next(self._blocks, b"")

    def close(self) -> None:
        self._blocks = iter(())


class EditedStream:
    """A stream whose lines are edited.

    :param edit: returns the replacement of a line with its newline; b"" to drop it.
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


class _CutStream:
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
    """A response that is cut after a number of bytes, even inside a line or a UTF-8 sequence.

    :param after: bytes that arrive.
    """

    after: int

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        response = await handler(request)
        inner = response.body if not isinstance(response.body, bytes) else BlockStream([response.body])
        return ApiResponse(response.status, response.headers, _CutStream(inner, self.after))


def close(response: ApiResponse) -> None:
    """Close a response that is not read."""
    if not isinstance(response.body, bytes):
        response.body.close()


@dataclass(frozen=True)
class Latency:
    """The request or the response is delayed.

    :param seconds: delay on the loop's clock.
    :param answer: delay the response instead; the request is processed at once.
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


class _SilentStream:
    """Passes its inner stream on for some time and then neither sends nor ends."""

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
    """A dead connection that is not closed: no response, no events, no end.

    :param after: seconds until a watch falls silent; 0: the request is never answered.
    """

    after: float = 0.0

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if self.after <= 0:
            await asyncio.Event().wait()
        response = await handler(request)
        if isinstance(response.body, bytes):
            return response
        return ApiResponse(response.status, response.headers, _SilentStream(response.body, self.after))


class _DripStream:
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
    """A response that arrives in small blocks.

    :param size: bytes of a block.
    :param seconds: time between blocks.
    """

    size: int = 16
    seconds: float = 1.0

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        response = await handler(request)
        inner = response.body if not isinstance(response.body, bytes) else BlockStream([response.body])
        return ApiResponse(response.status, response.headers, _DripStream(inner, self.size, self.seconds))
