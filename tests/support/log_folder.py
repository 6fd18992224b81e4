"""The folder of a run for the logs of servers and managers of failed tests, shared by the run's workers."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path

__all__ = ["begin_run", "log_folder", "worker_name"]

_ALL = Path(__file__).resolve().parents[2] / ".cache" / "control-plane-logs"
_VARIABLE = "FIVESPOT_TEST_LOGS"
_RUNS = 5
"""Runs that are kept, this one included. Runs at the same time must not delete each other's."""


def begin_run(root: Path = _ALL) -> None:
    """Choose the folder of this run, and forget the oldest ones. Workers that are started later inherit it."""
    runs = sorted(path for path in root.glob("*") if path.is_dir()) if root.is_dir() else []
    for path in runs[: max(0, len(runs) - _RUNS + 1)]:
        shutil.rmtree(path, ignore_errors=True)
    os.environ[_VARIABLE] = str(root / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}")  # noqa: DTZ005 - for people


def log_folder() -> Path:
    """The folder of this run. It exists once something was put into it."""
    return Path(os.environ[_VARIABLE])


def worker_name() -> str:
    """Return the name of this worker, which is unique in a run."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")
