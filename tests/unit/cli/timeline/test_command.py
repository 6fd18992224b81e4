"""The command line as people use it: files in, text, JSON, pictures and calendars out, one line for a mistake."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from fivespot.cli.console import colours, shows
from fivespot.cli.timeline.text import UNICODE
from fivespot.runtime import ConfigError
from unit.cli.timeline.samples import NIGHT, Json, manual, run, schedule, shown, timebased, write

ROOT = Path(__file__).resolve().parents[4]
GOLDEN: list[dict[str, Any]] = json.loads((ROOT / "tests/unit/schedule/golden.json").read_text("utf-8"))


def mistake(result: Result) -> str:
    """The words of a run that must end with exit code 2, which is that of every ConfigError."""
    assert isinstance(result.exception, ConfigError), result.exception
    assert result.output == "", "nothing is shown before all is known to be right"
    return str(result.exception)


@pytest.fixture
def hours(tmp_path: Path) -> str:
    return str(write(tmp_path / "hours.yaml", timebased()))


@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["id"] for golden in GOLDEN])
def test_json_is_exactly_the_initial_state_and_the_transitions(tmp_path: Path, golden: dict[str, Any]) -> None:
    path = write(tmp_path / "object.json", golden["object"])
    text = shown("-f", str(path), "--from", golden["from"], "--to", golden["to"], "-o", "json")
    found = json.loads(text)
    assert {name: found[name] for name in ("initialActive", "transitions")} == {
        name: golden[name] for name in ("initialActive", "transitions")
    }


def test_a_fraction_of_a_second_is_kept(tmp_path: Path) -> None:
    entry = {"name": "o", "active": True, "from": "2027-01-04T00:00:00.25Z", "until": "2027-01-04T00:00:00.750000Z"}
    path = write(tmp_path / "m.json", manual("m", {"enabled": False, "overrides": [entry]}))
    found = json.loads(shown("-f", str(path), "--from", "2027-01-04", "--to", "+1h", "-o", "json"))
    assert found["transitions"] == [
        {"at": "2027-01-04T00:00:00.250000Z", "active": True},
        {"at": "2027-01-04T00:00:00.750000Z", "active": False},
    ]


def test_the_zone_of_the_process_changes_nothing(hours: str) -> None:
    arguments = ["-f", hours, "--from", "2027-03-27", "--to", "+3d"]
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"TZ": "America/St_Johns", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "fivespot.cli", "timeline", *arguments]
    text = subprocess.run(command, env=environment, capture_output=True, check=True).stdout.decode()
    assert text == shown(*arguments)
    assert "\x1b" not in text, "no colours where there is no terminal"


def test_a_terminal_shows_what_its_encoding_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, able in (("utf-8", True), ("ascii", False), ("latin-1", False), ("no-such-code", False)):
        assert shows(Stream(encoding), UNICODE.all) is able, encoding
    monkeypatch.setenv("NO_COLOR", "1")
    assert colours() is False
    monkeypatch.delenv("NO_COLOR")
    assert colours() is None, "click looks for a terminal then"


class Stream(io.StringIO):
    """A stream of a given encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def test_the_default_is_two_weeks_from_now_in_the_zone_of_the_schedule(hours: str) -> None:
    text = shown("-f", hours)
    assert "Europe/Berlin\n" in text
    begins, _, rest = text.splitlines()[1].partition(" to ")
    first = datetime.strptime(begins[4:], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    assert (datetime.strptime(rest.split(",")[0][4:], "%Y-%m-%d %H:%M").replace(tzinfo=UTC) - first).days == 14


def test_another_zone_is_for_reading_and_showing(hours: str) -> None:
    text = shown("-f", hours, "--from", "2027-01-04", "--to", "+1d", "--zone", "Asia/Kolkata")
    assert text.splitlines()[1] == "Mon 2027-01-04 00:00 to Tue 2027-01-05 00:00, Asia/Kolkata"
    assert "12:30-23:00" in text


def test_several_schedules_are_shown_one_after_the_other(tmp_path: Path) -> None:
    path = str(write(tmp_path / "all.yaml", timebased(), manual("m", {"enabled": True})))
    text = shown("-f", path, "--from", "2027-01-04", "--to", "+1d")
    assert text.index("TimeBasedSpotSchedule hours") < text.index("\n\nManualSchedule m\n")


@pytest.mark.parametrize("output", [("-o", "json"), ("--png", "x.png"), ("--ics", "x.ics")])
def test_several_schedules_and_an_output_for_one_ask_for_a_name(tmp_path: Path, output: tuple[str, str]) -> None:
    path = str(write(tmp_path / "all.yaml", timebased(), manual("m", {"enabled": True})))
    words = mistake(run("-f", path, *output))
    assert "holds 2 schedules" in words
    assert words.endswith("--name: TimeBasedSpotSchedule/hours, ManualSchedule/m")
    chosen = run("-f", path, "-o", "json", "--name", "m", "--from", "2027-01-04", "--to", "+1d")
    named = {"kind": "ManualSchedule", "namespace": "", "name": "m"}
    assert json.loads(chosen.output) == {**named, "initialActive": True, "transitions": []}


def test_a_picture_or_calendar_goes_to_standard_output_alone(hours: str) -> None:
    period = ("--from", "2027-01-04", "--to", "+1d")
    assert run("-f", hours, "--png", "-", *period).stdout_bytes[:4] == b"\x89PNG"
    calendar = run("-f", hours, "--ics", "-", *period).stdout_bytes
    assert calendar.startswith(b"BEGIN:VCALENDAR")
    assert calendar.endswith(b"END:VCALENDAR\r\n")
    assert "both write to standard output" in mistake(run("-f", hours, "--ics", "-", "--png", "-", *period))


def test_a_schedule_comes_from_standard_input_and_its_base_from_another_file(tmp_path: Path, hours: str) -> None:
    follower = json.dumps(manual("m", {"base": {"kind": "TimeBasedSpotSchedule", "name": "hours"}}))
    period = ("--from", "2027-01-04", "--to", "+1d", "-o", "json")
    followed = json.loads(shown("-f", "-", "-f", hours, "--name", "m", *period, given=follower))
    base = json.loads(shown("-f", hours, *period))
    assert followed == {**base, "kind": "ManualSchedule", "name": "m"}
    assert len(followed["transitions"]) == 2


def test_picture_and_calendar_are_written_beside_the_text(tmp_path: Path, hours: str) -> None:
    png, ics = tmp_path / "week.png", tmp_path / "week.ics"
    text = shown("-f", hours, "--from", "2027-01-04", "--to", "+7d", "--png", str(png), "--ics", str(ics))
    assert "Active 52 h 30 min of 168 h (31 %), 5 times." in text
    assert png.read_bytes().startswith(b"\x89PNG")
    assert ics.read_bytes().count(b"BEGIN:VEVENT") == 5


@pytest.mark.parametrize("option", ["--png", "--ics"])
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, hours: str, option: str) -> None:
    path = tmp_path / "no" / "folder"
    assert f"{option} {path}: No such file or directory" in mistake(run("-f", hours, option, str(path)))


PROVIDER = """
from fivespot.providers.sdk import ApiModel, Provider, Verdict
from datetime import timedelta

class EvenSpec(ApiModel):
    '''Hours of the day.'''
    even: bool = True

def decide(spec, at):
    hour = at.replace(minute=0, second=0, microsecond=0)
    return Verdict((at.hour % 2 == 0) == spec.even, hour + timedelta(hours=1))

EVEN = Provider("EvenSchedule", spec=EvenSpec, decide=decide)
"""


def test_a_provider_of_ones_own_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "even_hours_for_timeline.py").write_text(PROVIDER)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = str(write(tmp_path / "even.yaml", schedule("EvenSchedule", "e", {"even": False})))
    period = ("--from", "2027-01-04T00:00:00Z", "--to", "+2h", "-o", "json")
    assert "unknown kind of schedule" in mistake(run("-f", path, *period))
    text = shown("-f", path, "--provider", "even_hours_for_timeline:EVEN", *period)
    assert json.loads(text) == {
        "kind": "EvenSchedule",
        "namespace": "",
        "name": "e",
        "initialActive": False,
        "transitions": [{"at": "2027-01-04T01:00:00Z", "active": True}],
    }
    assert "MODULE:OBJECT" in run("--help").output


@pytest.mark.parametrize(
    ("bodies", "arguments", "words"),
    [
        ([timebased(spec={"timezone": "Europe/Berlni"})], (), 'did you mean "Europe/Berlin"?'),
        ([schedule("TimebasedSpotSchedule", "x", {})], (), "did you mean TimeBasedSpotSchedule? known: Capital"),
        ([timebased()], ("--name", "x"), "--name x:"),
        ([timebased()], ("--zone", "Berlin"), '--zone: "Berlin" is not a time zone'),
        ([timebased()], ("--from", "noon"), "--from: 'noon' is not an instant"),
        ([{"kind": "Pod", "apiVersion": "v1"}], (), "contains no schedule"),
        ([], (), "contains no schedule"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(
    tmp_path: Path, bodies: list[Json], arguments: tuple[str, ...], words: str
) -> None:
    path = str(write(tmp_path / "file.yaml", *bodies))
    assert words in mistake(run("-f", path, *arguments))


def test_a_mistake_in_the_second_schedule_is_told_before_the_first_is_shown(tmp_path: Path) -> None:
    path = str(write(tmp_path / "file.yaml", timebased(), timebased("bad", {"timezone": "Nowhere/At_All"})))
    assert "TimeBasedSpotSchedule/bad: spec.timezone" in mistake(run("-f", path))
    assert run("-f", path, "--name", "hours").exit_code == 0, "what is not asked for need not be right"


def test_a_file_is_required() -> None:
    assert run().exit_code == 2


def test_a_year_of_nights_takes_well_under_a_second_of_work(tmp_path: Path) -> None:
    path = str(write(tmp_path / "night.yaml", timebased(spec=NIGHT)))
    found = json.loads(shown("-f", path, "--from", "2027-01-01", "--to", "2028-01-01", "-o", "json"))
    # It begins within a night, so there is one end more than there are beginnings, and then one beginning.
    assert len(found["transitions"]) == 2 * 365


def test_neither_the_help_nor_json_imports_what_draws_and_exports(hours: str) -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom fivespot.cli.main import cli\n"
        "heavy = {'matplotlib', 'icalendar', 'numpy'}\n"
        "def run(*words):\n"
        "    result = CliRunner().invoke(cli, list(words))\n"
        "    assert result.exit_code == 0, result.output\n"
        "    return set(sys.modules)\n"
        "assert not run('--help') & (heavy | {'pydantic', 'structlog', 'yaml', 'rich'})\n"
        "assert not run('timeline', '--help') & (heavy | {'pydantic', 'structlog', 'yaml'})\n"
        "assert not run('why', '--help') & (heavy | {'pydantic', 'structlog', 'aiohttp'})\n"
        "assert not run('manager', '--help') & heavy\n"
        f"assert not run('timeline', '-f', {hours!r}, '-o', 'json') & heavy\n"
        "import fivespot.cli.process\n"
        "assert not set(sys.modules) & heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
