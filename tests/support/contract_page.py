"""The rows of `docs/contract.md`, which tests name with ``@pytest.mark.contract("B1.6")``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "contract.md"
_ROW = re.compile(r"^\| (?P<id>[ABC][0-9]+(?:\.[0-9]+)?)(?P<planned> \*planned\*)? \| (?P<rule>.+) \|$", re.MULTILINE)


class Row(NamedTuple):
    """A rule of the contract. A planned one has no test yet; a partly planned one says `*Planned:*` in its text."""

    id: str
    planned: bool
    partly_planned: bool


def contract_rows(text: str | None = None) -> dict[str, Row]:
    """Return every row of the page (or of ``text``) by its id, in the page's order."""
    found = list(_ROW.finditer(PAGE.read_text() if text is None else text))
    rows = {match["id"]: Row(match["id"], bool(match["planned"]), "*Planned:*" in match["rule"]) for match in found}
    if len(rows) != len(found):
        raise ValueError("two rows of docs/contract.md have the same id")
    return rows


def contract_problems(rows: Mapping[str, Row], tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Compare the page with the tests that carry each id; yield one sentence for each disagreement."""
    for row in rows.values():
        if row.planned and tests.get(row.id):
            yield f"{row.id} is marked *planned* on the page and has tests: take the mark off"
        if not row.planned and not tests.get(row.id):
            yield f'{row.id} has no test: mark one with @pytest.mark.contract("{row.id}"), or the row as *planned*'
    for unknown in sorted(tests.keys() - rows.keys()):
        yield f"{unknown} is not on the page; it is named by {', '.join(tests[unknown])}"


def planned_summary(rows: Mapping[str, Row]) -> str:
    """Say how many rules there are and which of them are not built."""
    planned = [row.id for row in rows.values() if row.planned]
    partly = [row.id for row in rows.values() if row.partly_planned and not row.planned]
    text = f"contract: {len(rows)} rules; planned: {', '.join(planned) or 'none'}"
    return f"{text}; planned in part: {', '.join(partly)}" if partly else text


class ContractMarks:
    """Pytest plugin for ``@pytest.mark.contract``: refuse unknown ids, choose tests by id, report which test has which.

    ``--contract B1.6,B7.1`` keeps the tests of these rules; ``--contract-report FILE`` writes all of them as JSON.
    """

    def __init__(self, chosen: str | None, report: str | None) -> None:
        self._rows = contract_rows()
        self._chosen = frozenset(filter(None, (chosen or "").upper().split(",")))
        self._report = report
        if unknown := self._chosen - self._rows.keys():
            raise pytest.UsageError(f"docs/contract.md has no rule {', '.join(sorted(unknown))}")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        tests: dict[str, list[str]] = {}
        for item in items:
            for row in contract_ids(item):
                tests.setdefault(row, []).append(item.nodeid)
        if unknown := tests.keys() - self._rows.keys():
            named = ", ".join(f"{row} ({tests[row][0]})" for row in sorted(unknown))
            raise pytest.UsageError(f"tests name rules that docs/contract.md does not have: {named}")
        if self._report:
            Path(self._report).write_text(json.dumps(tests))
        if self._chosen:
            kept = [item for item in items if self._chosen & contract_ids(item)]
            config.hook.pytest_deselected(items=[item for item in items if item not in kept])
            items[:] = kept


def contract_ids(item: pytest.Item) -> frozenset[str]:
    """Return the rules that a test proves, by the markers on it, its class and its module."""
    return frozenset(row for mark in item.iter_markers("contract") for row in mark.args)


if __name__ == "__main__":
    sys.stdout.write(f"{planned_summary(contract_rows())}\n")
