"""The lines of the demo: kept for the view, or written one by one."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import click

from fivespot.cli.console import colours

__all__ = ["Feed", "Line", "Lines"]

_KEPT: Final = 200
_ABOUT: Final = 38
"""Columns of the object of a line."""

Sort = Literal["act", "saw", "note"]

_COLOUR: Final[dict[Sort, str | None]] = {"act": "yellow", "saw": None, "note": "bright_black"}


class Line(NamedTuple):
    """A line of the feed.

    :param when: simulated time.
    :param about: the object, "" for none.
    """

    when: str
    sort: Sort
    about: str
    text: str


class Feed:
    """Keeps the last lines for the view.

    :param clock: the simulated time, as text.
    """

    def __init__(self, clock: Callable[[], str]) -> None:
        self._clock = clock
        self.lines: deque[Line] = deque(maxlen=_KEPT)

    def saw(self, about: str, text: str) -> None:
        """Add a change that was observed on the API server."""
        self._add(Line(self._clock(), "saw", about, text))

    def act(self, command: str) -> None:
        """Add an action, as the command that does the same."""
        self._add(Line(self._clock(), "act", "", f"> {command}"))

    def note(self, text: str) -> None:
        """Add a remark about the demo."""
        self._add(Line(self._clock(), "note", "", text))

    def _add(self, line: Line) -> None:
        self.lines.append(line)


class Lines(Feed):
    """Writes each line at once.

    :param broken: called when the reader of standard output is gone.
    """

    def __init__(self, clock: Callable[[], str], broken: Callable[[], None]) -> None:
        super().__init__(clock)
        self._broken = broken

    def _add(self, line: Line) -> None:
        shown = f"{line.about:<{_ABOUT}} {line.text}" if line.about else line.text
        stamp = click.style(line.when, fg="bright_black")
        try:
            click.echo(f"{stamp}  {click.style(shown, fg=_COLOUR[line.sort])}", color=colours())
        except BrokenPipeError:
            # The interpreter flushes standard output at its exit and would report an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._broken()
