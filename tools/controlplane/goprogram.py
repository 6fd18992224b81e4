"""Go programs of this repository's own, built once per machine and state of their source."""

from __future__ import annotations

import hashlib
import tempfile
import time
from functools import partial
from pathlib import Path

from .build import MINIMUM_GO, Say, build_once, run_go, say_to_stderr
from .gotool import find_go
from .versions import cache_root

__all__ = ["CONTROLLER_RUNTIME", "build_go_program", "go_program"]

CONTROLLER_RUNTIME = Path(__file__).resolve().parents[2] / "tests" / "apiserver" / "controllerruntime"
"""The source of the program on controller-runtime that runs against both API servers."""

_SOURCES = ("*.go", "go.mod", "go.sum")
_KEPT_SECONDS = 30 * 24 * 3600
# What decides, besides the source, what comes out.
_FLAGS = ("-mod=readonly", "-trimpath", "-ldflags=-s -w")


def go_program(source: Path) -> Path:
    """Return the path of a folder's program, built or not: the name changes with its source.

    It does not name the compiler, so that a program that is there runs on a machine that has none.
    """
    digest = hashlib.sha256(repr((MINIMUM_GO, _FLAGS)).encode())
    for path in sorted(found for pattern in _SOURCES for found in source.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return cache_root() / "programs" / f"{source.name}-{digest.hexdigest()[:16]}"


def build_go_program(source: Path = CONTROLLER_RUNTIME, say: Say = say_to_stderr) -> Path:
    """The program of a folder, built now unless it is there. Safe to call from several processes.

    Raises:
        BuildFailed: a compiler or download error.
        GoUnavailable: there is no Go compiler and none could be installed.
    """
    binary = go_program(source)
    make = partial(_build, source, binary, say)
    return build_once(binary, source.name, "a minute and a half", make, lock=source.name, say=say)


def _build(source: Path, binary: Path, say: Say) -> None:
    go = find_go(MINIMUM_GO, say)
    with tempfile.TemporaryDirectory(prefix="new-", dir=binary.parent) as scratch:
        fresh = Path(scratch) / binary.name
        run_go([str(go), "build", *_FLAGS, "-o", str(fresh), "."], cwd=source)
        fresh.replace(binary)
    # States of the source that nobody has any more would pile up at 35 MB each; other checkouts may be at a recent one.
    for other in binary.parent.glob(f"{source.name}-*"):
        if other.stat().st_mtime < time.time() - _KEPT_SECONDS:
            other.unlink(missing_ok=True)
