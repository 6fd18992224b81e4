"""How a program finds its API server."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import structlog

from fivespot.runtime.clock import Chance, Clock, Offload
from fivespot.runtime.errors import ConfigError, TransportError, UnauthorizedError

from .auth import Access, Credentials, Load
from .building import accepting
from .client import Client
from .decode import failure
from .http import HttpTransport
from .proxy import proxy_from_environment
from .reading import REQUEST_LIMITS
from .sending import succeeded
from .transport import Request, Transport

__all__ = ["Connection", "choose", "connect"]

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
        request = Request("GET", "/version", REQUEST_LIMITS, headers=accepting(), what="GET /version")
        try:
            async with asyncio.timeout(limit):
                response = await self.transport.request(request)
        except TimeoutError as error:
            raise ConfigError(f"{self.source}: {self.server} did not answer within {limit:g} s") from error
        except TransportError as error:
            raise ConfigError(f"{self.source}: {error}") from error
        if succeeded(response):
            return response.body.decode(errors="replace")
        refusal = failure(response.status, response.headers, response.body, request.what, self.client.clock.now())
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
    chance: Chance,
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
    client = Client(transport, field_manager=field_manager, clock=clock, chance=chance, observe_request=observe_request)
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


# Importing kubernetes_asyncio takes half a second; it happens here, inside the thread that loads.


def _load_kubeconfig(paths: list[Path], context: str | None, must_exist: bool, now: datetime) -> Access:
    from .kubeconfig import load_kubeconfig  # noqa: PLC0415

    return load_kubeconfig(now, paths=paths, context=context, must_exist=must_exist)


def _load_incluster(environ: Mapping[str, str], folder: Path, now: datetime) -> Access:
    from .incluster import load_incluster  # noqa: PLC0415

    return load_incluster(now, environ=environ, folder=folder)


def _with_proxy(load: Load, environ: Mapping[str, str], now: datetime) -> Access:
    access = load(now)
    return access if access.proxy else replace(access, proxy=proxy_from_environment(access.server, environ))
