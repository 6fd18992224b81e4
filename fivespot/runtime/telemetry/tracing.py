"""The seam for tracing: a tracer that costs one call and does nothing where no tracer is given."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

__all__ = ["NULL_TRACER", "Tracer"]


class Tracer(Protocol):
    """Opens a span around a piece of work.

    Controllers open ``reconcile`` around each run (``controller``, ``namespace``, ``name``, ``reconcile_id``), clients
    ``request`` around each HTTP request, its answer included (``method``, ``what``); watches are not traced. An
    implementation must not block and must let every exception through. The span's parent is the one that is open in
    the current context (``contextvars``), so nothing has to be handed on. With OpenTelemetry's API this is all::

        class Tracing:
            def span(self, name, **attributes):
                return trace.get_tracer("my-program").start_as_current_span(name, attributes=attributes)
    """

    def span(self, name: str, /, **attributes: str | float) -> AbstractContextManager[object]: ...


class _NullTracer:
    _nothing: AbstractContextManager[object] = nullcontext()

    def span(self, name: str, /, **attributes: str | float) -> AbstractContextManager[object]:
        return self._nothing


NULL_TRACER: Tracer = _NullTracer()
"""For whoever does not trace."""
