"""An OpenTelemetry tracer. Needs ``opentelemetry-api`` (the extra ``otel``); exporting spans is up to the program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import attach, detach
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation import set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from fivespot.runtime.errors import ApiError, FivespotError

__all__ = ["OpenTelemetryTracer", "is_exported"]

Value = str | int | float

_SCOPE: Final = "fivespot.runtime"
_WORDS: Final = 300
"""Longest description of an error, in characters."""
_CARRIER: Final = TraceContextTextMapPropagator()
"""W3C Trace Context, which the API server reads. Baggage may hold anything and is not sent."""
_NO_HEADERS: Final[Mapping[str, str]] = {}
_OF_A_NAMESPACE: Final = frozenset({"status", "finalize"})
"""Subresources of a namespace; their paths look like collections in it."""
_NAMES: Final = {"status": "http.response.status_code"}


def is_exported() -> bool:
    """Whether a tracer provider is set. Without one, spans are discarded."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


class OpenTelemetryTracer:
    """A :class:`~fivespot.runtime.telemetry.Tracer` that creates OpenTelemetry spans.

    Runs of a controller are named ``reconcile <controller>``. Requests follow OpenTelemetry's conventions for HTTP
    clients and are named by method and ``url.template``, which keeps the number of names small. Objects are identified
    by ``k8s.namespace.name`` and ``k8s.object.name``. Queries, headers and bodies are not recorded. Requests of a span
    that is recorded or has a remote parent carry ``traceparent``.

    :param provider: tracer provider; None uses the global one, even if it is set later.
    """

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=provider)

    def span(self, name: str, /, **attributes: Value) -> _Span:
        if name in {"request", "watch"}:
            title, shown = _request(attributes)
            kind = SpanKind.CLIENT
        elif name == "reconcile":
            title, shown = _run(attributes)
            kind = SpanKind.INTERNAL
        else:
            title, shown, kind = name, attributes, SpanKind.INTERNAL
        return _Span(self._tracer.start_span(title, kind=kind, attributes=shown))


class _Span:
    """A span that is current inside its ``with`` block."""

    __slots__ = ("_failed", "_span", "_token")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._failed = False

    def __enter__(self) -> Self:
        self._token = attach(set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        detach(self._token)
        if error is not None and self._span.is_recording():
            self._fail(error)
        self._span.end()

    def set(self, name: str, value: Value, /) -> None:
        self._span.set_attribute(_NAMES.get(name, name), value)
        if name == "status" and isinstance(value, int) and value >= 400:
            self._failed = True
            self._span.set_attribute("error.type", str(value))
            self._span.set_status(StatusCode.ERROR)

    def headers(self) -> Mapping[str, str]:
        if not self._span.get_span_context().is_valid:
            return _NO_HEADERS
        carrier: dict[str, str] = {}
        _CARRIER.inject(carrier, set_span_in_context(self._span))
        return carrier

    def _fail(self, error: BaseException) -> None:
        if not self._failed:
            kind = str(error.status) if isinstance(error, ApiError) else type(error).__name__
            self._span.set_attribute("error.type", kind)
        self._span.set_status(StatusCode.ERROR, str(error)[:_WORDS])
        # The traceback of unexpected errors only; the others are described by their message.
        if isinstance(error, Exception) and not isinstance(error, FivespotError | TimeoutError):
            self._span.record_exception(error)


def _run(attributes: Mapping[str, Value]) -> tuple[str, dict[str, Value]]:
    shown: dict[str, Value] = {
        "fivespot.controller": attributes["controller"],
        "fivespot.reconcile_id": attributes["reconcile_id"],
        "k8s.object.name": attributes["name"],
    }
    if attributes["namespace"]:
        shown["k8s.namespace.name"] = attributes["namespace"]
    return f"reconcile {attributes['controller']}", shown


def _request(attributes: Mapping[str, Value]) -> tuple[str, dict[str, Value]]:
    method, path = str(attributes["method"]), str(attributes["path"])
    template, namespace, name = read_path(path)
    shown: dict[str, Value] = {
        "http.request.method": method,
        "url.template": template,
        "fivespot.verb": str(attributes["what"]).partition(" ")[0].lower(),
    }
    if namespace:
        shown["k8s.namespace.name"] = namespace
    if name:
        shown["k8s.object.name"] = name
    base, host, port = _server(str(attributes["server"]))
    if host:
        shown |= {"server.address": host, "server.port": port, "url.full": base + path}
    else:
        shown["url.path"] = path
    if (again := int(attributes["attempt"]) - 1) > 0:
        shown["http.request.resend_count"] = again
    return f"{method} {template}", shown


@lru_cache(maxsize=16)
def _server(url: str) -> tuple[str, str, int]:
    """URL without path, host and port of a server, without user and password."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (80 if parts.scheme == "http" else 443)
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{port}{parts.path.rstrip('/')}", host, port


def read_path(path: str) -> tuple[str, str, str]:
    """Template of a path of the Kubernetes API, and the namespace and name in it ("" when absent).

    The number of templates depends on the served resources and subresources, not on the number of objects.
    """
    parts = path.strip("/").split("/")
    head = 2 if parts[0] == "api" else 3 if parts[0] == "apis" else 0
    if not head or len(parts) <= head:
        return ("/" + "/".join(parts[:3]) + ("/{path}" if len(parts) > 3 else "")), "", ""
    form, rest = parts[:head], parts[head:]
    namespace = name = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _OF_A_NAMESPACE):
        namespace = rest[1]
        form += ["namespaces", "{namespace}"]
        rest = rest[2:]
    form.append(rest[0])
    if len(rest) > 1:
        name = rest[1]
        form.append("{name}")
    form += rest[2:3]
    if len(rest) > 3:
        form.append("{path}")
    return "/" + "/".join(form), namespace, name
