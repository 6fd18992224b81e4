"""The demonstration told line by line."""

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
"""Columns for what a line is about."""

Sort = Literal["act", "saw", "note"]

_COLOUR: Final[dict[Sort, str | None]] = {"act": "yellow", "saw": None, "note": "bright_black"}


class Line(NamedTuple):
    """One line.

    :param when: on the simulated clock.
    :param about: an object; "" for none.
    """

    when: str
    sort: Sort
    about: str
    text: str


class Feed:
    """The last lines, for a view that shows as many as there is room for.

    :param clock: the simulated time, as text.
    """

    def __init__(self, clock: Callable[[], str]) -> None:
        self._clock = clock
        self.lines: deque[Line] = deque(maxlen=_KEPT)

    def saw(self, about: str, text: str) -> None:
        """Something that the API server shows."""
        self._add(Line(self._clock(), "saw", about, text))

    def act(self, command: str) -> None:
        """Something that a person could have typed."""
        self._add(Line(self._clock(), "act", "", f"> {command}"))

    def note(self, text: str) -> None:
        """Something on the demonstration itself."""
        self._add(Line(self._clock(), "note", "", text))

    def _add(self, line: Line) -> None:
        self.lines.append(line)


class Lines(Feed):
    """Writes each line at once.

    :param broken: called when nobody reads any more.
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
            # The interpreter flushes once more at its end, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._broken()
