"""Connections to an API server: from a kubeconfig, or from the ServiceAccount of a pod."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import structlog

from fivespot.runtime.clock import Clock, Offload, Random, SystemClock, ThreadOffload
from fivespot.runtime.errors import ConfigError, TransportError, UnauthorizedError

from .auth import Access, Credentials, Load, digest_files
from .client import Client
from .http import HttpTransport
from .proxy import is_local, proxy_from_environment
from .reader import REQUEST_LIMITS
from .requests import json_headers
from .responses import failure, one_line
from .sender import succeeded
from .tls import client_context
from .transport import Request, Transport

__all__ = ["Connection", "connect", "load_incluster", "select_source"]

CHECK_SECONDS: Final = 10.0
"""Time limit of :meth:`Connection.check`, for which a person waits."""
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Connection:
    """A client and where it is connected to; an async context manager that closes it.

    :param namespace: of the pod or of the kubeconfig's context; ``default`` if neither gives one.
    :param in_cluster: the pod's ServiceAccount is used.
    :param source: origin of server and credentials, for messages.
    """

    client: Client
    transport: Transport
    namespace: str
    in_cluster: bool
    server: str
    source: str

    async def check(self, limit: float = CHECK_SECONDS) -> str:
        """Ask the server for its version, to report at once a server or credentials that cannot be used.

        :param limit: time limit in seconds.
        :returns: the response; "" if the server refuses to tell its version, which not every user may read.
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
            reason = f"{self.server} does not accept the credentials: {refusal.message}"
            raise ConfigError(f"{self.source}: {reason}") from refusal
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
    user_agent: str | None = None,
    field_manager: str = "fivespot",
    clock: Clock | None = None,
    rng: Random | None = None,
    offload: Offload | None = None,
    observe_request: Callable[[str, int], None] | None = None,
    compress: bool = False,
) -> Connection:
    """Connect to an API server::

        async with await connect() as connection:
            pods = await connection.client.list(PODS)

    The configuration is, in this order: ``kubeconfig``, ``$KUBECONFIG``, the pod's ServiceAccount, ``~/.kube/config``.

    Reads files and runs plugins off the event loop; sends nothing to the server yet (see :meth:`Connection.check`).
    Cancelling it kills a running plugin instead of waiting for it.

    :param context: of the kubeconfig; with one, the pod's ServiceAccount is not considered.
    :param user_agent: the default is ``fivespot/`` and the version.
    :param clock: defaults to the system's; the same holds for ``rng`` and ``offload`` (a few threads).
    :param compress: accept compressed responses: worth the CPU time over slow links only.
    :raises ConfigError: in one line, which file or field cannot be used, and why.
    """
    environ = dict(os.environ)
    clock = clock or SystemClock()
    load, in_cluster = select_source(kubeconfig, context, environ)
    credentials = Credentials(
        functools.partial(_load_with_proxy, load, environ), clock=clock, offload=offload or ThreadOffload()
    )
    try:
        access = await credentials.current()
    except BaseException:
        await credentials.close()
        raise
    if access.anonymous:
        url = urlsplit(access.server)
        if url.scheme == "http":
            # On this computer it is a server for development, where the line would only be noise.
            log = _logger.debug if is_local(url.hostname or "") else _logger.warning
            log("no credentials are sent to a server without TLS", source=access.source)
        else:
            _logger.warning("no credentials are configured, requests are anonymous", source=access.source)
    transport = HttpTransport(credentials, user_agent=user_agent or _default_user_agent(), compress=compress)
    client = Client(transport, field_manager=field_manager, clock=clock, rng=rng, observe_request=observe_request)
    return Connection(client, transport, access.namespace, in_cluster, access.server, access.source)


def select_source(
    kubeconfig: str | None,
    context: str | None,
    environ: Mapping[str, str],
    *,
    service_account: Path | None = None,
    home: Path | None = None,
) -> tuple[Load, bool]:
    """Choose where to load the access from; the flag says whether that is the pod's ServiceAccount.

    :raises ConfigError: there is no configuration.
    """
    if kubeconfig:
        return _from_files([Path(kubeconfig).expanduser()], context, must_exist=True), False
    listed = [Path(part).expanduser() for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return _from_files(listed, context), False
    account = service_account or SERVICE_ACCOUNT
    token = account / "token"
    if not context and environ.get("KUBERNETES_SERVICE_HOST") and token.exists():
        return functools.partial(_from_pod, environ, account), True
    usual = (home or Path.home()) / ".kube" / "config"
    if usual.exists():
        return _from_files([usual], context), False
    raise ConfigError(f"no kubeconfig: none was given, KUBECONFIG is not set, {token} and {usual} do not exist")


def load_incluster(now: datetime, *, environ: Mapping[str, str], folder: Path) -> Access:
    """Load the access of a pod. Blocking.

    kubelet provides two variables and three files (Kubernetes documentation, "Accessing the Kubernetes API from a
    Pod"). They are read here because kubernetes_asyncio's loader would import its whole generated client for them.

    :raises ConfigError: a file or variable is missing or empty.
    """
    token, ca, namespace = folder / "token", folder / "ca.crt", folder / "namespace"
    for path in (token, ca):
        if not path.is_file():
            raise ConfigError(f"in-cluster configuration: {path} does not exist")
    files = (token, ca)
    digest = digest_files(files)
    try:
        # A token file usually ends in a newline, which a header cannot hold.
        secret = token.read_text().strip()
        where = namespace.read_text().strip() if namespace.is_file() else ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"in-cluster configuration in {folder}: {one_line(str(error))}") from error
    if not secret:
        raise ConfigError(f"in-cluster configuration: {token} is empty")
    return Access(
        server=_incluster_server(environ),
        authorization=f"Bearer {secret}",
        tls=client_context(ca=ca),
        files=files,
        files_digest=digest,
        tls_identity=hashlib.sha256(ca.read_bytes()).digest(),
        namespace=where or "default",
        source=f"ServiceAccount in {folder}",
    )


def _incluster_server(environ: Mapping[str, str]) -> str:
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError("in-cluster configuration: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be set")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _from_pod(environ: Mapping[str, str], folder: Path, now: datetime, interrupt: threading.Event) -> Access:
    return load_incluster(now, environ=environ, folder=folder)


def _from_files(paths: list[Path], context: str | None, *, must_exist: bool = False) -> Load:
    def load(now: datetime, interrupt: threading.Event) -> Access:
        from .kubeconfig import load_kubeconfig  # noqa: PLC0415 - with it come PyYAML and the loader

        return load_kubeconfig(now, interrupt, paths=paths, context=context, must_exist=must_exist)

    return load


def _load_with_proxy(load: Load, environ: Mapping[str, str], now: datetime, interrupt: threading.Event) -> Access:
    access = load(now, interrupt)
    return access if access.proxy else replace(access, proxy=proxy_from_environment(access.server, environ))


def _default_user_agent() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - with it come zipfile and email

    try:
        return f"fivespot/{version('fivespot')}"
    except PackageNotFoundError:
        return "fivespot"
