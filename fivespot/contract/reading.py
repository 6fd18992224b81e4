"""What a ScheduledMachine can know of its schedule provider, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Display", "Reading", "Reference", "Resolved", "Unreadable", "Unresolved"]


@dataclass(frozen=True, slots=True)
class Reference:
    """The identity of a provider object within a namespace: kind and name, whatever version is written."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Display:
    """What is shown of a provider and never acted on. Its texts are cut and free of control characters."""

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


Reading = Resolved | Unresolved | Unreadable
