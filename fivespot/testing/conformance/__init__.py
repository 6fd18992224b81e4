"""The conformance kit: checks any schedule provider from outside, through the API server alone.

Also one that is not written in Python. ``fivespot conformance`` is the same as a command; the rules are a table,
:data:`RULES`. :class:`ProviderConformance` needs pytest, and is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .history import MANAGER
from .recorder import RecordingLostError
from .report import ConformanceReport, RuleOutcome, RuleResult
from .rules import RULES, ConformanceRule
from .runner import check_provider
from .samples import SHIPPED, Samples, read_samples, read_spec
from .subject import Flip, Restart, Soon, Spec, Subject, Timing

if TYPE_CHECKING:
    from .cases import ProviderConformance
    from .host import with_provider

__all__ = [
    "MANAGER",
    "RULES",
    "SHIPPED",
    "ConformanceReport",
    "ConformanceRule",
    "Flip",
    "ProviderConformance",
    "RecordingLostError",
    "Restart",
    "RuleOutcome",
    "RuleResult",
    "Samples",
    "Soon",
    "Spec",
    "Subject",
    "Timing",
    "check_provider",
    "read_samples",
    "read_spec",
    "with_provider",
]

if not TYPE_CHECKING:  # or type checkers would take every misspelt name for Any

    def __getattr__(name: str) -> Any:
        if name == "ProviderConformance":
            from .cases import ProviderConformance  # noqa: PLC0415

            return ProviderConformance
        if name == "with_provider":
            # It brings a whole manager along.
            from .host import with_provider  # noqa: PLC0415

            return with_provider
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
