"""The conformance kit: checks any schedule provider, in any language, through the API server alone.

``fivespot conformance`` is the same as a command. The rules are a table, :data:`RULES`. :class:`ProviderConformance`
needs pytest and is imported lazily.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .history import MANAGER
from .recorder import RecordingLostError
from .report import ConformanceReport, RuleOutcome, RuleResult
from .rules import RULES, ConformanceRule
from .runner import Progress, check_provider
from .subject import (
    SHIPPED,
    BoundarySpec,
    Flip,
    Restart,
    Samples,
    Spec,
    Subject,
    Timing,
    read_samples,
    read_spec,
    soon,
)

if TYPE_CHECKING:
    from .cases import ProviderConformance
    from .host import with_provider

__all__ = [
    "MANAGER",
    "RULES",
    "SHIPPED",
    "BoundarySpec",
    "ConformanceReport",
    "ConformanceRule",
    "Flip",
    "Progress",
    "ProviderConformance",
    "RecordingLostError",
    "Restart",
    "RuleOutcome",
    "RuleResult",
    "Samples",
    "Spec",
    "Subject",
    "Timing",
    "check_provider",
    "read_samples",
    "read_spec",
    "soon",
    "with_provider",
]

if not TYPE_CHECKING:  # otherwise type checkers would accept every misspelt name as Any

    def __getattr__(name: str) -> Any:
        if name == "ProviderConformance":
            from .cases import ProviderConformance  # noqa: PLC0415

            return ProviderConformance
        if name == "with_provider":
            # It imports the manager.
            from .host import with_provider  # noqa: PLC0415

            return with_provider
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
