"""A timeline as a picture: days as rows, hours of the wall clock as columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from fivespot.cli.timeline.days import Day, days_of, total
from fivespot.cli.timeline.forecast import Forecast, Period
from fivespot.cli.timeline.formats import length, moment, offset, share
from fivespot.runtime import ConfigError
from fivespot.schedule import Zone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST_DAYS", "draw", "size"]

MOST_DAYS: Final = 400
"""The most rows that can be told apart in one picture."""

DPI: Final = 120
_WIDTH: Final = 11.0
_HOUR: Final = 3600.0
_TITLE_LENGTH: Final = 62
_MARGINS: Final = (1.55, 1.05, 1.3, 0.72)
"""Margins in inches: left for dates, right for totals, above for the title, below for the legend."""

_ACTIVE: Final = "#1b7f5c"
_MARGIN: Final = "#8fcbb5"
_EMPTY: Final = "#eef1f3"
_WEEKEND: Final = "#e2e7ea"
_OUTSIDE: Final = "#ffffff"
_GAP: Final = "#d9822b"
_INK: Final = "#22282d"
_FAINT: Final = "#7a858d"

_HATCH: Final = {True: "/////", False: "...."}
"""Colours of the time that a clock set forward skips, and of the time that one set back repeats."""

_FILLED: Final = 0.86
"""The share of its row that a bar fills."""

_Corners = list[tuple[float, float]]

_SETTINGS: Final[dict[Any, Any]] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "hatch.linewidth": 0.8,
    "hatch.color": _GAP,
    "savefig.bbox": None,
    "text.usetex": False,
    "svg.hashsalt": "fivespot",
}


def draw(title: str, forecast: Forecast, period: Period, zone: Zone, *, core: Forecast | None = None) -> bytes:
    """Draw the picture as PNG. The same timeline, period and zone give the same bytes (with one release of
    matplotlib).

    :param core: the same schedule without lead and lag time, if it has any.
    :raises ConfigError: matplotlib is not installed, or the period has too many days.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 - half a second that only a picture costs
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("--png: matplotlib is not installed; pip install 'fivespot[plot]'") from error

    intervals = forecast.intervals(period)
    days = days_of(zone, period, intervals)
    inner = days_of(zone, period, core.intervals(period)) if core is not None else None
    if len(days) > MOST_DAYS:
        raise ConfigError(f"--png: {len(days)} days are too many for one picture, at most {MOST_DAYS}: shorten --to")
    spent, whole = total((i.start, i.end) for i in intervals), period.end - period.start
    width, height = size(len(days))
    left, right, above, below = _MARGINS
    # A configuration file in the user's home must not change the picture.
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
        FigureCanvasAgg(figure)
        axes = figure.add_axes(
            (left / width, below / height, (width - left - right) / width, (height - above - below) / height)
        )
        _rows(axes, days, inner)
        _frame(axes, days)
        _sums(axes, days)
        head = height - 0.34
        figure.text(left / width, head / height, _cut(title), fontsize=15, fontweight="bold", color=_INK, va="center")
        times = (
            "never active" if not intervals else f"active {length(spent)} of {length(whole)} ({share(spent, whole)})"
        )
        subtitle = f"{moment(zone, period.start)} to {moment(zone, period.end)}, {zone.name}   ·   {times}"
        figure.text(left / width, (head - 0.32) / height, subtitle, fontsize=9.5, color=_INK, va="center")
        _legend(axes, days, below, height, margins=inner is not None)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return buffer.getvalue()


def _cut(title: str) -> str:
    # A name may have 253 characters; a dollar sign would begin a formula.
    short = title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"
    return short.replace("$", r"\$")


def size(days: int) -> tuple[float, float]:
    """Return width and height, in inches, of a picture of so many days."""
    return _WIDTH, round(_MARGINS[2] + _MARGINS[3] + max(days * _row_height(days), 0.6), 2)


def _row_height(days: int) -> float:
    if _by_day(days):
        return 0.27
    return 0.12 if days <= 100 else 0.055


def _by_day(days: int) -> bool:
    """Whether each row is high enough for a date and a total of its own; otherwise weeks have them."""
    return days <= 35


def _rows(axes: Axes, days: Sequence[Day], core: Sequence[Day] | None) -> None:
    ground: dict[str, list[_Corners]] = {_EMPTY: [], _WEEKEND: []}
    active: list[_Corners] = []
    for row, day in enumerate(days):
        colour = _WEEKEND if day.date.weekday() >= 5 else _EMPTY
        ground[colour] += (_corners(row, piece.reads, piece.reading(piece.end)) for piece in day.pieces)
        active += (_corners(row, piece.reading(start), piece.reading(end)) for piece, start, end in day.active)
    if core is None:
        layers = [(_ACTIVE, active)]
    else:
        # The core covers the middle of the whole, and what shows is lead and lag time.
        inner = [
            _corners(row, piece.reading(start), piece.reading(end))
            for row, day in enumerate(core)
            for piece, start, end in day.active
        ]
        layers = [(_MARGIN, active), (_ACTIVE, inner)]
    for colour, found in (*ground.items(), *layers):
        _fill(axes, found, colour)
    for row, day in enumerate(days):
        for change in day.clock_changes:
            first, last = sorted(change.shows)
            # A change across midnight belongs to two days; the part in this day is drawn.
            first, last = max(first, 0.0), min(last, 24 * _HOUR)
            axes.barh(
                row,
                (last - first) / _HOUR,
                left=first / _HOUR,
                height=_FILLED,
                facecolor=_OUTSIDE if change.forward else "none",
                edgecolor=_GAP,
                hatch=_HATCH[change.forward],
                linewidth=0.8,
            )


def _fill(axes: Axes, corners: list[_Corners], colour: str) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415

    axes.add_collection(PolyCollection(corners, facecolors=colour, edgecolors="none", linewidths=0), autolim=False)


def _corners(row: int, start: float, end: float) -> _Corners:
    left, right, above, below = start / _HOUR, end / _HOUR, row - _FILLED / 2, row + _FILLED / 2
    return [(left, above), (right, above), (right, below), (left, below)]


def _sums(axes: Axes, days: Sequence[Day]) -> None:
    each = _by_day(len(days))
    groups = [[row] for row in range(len(days))] if each else _weeks(days)
    style: dict[str, Any] = {"fontsize": 8.5, "va": "center"}
    axes.annotate(
        "per day" if each else "per week",
        (24.25, -0.5),
        xytext=(0, 22),
        textcoords="offset points",
        color=_FAINT,
        **style,
    )
    for rows in groups:
        spent = sum((days[row].active_time for row in rows), timedelta(0))
        if spent:
            axes.text(24.25, (rows[0] + rows[-1]) / 2, length(spent), color=_INK, **style)


def _weeks(days: Sequence[Day]) -> list[list[int]]:
    weeks: list[list[int]] = []
    for row, day in enumerate(days):
        if not weeks or day.date.weekday() == 0:
            weeks.append([])
        weeks[-1].append(row)
    return weeks


def _frame(axes: Axes, days: Sequence[Day]) -> None:
    axes.set_xlim(0, 24)
    axes.set_ylim(len(days) - 0.5, -0.5)
    axes.set_xticks(range(0, 25, 3), [f"{hour:02}:00" for hour in range(0, 25, 3)])
    axes.xaxis.tick_top()
    axes.tick_params(axis="x", length=0, labelsize=8.5, colors=_FAINT, pad=3)
    axes.tick_params(axis="y", length=0, labelsize=8.5, colors=_INK, pad=6)
    # In long pictures only Mondays are labelled.
    named = [row for row, day in enumerate(days) if _by_day(len(days)) or day.date.weekday() == 0]
    if days and (not named or named[0] > 2):
        named.insert(0, 0)
    axes.set_yticks(named, [f"{days[number].date:%a %Y-%m-%d}" for number in named])
    for number, day in enumerate(days):
        if number and day.date.weekday() == 0:
            axes.axhline(number - 0.5, color=_FAINT, linewidth=0.6)
    for hour in range(3, 24, 3):
        axes.axvline(hour, color="white", linewidth=0.9, alpha=0.75)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _legend(axes: Axes, days: Sequence[Day], below: float, height: float, *, margins: bool) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415

    shown = [Patch(facecolor=_ACTIVE, label="active"), Patch(facecolor=_EMPTY, label="not active")]
    if margins:
        shown.insert(1, Patch(facecolor=_MARGIN, label="active: lead and lag time"))
    for forward, what in ((True, "left out"), (False, "shown twice")):
        changes = [change for day in days for change in day.clock_changes if change.forward is forward]
        if changes:
            before, after = (offset(seconds) for seconds in changes[0].offsets)
            label = f"{what} by the clock ({before} to {after})"
            shown.append(Patch(facecolor=_OUTSIDE, edgecolor=_GAP, hatch=_HATCH[forward], label=label))
    axes.legend(
        handles=shown,
        loc="upper left",
        bbox_to_anchor=(0.0, -0.12 / max(height - below - _MARGINS[2], 0.1)),
        ncols=len(shown),
        frameon=False,
        fontsize=8.5,
        labelcolor=_INK,
        handlelength=1.6,
        borderaxespad=0.0,
        columnspacing=1.8,
    )
