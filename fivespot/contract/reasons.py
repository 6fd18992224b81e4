"""The words in which resolution of a schedule reference is reported."""

from __future__ import annotations

from typing import Final

__all__ = [
    "PROVIDER_CRD_NOT_INSTALLED",
    "PROVIDER_NOT_FOUND",
    "PROVIDER_NOT_READY",
    "PROVIDER_UNREADABLE",
    "RESOLVED",
    "STATUS_ACTIVE_MISSING",
    "UNRESOLVED_REASONS",
]

RESOLVED: Final = "Resolved"

# In the order in which they are checked: the first that holds is the one reported.
PROVIDER_CRD_NOT_INSTALLED: Final = "ProviderCRDNotInstalled"
PROVIDER_NOT_FOUND: Final = "ProviderNotFound"
STATUS_ACTIVE_MISSING: Final = "StatusActiveMissing"
PROVIDER_NOT_READY: Final = "ProviderNotReady"
UNRESOLVED_REASONS: Final = (
    PROVIDER_CRD_NOT_INSTALLED,
    PROVIDER_NOT_FOUND,
    STATUS_ACTIVE_MISSING,
    PROVIDER_NOT_READY,
)

# Not a resolution at all: nothing is known, so nothing is concluded.
PROVIDER_UNREADABLE: Final = "ProviderUnreadable"
