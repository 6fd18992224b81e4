"""Which releases the control plane is built from, and where the results live."""

from __future__ import annotations

import os
import re
from pathlib import Path

DEFAULT_KUBERNETES = "1.37.2"
ETCD = "3.7.0"
CLUSTER_API = "1.14.2"

_RELEASE = re.compile(r"v?(1\.\d+\.\d+)")


def kubernetes_version() -> str:
    """The Kubernetes release to run, without the leading ``v``.

    ``FIVESPOT_KUBERNETES_VERSION`` chooses another one than the default.

    Raises:
        ValueError: the variable does not look like ``1.34.4``.
    """
    wanted = os.environ.get("FIVESPOT_KUBERNETES_VERSION") or DEFAULT_KUBERNETES
    match = _RELEASE.fullmatch(wanted.strip())
    if match is None:
        raise ValueError(f"FIVESPOT_KUBERNETES_VERSION={wanted!r} is not a release such as {DEFAULT_KUBERNETES}")
    return match.group(1)


def cache_root() -> Path:
    """The per-user folder of everything that is built once per machine (XDG base directory specification)."""
    base = os.environ.get("XDG_CACHE_HOME")
    # The specification says that a relative value is to be ignored.
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "fivespot" / "controlplane"


def release_dir(version: str) -> Path:
    """Where the binaries of one Kubernetes release live."""
    return cache_root() / version
