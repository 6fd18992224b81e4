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
from urllib.request import Request, urlopen

import pytest
import yaml

from fivespot.cli.demo.session import FAREWELL

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
        for seen in ("> fivespot override set manualschedule/build-farm", "Machine/ci-1 +Running", "Node/.* ready"):
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
    assert errors == f"{FAREWELL}\n"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(URLError):
        urlopen(f"{url}/version", timeout=SECONDS)


def test_the_example_of_the_readme_works_in_it(tmp_path: Path) -> None:
    readme = (Path(__file__).resolve().parents[4] / "README.md").read_text()
    example = next(block for block in re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL) if "worker-1" in block)
    with demo(tmp_path, "--headless", "--speed", "600") as running:
        config = Path(read_until(running, r"export KUBECONFIG=(\S+)")[1])
        url = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
        for body in yaml.safe_load_all(example):
            path = (
                f"{url}/apis/{body['apiVersion']}/namespaces/default/{body['kind'].lower()}s/{body['metadata']['name']}"
            )
            request = Request(
                f"{path}?fieldManager=test&force=true",
                json.dumps(body).encode(),
                {"Content-Type": "application/apply-patch+yaml"},
                method="PATCH",
            )
            with urlopen(request, timeout=SECONDS):
                pass
        read_until(running, r"ScheduledMachine/worker-1 +Active \(MachineReady\)")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=SECONDS)
    assert running.returncode == 0


def test_it_ends_by_itself_after_its_time_and_may_be_cut_off_by_its_reader(tmp_path: Path) -> None:
    config = tmp_path / "mine"
    with demo(tmp_path, "--headless", "--for", "1s", "--kubeconfig", "mine", "--log", "log") as running:
        assert read_until(running, r"export KUBECONFIG=(\S+)")[1] == str(config)
        assert running.stdout is not None
        running.stdout.close()
        running.wait(SECONDS)
        assert running.stderr is not None
        assert running.stderr.read() == f"{FAREWELL}\n"
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


def test_the_space_bar_skips_to_the_next_event(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    # At this speed the first action is two real minutes ahead, and the test ends the program before.
    with subprocess.Popen(
        [*COMMAND, "--speed", "1"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(tmp_path)
    ) as running:
        os.close(theirs)
        alarm = threading.Timer(SECONDS, running.kill)
        alarm.start()
        shown = b""
        pressed = ended = False
        try:
            while block := os.read(ours, 65536):
                shown += block
                if b"web-3" in shown and not pressed:
                    os.write(ours, b" ")
                    pressed = True
                if b"fivespot override set" in shown and not ended:
                    os.write(ours, b"q")
                    ended = True
        except OSError:
            pass  # This is how Linux says that the other end is closed.
        finally:
            alarm.cancel()
            os.close(ours)
    assert running.returncode == 0
    assert ended


def test_an_unusable_port_is_reported_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = refused(tmp_path, *COMMAND, "--headless", "--port", port)
    assert told.startswith(f"fivespot: --port {port}: ")
    assert "address already in use" in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_all_missing_libraries_are_named_at_once(tmp_path: Path) -> None:
    code = "import sys; sys.modules['jsonpatch'] = sys.modules['cel_expr_python'] = None; "
    told = refused(tmp_path, sys.executable, "-c", f"{code}from fivespot.cli import main; main()", "demo", "--headless")
    assert told == "fivespot: cel-expr-python, jsonpatch are not installed; pip install 'fivespot[testing]'\n"


def test_lines_need_no_drawing_library(tmp_path: Path) -> None:
    command = (sys.executable, "-c", WITHOUT.format("rich"), "demo", "--headless", "--for", "1s")
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS, env=environment(tmp_path), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("library", ["jsonpatch", "cel_expr_python"])
def test_a_library_that_is_missing_is_named(tmp_path: Path, library: str) -> None:
    told = refused(tmp_path, sys.executable, "-c", WITHOUT.format(library), "demo", "--headless")
    assert told == f"fivespot: {library.replace('_', '-')} is not installed; pip install 'fivespot[testing]'\n"
