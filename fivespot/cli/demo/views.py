"""The full-screen view of the demo."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from .board import Board, MachineRow, ScheduleRow
from .feed import Feed, Line

__all__ = ["BoardView"]

_PHASES: Final = {
    "Active": "green",
    "Pending": "yellow",
    "ShuttingDown": "yellow",
    "Error": "bold red",
    "Terminated": "red",
}

_CONDITIONS: Final = ("Scheduled", "MachineReady", "Ready")
"""Always shown, in this order; others only while they exist."""

_UNSHOWN: Final = frozenset({"SpotScheduleResolved", "UpToDate", *_CONDITIONS})

_MARKS: Final = {"True": ("+", "green"), "False": ("-", "bright_black")}

_SORTS: Final = {"act": "yellow", "saw": "", "note": "bright_black"}

_LEAST: Final = 3
"""Least number of lines of the feed."""

_FRAMES: Final = 9
"""Rows of the screen without a schedule, a machine or a line."""

_NARROW: Final = 110
"""Width below which the table of machines leaves out columns."""


class BoardView:
    """Draws on the whole screen of the terminal, and restores it; a context manager.

    :param clock: the simulated time, as text, with its date.
    :param local: an instant as text.
    :param footer: keys and commands.
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
        """Redraw the screen."""
        self._live.update(self.picture(), refresh=True)

    def picture(self) -> Group:
        """The content of the screen."""
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
    """A table whose last column takes the remaining width."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", expand=True)
    for column in columns:
        table.add_column(column, no_wrap=True, ratio=1 if column == columns[-1] else None)
    return table


def _conditions(row: MachineRow) -> Text:
    """Conditions as ``+Scheduled -Ready``, readable without colours."""
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
