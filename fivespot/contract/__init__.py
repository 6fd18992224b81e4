"""The spot-schedule provider contract as pure code: how a provider is read, and what is held when it is silent."""

from .hold import Belief, Memory, believe
from .missing import kind_missing, kind_unusable, object_missing
from .provider import clean, cut_provider, read_provider
from .reading import Display, Reading, Reference, Resolved, Unreadable, Unresolved
from .reasons import (
    PROVIDER_CRD_NOT_INSTALLED,
    PROVIDER_NOT_FOUND,
    PROVIDER_NOT_READY,
    PROVIDER_UNREADABLE,
    RESOLVED,
    STATUS_ACTIVE_MISSING,
    UNRESOLVED_REASONS,
)

__all__ = [
    "PROVIDER_CRD_NOT_INSTALLED",
    "PROVIDER_NOT_FOUND",
    "PROVIDER_NOT_READY",
    "PROVIDER_UNREADABLE",
    "RESOLVED",
    "STATUS_ACTIVE_MISSING",
    "UNRESOLVED_REASONS",
    "Belief",
    "Display",
    "Memory",
    "Reading",
    "Reference",
    "Resolved",
    "Unreadable",
    "Unresolved",
    "believe",
    "clean",
    "cut_provider",
    "kind_missing",
    "kind_unusable",
    "object_missing",
    "read_provider",
]
