"""The page about the kit: its examples are providers, and it names every parameter and every name."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fivespot.providers import sdk
from fivespot.providers.sdk import (
    Context,
    Provider,
    Verdict,
)

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


PAGE = Path(__file__).parents[4] / "docs" / "provider-sdk.md"


def examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


async def test_the_examples_of_the_page_are_providers() -> None:
    toggles, busy, _ = examples()
    toggle, spaces = _run(toggles, "TOGGLE")
    assert toggle.definition()["spec"]["names"]["plural"] == "toggles"
    assert toggle.decide(spaces["ToggleSpec"](up=True), NOON) == Verdict(True, reason="SwitchedOn")
    queue, spaces = _run(busy, "BUSY")
    assert (queue.asynchronous, queue.poll, queue.takes_context) == (True, 30, True)
    assert queue.definition()["spec"]["names"]["kind"] == "BusyQueue"
    length = 150.0

    async def length_of(name: str) -> float:
        return length

    spaces["length_of"] = length_of
    spec = spaces["BusySpec"](queue="builds")
    context = Context("ns", "q")
    assert await queue.decide(spec, NOON, context) == Verdict(True, reason="Busy")
    length = 0.0
    context = Context("ns", "q", active=True, since=NOON)
    held = await queue.decide(spec, NOON + 10 * MINUTE, context)
    assert held == Verdict(True, reason="Busy", again=NOON + 30 * MINUTE)
    assert await queue.decide(spec, NOON + 30 * MINUTE, context) == Verdict(False, reason="Idle")


def _run(text: str, name: str) -> tuple[Any, dict[str, Any]]:
    spaces: dict[str, Any] = {"__name__": "example"}
    exec(compile(text, str(PAGE), "exec"), spaces)
    return spaces[name], spaces


def test_the_page_names_every_parameter_of_a_provider_and_every_name_of_the_kit() -> None:
    text = PAGE.read_text()
    parameters = [field.name for field in fields(Provider) if field.init and field.name not in {"_", "status"}]
    assert [name for name in parameters if f"| `{name}` |" not in text] == []
    told_elsewhere = {
        "Dwell",
        "OverrideOutcome",
        "Override",
        "OverrideRecord",
        "broken_status",
        "decided_status",
        "OVERRIDDEN",
    }
    told_elsewhere |= {"DECISION_FAILED", "INVALID_SPEC", "UNREADABLE_PATIENCE"}
    assert [name for name in sdk.__all__ if name not in told_elsewhere and f"`{name}" not in text] == []
