"""The demonstration told line by line."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal, NamedTuple, Self

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from fivespot.cli.console import colours

from .board import Board, MachineRow, ScheduleRow

__all__ = ["BoardView", "Feed", "Line", "Lines"]

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


_PHASES: Final = {
    "Active": "green",
    "Pending": "yellow",
    "ShuttingDown": "yellow",
    "Error": "bold red",
    "Terminated": "red",
}

_CONDITIONS: Final = ("Scheduled", "MachineReady", "Ready")

"""Shown always, in this order; others only while they are there."""

_UNSHOWN: Final = frozenset({"SpotScheduleResolved", "UpToDate", *_CONDITIONS})

_MARKS: Final = {"True": ("+", "green"), "False": ("-", "bright_black")}

_SORTS: Final = {"act": "yellow", "saw": "", "note": "bright_black"}

_LEAST: Final = 3

"""Lines of the feed, however low the terminal is."""

_FRAMES: Final = 9

"""Rows of the screen that hold neither a schedule, a machine nor a line."""

_NARROW: Final = 110

"""Columns below which the table of machines leaves out what can be read elsewhere."""


class BoardView:
    """A context manager that has the terminal's whole screen, and gives it back as it was.

    :param clock: the simulated time, as text, with its date.
    :param local: an instant as text.
    :param footer: what can be done meanwhile.
    """

    def __init__(
        self,
        board: Board,
        feed: Feed,
        *,
        clock: Callable[[], str],
        local: Callable[[datetime], str],
        footer: str,
        console: Console | None = None,
    ) -> None:
        self._board = board
        self._feed = feed
        self._clock = clock
        self._local = local
        self._footer = footer
        self._console = console or Console()
        self._live = Live(console=self._console, screen=True, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def draw(self) -> None:
        """Show how things stand."""
        self._live.update(self.picture(), refresh=True)

    def picture(self) -> Group:
        """The whole screen."""
        schedules, machines = self._board.schedules(), self._board.machines()
        room = max(_LEAST, self._console.height - len(schedules) - len(machines) - _FRAMES)
        lines = list(self._feed.lines)[-room:]
        return Group(
            Text(self._clock(), style="bold", no_wrap=True, overflow="ellipsis"),
            self._schedules(schedules),
            Text(),
            _machines(machines, narrow=self._console.width < _NARROW),
            Text(),
            Rule(style="bright_black"),
            *map(_line, lines),
            *[Text()] * (room - len(lines)),
            Text(self._footer, style="bright_black", no_wrap=True, overflow="ellipsis"),
        )

    def _schedules(self, rows: list[ScheduleRow]) -> Table:
        table = _table("schedule", "kind", "active", "next change", "why")
        for row in rows:
            active = {True: Text("yes", style="green"), False: Text("no"), None: Text("?")}[row.active]
            following = self._local(row.next) if row.next is not None else ""
            table.add_row(row.name, row.kind, active, following, row.message)
        return table


def _machines(rows: list[MachineRow], *, narrow: bool) -> Table:
    wide = ("machine", "follows", "phase", "Machine", "Node", "conditions", "message")
    table = _table(*(("machine", "phase", "Machine", "conditions") if narrow else wide))
    for row in rows:
        phase = Text(row.phase, style=_PHASES.get(row.phase, ""))
        if narrow:
            table.add_row(row.name, phase, row.machine, _conditions(row))
        else:
            table.add_row(row.name, row.follows, phase, row.machine, row.node, _conditions(row), row.message)
    return table


def _table(*columns: str) -> Table:
    """The last column takes the room that the others leave."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", expand=True)
    for column in columns:
        table.add_column(column, no_wrap=True, ratio=1 if column == columns[-1] else None)
    return table


def _conditions(row: MachineRow) -> Text:
    """``+Scheduled -Ready``, so that it can be read without colours."""
    shown = Text()
    for name in (*_CONDITIONS, *sorted(row.conditions.keys() - _UNSHOWN)):
        if name in row.conditions:
            mark, style = _MARKS.get(row.conditions[name], ("?", "yellow"))
            shown.append(f"{' ' if shown else ''}{mark}{name}", style=style)
    return shown


def _line(line: Line) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{line.when}  ", style="bright_black")
    return text.append(f"{line.about}  {line.text}" if line.about else line.text, style=_SORTS[line.sort])
