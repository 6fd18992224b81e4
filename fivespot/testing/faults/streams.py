"""Streams that end too early, and the blocks that other faults are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fivespot.apiserver import DisconnectedError, Handler, Request, Response, Stream

__all__ = ["Blocks", "Cut", "Edited", "close"]


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

    async def apply(self, request: Request, handler: Handler) -> Response:
        response = await handler(request)
        inner = response.body if not isinstance(response.body, bytes) else Blocks([response.body])
        return Response(response.status, response.headers, _CutShort(inner, self.after))


def close(response: Response) -> None:
    """Let go of an answer that nobody will read."""
    if not isinstance(response.body, bytes):
        response.body.close()
