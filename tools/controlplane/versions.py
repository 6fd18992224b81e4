"""The releases that the control plane is built from, and the folders of the results."""

from __future__ import annotations

import os
import re
from pathlib import Path

DEFAULT_KUBERNETES = "1.37.2"
ETCD = "3.7.0"
DEFAULT_CLUSTER_API = "1.14.2"

_RELEASE = re.compile(r"v?(1\.\d+\.\d+)")


def kubernetes_version() -> str:
    """The Kubernetes release to run, without the leading ``v``.

    ``FIVESPOT_KUBERNETES_VERSION`` chooses another one than the default.

    Raises:
        ValueError: the variable does not look like ``1.34.4``.
    """
    return _chosen("FIVESPOT_KUBERNETES_VERSION", DEFAULT_KUBERNETES)


def cluster_api_version() -> str:
    """The Cluster API release whose definitions are installed and whose core manager can run, without the ``v``.

    ``FIVESPOT_CLUSTER_API_VERSION`` chooses another one than the default.

    Raises:
        ValueError: the variable does not look like ``1.10.7``.
    """
    return _chosen("FIVESPOT_CLUSTER_API_VERSION", DEFAULT_CLUSTER_API)


def _chosen(variable: str, default: str) -> str:
    wanted = os.environ.get(variable) or default
    match = _RELEASE.fullmatch(wanted.strip())
    if match is None:
        raise ValueError(f"{variable}={wanted!r} is not a release such as {default}")
    return match.group(1)


def cache_root() -> Path:
    """The per-user folder of everything that is built once per machine (XDG base directory specification)."""
    base = os.environ.get("XDG_CACHE_HOME")
    # The specification says that a relative value is to be ignored.
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "fivespot" / "controlplane"


def release_dir(version: str) -> Path:
    """Return the folder of the binaries of a Kubernetes release."""
    return cache_root() / version


def cluster_api_dir(version: str) -> Path:
    """Return the folder of the build results of a Cluster API release."""
    return cache_root() / f"cluster-api-{version}"
