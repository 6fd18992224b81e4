"""The conformance report: results as values, text, JSON and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree as ET  # written, never parsed

from .rules import ConformanceRule

__all__ = ["NOT_SELECTED", "ConformanceReport", "RuleOutcome", "RuleResult"]

NOT_SELECTED = "not selected"

_MARKS = {"passed": "ok  ", "failed": "FAIL", "warning": "warn", "skipped": "skip"}


class RuleOutcome(StrEnum):
    """The outcome of a rule."""

    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    """A recommendation is not met."""
    SKIPPED = "skipped"
    """The rule could not be judged, or was not selected."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of one rule.

    :param seen: the observation, or why the rule was not judged; may be "" if it passed.
    """

    rule: ConformanceRule
    outcome: RuleOutcome
    seen: str = ""

    @property
    def message(self) -> str:
        """The rule, the observation and the fix, on several lines."""
        text = f"rule {self.rule.id} ({self.rule.contract}): {self.rule.title}"
        if self.seen:
            text += f"\n  seen:  {self.seen}"
        if self.outcome in (RuleOutcome.FAILED, RuleOutcome.WARNING):
            text += f"\n  fix:   {self.rule.fix}"
        return text


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """The results of a run for one kind.

    :param seconds: duration of the run.
    :param note: the first thing to know about the results, such as that the provider stopped in the middle; may be "".
    """

    kind: str
    results: Sequence[RuleResult]
    seconds: float
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether no rule failed; warnings and skipped rules do not count."""
        return not self.of(RuleOutcome.FAILED)

    def of(self, outcome: RuleOutcome) -> list[RuleResult]:
        """Results with an outcome."""
        return [result for result in self.results if result.outcome is outcome]

    def __getitem__(self, rule: str) -> RuleResult:
        """The result of one rule.

        :raises KeyError: there is no such rule.
        """
        for result in self.results:
            if result.rule.id == rule:
                return result
        raise KeyError(rule)

    def to_json(self) -> dict[str, Any]:
        """The object that ``-o json`` prints; ``fix`` is present for failures and warnings."""
        return {
            "kind": self.kind,
            "passed": self.passed,
            "seconds": round(self.seconds, 1),
            **({"note": self.note} if self.note else {}),
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
        """One line for each selected rule, with the fix of failures and warnings, and a line of totals."""
        shown = [result for result in self.results if result.seen != NOT_SELECTED]
        width = max((len(result.rule.id) for result in shown), default=0)
        lines = [f"note  {self.note}"] if self.note else []
        for result in shown:
            rule = result.rule
            lines.append(f"{_MARKS[result.outcome]}  {rule.id:<{width}}  {rule.title} ({rule.contract})")
            if result.seen:
                lines.append(f"      {'':<{width}}  {_label(result.outcome)}{result.seen}")
            if result.outcome in (RuleOutcome.FAILED, RuleOutcome.WARNING):
                lines.append(f"      {'':<{width}}  fix:   {rule.fix}")
        counts = ", ".join(f"{len(self.of(outcome))} {outcome.value}" for outcome in RuleOutcome if self.of(outcome))
        verdict = "conforms" if self.passed else "does not conform"
        lines.append(f"{self.kind} {verdict}: {counts} ({self.seconds:.1f} s)")
        return "\n".join(lines)

    def to_junit(self) -> str:
        """JUnit XML for CI systems; a warning is a passed test with output."""
        suite = ET.Element(
            "testsuite",
            name=f"conformance of {self.kind}",
            tests=str(len(self.results)),
            failures=str(len(self.of(RuleOutcome.FAILED))),
            skipped=str(len(self.of(RuleOutcome.SKIPPED))),
            time=f"{self.seconds:.1f}",
        )
        if self.note:
            ET.SubElement(suite, "system-out").text = _printable(self.note)
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
    """Remove the characters that XML 1.0 cannot hold."""
    return "".join(character for character in text if character.isprintable() or character == "\n")
