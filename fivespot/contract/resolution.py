"""The words in which resolution of a schedule reference is reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = [
    "PROVIDER_CRD_NOT_INSTALLED",
    "PROVIDER_NOT_FOUND",
    "PROVIDER_NOT_READY",
    "PROVIDER_UNREADABLE",
    "RESOLVED",
    "STATUS_ACTIVE_MISSING",
    "UNRESOLVED_REASONS",
    "Display",
    "Reference",
    "Resolution",
    "Resolved",
    "Unreadable",
    "Unresolved",
    "kind_missing",
    "kind_unusable",
    "object_missing",
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


@dataclass(frozen=True, slots=True)
class Reference:
    """The identity of a provider object within a namespace: kind and name, whatever version is written."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Display:
    """The displayed values of a provider, never acted on. Texts are shortened and free of control characters."""

    reason: str = ""
    message: str = ""
    generation: int | None = None
    observed_generation: int | None = None
    last_transition_time: str = ""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The provider's word counts."""

    active: bool
    display: Display = field(default_factory=Display)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """The provider was looked for and gives no verdict; the last known one is held."""

    reason: str
    message: str
    display: Display = field(default_factory=Display)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The provider could not be looked at, which says nothing about it: no step may be begun on its account."""

    why: str


Resolution = Resolved | Unresolved | Unreadable


def kind_missing(kind: str, *, group: str, field: str) -> Unresolved:
    """No definition of the group accepts the kind.

    :param field: the field that holds the reference, such as ``spec.schedule``.
    """
    return Unresolved(
        PROVIDER_CRD_NOT_INSTALLED,
        f"no CustomResourceDefinition of group {group} accepts kind {kind}: "
        f"install the provider, or correct {field}.kind",
    )


def kind_unusable(definition: str, problem: str) -> Unresolved:
    """A definition exists and serves no namespaced objects.

    :param definition: its name.
    :param problem: what it lacks.
    """
    return Unresolved(
        PROVIDER_CRD_NOT_INSTALLED, f"CustomResourceDefinition {definition}: {problem or 'it is not namespaced'}"
    )


def object_missing(reference: Reference, *, namespace: str, field: str) -> Unresolved:
    """The kind is there, the object is not."""
    return Unresolved(
        PROVIDER_NOT_FOUND,
        f"{reference} does not exist in namespace {namespace}: create it, or correct {field}.name",
    )
