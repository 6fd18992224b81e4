"""A kubeconfig for the server."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

__all__ = ["kubeconfig", "write_kubeconfig"]


def kubeconfig(url: str, *, token: str = "", name: str = "fivespot", ca_file: str = "") -> str:
    """The text of a kubeconfig with one cluster, one user and one context.

    :param url: URL of the server; kubectl sends tokens only to https servers.
    """
    cluster = {"server": url, **({"certificate-authority": ca_file} if ca_file else {})}
    user = {"token": token} if token else {}
    context = {"cluster": name, "user": name, "namespace": "default"}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": context}],
            "current-context": name,
        },
        sort_keys=False,
    )


def write_kubeconfig(path: Path, text: str) -> None:
    """Write a kubeconfig that only its owner can read.

    :raises OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
