"""Keys of the demo, read from the terminal without Enter."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

__all__ = ["on_keys"]


@contextmanager
def on_keys(actions: Mapping[str, Callable[[], None]], *, enabled: bool = True) -> Iterator[None]:
    """Call the action of each key that is pressed, and restore the terminal at the end.

    Without a terminal on standard input nothing is read.
    """
    if not (enabled and sys.stdin.isatty()):
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def read() -> None:
        for key in os.read(descriptor, 64).decode(errors="ignore"):
            if key in actions:
                actions[key]()

    loop = asyncio.get_running_loop()
    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
