"""Options and reports shared by all benchmarks."""

from __future__ import annotations

import argparse
import json
import platform
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Row", "parser", "report", "resident"]

Row = Mapping[str, Any]
"""One line of a table: column -> value. The first column names what was measured."""


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """A command line with the option that all benchmarks have."""
    made = argparse.ArgumentParser(prog=f"./dev bench {name}", description=(description or "").partition("\n")[0])
    made.add_argument("-o", "--output", choices=["table", "json"], default="table", help="default: %(default)s")
    return made


def report(given: argparse.Namespace, about: str, rows: Sequence[Row]) -> None:
    """Print the rows as the command line asks.

    :param about: what was measured, in words and sizes.
    """
    if given.output == "json":
        settings = {name: value for name, value in vars(given).items() if name != "output"}
        print(json.dumps({"about": about, "python": platform.python_version(), **settings, "rows": rows}, indent=1))
        return
    print(about)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns, *([_cell(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        first, *others = (
            cell.ljust(w) if at == 0 else cell.rjust(w) for at, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join([first, *others]).rstrip())


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def resident(pid: int | str = "self") -> float:
    """MiB of a process that are in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
