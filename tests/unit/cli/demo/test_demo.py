"""``fivespot demo`` as a program."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml

COMMAND = (sys.executable, "-m", "fivespot.cli", "demo")
WITHOUT = "import sys; sys.modules[{!r}] = None; from fivespot.cli import main; main()"
SECONDS = 60.0
"""A machine that others keep busy takes its time; what takes longer hangs."""


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "TERM": "xterm", "COLUMNS": "120"}


@contextmanager
def demo(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The program, which is ended if it does not end by itself in time."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
        cwd=folder,
    )
    alarm = threading.Timer(SECONDS, process.kill)
    alarm.start()
    try:
        with process:
            yield process
    finally:
        alarm.cancel()
        process.kill()


def read_until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found
    assert process.stderr is not None
    raise AssertionError(f"ended before {pattern!r}: {process.stderr.read()}")


def refused(folder: Path, *command: str) -> str:
    """Return the output on standard error of a demo that does not start."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS, env=environment(folder), cwd=folder
    )
    assert done.returncode == 2, done
    assert done.stdout == ""
    return done.stderr


def test_machines_come_and_go_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path, "--headless", "--speed", "1200") as running:
        config = Path(read_until(running, r"export KUBECONFIG=(\S+)")[1])
        assert config.stat().st_mode & 0o077 == 0
        url = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
        for seen in ("> kubectl patch manualschedule", "Machine/ci-1 +Running", "Node/.* ready"):
            read_until(running, seen)
        # Over HTTP, on the fast clock: what kubectl would see.
        with urlopen(f"{url}/apis/5spot.finos.org/v1beta1/scheduledmachines", timeout=SECONDS) as answer:
            items = json.load(answer)["items"]
        assert [item["metadata"]["name"] for item in items] == [
            "ci-1",
            "pricing-1",
            "pricing-2",
            "web-1",
            "web-2",
            "web-3",
        ]
        read_until(running, "Machine/ci-1 +gone")
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=SECONDS)
    assert running.returncode == 0
    assert errors == "stopped; nothing is left behind\n"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(URLError):
        urlopen(f"{url}/version", timeout=SECONDS)


def test_it_ends_by_itself_after_its_time_and_may_be_cut_off_by_its_reader(tmp_path: Path) -> None:
    config = tmp_path / "mine"
    with demo(tmp_path, "--headless", "--for", "1s", "--kubeconfig", "mine", "--log", "log") as running:
        assert read_until(running, r"export KUBECONFIG=(\S+)")[1] == str(config)
        assert running.stdout is not None
        running.stdout.close()
        running.wait(SECONDS)
        assert running.stderr is not None
        assert running.stderr.read() == "stopped; nothing is left behind\n"
    assert running.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    assert "controller started" in (tmp_path / "log").read_text()


def test_on_a_terminal_it_draws_and_gives_the_screen_back(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "--for", "1s", "--speed", "600"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(tmp_path),
    ) as running:
        os.close(theirs)
        alarm = threading.Timer(SECONDS, running.kill)
        alarm.start()
        shown = b""
        try:
            while block := os.read(ours, 65536):
                shown += block
        except OSError:
            pass  # This is how Linux says that the other end is closed.
        finally:
            alarm.cancel()
            os.close(ours)
    assert running.returncode == 0
    text = shown.decode()
    for expected in ("time x 600", "office-hours", "web-3", "KUBECONFIG"):
        assert expected in text
    # The other screen, the cursor gone; and both again as they were.
    assert text.index("\x1b[?1049h") < text.index("office-hours") < text.index("\x1b[?1049l")
    assert text.index("\x1b[?25l") < text.rindex("\x1b[?25h")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = refused(tmp_path, *COMMAND, "--headless", "--port", port)
    assert told.startswith(f"fivespot: --port {port}: ")
    assert "address already in use" in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("library", ["jsonpatch", "cel_expr_python"])
def test_a_library_that_is_missing_is_named(tmp_path: Path, library: str) -> None:
    told = refused(tmp_path, sys.executable, "-c", WITHOUT.format(library), "demo", "--headless")
    assert told == f"fivespot: {library.replace('_', '-')} is not installed; pip install 'fivespot[testing]'\n"
