"""Child processes that never outlive their parent, whatever ends it."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_TAIL = 25
_READY_SECONDS = 90.0
_POLL_SECONDS = 0.05


class ControlPlaneFailed(RuntimeError):
    """A program did not start, or ended; the message holds the end of its log and where the rest is."""


class Watchdog:
    """A small process that kills the children and removes the folder once the parent is gone.

    It notices by the end of a pipe that only the parent holds, which works for ``kill -9`` too and, unlike a
    parent-death signal, does not depend on which thread started a child.
    """

    def __init__(self, folder: Path) -> None:
        script = Path(__file__).with_name("watchdog.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            # A session of its own: Ctrl-C in the terminal must not take the watchdog first.
            start_new_session=True,
        )

    def watch(self, pid: int) -> None:
        """From now on this process group ends with the parent."""
        self._send(f"+{pid}")

    def forget(self, pid: int) -> None:
        """The process was ended by the parent itself; its number may belong to someone else soon."""
        self._send(f"-{pid}")

    def keep_folder(self) -> None:
        """Leaves the folder on disk."""
        self._send("keep")

    def close(self) -> None:
        """Lets it do its work (kill what it still watches, remove the folder) and waits for that."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=60)

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()


class Child:
    """One long-running program with its log file, in a process group of its own."""

    def __init__(
        self, name: str, command: Sequence[str], *, log: Path, watchdog: Watchdog, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self._env = {**os.environ, **(env or {})}
        self._watchdog = watchdog
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process and self.running else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts it; the log is appended to.

        Raises:
            RuntimeError: it runs already.
        """
        if self.running:
            raise RuntimeError(f"{self.name} runs already")
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self._env, start_new_session=True
            )
        self._watchdog.watch(self._process.pid)

    def kill(self) -> None:
        """Ends it at once (SIGKILL) and waits. What these programs hold is throw-away; their clean stop is slow."""
        if self._process is None:
            return
        self._watchdog.forget(self._process.pid)
        # Before wait() the number cannot be anyone else's, even if the process has exited.
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """Stops it without closing its connections (SIGSTOP): a half-open peer."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Undoes :meth:`pause`."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGCONT)

    def tail(self) -> str:
        """The last lines of its log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL:])


def await_ready(child: Child, ready: Callable[[], bool]) -> None:
    """Returns when ``ready`` says so.

    Raises:
        ControlPlaneFailed: the program ended, or is not ready after 90 seconds.
    """
    deadline = time.monotonic() + _READY_SECONDS
    while not ready():
        ended = not child.running
        if ended or time.monotonic() > deadline:
            what = "ended" if ended else f"is not ready after {_READY_SECONDS:.0f} s"
            raise ControlPlaneFailed(f"{child.name} {what}; the end of {child.log}:\n{child.tail()}")
        time.sleep(_POLL_SECONDS)


def answers(connection: http.client.HTTPConnection, path: str) -> bool:
    """Whether a GET is answered with 200."""
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def remove_folder(folder: Path) -> None:
    """Removes a folder that a dying process may still be writing into."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        shutil.rmtree(folder)
