"""The HTTP endpoints of a manager: metrics on one port; probes and debug views on another."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import msgspec
import structlog
from aiohttp import web

from fivespot.runtime.clock import Offload
from fivespot.runtime.errors import ConfigError
from fivespot.runtime.telemetry.metrics import CONTENT_TYPE, Metrics

from .health import Connectivity, Health, HealthReport

__all__ = ["DebugView", "Serving", "ServingSettings"]

DebugView = Callable[[], Any]
"""Returns something that JSON can hold. Called on the loop."""

_SHUTDOWN = 1.0
"""Seconds that a request under way gets when the server closes: an answer here takes milliseconds."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """Where to listen.

    :param bind_address: an IP address of this machine.
    :param metrics_port: 0 takes a free one.
    :param health_port: 0 takes a free one.
    """

    bind_address: str = "127.0.0.1"
    metrics_port: int = 8080
    health_port: int = 8081


class Serving:
    """An async context manager that listens while it is entered.

    ``/metrics`` on the metrics port. On the health port ``/healthz``, ``/readyz`` (``?verbose`` shows every check),
    the older ``/health``, ``/ready`` and ``/health/status``, and ``/debug/...``, which answers peers on the loopback
    interface only, since it shows names of objects.

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
    ) -> None:
        self._settings = settings
        self._health = health
        self._metrics = metrics
        self._connectivity = connectivity
        self._offload = offload
        self._debug = debug
        self._runners: list[web.AppRunner] = []
        self.metrics_port = settings.metrics_port
        self.health_port = settings.health_port

    async def __aenter__(self) -> Self:
        try:
            self.metrics_port = await self._listen("metrics", self._settings.metrics_port, self._metrics_app())
            self.health_port = await self._listen("health", self._settings.health_port, self._health_app())
        except BaseException:
            await self._close()
            raise
        _log.info(
            "serving",
            address=self._settings.bind_address,
            metrics_port=self.metrics_port,
            health_port=self.health_port,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        while self._runners:
            await self._runners.pop().cleanup()

    async def _listen(self, what: str, port: int, app: web.Application) -> int:
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN)
        await runner.setup()
        self._runners.append(runner)
        try:
            await web.TCPSite(runner, self._settings.bind_address, port).start()
        except OSError as error:
            cause = error.strerror or str(error)
            raise ConfigError(
                f"cannot listen on {self._settings.bind_address}:{port} for {what}: {cause.lower()}; "
                f"choose another --{what}-port or --bind-address"
            ) from error
        actual: int = runner.addresses[0][1]
        return actual

    def _metrics_app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/metrics", self._serve_metrics)
        return app

    def _health_app(self) -> web.Application:
        app = web.Application()
        for path in ("/healthz", "/health"):
            app.router.add_get(path, self._serve_live)
        for path in ("/readyz", "/ready"):
            app.router.add_get(path, self._serve_ready)
        app.router.add_get("/health/status", self._serve_status)
        app.router.add_get("/debug/{view}", self._serve_debug)
        return app

    async def _serve_metrics(self, request: web.Request) -> web.Response:
        body = await self._metrics.render_with(self._offload)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _serve_live(self, request: web.Request) -> web.Response:
        return _probe(request, self._health.live())

    async def _serve_ready(self, request: web.Request) -> web.Response:
        return _probe(request, self._health.ready())

    async def _serve_status(self, request: web.Request) -> web.Response:
        healthy, ready = self._health.live().ok, self._health.ready().ok
        status = {"healthy": healthy, "ready": ready, "k8s_connected": self._connectivity.connected}
        return _json(status, 200 if healthy and ready else 503)

    async def _serve_debug(self, request: web.Request) -> web.Response:
        if not _from_loopback(request):
            return web.Response(status=403, text="debug views answer peers on the loopback interface only\n")
        view = self._debug.get(request.match_info["view"])
        if view is None:
            return web.Response(status=404, text=f"no such view; there are: {', '.join(sorted(self._debug))}\n")
        return _json(view())


def _probe(request: web.Request, report: HealthReport) -> web.Response:
    text = report.text(verbose="verbose" in request.query)
    return web.Response(status=200 if report.ok else 503, text=text)


def _json(value: Any, status: int = 200) -> web.Response:
    body = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2) + b"\n"
    return web.Response(status=status, body=body, content_type="application/json")


def _from_loopback(request: web.Request) -> bool:
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    if not peer:
        return False
    address = ipaddress.ip_address(peer[0].partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
