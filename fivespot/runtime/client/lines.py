"""Lines out of blocks of bytes, in linear time and of any length."""

from __future__ import annotations

from collections import deque

__all__ = ["LineSplitter"]


class LineSplitter:
    """Takes blocks as they come from the network, gives whole lines without their newline.

    Empty lines are dropped. Pieces of an unfinished line are kept apart and joined once, so that a line of many
    blocks costs what its bytes cost.
    """

    __slots__ = ("_lines", "_pieces")

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._pieces: list[bytes] = []

    def feed(self, block: bytes) -> None:
        """Add a block."""
        first, *others = block.split(b"\n")
        if not others:
            self._pieces.append(block)
            return
        self._pieces.append(first)
        rest = others.pop()
        line = b"".join(self._pieces)
        self._pieces = [rest] if rest else []
        if line:
            self._lines.append(line)
        self._lines.extend(filter(None, others))

    def pop(self) -> bytes:
        """The next whole line, b"" if there is none yet."""
        return self._lines.popleft() if self._lines else b""

    @property
    def unfinished(self) -> bool:
        """Whether bytes came after the last newline."""
        return any(self._pieces)

    def take_rest(self) -> bytes:
        """Everything not yet given out, the lines with their newlines and the unfinished one; nothing is left."""
        rest = b"".join(line + b"\n" for line in self._lines) + b"".join(self._pieces)
        self._lines.clear()
        self._pieces = []
        return rest
