"""Access by the ServiceAccount of a pod.

What kubelet promises a pod is two variables and three files (Kubernetes documentation, "Accessing the Kubernetes API
from a Pod"), so they are read here: kubernetes_asyncio's loader would import its whole generated client for it, 38 MB
of a manager's memory.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import structlog

from fivespot.runtime.clock import Clock, Offload, Random
from fivespot.runtime.errors import ConfigError, TransportError, UnauthorizedError

from .auth import Access, Credentials, Load, digest_files
from .client import Client
from .http import HttpTransport
from .proxy import proxy_from_environment
from .reader import REQUEST_LIMITS
from .requests import json_headers
from .responses import failure, one_line
from .sender import succeeded
from .tls import client_context
from .transport import Request, Transport

__all__ = ["Connection", "choose", "connect", "load_incluster"]


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


_logger = structlog.get_logger(__name__)

CHECK_SECONDS: Final = 10.0

"""To wait for a server's first answer where a person waits for it."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Connection:
    """A client with what else a program wants to know of where it is connected.

    :param namespace: of the pod or of the kubeconfig's context; ``default`` if neither says.
    :param in_cluster: the pod's ServiceAccount is used.
    :param source: where server and credentials come from, in words for people.
    """

    client: Client
    transport: Transport
    namespace: str
    in_cluster: bool
    server: str
    source: str

    async def check(self, limit: float = CHECK_SECONDS) -> str:
        """One request, for a person who waits: is the server there, and does it know us?

        :param limit: seconds to wait.
        :returns: what the server says of its version; "" where it tells us none, which not everybody may read.
        :raises ConfigError: in one line, why the server cannot be used.
        """
        request = Request("GET", "/version", REQUEST_LIMITS, headers=json_headers(), description="GET /version")
        try:
            async with asyncio.timeout(limit):
                response = await self.transport.request(request)
        except TimeoutError as error:
            raise ConfigError(f"{self.source}: {self.server} did not answer within {limit:g} s") from error
        except TransportError as error:
            raise ConfigError(f"{self.source}: {error}") from error
        if succeeded(response):
            return response.body.decode(errors="replace")
        now = self.client.clock.now()
        refusal = failure(response.status, response.headers, response.body, request.description, now)
        if isinstance(refusal, UnauthorizedError):
            said = f"{self.server} does not accept the credentials: {refusal.message}"
            raise ConfigError(f"{self.source}: {said}") from refusal
        _logger.debug("the API server does not tell its version", error=str(refusal))
        return ""

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def connect(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    user_agent: str,
    clock: Clock,
    rng: Random,
    offload: Offload,
    field_manager: str = "fivespot",
    observe_request: Callable[[str, int], None] | None = None,
    compress: bool = False,
) -> Connection:
    """A connection by, in this order: ``kubeconfig``, ``$KUBECONFIG``, the pod's ServiceAccount, ``~/.kube/config``.

    Reads files and runs plugins off the loop; sends nothing to the server yet (see :meth:`Connection.check`).

    :param context: of the kubeconfig; one that is given rules out the pod's ServiceAccount.
    :param compress: let the server compress large answers.
    :raises ConfigError: in one line, which file and what is wrong with it.
    """
    environ = dict(os.environ)
    load, in_cluster = choose(kubeconfig, context, environ)
    credentials = Credentials(functools.partial(_with_proxy, load, environ), clock=clock, offload=offload)
    access = await credentials.current()
    if access.anonymous:
        _logger.warning("no credentials are configured, requests are anonymous", source=access.source)
    transport = HttpTransport(credentials, user_agent=user_agent, compress=compress)
    client = Client(transport, field_manager=field_manager, clock=clock, rng=rng, observe_request=observe_request)
    return Connection(client, transport, access.namespace, in_cluster, access.server, access.source)


def choose(
    kubeconfig: str | None,
    context: str | None,
    environ: Mapping[str, str],
    *,
    service_account: Path | None = None,
    home: Path | None = None,
) -> tuple[Load, bool]:
    """What to load access from, and whether that is the pod's ServiceAccount.

    :raises ConfigError: there is nothing.
    """
    if kubeconfig:
        return _from_files([Path(kubeconfig).expanduser()], context, must_exist=True), False
    listed = [Path(part).expanduser() for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return _from_files(listed, context), False
    account = service_account or SERVICE_ACCOUNT
    token = account / "token"
    if not context and environ.get("KUBERNETES_SERVICE_HOST") and token.exists():
        return functools.partial(_load_incluster, environ, account), True
    usual = (home or Path.home()) / ".kube" / "config"
    if usual.exists():
        return _from_files([usual], context), False
    raise ConfigError(f"no kubeconfig: none was given, KUBECONFIG is not set, {token} and {usual} do not exist")


def _from_files(paths: list[Path], context: str | None, *, must_exist: bool = False) -> Load:
    return functools.partial(_load_kubeconfig, paths, context, must_exist)


def _load_kubeconfig(paths: list[Path], context: str | None, must_exist: bool, now: datetime) -> Access:
    from .kubeconfig import load_kubeconfig  # noqa: PLC0415

    return load_kubeconfig(now, paths=paths, context=context, must_exist=must_exist)


def _load_incluster(environ: Mapping[str, str], folder: Path, now: datetime) -> Access:
    from .connection import load_incluster  # noqa: PLC0415

    return load_incluster(now, environ=environ, folder=folder)


def _with_proxy(load: Load, environ: Mapping[str, str], now: datetime) -> Access:
    access = load(now)
    return access if access.proxy else replace(access, proxy=proxy_from_environment(access.server, environ))
