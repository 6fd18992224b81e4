"""HTTP listener (aiohttp), for kubectl and clients in other processes."""

from __future__ import annotations

import re
import ssl
from collections.abc import Awaitable, Sequence
from email.utils import format_datetime
from types import TracebackType
from typing import Final, Self

from aiohttp import web
from prometheus_async.aio import time, track_inprogress
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from .body import BODY_LIMIT
from .messages import ApiRequest, ApiResponse, DisconnectedError, Stream, parse_query
from .server import ApiServer
from .status import too_large

__all__ = ["HttpListener"]

_LINE_LIMIT: Final = 256 * 1024
"""Bytes of the request line: label selectors grow long."""
_KEEP_ALIVE: Final = 3600.0
_STOP: Final = 1.0
_TIMEOUT: Final = "timeoutSeconds"
_SENSIBLE: Final = re.compile("[0-9]{1,9}")
_WATCH: Final = 2700
"""Time-out of watches without timeoutSeconds when the clock is scaled."""


class HttpListener:
    """Listens on a port for one server; an async context manager inside the server's.

    Serves the metrics of its requests at ``/metrics``, under kube-apiserver's names.

    :param host: loopback by default, because there is no authorization.
    :param port: 0 for a free one; see :attr:`url`.
    :param speed: speed of the loop's clock relative to real time. Clients count real seconds, so the time-outs that
        they ask for and the keep-alive time are multiplied by it.
    """

    def __init__(
        self,
        server: ApiServer,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        speed: float = 1.0,
    ) -> None:
        self._server = server
        self._speed = speed
        self._host = host
        self._port = port
        self._tls = tls
        self._runner: web.ServerRunner | None = None
        self._metrics = _RequestMetrics()
        self.url = ""

    async def __aenter__(self) -> Self:
        front = web.Server(
            self._serve,
            handler_cancellation=True,
            max_line_size=_LINE_LIMIT,
            max_field_size=_LINE_LIMIT,
            access_log=None,
            keepalive_timeout=_KEEP_ALIVE * self._speed,
        )
        runner = web.ServerRunner(front, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._host, self._port, ssl_context=self._tls)
            await site.start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        self._port = runner.addresses[0][1]
        self.url = f"{'https' if self._tls else 'http'}://{self._host}:{self._port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        # Open watches would hold their connections until the shutdown time-out.
        self._server.cluster.store.close()
        await self._runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await _read(request)
        if body is None:
            return _whole(too_large(BODY_LIMIT).response(), self._date())
        path, _, query = request.raw_path.partition("?")
        if path == "/metrics" and request.method == "GET":
            return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            asked = self._in_our_time(parse_query(query))
            api_request = ApiRequest(request.method, path, asked, headers, body)
            response = await self._metrics.measured(request.method, self._server.handle(api_request))
        except DisconnectedError:
            _abort(request)
            return web.Response()
        if isinstance(response.body, bytes):
            return _whole(response, self._date())
        return await _streamed(request, response, response.body, self._date())

    def _date(self) -> str:
        """The Date header, by the cluster's clock: clients compute instants for controllers from it."""
        return format_datetime(self._server.cluster.clock.now(), usegmt=True)

    def _in_our_time(self, query: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        if self._speed == 1:
            return query
        names = {name for name, _ in query}
        asked = [(name, self._stretched(value) if name == _TIMEOUT else value) for name, value in query]
        if "watch" in names and _TIMEOUT not in names:
            asked.append((_TIMEOUT, self._stretched("0")))
        return asked

    def _stretched(self, seconds: str) -> str:
        # Invalid numbers are left for the server to refuse; 0 is the default.
        if not _SENSIBLE.fullmatch(seconds):
            return seconds
        return str(round((int(seconds) or _WATCH) * self._speed))


class _RequestMetrics:
    """Counts and times requests as kube-apiserver does. The stream of a watch is not part of its request."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._in_flight = Gauge(
            "apiserver_current_inflight_requests", "Requests under way.", ["request_kind"], registry=self._registry
        )
        self._seconds = Histogram(
            "apiserver_request_duration_seconds", "Time to the answer.", ["verb"], registry=self._registry
        )
        self._requests = Counter(
            "apiserver_request_total", "Requests by answer.", ["verb", "code"], registry=self._registry
        )

    async def measured(self, verb: str, answer: Awaitable[ApiResponse]) -> ApiResponse:
        in_flight = self._in_flight.labels("readOnly" if verb in {"GET", "HEAD"} else "mutating")
        response = await track_inprogress(in_flight, time(self._seconds.labels(verb), answer))
        self._requests.labels(verb, str(response.status)).inc()
        return response

    def render(self) -> bytes:
        return generate_latest(self._registry)


async def _read(request: web.BaseRequest) -> bytes | None:
    """The body; None when it is too large to be read."""
    blocks: list[bytes] = []
    size = 0
    while True:
        block = await request.content.readany()
        if not block:
            return b"".join(blocks)
        size += len(block)
        if size > BODY_LIMIT:
            return None
        blocks.append(block)


def _abort(request: web.BaseRequest) -> None:
    """Abort the connection."""
    if request.transport is not None:
        request.transport.abort()


def _whole(response: ApiResponse, date: str) -> web.Response:
    assert isinstance(response.body, bytes)
    answer = web.Response(status=response.status, body=response.body)
    _headers(answer, response, date)
    return answer


def _headers(answer: web.StreamResponse, response: ApiResponse, date: str) -> None:
    answer.headers["Date"] = date
    for name, value in response.headers:
        if name.lower() == "content-type":
            answer.headers[name] = value
        else:
            answer.headers.add(name, value)


async def _streamed(request: web.BaseRequest, response: ApiResponse, stream: Stream, date: str) -> web.StreamResponse:
    answer = web.StreamResponse(status=response.status)
    _headers(answer, response, date)
    answer.enable_chunked_encoding()
    try:
        await answer.prepare(request)
        while block := await stream.read():
            await answer.write(block)
        await answer.write_eof()
    except DisconnectedError:
        _abort(request)
        return answer
    except ConnectionResetError:
        # The client closed the connection, which is how most watches end.
        return answer
    finally:
        stream.close()
    return answer
