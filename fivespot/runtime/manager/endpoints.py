"""The HTTP endpoints of a manager: metrics on one port; probes and debug views on another."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
import structlog

from fivespot.runtime.clock import Offload
from fivespot.runtime.errors import ConfigError
from fivespot.runtime.telemetry.metrics import CONTENT_TYPE, Metrics

from .health import Connectivity, Health, HealthReport
from .http_server import HttpServer, ServerRequest, ServerResponse, raise_descriptor_limit

if TYPE_CHECKING:
    from .access_review import AccessReview
    from .serving_certificate import ServingCertificate

__all__ = ["DebugView", "Serving", "ServingSettings", "is_loopback"]

DebugView = Callable[[], Any]
"""Returns something that JSON can hold. Called on the loop."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """The addresses to listen on.

    :param bind_address: an IP address of this machine; "" for all of them, IPv6 and IPv4.
    :param metrics_port: 0 takes a free one.
    :param health_port: 0 takes a free one.
    :param debug: whether to serve ``/debug/...``.
    :param metrics_secure: whether metrics need TLS, and a token that may get ``/metrics``.
    :param metrics_cert_dir: the directory with ``tls.crt`` and ``tls.key`` for that; "" has a certificate made.
    """

    bind_address: str = "127.0.0.1"
    metrics_port: int = 8080
    health_port: int = 8081
    debug: bool = False
    metrics_secure: bool = False
    metrics_cert_dir: str = ""


class Serving:
    """An async context manager that listens while it is entered.

    ``/metrics`` on the metrics port. On the health port ``/healthz``, ``/readyz`` (``?verbose`` shows every check),
    the older ``/health``, ``/ready`` and ``/health/status``, and, where the settings ask for it, ``/debug/...``. That
    shows names of objects, so it answers peers on the loopback interface only. In a pod whose traffic passes through a
    proxy, such as the sidecar of a service mesh, every peer seems to be one. The soft limit of open files is raised on
    the way.

    :ivar metrics_port: the port in use, once entered.
    :ivar health_port: the port in use, once entered.
    """

    def __init__(
        self,
        settings: ServingSettings,
        *,
        health: Health,
        metrics: Metrics,
        connectivity: Connectivity,
        offload: Offload,
        debug: Mapping[str, DebugView],
        reviews: AccessReview | None = None,
    ) -> None:
        self._settings = settings
        self._health = health
        self._metrics = metrics
        self._connectivity = connectivity
        self._offload = offload
        self._debug = debug
        self._reviews = reviews
        self._certificate: ServingCertificate | None = None
        self._servers = AsyncExitStack()
        self.metrics_port = settings.metrics_port
        self.health_port = settings.health_port

    async def __aenter__(self) -> Self:
        raise_descriptor_limit()
        try:
            tls = await self._load_certificate() if self._settings.metrics_secure else None
            self.metrics_port = await self._listen("metrics", self._settings.metrics_port, self._on_metrics_port, tls)
            self.health_port = await self._listen("health", self._settings.health_port, self._on_health_port)
        except BaseException:
            await self._servers.aclose()
            raise
        _log.info(
            "serving",
            address=self._settings.bind_address or "all addresses",
            metrics_port=self.metrics_port,
            health_port=self.health_port,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._servers.aclose()

    async def _load_certificate(self) -> Callable[[], ssl.SSLContext]:
        from .serving_certificate import ServingCertificate  # noqa: PLC0415 - few managers serve by TLS

        certificate = self._certificate = ServingCertificate(self._settings.metrics_cert_dir)
        await self._offload.run(certificate.load)
        return lambda: certificate.context

    async def _listen(
        self,
        what: str,
        port: int,
        handler: Callable[[ServerRequest], Awaitable[ServerResponse]],
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> int:
        server = await self._servers.enter_async_context(HttpServer(handler, what=what, tls=tls))
        try:
            return await server.listen(self._settings.bind_address, port)
        except OSError as error:
            cause = error.strerror or str(error)
            raise ConfigError(
                f"cannot listen on {self._settings.bind_address or '*'}:{port} for {what}: {cause.lower()}; "
                f"choose another --{what}-port or --bind-address"
            ) from error

    async def _on_metrics_port(self, request: ServerRequest) -> ServerResponse:
        if request.path != "/metrics":
            return _not_found("/metrics")
        if self._settings.metrics_secure:
            refused = await self._refusal(request)
            if refused is not None:
                return refused
        return ServerResponse(200, await self._metrics.render_with(self._offload), CONTENT_TYPE)

    async def _refusal(self, request: ServerRequest) -> ServerResponse | None:
        """The answer to a request that may not read the metrics; None for one that may."""
        if self._certificate is not None:
            # A certificate that was renewed serves the connections after the next scrape.
            await self._offload.run(self._certificate.refresh)
        if self._reviews is None:
            return ServerResponse.of_text("tokens cannot be checked\n", 500)
        access = await self._reviews.check(request.headers.get("authorization", ""), request.path)
        return None if access.status == 200 else ServerResponse.of_text(f"{access.why}\n", access.status)

    async def _on_health_port(self, request: ServerRequest) -> ServerResponse:
        match request.path:
            case "/healthz" | "/health":
                return _probe(request, self._health.live())
            case "/readyz" | "/ready":
                return _probe(request, self._health.ready())
            case "/health/status":
                healthy, ready = self._health.live().ok, self._health.ready().ok
                status = {"healthy": healthy, "ready": ready, "k8s_connected": self._connectivity.connected}
                return _json(status, 200 if healthy and ready else 503)
        prefix, _, view = request.path.rpartition("/")
        if prefix == "/debug" and self._settings.debug:
            return self._show(view, request.peer)
        return _not_found("/healthz, /readyz, /health/status")

    def _show(self, name: str, peer: str) -> ServerResponse:
        if not is_loopback(peer):
            return ServerResponse.of_text("debug views answer peers on the loopback interface only\n", 403)
        view = self._debug.get(name)
        if view is None:
            return ServerResponse.of_text(f"no such view; there are: {', '.join(sorted(self._debug))}\n", 404)
        return _json(view())


def _not_found(there_are: str) -> ServerResponse:
    return ServerResponse.of_text(f"not found; there are: {there_are}\n", 404)


def _probe(request: ServerRequest, report: HealthReport) -> ServerResponse:
    return ServerResponse.of_text(report.text(verbose="verbose" in request.query), 200 if report.ok else 503)


def _json(value: Any, status: int = 200) -> ServerResponse:
    body = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2) + b"\n"
    return ServerResponse(status, body, "application/json")


def is_loopback(peer: str) -> bool:
    """Whether an address is of the loopback interface, also where it is mapped into IPv6; False for none."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
