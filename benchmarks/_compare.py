"""Compare two checkouts: run the same benchmark in both by turns and print the medians."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from ._report import Row, report

__all__ = ["compare"]

HERE = Path(__file__).resolve().parents[1]

Values = dict[tuple[str, str], list[float]]
"""(Row, column) -> one number a round."""


def compare(name: str, other: Path, rounds: int, arguments: list[str], output: str = "table") -> None:
    """Run a benchmark here and in another checkout, alternately, so that a busy machine disturbs both alike."""
    here: Values = {}
    there: Values = {}
    for number in range(rounds):
        # Whoever is first finds colder caches: take turns at that, too.
        pairs = [(HERE, here), (other.resolve(), there)]
        for checkout, values in reversed(pairs) if number % 2 else pairs:
            _collect(_run(name, checkout, arguments), values)
    rows: list[Row] = [
        {
            "measured": f"{row}: {column}",
            "here": median(here[row, column]),
            "against": median(there[row, column]),
            "ratio": median(here[row, column]) / (median(there[row, column]) or float("nan")),
            "range here": _range(here[row, column]),
            "range against": _range(there[row, column]),
        }
        for row, column in here
        if (row, column) in there
    ]
    report(argparse.Namespace(output=output), f"{name}: medians of {rounds} rounds, here against {other}", rows)


def _run(name: str, checkout: Path, arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", name, "-o", "json", *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": f"{checkout}:{checkout / 'tools'}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _collect(result: dict[str, Any], values: Values) -> None:
    for row in result["rows"]:
        first, *columns = row
        for column in columns:
            if isinstance(row[column], int | float):
                values.setdefault((str(row[first]), column), []).append(float(row[column]))


def _range(numbers: list[float]) -> str:
    return f"{min(numbers):.4g} to {max(numbers):.4g}"
