"""Sends requests with retries, metrics, spans and warnings, and raises failure responses as errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

import structlog

from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.errors import ApiError, TransportError
from fivespot.runtime.telemetry import NULL_TRACER, Span, Tracer

from .responses import failure, warning_texts
from .retry import Repeat, RetryPolicy
from .transport import ByteStream, Request, Response, Transport

__all__ = ["Sender", "succeeded"]

_LOGGED_WARNINGS: Final = 1000

_logger = structlog.get_logger(__name__)


def succeeded(response: Response) -> bool:
    """Whether a response is 2xx. Redirects are not followed: they would send the credentials elsewhere."""
    return 200 <= response.status < 300


class Sender:
    """Sends requests over a transport for all verbs.

    :param observe_request: called with the HTTP method and status (0: no response) of every attempt.
    :param tracer: records a span for every attempt.
    :param server: the URL of the server, for spans.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        rng: Random,
        retry: RetryPolicy,
        observe_request: Callable[[str, int], None] | None,
        tracer: Tracer = NULL_TRACER,
        server: str = "",
    ) -> None:
        self.transport = transport
        self._clock = clock
        self._rng = rng
        self._retry = retry
        self._observe_request = observe_request
        self._tracer = tracer
        self._server = server
        self._warned: set[str] = set()

    async def once(self, request: Request, *, attempt: int = 1) -> Response:
        """Send a request once.

        :param attempt: the number of times the request has been sent, including this one; for spans.
        :raises ApiError: the server refused.
        :raises TransportError: no response arrived.
        """
        with self._span("request", request, attempt) as span:
            try:
                response = await self.transport.request(_with_trace_headers(span, request))
            except TransportError:
                self._observe(request.method, 0)
                raise
            span.set("status", response.status)
            self._observe(request.method, response.status)
            self._log_warnings(response.headers, request)
            if succeeded(response):
                return response
            raise self.failure(response.status, response.headers, response.body, request)

    async def send(self, request: Request, repeat: Repeat) -> Response:
        """Send a request, with retries as the retry policy and ``repeat`` allow; raises the error of the last try."""
        attempt = 1
        while True:
            try:
                return await self.once(request, attempt=attempt)
            except (ApiError, TransportError) as error:
                pause = self._retry.delay(attempt, error, self._rng, repeat)
                if pause is None:
                    raise
                _logger.debug(
                    "request will be retried", request=request.description, error=str(error), seconds=round(pause, 3)
                )
            await asyncio.sleep(pause)
            attempt += 1

    async def open(self, request: Request) -> ByteStream:
        """Send a request once and return the response as a stream, whatever its status; the caller closes it."""
        with self._span("watch", request) as span:
            try:
                stream = await self.transport.stream(_with_trace_headers(span, request))
            except TransportError:
                self._observe(request.method, 0)
                raise
            span.set("status", stream.status)
        self._observe(request.method, stream.status)
        self._log_warnings(stream.headers, request)
        return stream

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, request: Request) -> ApiError:
        """Build the error for a failure response."""
        return failure(status, headers, body, request.description, self._clock.now(), name=request.name)

    def _span(self, name: str, request: Request, attempt: int = 1) -> AbstractContextManager[Span]:
        return self._tracer.span(
            name,
            method=request.method,
            server=self._server,
            path=request.path,
            what=request.description,
            attempt=attempt,
        )

    def _observe(self, method: str, status: int) -> None:
        if self._observe_request is not None:
            self._observe_request(method, status)

    def _log_warnings(self, headers: Mapping[str, str], request: Request) -> None:
        # Each text is logged once: the server repeats them with every request.
        for text in warning_texts(headers.get("warning")):
            if text not in self._warned:
                if len(self._warned) >= _LOGGED_WARNINGS:
                    self._warned.clear()
                self._warned.add(text)
                _logger.warning("the API server warns", request=request.description, warning=text)


def _with_trace_headers(span: Span, request: Request) -> Request:
    """Add the headers that propagate the span."""
    headers = span.headers()
    return replace(request, headers={**request.headers, **headers}) if headers else request
