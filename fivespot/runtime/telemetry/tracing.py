"""The tracer interface, a tracer that does nothing, and the choice between them from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Final, Protocol

import structlog

__all__ = ["NULL_TRACER", "Span", "Tracer", "tracer_from"]

_log = structlog.get_logger(__name__)


class Span(Protocol):
    """An open span."""

    def set(self, name: str, value: str | float, /) -> None:
        """Set an attribute that was not known when the span was opened."""
        ...

    def headers(self) -> Mapping[str, str]:
        """Headers that propagate the span to the server of a request; empty when the span is not recorded."""
        ...


class Tracer(Protocol):
    """Opens spans.

    Controllers open ``reconcile`` around each run (``controller``, ``namespace``, ``name``, ``reconcile_id``). Clients
    open ``request`` around each try of a request, its answer included, and ``watch`` around the opening of a watch,
    which ends when the events begin. Both have ``method``, ``server`` (a URL), ``path`` (without the query), ``what``
    (in words) and ``attempt`` (1 for the first), and set ``status`` once an answer came. An implementation must not
    block and must let every exception through. The span's parent is the one that is open in the current context
    (``contextvars``), so nothing has to be handed on.

    :class:`~fivespot.runtime.telemetry.otel.OpenTelemetryTracer` is one for OpenTelemetry.
    """

    def span(self, name: str, /, **attributes: str | float) -> AbstractContextManager[Span]: ...


class _NullSpan:
    _nothing: Final[Mapping[str, str]] = {}

    def set(self, name: str, value: str | float, /) -> None:
        pass

    def headers(self) -> Mapping[str, str]:
        return self._nothing


class _NullTracer:
    _nothing: AbstractContextManager[Span] = nullcontext(_NullSpan())

    def span(self, name: str, /, **attributes: str | float) -> AbstractContextManager[Span]:
        return self._nothing


NULL_TRACER: Tracer = _NullTracer()
"""The tracer that records nothing."""

_ASKING: Final = (
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_PYTHON_TRACER_PROVIDER",
)


def tracer_from(environ: Mapping[str, str]) -> Tracer:
    """The tracer that OpenTelemetry's environment variables ask for; without them nothing is imported or traced.

    Spans are exported by ``opentelemetry-instrument`` or the program, which set a tracer provider up beforehand. Where
    one of the variables is set and there is no provider (an operator may inject them into every pod), a warning is
    logged and the program runs without traces.

    The variables (OpenTelemetry specification, "Environment Variable Specification"): ``OTEL_TRACES_EXPORTER`` other
    than ``none``, ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT``, ``OTEL_EXPORTER_OTLP_ENDPOINT`` or
    ``OTEL_PYTHON_TRACER_PROVIDER`` asks for traces; ``OTEL_SDK_DISABLED=true`` wins over all.
    """
    asked = next((name for name in _ASKING if environ.get(name)), None)
    disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if asked is None or disabled or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return NULL_TRACER
    try:
        otel = import_module(".otel", __package__)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        _log.warning("no traces: opentelemetry-api is not installed", asked_by=asked, extra="fivespot[otel]")
        return NULL_TRACER
    if not otel.is_exported():
        _log.warning("no traces: nothing exports them, start with opentelemetry-instrument", asked_by=asked)
        return NULL_TRACER
    tracer: Tracer = otel.OpenTelemetryTracer()
    return tracer
