"""The spot-schedule provider contract as pure code: how a provider is read, and what is held when it is silent."""

from .hold import EffectiveVerdict, HeldVerdict, effective_verdict
from .provider import clean, cut_provider, read_provider
from .resolution import (
    PROVIDER_CRD_NOT_INSTALLED,
    PROVIDER_NOT_FOUND,
    PROVIDER_NOT_READY,
    PROVIDER_UNREADABLE,
    RESOLVED,
    STATUS_ACTIVE_MISSING,
    UNRESOLVED_REASONS,
    Display,
    Reference,
    Resolution,
    Resolved,
    Unreadable,
    Unresolved,
    kind_missing,
    kind_unusable,
    object_missing,
)

__all__ = [
    "PROVIDER_CRD_NOT_INSTALLED",
    "PROVIDER_NOT_FOUND",
    "PROVIDER_NOT_READY",
    "PROVIDER_UNREADABLE",
    "RESOLVED",
    "STATUS_ACTIVE_MISSING",
    "UNRESOLVED_REASONS",
    "Display",
    "EffectiveVerdict",
    "HeldVerdict",
    "Reference",
    "Resolution",
    "Resolved",
    "Unreadable",
    "Unresolved",
    "clean",
    "cut_provider",
    "effective_verdict",
    "kind_missing",
    "kind_unusable",
    "object_missing",
    "read_provider",
]
