"""Access by the ServiceAccount of a pod.

What kubelet promises a pod is two variables and three files (Kubernetes documentation, "Accessing the Kubernetes API
from a Pod"), so they are read here: kubernetes_asyncio's loader would import its whole generated client for it, 38 MB
of a manager's memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from fivespot.runtime.errors import ConfigError

from .auth import Access, digest_files
from .decode import one_line
from .tls import client_context

__all__ = ["load_incluster"]


def load_incluster(now: datetime, *, environ: Mapping[str, str], folder: Path) -> Access:
    """What kubelet put into the pod. Blocking.

    :raises ConfigError: a file or variable is missing or empty.
    """
    token, ca, namespace = folder / "token", folder / "ca.crt", folder / "namespace"
    for path in (token, ca):
        if not path.is_file():
            raise ConfigError(f"in-cluster configuration: {path} does not exist")
    files = (token, ca)
    digest = digest_files(files)
    try:
        # A token file usually ends in a newline, which no header may hold.
        secret = token.read_text().strip()
        where = namespace.read_text().strip() if namespace.is_file() else ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"in-cluster configuration in {folder}: {one_line(str(error))}") from error
    if not secret:
        raise ConfigError(f"in-cluster configuration: {token} is empty")
    return Access(
        server=_server(environ),
        authorization=f"Bearer {secret}",
        tls=client_context(ca=ca),
        files=files,
        files_digest=digest,
        tls_identity=hashlib.sha256(ca.read_bytes()).digest(),
        namespace=where or "default",
        source=f"ServiceAccount in {folder}",
    )


def _server(environ: Mapping[str, str]) -> str:
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError("in-cluster configuration: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be set")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
