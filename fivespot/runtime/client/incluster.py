"""Access by the ServiceAccount of a pod."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader

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
    configuration = Configuration()
    try:
        InClusterConfigLoader(
            token_filename=str(token), cert_filename=str(ca), try_refresh_token=False, environ=dict(environ)
        ).load_and_set(configuration)
        where = namespace.read_text().strip() if namespace.is_file() else ""
    except (ConfigException, OSError, ValueError) as error:
        raise ConfigError(f"in-cluster configuration in {folder}: {one_line(str(error))}") from error
    # The library keeps the newline that many token files end in, and no header may hold one.
    authorization = str(configuration.api_key["BearerToken"]).strip()
    if authorization == "Bearer":
        raise ConfigError(f"in-cluster configuration: {token} is empty")
    return Access(
        server=str(configuration.host),
        authorization=authorization,
        tls=client_context(ca=ca),
        files=files,
        files_digest=digest,
        tls_identity=hashlib.sha256(ca.read_bytes()).digest(),
        namespace=where or "default",
        source=f"ServiceAccount in {folder}",
    )
