"""What came out: results as values, as text, as JSON and as JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree as ET  # written, never parsed

from .rules import ConformanceRule

__all__ = ["LEFT_OUT", "ConformanceReport", "RuleOutcome", "RuleResult"]

LEFT_OUT = "left out on request"

_MARKS = {"passed": "ok  ", "failed": "FAIL", "warning": "warn", "skipped": "skip"}


class RuleOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    """A rule that is no duty is not kept."""
    SKIPPED = "skipped"
    """It could not be judged, or was not to be."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule's outcome.

    :param seen: what was seen, or why the rule was not judged; may be "" when it is kept.
    """

    rule: ConformanceRule
    outcome: RuleOutcome
    seen: str = ""

    @property
    def message(self) -> str:
        """Names the rule, what was seen and what to do."""
        text = f"rule {self.rule.id} ({self.rule.contract}): {self.rule.title}"
        if self.seen:
            text += f"\n  seen:  {self.seen}"
        if self.outcome in (RuleOutcome.FAILED, RuleOutcome.WARNING):
            text += f"\n  to do: {self.rule.fix}"
        return text


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """The outcome of one run over one kind.

    :param seconds: how long it took.
    """

    kind: str
    results: Sequence[RuleResult]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether no rule failed; warnings and rules that could not be judged do not count."""
        return not self.of(RuleOutcome.FAILED)

    def of(self, outcome: RuleOutcome) -> list[RuleResult]:
        return [result for result in self.results if result.outcome is outcome]

    def __getitem__(self, rule: str) -> RuleResult:
        """The result of one rule. Raises KeyError for an unknown one."""
        for result in self.results:
            if result.rule.id == rule:
                return result
        raise KeyError(rule)

    def to_json(self) -> dict[str, Any]:
        """As ``-o json`` prints it; ``fix`` is there where something is to be done."""
        return {
            "kind": self.kind,
            "passed": self.passed,
            "seconds": round(self.seconds, 1),
            "results": [
                {
                    "rule": result.rule.id,
                    "contract": result.rule.contract,
                    "title": result.rule.title,
                    "outcome": result.outcome.value,
                    **({"seen": result.seen} if result.seen else {}),
                    **({"fix": result.rule.fix} if result.outcome in (RuleOutcome.FAILED, RuleOutcome.WARNING) else {}),
                }
                for result in self.results
            ],
        }

    def to_text(self) -> str:
        """One line for each rule that was not left out, and what is to be done; ends with a line of totals."""
        shown = [result for result in self.results if result.seen != LEFT_OUT]
        width = max((len(result.rule.id) for result in shown), default=0)
        lines = []
        for result in shown:
            rule = result.rule
            lines.append(f"{_MARKS[result.outcome]}  {rule.id:<{width}}  {rule.title} ({rule.contract})")
            if result.seen:
                lines.append(f"      {'':<{width}}  {_label(result.outcome)}{result.seen}")
            if result.outcome in (RuleOutcome.FAILED, RuleOutcome.WARNING):
                lines.append(f"      {'':<{width}}  to do: {rule.fix}")
        counts = ", ".join(f"{len(self.of(outcome))} {outcome.value}" for outcome in RuleOutcome if self.of(outcome))
        verdict = "conforms" if self.passed else "does not conform"
        lines.append(f"{self.kind} {verdict}: {counts} ({self.seconds:.1f} s)")
        return "\n".join(lines)

    def to_junit(self) -> str:
        """As CI systems read it; a warning is a test that passed with something on its output."""
        suite = ET.Element(
            "testsuite",
            name=f"conformance of {self.kind}",
            tests=str(len(self.results)),
            failures=str(len(self.of(RuleOutcome.FAILED))),
            skipped=str(len(self.of(RuleOutcome.SKIPPED))),
            time=f"{self.seconds:.1f}",
        )
        for result in self.results:
            case = ET.SubElement(suite, "testcase", classname=f"conformance.{self.kind}", name=result.rule.id)
            if result.outcome is RuleOutcome.FAILED:
                ET.SubElement(case, "failure", message=_printable(result.seen)).text = _printable(result.message)
            elif result.outcome is RuleOutcome.SKIPPED:
                ET.SubElement(case, "skipped", message=_printable(result.seen))
            elif result.seen:
                ET.SubElement(case, "system-out").text = _printable(result.message)
        return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _label(outcome: RuleOutcome) -> str:
    return "seen:  " if outcome in (RuleOutcome.FAILED, RuleOutcome.WARNING) else ""


def _printable(text: str) -> str:
    """Without what XML 1.0 cannot hold."""
    return "".join(character for character in text if character.isprintable() or character == "\n")
