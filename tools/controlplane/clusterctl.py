"""``clusterctl`` of one Cluster API release, made from its Go module, once per machine and release."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from .build import MINIMUM_GO, Say, build_once, run_go, say_to_stderr
from .clusterapi import linker_flags, replaces_api
from .gotool import find_go
from .versions import cluster_api_dir, cluster_api_version

__all__ = ["ClusterctlFailed", "build_clusterctl", "clusterctl"]

_MODULE = "sigs.k8s.io/cluster-api"
_LIMIT_SECONDS = 300.0


class ClusterctlFailed(RuntimeError):
    """The command ended with an error; the message is what it wrote."""


def build_clusterctl(version: str | None = None, say: Say = say_to_stderr) -> Path:
    """The program of a release, built now unless it is there. Safe to call from several processes.

    Raises:
        BuildFailed: a compiler or download error.
        GoUnavailable: there is no Go compiler and none could be installed.
    """
    version = version or cluster_api_version()
    binary = cluster_api_dir(version) / "bin" / "clusterctl"
    what = f"clusterctl {version}"
    make = partial(_build, version, binary, say)
    return build_once(binary, what, "two minutes", make, lock=f"clusterctl-{version}", say=say)


def _build(version: str, binary: Path, say: Say) -> None:
    go = find_go(MINIMUM_GO, say)
    with tempfile.TemporaryDirectory(prefix="new-", dir=cluster_api_dir(version)) as scratch:
        # A module of our own that requires theirs: replacements in the go.mod of a dependency are ignored.
        lines = ["module build", "go 1.25.0", f"require {_MODULE} v{version}"]
        if replaces_api(version):
            lines.append(f"replace {_MODULE}/api => {_MODULE}/api v{version}")
        (Path(scratch) / "go.mod").write_text("\n\n".join(lines) + "\n")
        fresh = Path(scratch) / "clusterctl.new"
        flags = ["-mod=mod", "-trimpath", "-ldflags", linker_flags(version)]
        run_go([str(go), "build", *flags, "-o", str(fresh), f"{_MODULE}/cmd/clusterctl"], cwd=Path(scratch))
        fresh.replace(binary)


def clusterctl(*arguments: str, folder: Path) -> str:
    """Run it; what it wrote.

    Args:
        folder: where it may keep its configuration.

    Raises:
        ClusterctlFailed: it ended with an error, or not within five minutes.
    """
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        # It would ask a public server for newer releases of itself.
        "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
    }
    command = [str(build_clusterctl()), *arguments]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterctlFailed(f"{' '.join(arguments)}: not within {_LIMIT_SECONDS:.0f} s") from error
    if done.returncode:
        raise ClusterctlFailed(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout + done.stderr
