"""Finding a Go compiler, or fetching one into the cache on a machine that has none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .versions import cache_root

LOCK_FILE = Path(__file__).resolve().parents[2] / "requirements" / "go.txt"

_VERSION = re.compile(r"go(\d+)\.(\d+)")


class GoUnavailable(RuntimeError):
    """No usable Go compiler was found, and none could be installed."""


def go_version(binary: Path) -> tuple[int, int] | None:
    """``(major, minor)`` of a Go compiler; None when it does not run."""
    try:
        found = subprocess.run(
            [str(binary), "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
            env=go_environment(),
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    match = _VERSION.search(found)
    return (int(match[1]), int(match[2])) if match else None


def find_go(minimum: tuple[int, int], say: Callable[[str], None]) -> Path:
    """A Go compiler of at least ``minimum``: from PATH, else one kept in the cache (180 MB, about half a minute).

    Raises:
        GoUnavailable: neither worked; the message names both attempts.
    """
    on_path = shutil.which("go")
    if on_path and (go_version(Path(on_path)) or (0, 0)) >= minimum:
        return Path(on_path)
    folder = cache_root() / "go"
    cached = _binary_in(folder)
    if cached is None or (go_version(cached) or (0, 0)) < minimum:
        wanted = ".".join(map(str, minimum))
        say(f"no Go {wanted} or newer on PATH; installing one into {folder}: about half a minute")
        _install(folder)
        cached = _binary_in(folder)
    if cached is None or (go_version(cached) or (0, 0)) < minimum:
        raise GoUnavailable(f"go on PATH is {on_path or 'absent'}, and {folder} has none that runs and is new enough")
    return cached


def _install(folder: Path) -> None:
    fresh = folder.with_name("go.new")
    shutil.rmtree(fresh, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    done = subprocess.run(
        [*command, "--target", str(fresh), "-r", str(LOCK_FILE)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise GoUnavailable(f"pip could not install Go from {LOCK_FILE.name}:\n{done.stderr.strip()}")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.replace(folder)


def _binary_in(folder: Path) -> Path | None:
    # The package holds a whole Go tree named "go"; the launcher that it also installs would need its own Python.
    binary = folder / "go" / "bin" / "go"
    return binary if binary.is_file() else None


def go_environment() -> dict[str, str]:
    """The caller's environment without what would make a build depend on it."""
    unwanted = {"GOOS", "GOARCH", "GOBIN", "GOEXPERIMENT"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    # GOTOOLCHAIN=local keeps `go` from replacing itself by another release behind our back.
    return {**kept, "GOFLAGS": "-mod=mod", "GOWORK": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
