"""Splits blocks of bytes into lines, in linear time."""

from __future__ import annotations

from collections import deque

from fivespot.runtime.errors import BrokenStreamError, ProtocolError

__all__ = ["LineSplitter", "LineStream"]


class LineSplitter:
    """Accepts blocks from the network and returns whole lines without their newline.

    Empty lines are dropped. Pieces of an unfinished line are kept apart and joined once, so the cost of a line
    is linear in its length.
    """

    __slots__ = ("_lines", "_pieces", "unfinished")

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._pieces: list[bytes] = []
        self.unfinished = 0
        """Bytes after the last newline."""

    def feed(self, block: bytes) -> None:
        """Add a block."""
        first, *others = block.split(b"\n")
        if not others:
            self._pieces.append(block)
            self.unfinished += len(block)
            return
        self._pieces.append(first)
        rest = others.pop()
        line = b"".join(self._pieces)
        self._pieces = [rest] if rest else []
        self.unfinished = len(rest)
        if line:
            self._lines.append(line)
        self._lines.extend(filter(None, others))

    def pop(self) -> bytes:
        """Remove and return the next whole line; b"" if there is none yet."""
        return self._lines.popleft() if self._lines else b""

    def take_rest(self) -> bytes:
        """Remove and return everything: whole lines with their newlines, and the unfinished one."""
        rest = b"".join(line + b"\n" for line in self._lines) + b"".join(self._pieces)
        self._lines.clear()
        self._pieces = []
        self.unfinished = 0
        return rest


class LineStream:
    """The read half of a :class:`~fivespot.runtime.client.ByteStream`; transports implement :meth:`_read`.

    A base class rather than a component, because a watch of a large cluster reads some ten thousand lines a second,
    each of which would pay for another call.

    :param server: URL of the server, for errors.
    :param measured: the response announced its length; only then may it end without a newline.
    :param longest: bytes of the longest line.
    """

    def __init__(self, server: str, *, measured: bool, longest: int) -> None:
        self._server = server
        self._measured = measured
        self._longest = longest
        self._lines = LineSplitter()
        self._ended = False

    async def readline(self) -> bytes:
        """See :class:`~fivespot.runtime.client.ByteStream`."""
        while True:
            line = self._lines.pop()
            if line or self._ended:
                return line
            if self._lines.unfinished > self._longest:
                raise ProtocolError(f"{self._server}: a line is longer than {self._longest} bytes")
            block = await self._read()
            if block:
                self._lines.feed(block)
                continue
            self._ended = True
            if self._lines.unfinished:
                if not self._measured:
                    raise BrokenStreamError(f"{self._server}: the response ended in the middle of a line")
                return self._lines.take_rest()

    async def read_rest(self, limit: int) -> bytes:
        """See :class:`~fivespot.runtime.client.ByteStream`."""
        blocks = [self._lines.take_rest()]
        size = len(blocks[0])
        while size < limit and not self._ended:
            block = await self._read()
            self._ended = not block
            blocks.append(block)
            size += len(block)
        return b"".join(blocks)[:limit]

    async def _read(self) -> bytes:
        """Read the next block as received; b"" at the end of the response."""
        raise NotImplementedError
