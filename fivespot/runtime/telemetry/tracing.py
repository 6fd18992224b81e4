"""The seam for tracing: a tracer that costs one call and does nothing where no tracer is given."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

__all__ = ["NULL_TRACER", "Tracer"]


class Tracer(Protocol):
    """Opens a span around a piece of work.

    An implementation must not block and must let every exception through. The span's parent is the one that is
    open in the current context (``contextvars``), so nothing has to be handed on.
    """

    def span(self, name: str, **attributes: str | float) -> AbstractContextManager[object]: ...


class _NullTracer:
    _nothing: AbstractContextManager[object] = nullcontext()

    def span(self, name: str, **attributes: str | float) -> AbstractContextManager[object]:
        return self._nothing


NULL_TRACER: Tracer = _NullTracer()
"""For whoever does not trace."""
