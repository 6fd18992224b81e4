"""Runs Python files as programs of their own, forked from a process that has the slow imports behind it.

A start costs a tenth of a second of CPU time instead of more than one, which is what a run of ten programs consists of.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import sys
from pathlib import Path

__all__ = ["Program"]

STOP_SECONDS = 30.0

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(
    [
        "fivespot.runtime.manager.entrypoint",
        "fivespot.runtime.client.http",
        "fivespot.runtime.client.kubeconfig",
        "pydantic",
    ]
)


class Program:
    """One Python file with its arguments, running in a process of its own; its output is in ``log``.

    :param kubeconfig: the value of ``KUBECONFIG``.
    """

    def __init__(self, file: Path, log: Path, *arguments: str, kubeconfig: Path) -> None:
        self.log = log
        self._process = _forks.Process(target=_run, args=(str(file), arguments, str(log), str(kubeconfig)))
        self._process.start()

    @property
    def lines(self) -> list[str]:
        """Return the lines written so far."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def running(self) -> bool:
        return self._process.is_alive()

    def stop(self) -> None:
        """Send SIGTERM unless it has exited; it must exit with success."""
        if self.running:
            assert self._process.pid is not None
            os.kill(self._process.pid, signal.SIGTERM)
        self._process.join(STOP_SECONDS)
        code = self._process.exitcode
        self.kill()
        assert code == 0, "\n".join([f"exit code {code}", *self.lines])

    def kill(self) -> None:
        if self.running:
            self._process.kill()
            self._process.join()


def _run(file: str, arguments: tuple[str, ...], log: str, kubeconfig: str) -> None:
    os.environ["KUBECONFIG"] = kubeconfig
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).parent))
    runpy.run_path(file, run_name="__main__")
