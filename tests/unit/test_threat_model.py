"""The threat model names tests that exist, and every protection has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "threat-model.md"
_TEST = re.compile(r"`(tests/[a-z0-9_/]+\.py)::(test_[a-z0-9_]+)`")


def rows() -> list[list[str]]:
    """The cells of every row that names an attack or a mistake."""
    found: list[list[str]] = []
    shown = False
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            shown = False
        elif cells[-1] == "Shown by":
            shown = True
        elif shown and not set(line) <= set("|-"):
            found.append(cells)
    return found


def test_every_protection_is_shown_by_a_test() -> None:
    assert len(rows()) > 25
    assert [row[0] for row in rows() if not _TEST.search(row[-1])] == []


@pytest.mark.parametrize(("file", "name"), sorted(set(_TEST.findall(PAGE.read_text()))))
def test_a_test_that_is_named_exists(file: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


def test_every_name_of_a_test_is_read() -> None:
    assert PAGE.read_text().count("::") == len(_TEST.findall(PAGE.read_text()))
