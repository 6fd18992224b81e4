"""The documentation says what the code does: links, YAML, flags, metrics, messages and instants."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import yaml

from fivespot.api import InvalidObject, ScheduledMachine, validate, validate_machine
from fivespot.cli.crds.definitions import definitions
from fivespot.cli.main import cli
from fivespot.cli.options import CONTROLLERS
from fivespot.providers.registry import SHIPPED, shipped_provider, shipped_providers
from fivespot.providers.sdk import SpecError, Verdict

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SCHEDULES = {
    ROOT / "docs" / "timebasedspotschedule.md": "TimeBasedSpotSchedule",
    ROOT / "docs" / "capitalmarketsschedule.md": "CapitalMarketsSchedule",
}
"""Pages on a kind of schedule whose tables of instants and of mistakes are checked."""
OPERATIONS = ROOT / "docs" / "operations.md"
PROVIDERS = ROOT / "docs" / "write-a-provider.md"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_METRIC = re.compile(r"(?:fivespot|controller_runtime|workqueue|rest_client|leader_election)_[a-z_]+")
_NAMES = "manager|crds|rbac|timeline|why|override|completion|conformance|new-provider|demo|apiserver|version"
_COMMAND = re.compile(rf"(?:^|`|\s)fivespot ((?:{_NAMES})\b[^`\n|]*|-[^`\n|]*)", re.MULTILINE)


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


class Table(NamedTuple):
    """A table, and the text that comes before it."""

    line: int
    header: list[str]
    rows: list[list[str]]
    before: str


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    text = page.read_text()
    for found in _FENCE.finditer(text):
        if found[1] in languages:
            yield Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])


def tables(page: Path) -> Iterator[Table]:
    lines = page.read_text().splitlines()
    for number, line in enumerate(lines):
        if number == 0 or not re.fullmatch(r"(\|-+)+\|", line):
            continue
        rows = []
        for row in lines[number + 1 :]:
            if not row.startswith("|"):
                break
            rows.append(_cells(row))
        yield Table(number, _cells(lines[number - 1]), rows, "\n".join(lines[: number - 1]))


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text())


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ +(.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def documents() -> Iterator[tuple[Block, dict[str, Any]]]:
    for page in PAGES:
        for block in blocks(page, "yaml"):
            for document in yaml.safe_load_all(block.text):
                yield block, document


def _flags(command: click.Command) -> set[str]:
    """Flags as the help shows them, those of subcommands included."""
    commands = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
    shown = [each for one in commands for each in one.params if not getattr(each, "hidden", False)]
    return {flag for each in shown for flag in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}


def _commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def _instant(cell: str) -> datetime | None:
    return None if cell == "never" else datetime.fromisoformat(cell)


# Links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_repository_resolve(page: Path) -> None:
    broken = []
    for target in _LINK.findall(_prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        known = file.exists() and (not anchor or (file.suffix == ".md" and anchor in _anchors(file)))
        if not known or ROOT not in (file, *file.parents):
            broken.append(target)
    assert not broken


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in _LINK.findall(index.read_text())}
    assert set((ROOT / "docs").rglob("*.md")) - {index} <= linked


# YAML ------------------------------------------------------------------------------------------------------------


def test_the_pages_hold_machines_and_schedules() -> None:
    kinds = [document["kind"] for _, document in documents()]
    assert kinds.count("ScheduledMachine") >= 3
    assert kinds.count("TimeBasedSpotSchedule") >= 7
    assert kinds.count("CapitalMarketsSchedule") >= 5


@pytest.mark.parametrize(("block", "document"), [pytest.param(*found, id=str(found[0])) for found in documents()])
def test_yaml_of_our_kinds_validates_and_has_no_unknown_field(block: Block, document: dict[str, Any]) -> None:
    if document["kind"] == "ScheduledMachine":
        validate_machine(document)
        validate(ScheduledMachine, document)
    elif document["kind"] in SHIPPED:
        prepared(document["kind"], document["spec"])
    else:
        return
    known = {crd["spec"]["names"]["kind"]: crd["spec"] for crd in definitions()}[document["kind"]]
    assert document["apiVersion"] == f"{known['group']}/{known['versions'][0]['name']}"
    assert not _unknown(document["spec"], known["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])


def prepared(kind: str, spec: Any) -> Callable[[datetime], Verdict]:
    """The verdicts of a spec, as its provider gives them. Raises what the provider or its model raises."""
    provider = shipped_provider(kind)
    rule = provider.prepare(validate(provider.model, spec))
    return lambda at: provider.decide(rule, at)  # type: ignore[return-value]


def transitions(
    verdict: Callable[[datetime], Verdict], start: datetime, end: datetime
) -> Iterator[tuple[datetime, bool]]:
    at = verdict(start).until
    while at is not None and at < end:
        yield at, verdict(at).active
        at = verdict(at).until


def _unknown(value: Any, schema: dict[str, Any], at: str = "spec") -> list[str]:
    """Fields that the API server would refuse under strict field validation."""
    if isinstance(value, list):
        return [path for item in value for path in _unknown(item, schema.get("items", {}), f"{at}[]")]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    properties = schema.get("properties", {})
    found = []
    for name, item in value.items():
        inner = properties.get(name) or schema.get("additionalProperties")
        found += [f"{at}.{name}"] if inner is None else _unknown(item, inner, f"{at}.{name}")
    return found


def test_a_field_that_does_not_exist_is_noticed() -> None:
    schema = next(crd for crd in definitions() if crd["spec"]["names"]["kind"] == "ScheduledMachine")
    spec = schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert _unknown({"schedule": {"namespace": "x"}, "bootstrapSpec": {"spec": {"any": 1}}}, spec) == [
        "spec.schedule.namespace"
    ]


# Instants --------------------------------------------------------------------------------------------------------


def _evaluated_tables() -> Iterator[Any]:
    for page, kind in SCHEDULES.items():
        for table in tables(page):
            if table.header[:2] == ["Opens (UTC)", "Closes (UTC)"]:
                last = [found[2] for found in _FENCE.finditer(table.before + "\n") if found[1] == "yaml"][-1]
                document = yaml.safe_load(last)
                assert document["kind"] == kind
                yield pytest.param(table, document, id=f"{page.stem}-{table.line}")


@pytest.mark.parametrize(("table", "document"), list(_evaluated_tables()))
def test_a_table_of_instants_lists_every_change_of_the_schedule_above_it(
    table: Table, document: dict[str, Any]
) -> None:
    verdict = prepared(document["kind"], document["spec"])
    stated: list[tuple[datetime | None, bool]] = []
    for row in table.rows:
        stated += [(_instant(row[0]), True), (_instant(row[1]), False)]
    known = [(at, active) for at, active in stated if at is not None]
    begin, end = known[0][0] - timedelta(seconds=1), known[-1][0] + timedelta(seconds=1)
    assert list(transitions(verdict, begin, end)) == known
    if len(known) < len(stated):
        assert verdict(end).until is None


def _rules() -> Iterator[tuple[str, str, str, str, str]]:
    for page, kind in SCHEDULES.items():
        for table in tables(page):
            named = re.fullmatch(r"Rule in (\S+)", table.header[0])
            if named:
                assert table.header[1:3] == ["Opens (UTC)", "Closes (UTC)"]
                for row in table.rows:
                    yield kind, named[1], row[0].strip("`"), row[1], row[2]


@pytest.mark.parametrize(("kind", "zone", "rule", "opens", "closes"), list(_rules()))
def test_a_rule_in_a_table_opens_and_closes_as_stated(kind: str, zone: str, rule: str, opens: str, closes: str) -> None:
    written = yaml.safe_load(rule)
    if kind == "CapitalMarketsSchedule":
        spec = {"sessions": [written]}
    else:
        spec = written if "daysOfWeek" in written else {"windows": [written]}
    verdict = prepared(kind, {"timezone": zone, **spec})
    skipped = re.fullmatch(r"skipped on (\S+)", opens)
    if skipped:
        day = datetime.fromisoformat(skipped[1]).replace(tzinfo=UTC)
        assert not verdict(day).active
        assert not list(transitions(verdict, day, day + timedelta(days=1)))
        return
    begin, end = _instant(opens), _instant(closes)
    assert begin is not None
    assert end is not None
    second = timedelta(seconds=1)
    assert list(transitions(verdict, begin - second, end + second)) == [(begin, True), (end, False)]


def test_both_kinds_of_tables_are_found() -> None:
    assert len(list(_evaluated_tables())) >= 13
    assert len(list(_rules())) >= 16
    assert {kind for kind, *_ in _mistakes()} == set(SCHEDULES.values())


# Messages --------------------------------------------------------------------------------------------------------


def _mistakes() -> Iterator[tuple[str, str, str, str]]:
    for page, kind in SCHEDULES.items():
        for table in tables(page):
            if table.header == ["You write", "When", "Message"]:
                for written, when, message in table.rows:
                    yield kind, written.strip("`"), when, message.strip("`")


@pytest.mark.parametrize(("kind", "written", "when", "message"), list(_mistakes()))
def test_a_common_mistake_gets_the_message_that_is_stated(kind: str, written: str, when: str, message: str) -> None:
    # Texts as texts: the API server gets no dates or numbers for them either.
    spec = yaml.load(written, yaml.BaseLoader)
    expected = {"apply": InvalidObject, "Ready": SpecError}[when]
    with pytest.raises(expected, match=re.escape(message)):
        prepared(kind, spec)


@pytest.mark.parametrize(("page", "kind"), list(SCHEDULES.items()), ids=SCHEDULES.values())
def test_what_is_accepted_and_surprising_is_accepted(page: Path, kind: str) -> None:
    found = [table for table in tables(page) if table.header == ["You write", "What it means"]]
    specs = [yaml.safe_load(row[0].strip("`")) for row in found[0].rows]
    assert len(specs) >= 4
    monday = datetime(2027, 1, 4, 12, tzinfo=UTC)
    verdicts = [prepared(kind, spec)(monday) for spec in specs]
    never = ["Never active" in row[1] for row in found[0].rows]
    assert [verdict.until is None and not verdict.active for verdict in verdicts] == never


# Commands --------------------------------------------------------------------------------------------------------


def _mentions() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for found in _COMMAND.finditer(page.read_text()):
            yield str(page.relative_to(ROOT)), found[1].strip()


def test_every_flag_of_a_fivespot_command_exists_in_its_help() -> None:
    commands, seen, wrong = _commands(), 0, []
    for page, text in _mentions():
        name = text.split()[0]
        known = _flags(commands[name]) if name in commands else {flag for p in cli.params for flag in p.opts}
        for flag in re.findall(r"(?<!\S)--?[a-z][a-z-]*", text):
            seen += 1
            if flag not in known:
                wrong.append(f"{page}: fivespot {text}")
    assert not wrong
    assert seen


def test_every_flag_in_code_type_is_a_flag_of_something() -> None:
    ours = {flag for command in _commands().values() for flag in _flags(command)}
    others = {"--cascade", "--headless", "--for", "--upgrade", "--machines", "--version", "--order-seed"}
    others |= {"--against", "--rounds"}
    wrong = [
        f"{page.relative_to(ROOT)}: {flag}"
        for page in PAGES
        for span in re.findall(r"`([^`\n]+)`", _prose(page))
        if span.startswith("-")
        for flag in re.findall(r"--[a-z-]+", span)
        if flag not in ours | others
    ]
    assert not wrong


def test_operations_names_every_flag_and_variable_of_the_manager() -> None:
    manager, text = _commands()["manager"], OPERATIONS.read_text()
    named = set(re.findall(r"`(-[a-z-]+|[A-Z][A-Z_]+)[` ]", text))
    variables = {
        name
        for parameter in manager.params
        if isinstance(parameter, click.Option) and parameter.envvar
        for name in ([parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar)
    }
    assert _flags(manager) - {"--help", "-h"} <= named
    assert variables <= named
    assert all(f"`{kind}`" in text for kind in CONTROLLERS)


def test_commands_that_are_not_built_are_said_not_to_be() -> None:
    text = (ROOT / "README.md").read_text().partition("## Not built yet")[2]
    assert text
    missing = set(re.findall(r"`fivespot\s+([a-z]+)`", text))
    assert not missing & set(_commands())


# Metrics ---------------------------------------------------------------------------------------------------------


def _metrics_in_code() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "fivespot").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
                first = node.args[0]
                if node.func.attr not in {"counter", "gauge", "histogram", "reading", "info"}:
                    continue
                if isinstance(first, ast.Constant) and _METRIC.fullmatch(str(first.value)):
                    found.add(str(first.value))
    # Of each provider; the prefix is in its definition.
    prefixes = [provider.metrics for provider in shipped_providers()]
    return found | {f"{prefix}_{what}" for prefix in prefixes for what in ("active", "transitions_total")}


def test_the_table_of_metrics_is_complete_and_true() -> None:
    table = next(table for table in tables(OPERATIONS) if table.header[:2] == ["Name", "Type"])
    stated = {row[0].strip("`") for row in table.rows}
    assert len(stated) == len(table.rows)
    assert stated == _metrics_in_code()


def test_every_metric_that_a_page_names_exists() -> None:
    # The fixture of the pytest plugin has a name of the same shape.
    known = _metrics_in_code() | {"fivespot_cluster"}
    wrong = {
        name
        for page in PAGES
        if page.name != "contract.md"
        for span in re.findall(r"`([^`\n]+)`", _prose(page))
        for name in re.findall(rf"\b{_METRIC.pattern}\b", span)
        if name not in known
    }
    assert not wrong


# Reasons ---------------------------------------------------------------------------------------------------------


def test_every_reason_of_a_machine_that_the_page_names_is_in_the_code() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "fivespot").rglob("*.py"))
    page = ROOT / "docs" / "scheduledmachine.md"
    reasons = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z]+[a-z]+)+)`", _prose(page)))
    foreign = {"ScheduledMachine", "CapitalMarketsSchedule", "ManualSchedule", "MachineTaintPropagation"}
    assert len(reasons) > 20
    assert {name for name in reasons - foreign if f'"{name}"' not in code} == set()


# Python ----------------------------------------------------------------------------------------------------------


def test_the_names_of_the_kit_are_those_of_its_facade() -> None:
    kit = __import__("fivespot.providers.sdk", fromlist=["__all__"])
    table = next(table for table in tables(PROVIDERS) if table.header == ["Name", "What it is"])
    for row in table.rows:
        name = re.match(r"`(\w+)", row[0])
        assert name is not None
        assert name[1] in kit.__all__
