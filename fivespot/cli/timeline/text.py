"""A timeline as a table: one line a day, on the wall clock of a zone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Final

import click

from fivespot.cli.timeline.days import Day, days_of, total
from fivespot.cli.timeline.forecast import Forecast, Period
from fivespot.cli.timeline.formats import change_text, length, moment, share, span_text
from fivespot.cli.timeline.margins import margins
from fivespot.providers.sdk import EventNote
from fivespot.schedule import Zone

__all__ = ["ASCII", "UNICODE", "Marks", "render"]

_HOUR: Final = 3600.0
_ALIKE: Final = 4
"""The number of consecutive days without a change that are folded into one line; more than a long weekend."""
_COLUMN: Final = 24
_DATE_WIDTH: Final = 16


@dataclass(frozen=True, slots=True)
class Marks:
    """The characters of an hour in the bar: active, partly active, active by lead or lag time alone, inactive."""

    full: str
    partly: str
    margin: str
    empty: str
    dash: str

    @property
    def all(self) -> str:
        return f"{self.full}{self.partly}{self.margin}{self.empty}{self.dash}"


UNICODE: Final = Marks("█", "▒", "░", "·", "–")
ASCII: Final = Marks("#", "+", "~", ".", "-")
"""The same for terminals without Unicode."""


def render(
    title: str,
    forecast: Forecast,
    period: Period,
    zone: Zone,
    *,
    core: Forecast | None = None,
    notes: Iterable[EventNote] = (),
    marks: Marks = UNICODE,
) -> str:
    """Render the table, with styles for a terminal; strip them for other outputs.

    :param core: the same schedule without lead and lag time, if it has any.
    """
    intervals = forecast.intervals(period)
    inner = core.intervals(period) if core is not None else intervals
    days = [Row(*pair) for pair in zip(days_of(zone, period, intervals), days_of(zone, period, inner), strict=True)]
    spent, whole = total((i.start, i.end) for i in intervals), period.end - period.start
    lines = [
        click.style(title, bold=True),
        f"{moment(zone, period.start)} to {moment(zone, period.end)}, {zone.name}",
        "",
        click.style(f"{'':<{_DATE_WIDTH}}{'0':<6}{'6':<6}{'12':<6}18", dim=True),
        *_table(days, marks),
        "",
        _summary(spent, whole, len(intervals)),
        *_margin_lines(total(margins(intervals, inner)), marks),
        *_edges(forecast, period, zone),
    ]
    notes_shown = [f"- {note.reason}: {note.message}" for note in notes]
    if notes_shown:
        lines += ["", click.style("Notes", bold=True), *notes_shown]
    return "\n".join(line.rstrip() for line in lines) + "\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One date of the table.

    :param core: the same date without lead and lag time.
    """

    day: Day
    core: Day

    @property
    def alike(self) -> tuple[bool, object]:
        """Return a key that rows share which may be folded into one line."""
        plain = self.day.plain and self.core.spans == self.day.spans
        return (True, bool(self.day.spans)) if plain else (False, self.day.date)

    @property
    def windows(self) -> str:
        shown = ", ".join(span_text(span) for span in self.day.spans)
        if self.core.spans == self.day.spans:
            return shown
        return f"{shown} ({', '.join(span_text(span) for span in self.core.spans) or 'none'})"


def _table(days: Sequence[Row], marks: Marks) -> Iterator[str]:
    width = max((len(row.windows) for row in days), default=0)
    for alike, run in groupby(days, key=lambda row: row.alike):
        group = list(run)
        if alike[0] and len(group) >= _ALIKE:
            yield _folded([row.day for row in group], marks, width)
            continue
        for row in group:
            yield from _day(row, marks, width)


def _day(row: Row, marks: Marks, width: int) -> Iterator[str]:
    day = row.day
    shown = f"{day.date:%a %Y-%m-%d}"
    spent = length(day.active_time) if day.spans else ""
    left = f"{shown:<{_DATE_WIDTH}}" if day.spans else click.style(f"{shown:<{_DATE_WIDTH}}", dim=True)
    yield f"{left}{_bar(row, marks)}  {row.windows:<{width}}  {spent}"
    for change in day.clock_changes:
        note = f"{change_text(change)}; {length(day.length)} on this date"
        yield f"{'':<{_DATE_WIDTH}}{click.style(note, fg='yellow')}"


def _folded(days: Sequence[Day], marks: Marks, width: int) -> str:
    shown = f"{days[0].date:%a %Y-%m-%d} {marks.dash} {days[-1].date:%a %Y-%m-%d}"
    active = bool(days[0].spans)
    each = span_text(days[0].spans[0]) if active else "not active"
    spent = length(timedelta(days=len(days))) if active else ""
    # Two dates leave no room for the bar.
    what = f"{shown:<{_DATE_WIDTH + _COLUMN}}  {each:<{width}}  {spent or f'{len(days)} days'}"
    return what if active else click.style(what, dim=True)


def _bar(row: Row, marks: Marks) -> str:
    cells: list[tuple[str, str | None]] = []
    for hour in range(24):
        hours = hour * _HOUR, (hour + 1) * _HOUR
        part = row.day.share(*hours)
        if part is None:
            cells.append((" ", None))
        elif part == 0:
            cells.append((marks.empty, None))
        elif not row.core.share(*hours):
            cells.append((marks.margin, "cyan"))
        else:
            cells.append((marks.full if part >= 1 else marks.partly, "green"))
    styled = []
    for colour, run in groupby(cells, key=lambda cell: cell[1]):
        text = "".join(mark for mark, _ in run)
        styled.append(click.style(text, fg=colour) if colour else click.style(text, dim=True))
    return "".join(styled)


def _summary(spent: timedelta, whole: timedelta, times: int) -> str:
    if not times:
        return f"Never active in {length(whole)}."
    how_often = "once" if times == 1 else f"{times} times"
    return f"Active {length(spent)} of {length(whole)} ({share(spent, whole)}), {how_often}."


def _margin_lines(spent: timedelta, marks: Marks) -> Iterator[str]:
    if spent:
        mark = click.style(marks.margin, fg="cyan")
        yield (
            f"Lead and lag time are {length(spent)} of it ({mark} in hours of nothing else); the times without them "
            "are in parentheses."
        )


def _edges(forecast: Forecast, period: Period, zone: Zone) -> Iterator[str]:
    first, last = forecast.initial, forecast.active_at(period.end)
    why = f" ({forecast.reason})" if forecast.reason else ""
    yield f"At the start: {_state(first)}{why}."
    following = forecast.next_change(period.end)
    if following is not None:
        yield f"After the period: {_state(following.active)} from {moment(zone, following.at)}."
    elif not forecast.settled:
        yield "After the period: no change is known."
    elif forecast.changes(period.end):
        yield f"After the period: {_state(last)} for ever."
    else:
        yield f"It never changes: always {_state(first)}."


def _state(active: bool) -> str:
    return "active" if active else "not active"
