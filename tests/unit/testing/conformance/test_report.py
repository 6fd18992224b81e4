"""Rules, reports and sample files of the conformance kit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fivespot.cli.options import CONTROLLERS
from fivespot.runtime import ConfigError
from fivespot.testing.conformance import (
    RULES,
    SHIPPED,
    ConformanceReport,
    RuleOutcome,
    RuleResult,
    Subject,
    read_samples,
    read_spec,
    soon,
)

ROOT = Path(__file__).resolve().parents[4]
BY_ID = {rule.id: rule for rule in RULES}


def report(*, failed: bool = True) -> ConformanceReport:
    outcomes = {"steady": RuleOutcome.FAILED if failed else RuleOutcome.PASSED, "texts": RuleOutcome.WARNING}
    seen = {"steady": "12 writes \x1b[31m", "texts": "5 KiB", "restart": "no way was given"}
    results = [
        RuleResult(
            rule,
            outcomes.get(rule.id, RuleOutcome.SKIPPED if rule.id == "restart" else RuleOutcome.PASSED),
            seen.get(rule.id, ""),
        )
        for rule in RULES
    ]
    return ConformanceReport("OfficeHours", results, 12.34)


def test_rules_have_unique_ids_and_a_fix() -> None:
    assert len(BY_ID) == len(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.id)
        assert rule.fix.endswith(".")
        assert not rule.title.endswith(".")


def test_rules_name_rows_of_the_contract() -> None:
    rows = (ROOT / "docs" / "contract.md").read_text()
    for rule in RULES:
        for row in rule.contract.split(", "):
            assert row == "API conventions" or re.search(rf"\b{re.escape(row)}\b", rows), rule.id


def test_the_page_lists_the_rules() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `") and line.count("|") == 5]
    marks = {rule.id: "" if rule.required else " *should*" for rule in RULES}
    assert rows == [f"| `{rule.id}`{marks[rule.id]} | {rule.contract} | {rule.title} | {rule.fix} |" for rule in RULES]


def test_a_message_names_the_rule_the_observation_and_the_fix() -> None:
    message = report()["steady"].message
    assert message.startswith("rule steady (C9): Nothing is written while nothing changes")
    assert "12 writes" in message
    assert BY_ID["steady"].fix in message


def test_warnings_and_skipped_rules_do_not_count() -> None:
    assert report(failed=False).passed
    assert not report().passed
    with pytest.raises(KeyError):
        report()["nothing"]


def test_as_json() -> None:
    found = json.loads(json.dumps(report().to_json()))
    assert (found["kind"], found["passed"], found["seconds"]) == ("OfficeHours", False, 12.3)
    steady = next(result for result in found["results"] if result["rule"] == "steady")
    assert steady["outcome"] == "failed"
    assert steady["fix"] == BY_ID["steady"].fix
    assert "fix" not in found["results"][0]


def test_as_text() -> None:
    lines = report().to_text().splitlines()
    assert next(line for line in lines if "steady" in line).startswith("FAIL  steady")
    assert lines[-1] == (
        f"OfficeHours does not conform: {len(RULES) - 3} passed, 1 failed, 1 warning, 1 skipped (12.3 s)"
    )
    assert report(failed=False).to_text().splitlines()[-1].startswith("OfficeHours conforms: ")


def test_as_junit() -> None:
    suite = ET.fromstring(report().to_junit())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == (str(len(RULES)), "1", "1")
    failed = [case for case in suite if case.find("failure") is not None]
    assert [case.get("name") for case in failed] == ["steady"]


def test_every_shipped_provider_has_samples() -> None:
    assert {name for name in CONTROLLERS if name != "scheduledmachine"} <= {kind.lower() for kind in SHIPPED}


def test_a_subject_needs_a_way_to_become_inactive() -> None:
    with pytest.raises(ConfigError, match="a spec that is inactive is required"):
        Subject(kind="OfficeHours", active={})


MANIFESTS = """
kind: OfficeHours
apiVersion: spotschedules.5spot.finos.org/v1
metadata: {name: active}
spec: {}
---
kind: OfficeHours
metadata: {name: inactive}
spec: {closed: true}
---
# nothing
---
apiVersion: v1
kind: ConfigMap
metadata: {name: holidays}
"""


def test_a_file_holds_a_document_for_each_state_and_prerequisites() -> None:
    samples = read_samples(MANIFESTS, source="all.yaml", kind="OfficeHours")
    assert (samples.active, samples.inactive, samples.invalid) == ({}, {"closed": True}, None)
    assert [body["kind"] for body in samples.prerequisites] == ["ConfigMap"]


def test_a_spec_is_read_from_a_manifest_or_bare() -> None:
    assert read_spec("kind: OfficeHours\nspec: {a: 1}", source="f", kind="OfficeHours") == {"a": 1}
    assert read_spec("a: 1", source="f", kind="OfficeHours") == {"a": 1}
    assert read_spec("{}", source="f", kind="OfficeHours") == {}


def test_yaml_is_read_as_kubernetes_reads_it() -> None:
    text = "{day: 2027-01-31, at: 2027-01-31T06:00:00Z, clock: 18:30, count: 1, share: 1.5, open: true}"
    assert read_spec(text, source="f", kind="OfficeHours") == {
        "day": "2027-01-31",
        "at": "2027-01-31T06:00:00Z",
        "clock": "18:30",
        "count": 1,
        "share": 1.5,
        "open": True,
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\n---\nb: 1", "f: one document is required, found 2"),
        ("", "found 0"),
        ("- a", "f: a document is not a mapping"),
        ("a: [", "f: is no YAML: "),
        ("kind: Pod\nspec: {}", "the object has kind Pod, not OfficeHours"),
        ("kind: OfficeHours", "OfficeHours has no spec"),
    ],
)
def test_an_unusable_spec_file_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        read_spec(text, source="f", kind="OfficeHours")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MANIFESTS.replace("inactive", "active"), "there is more than one OfficeHours active"),
        ("kind: OfficeHours\nmetadata: {name: mine}\nspec: {}", "there is no OfficeHours named active, inactive, in"),
    ],
)
def test_an_unusable_sample_file_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        read_samples(text, source="f", kind="OfficeHours")


@pytest.mark.contract("C8")
def test_a_spec_that_ends_soon_has_the_instant_written_wherever_it_stands() -> None:
    spec = {"validUntil": "$(SOON)", "windows": [{"until": "$(SOON)", "days": ["mon"]}], "count": 3}
    now = datetime(2027, 1, 4, 12, 0, 0, 500_000, tzinfo=UTC)
    made, ends = soon(spec)(now)
    text = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert made == {"validUntil": text, "windows": [{"until": text, "days": ["mon"]}], "count": 3}
    assert timedelta(seconds=5) < ends - now < timedelta(seconds=30)
    with pytest.raises(ConfigError, match=r"must hold \$\(SOON\)"):
        soon({"validUntil": "2100-01-01T00:00:00Z"})


def test_a_file_of_samples_may_have_one_that_ends_soon() -> None:
    text = f"{MANIFESTS}\n---\nkind: OfficeHours\nmetadata: {{name: soon}}\nspec: {{until: $(SOON)}}\n"
    subject = read_samples(text, source="f", kind="OfficeHours").subject("OfficeHours")
    assert subject.boundary is not None
    assert set(subject.boundary(datetime(2027, 1, 4, tzinfo=UTC))[0]) == {"until"}


def test_a_note_comes_before_everything_else() -> None:
    noted = replace(report(), note="the provider has stopped")
    assert noted.to_text().splitlines()[0] == "note  the provider has stopped"
    assert noted.to_json()["note"] == "the provider has stopped"
    assert "note" not in report().to_json()
    assert ET.fromstring(noted.to_junit().partition("\n")[2]).findtext("system-out") == "the provider has stopped"
