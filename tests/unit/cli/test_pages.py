"""The pages on `fivespot timeline` and `fivespot why` show what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from fivespot.cli.main import cli
from unit.cli.why.test_text import GRACE

ROOT = Path(__file__).resolve().parents[3]
_CONSOLE = re.compile(r"^```console\n\$ fivespot (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def consoles(page: str) -> list[tuple[str, str]]:
    """Command lines and what the page says that they print."""
    return _CONSOLE.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def test_the_page_on_timelines_shows_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "timeline.md").read_text(encoding="utf-8")
    [schedule] = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "nights.yaml").write_text(schedule)
    monkeypatch.chdir(tmp_path)
    shown = consoles("timeline.md")
    assert len(shown) == 2
    for command, printed in shown:
        result = CliRunner().invoke(cli, shlex.split(command), catch_exceptions=False)
        assert result.output == printed, command


def test_the_page_on_reasons_shows_what_the_command_prints() -> None:
    [(command, printed)] = consoles("why.md")
    assert command == "why team-a/web-1"
    assert printed == GRACE
